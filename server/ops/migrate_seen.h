/*
 * migrate_seen.h - the set of files that a run found, or stored, in the target.
 *
 * They are not checked again while writes to the source are blocked, which should be short.  Each
 * takes at most 64 bytes; beyond four million, files are not recorded and are checked again.
 * Thread: one at a time.
 */
#ifndef TW_MIGRATE_SEEN_H
#define TW_MIGRATE_SEEN_H

#include "server/ops/migrate_each.h"

struct tw_migrate_seen;

struct tw_migrate_seen *tw_migrate_seen_new(void); /* NULL: out of memory */
/* accepts NULL; returns NULL */
struct tw_migrate_seen *tw_migrate_seen_free(struct tw_migrate_seen *s);
/* Records file and content: a file without a known SHA-256 is never seen. */
void tw_migrate_seen_add(struct tw_migrate_seen *s, const struct tw_migrate_file *f);
bool tw_migrate_seen_has(const struct tw_migrate_seen *s, const struct tw_migrate_file *f);
/* The same by key alone, whatever the content. */
void tw_migrate_seen_add_key(struct tw_migrate_seen *s, const char *key);
/* False: it was certainly never added. */
bool tw_migrate_seen_may_have_key(const struct tw_migrate_seen *s, const char *key);

#endif

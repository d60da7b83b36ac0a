/*
 * migrate_seen.h - which files a run found, or put, in the target.
 *
 * So that they are not looked at a second time while the source is held, which should be short.
 * Each takes 64 bytes at most; beyond four million no more are remembered, and looked at again.
 * Thread: one at a time.
 */
#ifndef TW_MIGRATE_SEEN_H
#define TW_MIGRATE_SEEN_H

#include "server/ops/migrate_each.h"

struct tw_migrate_seen;

struct tw_migrate_seen *tw_migrate_seen_new(void); /* NULL without memory */
struct tw_migrate_seen *tw_migrate_seen_free(
        struct tw_migrate_seen *s); /* NULL is fine; returns NULL */
/* Only with that very content: one whose SHA-256 is not known is never seen. */
void tw_migrate_seen_add(struct tw_migrate_seen *s, const struct tw_migrate_file *f);
bool tw_migrate_seen_has(const struct tw_migrate_seen *s, const struct tw_migrate_file *f);
/* The same by the key alone, whatever its content is. */
void tw_migrate_seen_add_key(struct tw_migrate_seen *s, const char *key);
/* False: it was never added, for sure. */
bool tw_migrate_seen_may_have_key(const struct tw_migrate_seen *s, const char *key);

#endif

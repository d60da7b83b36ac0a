/*
 * catalogue_key.h - the keys of a project.  Thread: any.
 */
#ifndef TW_CATALOGUE_KEY_H
#define TW_CATALOGUE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/base/ulid.h"

struct tw_catalogue;
struct tw_fields; /* catalogue_row.h: the JSON of rows */

/* Secrets are passed as hashes (secret.h).  A key has one secret, and for a time after a
 * rotation also the previous one. */
struct tw_key_row {
	const char *id, *project_id, *name;
	enum tw_scope scope;
	int64_t created_ms, last_seen_ms, revoked_ms, expires_ms; /* 0: never */
	const char *seen_from;                                    /* address of its last use, "" */
	int64_t rotated_ms;                                       /* 0: never */
	int64_t old_until_ms; /* the previous secret is valid until then */
	int64_t old_seen_ms;  /* last use of the previous secret since the rotation; 0: unused */
};
extern const struct tw_fields tw_key_fields;
struct tw_key_new {
	const char *project_id, *name;
	enum tw_scope scope;
	int64_t expires_ms; /* 0: valid until revoked */
	const uint8_t *hash;
};
enum tw_status tw_catalogue_key_add(struct tw_catalogue *c, const struct tw_key_new *k,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN if unknown, revoked or expired.  Records time and address of its use, at most once a
 * minute. */
enum tw_status tw_catalogue_key_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *from, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
/* Newest first, at most limit of those created before the key `before`; "": from the newest. */
enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, const char *before,
        uint32_t limit, struct tw_arena *a, struct tw_key_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND also if it was revoked. */
enum tw_status tw_catalogue_key_get(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_arena *a, struct tw_key_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* The end of an old secret that should work until until_ms: not later than it would have
 * expired. */
int64_t tw_key_old_until(const struct tw_key_row *row, int64_t until_ms);
/* Replaces the key's secret and expiry (k's scope and name are ignored).  The previous secret, and
 * sessions started with it, remain valid until old_until_ms; an earlier one ends now. */
enum tw_status tw_catalogue_key_rotate(struct tw_catalogue *c, const struct tw_key_new *k,
        const char *key_id, int64_t old_until_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_key_revoke(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_err *err) TW_MUST_USE;

#endif

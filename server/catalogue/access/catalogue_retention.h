/*
 * catalogue_retention.h - which traces may be deleted, archived or thinned out next, oldest first.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_RETENTION_H
#define TW_CATALOGUE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_blob_list;
struct tw_catalogue;

struct tw_use { /* of a project */
	uint64_t traces, archived, pinned, upload_bytes, decoded_bytes;
};
enum tw_status tw_catalogue_use(struct tw_catalogue *c, const char *project_id, struct tw_use *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_old_query {
	const char *project_id;
	int64_t before_ms;   /* created */
	uint32_t limit;      /* ≤ 4096 */
	bool keep_annotated; /* skip traces with a title or annotations */
	int64_t firsts_ms;   /* skip the first trace of an ANR group if created then or later */
};
struct tw_old_trace {
	const char *id, *name; /* as displayed */
	int64_t created_ms;
	int64_t since_ms; /* start of its age: created, or decoded */
	uint64_t bytes;   /* bytes freed by the deletion */
};
/* Decoded and failed traces that are neither pinned nor kept for a reason. */
enum tw_old_which {
	TW_OLD_ALL,
	TW_OLD_WITHOUT_ANR,
	TW_OLD_WITH_ANR,
	TW_OLD_WITH_UPLOAD, /* ready traces */
	TW_OLD_ARCHIVED,
	TW_OLD_DECODED, /* can be decoded again; by decode time, to which before_ms refers */
	TW_OLD_KINDS
};
/* The oldest first. */
enum tw_status tw_catalogue_oldest(struct tw_catalogue *c, enum tw_old_which which,
        const struct tw_old_query *of, struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Of the first traces of ANR groups, takes the newest created before before_ms, at most `limit` and
 * `bytes` in total.  *ret_ms: creation time of the oldest taken; INT64_MAX if there is none. */
enum tw_status tw_catalogue_firsts_since(struct tw_catalogue *c, const struct tw_old_query *of,
        uint64_t bytes, struct tw_arena *a, int64_t *ret_ms, struct tw_err *err) TW_MUST_USE;
/* Archives a ready trace; the caller may then delete its decoded file.  TW_NOT_FOUND as below. */
enum tw_status tw_catalogue_decoded_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
/* Drops a ready trace's upload except the device's own trace; *ret_unused as in
 * tw_catalogue_trace_delete. TW_NOT_FOUND if it was deleted, pinned or queued in the meantime. */
enum tw_status tw_catalogue_upload_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* After the clock was set back: makes work due whose due time is further ahead than the longest
 * wait. */
enum tw_status tw_catalogue_end_long_waits(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;

#endif

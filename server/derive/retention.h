/*
 * retention.h - how long a project keeps its traces, and what is due.
 *
 * By age, by number, by bytes; the oldest go first, pinned ones and those that
 * are kept for their value (kept_for) never, and none that is not decoded yet.  The first trace of
 * each group of ANRs outlives its age, but no other limit: who sends ANRs decides what a group is,
 * so of those past their age only the newest TW_FIRSTS_KEPT stay, TW_FIRSTS_BYTES together.  With
 * an age of their own, traces of ANRs go by that alone.  Uploads may go before what was decoded
 * from them: such a trace can be read, exported and named, but not decoded again.  What was decoded
 * may go before the upload: such a trace is archived, and decoded again when somebody opens it;
 * when its upload's age is over nothing would be left of it, and it goes.  Nothing is deleted here
 * (jobs_retention.h does).  Thread: any.
 */
#ifndef TW_RETENTION_H
#define TW_RETENTION_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/http/metrics.h"

struct tw_catalogue;
struct tw_project_row;
struct tw_trace_row;

#define TW_SETTING_RETENTION "retention"

enum { TW_FIRSTS_KEPT = 1000 };
#define TW_FIRSTS_BYTES ((uint64_t)4 << 30)

struct tw_retention { /* 0: no such limit */
	int64_t max_age_days, max_traces, max_bytes, uploads_max_age_days;
	int64_t anr_max_age_days;     /* of traces with an ANR, instead of all other limits */
	int64_t decoded_max_age_days; /* of decoded files, from when they were made */
	int64_t keep_first_anr;       /* 1: the first of each group of ANRs outlives its age */
	int64_t keep_annotated;       /* 1: traces with a title or annotations stay */
	int64_t quarantine_max_traces, quarantine_max_bytes; /* always limited */
};

/* From an object with those names; a number that is null or missing is no limit.  TW_BAD_REQUEST
 * says which member is wrong. */
enum tw_status tw_retention_read(
        const json_t *json, struct tw_retention *ret, struct tw_err *err) TW_MUST_USE;
json_t *tw_retention_json(const struct tw_retention *r); /* a new reference */
/* The rules of a project that has set none; PUT {} removes all limits. */
enum { TW_UPLOADS_DAYS = 14, TW_TRACES_DAYS = 90 };
/* Of a project, or the defaults. */
enum tw_status tw_retention_of(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        struct tw_retention *ret, struct tw_err *err) TW_MUST_USE;

/* When their age deletes a trace, its upload alone and its decoded file alone, Unix ms; 0 never. */
struct tw_ends {
	int64_t trace_ms, upload_ms, decoded_ms;
};
struct tw_ends tw_retention_ends(const struct tw_retention *r, const struct tw_trace_row *row);

enum tw_expiry_why {
	TW_EXPIRY_AGE,
	TW_EXPIRY_COUNT,
	TW_EXPIRY_BYTES,
	TW_EXPIRY_UPLOAD,
	TW_EXPIRY_QUARANTINE,
	TW_EXPIRY_ANR,
	TW_EXPIRY_DECODED,
	TW_EXPIRY_ARCHIVED, /* by its upload's age */
	TW_EXPIRY_DISK      /* tw_retention_floor */
};
/* What goes. */
enum tw_expired tw_expiry_what(enum tw_expiry_why why);
const char *tw_expiry_word(enum tw_expiry_why why);

struct tw_expiry {
	const char *project_id, *id, *name;
	int64_t created_ms;
	int64_t due_ms; /* when its age says; 0: it does not */
	uint64_t bytes; /* that become free */
	enum tw_expiry_why why;
};

/* What is due at now_ms, oldest first, at most `limit`: whole traces, then uploads and decoded
 * files of those that stay. */
enum tw_status tw_retention_due(struct tw_catalogue *c, const char *project_id,
        const struct tw_retention *rules, int64_t now_ms, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Which traces of those projects go when the disk has over_bytes too many in use, at most `limit`:
 * each time the oldest one of the project that stores the most bytes, so that a project goes down
 * to the size of the others before these lose anything.  Kept are, besides what is pinned, kept for
 * its value or not decoded yet, firsts of groups of ANRs and annotated traces as the project's
 * rules say. None, if all projects together store less than over_bytes: other files fill the disk.
 */
enum tw_status tw_retention_floor(struct tw_catalogue *c, const struct tw_project_row *projects,
        size_t n_projects, uint64_t over_bytes, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * retention.h - a project's retention rules, and the traces that are due.
 *
 * Limits are age, number and bytes.  The oldest traces are deleted first; never pinned traces,
 * those retained for their value (exempt_reason) or those not decoded yet.  The first trace of each
 * group of ANRs outlives its age, but no other limit.  As the senders of ANRs determine the groups,
 * only the newest TW_FIRSTS_KEPT of those past their age are retained, with at most TW_FIRSTS_BYTES
 * in total.  If traces of ANRs have a separate age, only that applies to them.
 *
 * Uploads may expire before the decoded files: such a trace can be read, exported and named, but
 * not decoded again.  Decoded files may expire before the uploads: such a trace is archived, and
 * decoded again when it is opened; when its upload expires too, the trace is deleted.  This module
 * deletes nothing; jobs_retention.h does.
 * Thread: any.
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

struct tw_retention { /* 0: no limit */
	int64_t max_age_days, max_traces, max_bytes, uploads_max_age_days;
	int64_t anr_max_age_days;     /* of traces with an ANR, instead of all other limits */
	int64_t decoded_max_age_days; /* age of decoded files, since they were written */
	int64_t keep_first_anr;       /* 1: the first trace of each ANR group outlives its age */
	int64_t keep_annotated;       /* 1: traces with a title or annotations are retained */
	int64_t quarantine_max_traces, quarantine_max_bytes; /* always limited */
};

/* Parses an object with those names; null or missing numbers mean no limit.  TW_BAD_REQUEST names
 * the invalid member. */
enum tw_status tw_retention_read(
        const json_t *json, struct tw_retention *ret, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_retention_setting;     /* catalogue_setting.h */
json_t *tw_retention_json(const struct tw_retention *r); /* a new reference */
/* The rules of a project without settings; PUT {} removes all limits. */
enum { TW_UPLOADS_DAYS = 14, TW_TRACES_DAYS = 90 };
/* The rules of a project, or the defaults.  While the stored rules are invalid, no trace expires.
 */
enum tw_status tw_retention_of(struct tw_catalogue *c, const char *project_id,
        struct tw_retention *ret, struct tw_err *err) TW_MUST_USE;

/* Times at which age deletes the trace, only its upload and only its decoded file, Unix ms; 0:
 * never. */
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
	TW_EXPIRY_DISK      /* tw_retention_for_disk */
};
/* The part of the trace that is deleted. */
enum tw_expired tw_expiry_what(enum tw_expiry_why why);
const char *tw_expiry_name(enum tw_expiry_why why);

struct tw_expiry {
	const char *project_id, *id, *name;
	int64_t created_ms;
	int64_t due_ms; /* when its age is reached; 0: not by age */
	uint64_t bytes; /* freed */
	enum tw_expiry_why why;
};

/* Lists what is due at now_ms, oldest first, at most `limit`: traces, then uploads and decoded
 * files of the remaining traces. */
enum tw_status tw_retention_due(struct tw_catalogue *c, const char *project_id,
        const struct tw_retention *rules, int64_t now_ms, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Selects at most `limit` traces of those projects to delete when the disk has over_bytes too many
 * in use: repeatedly the oldest trace of the project that stores the most bytes, so that large
 * projects shrink to the size of the others first.  Never selected: traces that are pinned,
 * retained for their value or not decoded yet, and first traces of ANR groups and annotated traces
 * as the project's rules define.  Selects none if all projects together store less than over_bytes,
 * as other files fill the disk then. */
enum tw_status tw_retention_for_disk(struct tw_catalogue *c, const struct tw_project_row *projects,
        size_t n_projects, uint64_t over_bytes, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif

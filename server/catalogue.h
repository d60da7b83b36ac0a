/*
 * catalogue.h - projects, keys, sessions, builds, traces, parts and jobs: what the server knows.
 *
 * One SQLite database, data/catalogue.db (WAL, synchronous=FULL), behind an
 * interface that names no SQL: another engine is another catalogue_*.c.  Every
 * table's key starts with project_id and every look-up takes it, so that no
 * caller reaches another project's rows (I11).  Ids are ULIDs made here.
 * Strings in rows are copies in the arena that was passed.  One writer at a
 * time (a mutex inside); readers do not wait for it.
 * Several processes may open it (`tracewell key create` beside a server).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_H
#define TW_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth.h"
#include "base/arena.h"
#include "base/err.h"

struct tw_catalogue;

/* Opens or creates it and applies migrations (schema/catalogue/NNNN_*.sql); a newer schema than
 * this binary's is refused. */
enum tw_status tw_catalogue_open(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c);
/* A write that changes nothing: is it there and writable (for /readyz). */
enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err);

/* --- projects, keys, sessions (catalogue_auth.c) --- */

/* The project of that name, made when new. */
enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
struct tw_project_row {
	const char *id, *name;
	int64_t created_ms;
};
enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Secrets come hashed (auth_secret.h makes and hashes them). */
struct tw_key_row {
	const char *id, *project_id, *name;
	enum tw_scope scope;
	int64_t created_ms, last_seen_ms, revoked_ms; /* 0: never */
};
enum tw_status tw_catalogue_key_add(struct tw_catalogue *c, const char *project_id,
        enum tw_scope scope, const char *name, const uint8_t hash[32], char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN when unknown or revoked.  Notes when it was last seen, at most once a minute. */
enum tw_status tw_catalogue_key_find(struct tw_catalogue *c, const uint8_t hash[32],
        struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        struct tw_key_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_key_revoke(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_err *err) TW_MUST_USE;

/* A sign-in link is used once and becomes a session; both end by themselves. */
enum tw_status tw_catalogue_link_add(struct tw_catalogue *c, const uint8_t hash[32],
        int64_t expires_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_link_use(struct tw_catalogue *c, const uint8_t link_hash[32],
        const uint8_t session_hash[32], int64_t expires_ms, struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN when unknown or expired.  project "" picks the first project. */
enum tw_status tw_catalogue_session_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *project, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_session_end(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_err *err);

/* --- traces and their parts (catalogue_trace.c) --- */

enum tw_trace_state { TW_TRACE_QUEUED, TW_TRACE_DECODING, TW_TRACE_READY, TW_TRACE_FAILED };
const char *tw_trace_state_word(enum tw_trace_state s);

/* What the uploader says of a trace; "" where not said. */
struct tw_trace_meta {
	const char *app, *version_name, *version_code, *build_id, *mapping_id;
	const char *device, *os, *abi, *process, *scenario, *session_id, *uuid;
	const char *labels; /* JSON object text or "" */
	uint32_t pid;
	int64_t started_ms; /* device's clock, 0 not said */
};

struct tw_part {
	const char *part; /* "trace", "threads" */
	const char *sha256;
	const char *format; /* forced format or "" */
	uint64_t bytes;
};

struct tw_trace_summary { /* of a ready trace */
	uint64_t slices, input_bytes, decoded_bytes, file_bytes;
	uint32_t threads, methods, max_depth, losses, repairs; /* kinds counted, not cases */
	int64_t duration_ns;
	const char *format;
	uint32_t decoder_version;
};

struct tw_trace_row {
	const char *id, *project_id, *key_id;
	enum tw_trace_state state;
	int64_t created_ms, ready_ms;
	struct tw_trace_meta meta;
	struct tw_trace_summary summary;
	struct tw_err error; /* FAILED: why */
	uint32_t tries;
	uint64_t upload_bytes;
};

/* Adds the row, its parts and its job in one transaction (I1).  The same idempotency key (or, when
 * that is "", the same device, uuid and content) of the project gives the earlier trace's id and
 * *ret_new false; the same key with other content is TW_CONFLICT. */
enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_caller *caller,
        const char *idempotency_key, const struct tw_trace_meta *meta, const struct tw_part *parts,
        size_t n_parts, char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_trace_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_trace_row *ret,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_trace_parts(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_part **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

enum tw_trace_sort { TW_SORT_CREATED, TW_SORT_DURATION, TW_SORT_SLICES, TW_SORT_BYTES };
struct tw_trace_filter { /* NULL or "" : any */
	const char *app, *version_name, *build_id, *device, *os, *scenario, *state, *process;
	const char *text; /* substring of app, version, device, scenario, build, process or id */
	int64_t since_ms, until_ms; /* created; 0: open */
	enum tw_trace_sort sort;
	bool ascending;
	uint32_t limit;     /* ≤ 500 */
	const char *cursor; /* from the page before; "" the first */
};
/* ret_cursor "" when there are no more. */
enum tw_status tw_catalogue_traces(struct tw_catalogue *c, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, const char **ret_cursor, uint64_t *ret_total,
        struct tw_err *err) TW_MUST_USE;
/* Distinct values with counts, for filter menus. `column`: app, version_name, build_id, device,
 * os, scenario, state, process. At most 200, most frequent first. */
struct tw_facet {
	const char *value;
	uint64_t count;
};
enum tw_status tw_catalogue_facets(struct tw_catalogue *c, const char *project_id,
        const char *column, struct tw_arena *a, struct tw_facet **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Removes the row; *ret_blobs are the parts' contents that nothing else refers to any more. */
enum tw_status tw_catalogue_trace_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, const char ***ret_blobs, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- builds and mappings (catalogue_build.c) --- */

struct tw_blob_list { /* content hashes */
	const char **sha256;
	size_t n;
};

struct tw_build_retrace {
	const char *sha256;        /* compiled image, "" none yet */
	const char *source_sha256; /* text as uploaded */
	const char *id;            /* pg_map_id, "" none */
	uint64_t classes, methods, malformed;
	int64_t updated_ms; /* 0 none yet */
};

struct tw_name_counts { /* of method ids; what a trace itself names is not counted */
	uint64_t ids, resolved;
	uint64_t slices, resolved_slices; /* of methods with ids */
};

struct tw_build_names { /* of its ready traces, as far as they are counted */
	uint64_t traces;
	uint64_t lacking; /* with an id that no mapping names */
	struct tw_name_counts sum;
};

struct tw_build_row {
	const char *build_id;
	const char *map_sha256;    /* compiled image, "" none yet */
	const char *source_sha256; /* text as uploaded */
	const char *map_version;   /* its first comment line */
	uint64_t entries, malformed, duplicates;
	int64_t updated_ms;             /* of the mapping, 0 none yet */
	uint64_t traces;                /* that name this build */
	const char *app, *version_name; /* of its latest trace */
	struct tw_build_retrace retrace;
	struct tw_build_names names;
};
/* Set or replace the one mapping or the other (the row's other fields are not looked at); the blobs
 * that fell out of use come back as in trace_delete. */
enum tw_status tw_catalogue_build_set(struct tw_catalogue *c, const char *project_id,
        const struct tw_build_row *row, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_build_set_retrace(struct tw_catalogue *c, const char *project_id,
        const struct tw_build_row *row, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND when no mapping was sent for it. */
enum tw_status tw_catalogue_build_get(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_build_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* Builds with a mapping or named by a trace, newest first, paged by cursor. */
enum tw_status tw_catalogue_builds(struct tw_catalogue *c, const char *project_id, uint32_t limit,
        const char *cursor, struct tw_arena *a, struct tw_build_row **ret, size_t *ret_n,
        const char **ret_cursor, struct tw_err *err) TW_MUST_USE;

/* --- how much of its traces the mappings name (catalogue_names.c) --- */

struct tw_named_trace {
	const char *project_id, *trace_id, *build_id, *mapping_id;
};
/* Ready traces whose names are to be counted, at most `limit`. */
enum tw_status tw_catalogue_names_todo(struct tw_catalogue *c, uint32_t limit, struct tw_arena *a,
        struct tw_named_trace **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Nothing when the trace was deleted meanwhile. */
enum tw_status tw_catalogue_names_set(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_name_counts *counts, struct tw_err *err) TW_MUST_USE;
/* Marks some traces of a build whose mapping came as uncounted; *ret_more: there may be others. */
enum tw_status tw_catalogue_names_mark(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_mapping_ids { /* compiled images, "" none */
	char map[65], retrace[65];
};
/* What names a trace (`trace_id` is not looked at): of mapping_id when it is a build's with a
 * mapping, else of build_id. */
enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err) TW_MUST_USE;

/* --- jobs (catalogue_job.c) --- */

struct tw_job_row {
	const char *project_id, *trace_id;
	uint32_t tries; /* this one included */
};
/* Claims the oldest queued job, or one whose lease ran out; TW_NOT_FOUND when there is none.
 * `owner` names this process. */
enum tw_status tw_catalogue_job_claim(struct tw_catalogue *c, const char *owner, int64_t lease_ms,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the job: the trace is ready / failed for good / queued again. */
enum tw_status tw_catalogue_job_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err) TW_MUST_USE;
/* Queued again without counting the try, because the server's own state (a full disk) was in the
 * way; the trace tells why until it is decoded.  TW_NOT_FOUND: deleted meanwhile. */
enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* At start: whatever a dead server had claimed is queued again, and nothing waits any longer. */
enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* A trace whose file is gone or damaged is decoded again from its raw parts. */
enum tw_status tw_catalogue_trace_requeue(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
struct tw_queue_stats {
	uint64_t queued, decoding;
	int64_t oldest_ms; /* age of the oldest queued */
};
enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err) TW_MUST_USE;

/* --- start-up sweep (I9) --- */

/* Is this blob / this trace file referred to by a row? */
enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;

/* --- settings of a project (catalogue_setting.c) --- */

#define TW_SETTING_FRAMES "frames" /* frame_rules.h */

/* *ret NULL and time 0: not set.  The time rises with every change. */
enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err) TW_MUST_USE;

#endif

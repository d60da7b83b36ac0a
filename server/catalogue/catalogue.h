/*
 * catalogue.h - projects, keys, builds, traces, parts and jobs: what the server knows.
 *
 * One database, SQLite's data/catalogue.db (WAL, synchronous=FULL) or one in PostgreSQL, behind an
 * interface that names no SQL: an engine is below it (catalogue_db.h).  Every
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

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/db/commit_gate.h"

struct tw_catalogue;

/* Opens or creates it, at a path or postgres://..., and applies migrations (schema/catalogue*); a
 * newer schema than this binary's is refused. */
enum tw_status tw_catalogue_open(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c);
/* "sqlite" or "postgresql". */
const char *tw_catalogue_engine(const struct tw_catalogue *c);
/* A server is at work in it from here on: as the only one, of which there is one at a time, or as
 * one of several, which only PostgreSQL takes.  TW_BUSY when another has it otherwise. */
enum tw_status tw_catalogue_serve(
        struct tw_catalogue *c, bool several, struct tw_err *err) TW_MUST_USE;
/* Has a server the catalogue in PostgreSQL?  Of one in a file that is not known here. */
enum tw_status tw_catalogue_is_served(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE;
/* May other servers be at work in it? */
bool tw_catalogue_is_shared(const struct tw_catalogue *c);
/* Of a shared one: no other has the same; as long as a row is there. */
enum tw_status tw_catalogue_identity(
        struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err) TW_MUST_USE;
/* Its files are there from here on: in the data folder of that id, or in a store (s3://...);
 * TW_CONFLICT when they are in another than `instead`, "" none. */
enum tw_status tw_catalogue_take_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* Are they in one of the two, or nowhere yet?  TW_CONFLICT as above; "" none. */
enum tw_status tw_catalogue_may_have_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* What this thread commits from here on is committed only while there(arg): files that it names and
 * nothing named before may be dropped by another server until then.  NULL: no more.  The commit
 * fails with TW_IO, and nothing is changed. */
void tw_catalogue_only_while(bool (*there)(void *arg), void *arg);
/* Is this owner the one of several servers that does `what`, for so long?  Of one it is. */
enum tw_status tw_catalogue_lead(struct tw_catalogue *c, const char *what, const char *owner,
        int64_t lease_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* A lock of that name, of a shared catalogue: with others, or alone; *ret_session, by which it is
 * given back, 0: somebody has it.  Nothing waits. */
enum tw_status tw_catalogue_key_lock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t *ret_session, struct tw_err *err) TW_MUST_USE;
/* Asks: is it, which was had alone, ours as yet? */
enum tw_status tw_catalogue_key_held(struct tw_catalogue *c, const char *name, uint64_t session,
        bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* *ret_held false: it was lost before. */
enum tw_status tw_catalogue_key_unlock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t session, bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* Calls drop when nothing refers to the content, while nobody else can begin to. */
enum tw_status tw_catalogue_unless_used(struct tw_catalogue *c, const char *sha256,
        enum tw_status (*drop)(void *arg, const char *sha256, struct tw_err *err), void *arg,
        struct tw_err *err) TW_MUST_USE;
/* A write transaction that changes nothing that is read.  In SQLite it writes a page and syncs it.
 */
enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err);

/* --- its health (catalogue_health.c): health.h probes it, transactions report how they end --- */

/* Reads one row, with a short time limit.  Writes nothing.  TW_BUSY also if the database can only
 * be read, as a replica can. */
enum tw_status tw_catalogue_probe(struct tw_catalogue *c, bool *ret_writable, struct tw_err *err);
/* How the last write transactions ended.  Reads memory alone.  Not TW_OK: the last one failed for a
 * reason that other transactions share (disk, connection), or one has been in progress for long. */
enum tw_status tw_catalogue_writes(struct tw_catalogue *c, struct tw_err *err);
/* Writes again after a failed write, so that the above notices the end of the cause if nothing else
 * is written.  Does nothing after a write that succeeded, and in PostgreSQL, where every server
 * writes all the time. */
void tw_catalogue_write_again(struct tw_catalogue *c);
/* SQLite's log begins again in the space that it has. */
void tw_catalogue_checkpoint(struct tw_catalogue *c);
/* Its close keeps that space, for the next start. */
void tw_catalogue_keep_log(struct tw_catalogue *c);

/* --- projects and keys (catalogue_project.c, catalogue_key.c); people: catalogue_user.h --- */

/* The project of that name, made when new. */
enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
struct tw_project_row {
	const char *id, *name;
	int64_t created_ms;
};
enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Has the catalogue in that file, which is only looked at, projects, and none of c's? */
enum tw_status tw_catalogue_is_strange(
        struct tw_catalogue *c, const char *path, bool *ret, struct tw_err *err) TW_MUST_USE;

/* Secrets come hashed (auth_secret.h makes and hashes them).  A key has one, and for a time after
 * it was rotated also the one before. */
struct tw_key_row {
	const char *id, *project_id, *name;
	enum tw_scope scope;
	int64_t created_ms, last_seen_ms, revoked_ms, expires_ms; /* 0: never */
	const char *seen_from;                                    /* address of the last use, "" */
	int64_t rotated_ms;                                       /* 0: never */
	int64_t old_until_ms; /* the secret before is good until then */
	int64_t old_seen_ms;  /* and was last used then since the rotation; 0: not */
};
struct tw_key_new {
	const char *project_id, *name;
	enum tw_scope scope;
	int64_t expires_ms; /* 0: only when it is revoked */
	const uint8_t *hash;
};
enum tw_status tw_catalogue_key_add(struct tw_catalogue *c, const struct tw_key_new *k,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* TW_NO_TOKEN when unknown, revoked or over.  Notes when and from which address it was last seen,
 * at most once a minute. */
enum tw_status tw_catalogue_key_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *from, struct tw_caller *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        struct tw_key_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND when it was revoked, too. */
enum tw_status tw_catalogue_key_get(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_arena *a, struct tw_key_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* When the old secret of a key ends that would work until until_ms: not later than it would have.
 */
int64_t tw_key_old_until(const struct tw_key_row *row, int64_t until_ms);
/* Gives the key another secret and end (k's scope and name are not looked at); the secret it had
 * and sessions begun with it work until old_until_ms, one before that ends now. */
enum tw_status tw_catalogue_key_rotate(struct tw_catalogue *c, const struct tw_key_new *k,
        const char *key_id, int64_t old_until_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_key_revoke(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_err *err) TW_MUST_USE;

/* --- traces and their parts (catalogue_trace.c) --- */

enum tw_trace_state {
	TW_TRACE_QUEUED,
	TW_TRACE_DECODING,
	TW_TRACE_READY,
	TW_TRACE_FAILED,
	TW_TRACE_ARCHIVED, /* it was ready; its upload alone is kept, and decoded when asked for */
	TW_TRACE_STATES
};
const char *tw_trace_state_word(enum tw_trace_state s);

/* What the uploader says of a trace; "" where not said. */
struct tw_trace_meta {
	const char *app, *version_name, *version_code, *build_id, *mapping_id;
	const char *device, *os, *abi, *process, *scenario, *session_id, *uuid;
	const char *labels; /* JSON object text or "" */
	const char *commit; /* of the build, which keeps it */
	const char *capture,
	        *device_id; /* counted when it arrives (catalogue_capture.h), kept as a hash */
	uint32_t pid;
	int64_t started_ms; /* device's clock, 0 not said */
};

struct tw_part {
	const char *part; /* "trace", "threads" */
	const char *sha256;
	const char *format; /* forced format or "" */
	uint64_t bytes;
	bool found; /* by the decoder, in the trace's archive */
};

struct tw_trace_summary { /* of a ready trace */
	uint64_t slices, input_bytes, decoded_bytes, file_bytes;
	uint32_t threads, methods, max_depth, losses, repairs; /* kinds counted, not cases */
	int64_t duration_ns;                                   /* -1: it has no times */
	const char *format;
	uint32_t decoder_version;
	const char *file_sha256; /* of the trace file, "" not known */
	const char *anr;         /* the group of its ANR, "" none */
};

static inline bool tw_trace_is_timed(const struct tw_trace_summary *s)
{
	return s->duration_ns >= 0;
}

/* Is it in the sums of many traces?  As column folded has it. */
enum tw_counted { TW_COUNTED_LATER, TW_COUNTED, TW_COUNTED_NEVER, TW_COUNTED_PUT_OFF };

struct tw_trace_row {
	const char *id, *project_id, *key_id;
	enum tw_trace_state state;
	int64_t created_ms, ready_ms;
	struct tw_trace_meta meta;
	struct tw_trace_summary summary;
	struct tw_err error; /* FAILED: why */
	uint32_t tries;
	uint64_t upload_bytes;
	const char *title; /* that people gave it, "" */
	const char *tags;  /* JSON array of texts */
	bool pinned;
	const char *kept_for; /* why retention leaves it alone, "" */
	const char *anr;      /* the group of its ANR, "" none */
	bool first_anr;       /* and it is the first of that */
	bool upload_kept;     /* false: what was decoded is all there is */
	uint32_t annotations;
	enum tw_counted counted;
};

struct tw_arrival { /* an upload that is all there */
	const struct tw_caller *caller;
	const char *key; /* Idempotency-Key, "" none */
	const struct tw_trace_meta *meta;
	const struct tw_part *parts;
	size_t n_parts;
	/* Returns when the parts' files are durable, or why they are not; NULL: they are.  Called
	 * from any thread, perhaps more than once, while tw_catalogue_trace_add runs. */
	enum tw_status (*durable)(void *arg, struct tw_err *err);
	void *arg;
};

/* Adds the row, its parts and its job in one transaction, which nobody sees before it and the files
 * are durable (I1).  The same idempotency key (or, when that is "", the same device, uuid and
 * content; without uuid the same device, start and content within a day) of the project gives the
 * earlier trace's id and *ret_new false; the same key with other content is TW_CONFLICT. */
enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_arrival *of,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* After a crash: the parts of the traces whose rows may have survived it without their files, with
 * the ids that tw_catalogue_trace_delete takes.  None that was answered or seen is without. */
struct tw_unproven {
	const char *project_id, *trace_id, *sha256;
	uint64_t bytes;
};
enum tw_status tw_catalogue_unproven(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_unproven **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_trace_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_trace_row *ret,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_trace_parts(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_part **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* A part that the decoder found in the trace's archive; an earlier one of that name is replaced
 * when it was found too, and stays when it was sent.  TW_NOT_FOUND: the trace is deleted. */
enum tw_status tw_catalogue_part_found(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_part *part, struct tw_err *err) TW_MUST_USE;

enum tw_trace_sort { TW_SORT_CREATED, TW_SORT_DURATION, TW_SORT_SLICES, TW_SORT_BYTES };
enum tw_trace_by { /* server/catalogue/traces/filters.def */
#define COLUMN(name)            TW_BY_##name,
#define FILTER(name, kind, sql) TW_BY_##name,
#include "server/catalogue/traces/filters.def"
#undef COLUMN
#undef FILTER
	TW_TRACE_BYS
};
enum { TW_TRACE_CONDITIONS_MAX = 32 };

struct tw_trace_filter {
	struct { /* all hold; the first without a value ends them, "" is any */
		enum tw_trace_by by;
		const char *value; /* as in a query */
	} of[TW_TRACE_CONDITIONS_MAX + 1];
	enum tw_trace_sort sort;
	bool ascending;
	uint32_t limit;     /* ≤ 500 */
	const char *cursor; /* from the page before; "" the first */
};
/* Adds a condition by its name; any other name changes nothing. */
enum tw_status tw_trace_filter_add(struct tw_trace_filter *f, const char *name, const char *value,
        struct tw_err *err) TW_MUST_USE;
/* ret_cursor "" when there are no more. */
enum tw_status tw_catalogue_traces(struct tw_catalogue *c, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, const char **ret_cursor, uint64_t *ret_total,
        struct tw_err *err) TW_MUST_USE;
/* Distinct values with counts, for filter menus. `column`: a COLUMN of filters.def, state, tag or
 * label. At most 200, most frequent first. */
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

/* --- what people say of traces (catalogue_mark.c, catalogue_annotation.c) --- */

/* A tag is a text without commas, so that several fit one query parameter. */
enum { TW_TITLE_BYTES = 200, TW_TAG_BYTES = 64, TW_TAGS_MAX = 20 };

struct tw_trace_marks {    /* what is not said stays as it is */
	const char *title; /* NULL: not said */
	bool sets_pinned, pinned;
	bool sets_tags;
	const char *const *tags; /* each counts once */
	size_t n_tags;
};
enum tw_status tw_catalogue_trace_mark(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_trace_marks *marks, struct tw_err *err) TW_MUST_USE;

enum { TW_ANNOTATION_BYTES = 4000, TW_ANNOTATIONS_MAX = 500, TW_METHOD_KEY_BYTES = 512 };

struct tw_annotation {
	const char *id, *author, *text;
	int64_t created_ms, edited_ms; /* edited_ms 0: never */
	int64_t ts_ns;                 /* from the trace's clock base; -1: at no time */
	int64_t dur_ns;                /* 0: a moment */
	int64_t tid;                   /* -1: of no thread */
	int64_t method_index;          /* -1: on no method */
	const char *method_key;        /* finds the method when its index has changed */
};
/* id, created_ms and edited_ms of *a are not looked at.  TW_CONFLICT when the trace has
 * TW_ANNOTATIONS_MAX of them. */
enum tw_status tw_catalogue_annotation_add(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_annotation *a, char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* In the order in which they were written; none when there is no such trace. */
enum tw_status tw_catalogue_annotations(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *arena, struct tw_annotation **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, const char *text, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, struct tw_err *err) TW_MUST_USE;

/* --- lists that people keep (catalogue_filter.c) --- */

enum { TW_FILTER_NAME_BYTES = 100, TW_FILTER_QUERY_BYTES = 2000, TW_FILTERS_MAX = 100 };

struct tw_filter_row {
	const char *name, *query, *author;
	int64_t updated_ms;
};
enum tw_status tw_catalogue_filters(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_filter_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Sets or replaces the one of that name (updated_ms is not looked at).  TW_CONFLICT when the
 * project has TW_FILTERS_MAX of other names. */
enum tw_status tw_catalogue_filter_set(struct tw_catalogue *c, const char *project_id,
        const struct tw_filter_row *row, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_filter_delete(struct tw_catalogue *c, const char *project_id,
        const char *name, struct tw_err *err) TW_MUST_USE;

/* --- builds and mappings (catalogue_build.c) --- */

struct tw_blob_list { /* content hashes */
	const char **sha256;
	size_t n;
};

enum tw_mapping_kind { TW_MAPPING_METHODS, TW_MAPPING_RETRACE };
enum tw_mapping_state { /* of a build's last upload of that kind */
	TW_MAPPING_NONE,
	TW_MAPPING_QUEUED,
	TW_MAPPING_COMPILING,
	TW_MAPPING_READY,
	TW_MAPPING_FAILED
};
struct tw_mapping_upload {
	enum tw_mapping_state state;
	/* "" where it is ready or there is none; the status is a word (tw_status_word).  Of one
	 * that is queued: why it was put off. */
	const char *job_id, *error_status, *error_message;
	int64_t error_offset; /* -1 none */
	bool may_replace;     /* a mapping that is in use */
};

struct tw_build_retrace {
	const char *sha256;        /* compiled image, "" none yet */
	const char *source_sha256; /* text as uploaded */
	const char *id;            /* pg_map_id, "" none */
	uint64_t classes, methods, malformed;
	int64_t first_malformed; /* its offset, -1 none */
	int64_t updated_ms;      /* 0 none yet */
	struct tw_mapping_upload upload;
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
	int64_t first_malformed;         /* its offset, -1 none */
	int64_t updated_ms;              /* of the mapping, 0 none yet */
	uint64_t traces;                 /* that name this build */
	const char *app, *version_name;  /* of its latest trace */
	const char *commit;              /* that it is made of, "" nobody said */
	struct tw_mapping_upload upload; /* of the method mapping */
	struct tw_build_retrace retrace;
	struct tw_build_names names;
};
/* TW_NOT_FOUND: no trace names it, and no mapping was sent for it. */
enum tw_status tw_catalogue_build_get(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_build_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* Builds with a mapping or named by a trace, newest first, paged by cursor. */
enum tw_status tw_catalogue_builds(struct tw_catalogue *c, const char *project_id, uint32_t limit,
        const char *cursor, struct tw_arena *a, struct tw_build_row **ret, size_t *ret_n,
        const char **ret_cursor, struct tw_err *err) TW_MUST_USE;
struct tw_release { /* "" where it is not known */
	const char *app, *version_name, *build_id;
};
/* The newest of its builds whose latest trace is of that version, and of that app, of the newest
 * 5,000; "": none. */
enum tw_status tw_catalogue_build_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- mappings that were sent and are not in use (catalogue_mapping.c) --- */

struct tw_job_row;
struct tw_mapping_sent {
	const char *project_id, *build_id;
	enum tw_mapping_kind kind;
	const char *source_sha256; /* the upload, stored as a blob */
	uint64_t bytes;
	bool may_replace;            /* a mapping of the build with other content */
	const char *known_image;     /* compiled from the same upload and readable, "" none */
	uint64_t waiting_bytes_most; /* of the project's mappings that wait, this one included */
};
/* Queues it, unless it is in use or queued already; ret_id is of its job, "" when it is in use.
 * TW_DENIED when it may not replace another that is queued, TW_BUSY when too many are.  The blobs
 * that fell out of use come back as in trace_delete. */
enum tw_status tw_catalogue_mapping_add(struct tw_catalogue *c, const struct tw_mapping_sent *sent,
        struct tw_arena *a, char ret_id[TW_ID_BYTES], struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* Deletes uploads that failed and were sent before then. */
enum tw_status tw_catalogue_mapping_expire(
        struct tw_catalogue *c, int64_t before_ms, struct tw_err *err) TW_MUST_USE;
/* What was sent, of a job that was claimed (tw_catalogue_queue_claim). */
enum tw_status tw_catalogue_mapping_get(struct tw_catalogue *c, const struct tw_job_row *job,
        struct tw_arena *a, struct tw_mapping_sent *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the job: the row's mapping of that kind is in use, for old traces too.  TW_CONFLICT and
 * TW_NOT_FOUND as for traces' jobs; TW_DENIED when the build has another mapping that it may not
 * replace: the job then has yet to be ended as failed. */
enum tw_status tw_catalogue_mapping_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_build_row *row, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err) TW_MUST_USE;
/* Ends the job: it failed for good.  The mapping before it stays in use. */
enum tw_status tw_catalogue_mapping_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_err *why, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err) TW_MUST_USE;

/* --- what builds are made of (catalogue_commit.c) --- */

enum { TW_COMMIT_BYTES = 65 };
/* Of a build that may not be there yet; "": nobody knows any more. */
enum tw_status tw_catalogue_commit_set(struct tw_catalogue *c, const char *project_id,
        const char *build_id, const char *commit, struct tw_err *err) TW_MUST_USE;
/* The build's; without a build what builds of that version, and of that app, say.  "": nobody said,
 * or they do not agree. */
enum tw_status tw_catalogue_commit_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- how much of its traces the mappings name (catalogue_names.c) --- */

struct tw_named_trace {
	const char *project_id, *trace_id, *build_id, *mapping_id;
};
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

enum tw_queue { TW_QUEUE_TRACES, TW_QUEUE_MAPPINGS, TW_QUEUES };

struct tw_job_row {
	const char *project_id, *trace_id; /* of a mapping: the job's id */
	uint32_t tries;                    /* this one included */
	const char *owner;                 /* who claimed it */
	enum tw_queue queue;
};
/* Claims the oldest queued job of the project whose turn it is: the one that has had the least of
 * the decoders' time (fair.h), and of those the next after the one served last.  Before that one
 * whose lease ran out; TW_NOT_FOUND when there is none.  `owner` names this process, no other has
 * that name.  Of several servers each claims what no other is claiming. */
enum tw_status tw_catalogue_job_claim(struct tw_catalogue *c, const char *owner, int64_t lease_ms,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* The same for either queue. */
struct tw_claim {
	enum tw_queue queue;
	const char *owner;
	int64_t lease_ms;
	unsigned per_project; /* claims that the owner may have of one project, 0: any number */
};
enum tw_status tw_catalogue_queue_claim(struct tw_catalogue *c, const struct tw_claim *of,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* Called by one thread at a time.  Their claimer has them for so long from now on; those that were
 * lost meanwhile stay lost, and whatever is not named here (a claim that it does not know to have
 * got) lapses. */
enum tw_status tw_catalogue_jobs_renew(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t lease_ms, struct tw_err *err) TW_MUST_USE;
/* Has its owner got it for so long?  To be asked before what came of it is put in its place. */
enum tw_status tw_catalogue_job_held(struct tw_catalogue *c, const struct tw_job_row *job,
        int64_t for_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the job: the trace is ready / failed for good / queued again.  TW_CONFLICT: its lease had
 * run out and another has it, so that nothing was changed; TW_NOT_FOUND: it was deleted. */
enum tw_status tw_catalogue_job_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, struct tw_err *err) TW_MUST_USE;
/* The same, and when the job is still its owner's, before anybody sees the end, puts what came of
 * it in its place: no other server that had the job can do so then or later. */
struct tw_job_place {
	enum tw_status (*put)(void *arg, struct tw_err *err);
	void *arg;
};
enum tw_status tw_catalogue_job_publish(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, const struct tw_job_place *place,
        struct tw_err *err) TW_MUST_USE;
/* `death`: decoders died of it, so that it is quarantined; NULL: it was read and refused. */
struct tw_death_note;
enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, const struct tw_death_note *death,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err) TW_MUST_USE;
/* Queued again without counting the try, because the server's own state (a full disk) was in the
 * way; the trace tells why until it is decoded.  TW_NOT_FOUND: deleted meanwhile. */
enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* At start: whatever a dead server had claimed is queued again, and nothing waits any longer.  Of
 * servers that share a catalogue others go on: what a dead one had is taken when its lease ends. */
enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* What this owner has is queued again: it ends. */
enum tw_status tw_catalogue_jobs_leave(
        struct tw_catalogue *c, const char *owner, struct tw_err *err) TW_MUST_USE;
/* A trace whose file is gone or damaged is decoded again from its raw parts.  TW_NOT_FOUND when
 * those are not kept any more. */
enum tw_status tw_catalogue_trace_requeue(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
struct tw_queue_stats {
	uint64_t queued, decoding;
	uint64_t mappings, compiling; /* queued ones, and those that are claimed */
	int64_t oldest_ms;            /* age of the oldest queued */
};
enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err) TW_MUST_USE;

struct tw_waiting { /* of a project: not decoded yet, those being decoded included */
	char project_id[TW_ID_BYTES];
	uint64_t traces, bytes;
};
/* Of each project that has some, in the order of their ids. */
enum tw_status tw_catalogue_waiting(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_waiting **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* --- start-up sweep (I9) --- */

/* Is this blob / this trace file referred to by a row?  That of an archived trace is not. */
enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_decoded(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;

/* The same for many names in one statement.  TW_NAME_PIECE: objects of resumable uploads. */
enum tw_name_kind { TW_NAME_BLOB, TW_NAME_DECODED, TW_NAME_TRACE, TW_NAME_PIECE };
enum tw_status tw_catalogue_have(struct tw_catalogue *c, enum tw_name_kind what,
        const char *const *names, size_t n, bool *ret, struct tw_err *err) TW_MUST_USE;

/* --- what is kept, and how long (catalogue_retention.c) --- */

struct tw_use { /* of a project */
	uint64_t traces, archived, pinned, upload_bytes, decoded_bytes;
};
enum tw_status tw_catalogue_use(struct tw_catalogue *c, const char *project_id, struct tw_use *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_old_query {
	const char *project_id;
	int64_t before_ms;   /* created */
	uint32_t limit;      /* ≤ 4096 */
	bool keep_annotated; /* those with a title or annotations are not meant */
	int64_t firsts_ms;   /* nor is the first of a group of ANRs, when it came then or later */
};
struct tw_old_trace {
	const char *id, *name; /* as people see it */
	int64_t created_ms;
	int64_t since_ms; /* from when its age counts: created, or decoded */
	uint64_t bytes;   /* that would become free */
};
/* Decoded and failed traces that are neither pinned nor kept for a reason, oldest first. */
enum tw_old_which { TW_OLD_ALL, TW_OLD_WITHOUT_ANR, TW_OLD_WITH_ANR };
enum tw_status tw_catalogue_oldest(struct tw_catalogue *c, enum tw_old_which which,
        const struct tw_old_query *of, struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Those of them that are ready and whose upload is kept. */
enum tw_status tw_catalogue_oldest_uploads(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Those of which the upload is all there is. */
enum tw_status tw_catalogue_oldest_archived(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* *ret_ms: when the oldest came of those firsts of groups of ANRs that are the newest before_ms, at
 * most `limit` and so many bytes together; INT64_MAX when there is none. */
enum tw_status tw_catalogue_firsts_since(struct tw_catalogue *c, const struct tw_old_query *of,
        uint64_t bytes, struct tw_arena *a, int64_t *ret_ms, struct tw_err *err) TW_MUST_USE;
/* Those whose decoded file can be made again, by when it was made: before_ms means that. */
enum tw_status tw_catalogue_oldest_decoded(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* A ready trace is archived: its decoded file may go.  TW_NOT_FOUND as below. */
enum tw_status tw_catalogue_decoded_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
/* Forgets a ready trace's upload, but for the device's own trace; *ret_unused as in trace_delete.
 * TW_NOT_FOUND when it was deleted, pinned or queued meanwhile. */
enum tw_status tw_catalogue_upload_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;

/* --- what should be on disk, for `tracewell check` and `backup` (catalogue_check.c) --- */

struct tw_stored_file {
	const char *project_id, *id; /* a trace's, or of a build */
	const char *what; /* a part's name; "mapping", "retrace", their "... image", "... upload" */
	const char *sha256; /* "" not known */
	uint64_t bytes;     /* 0 not known */
};
/* A page of files in a fixed order, from behind `after` (a row of the page before; NULL the first);
 * at most `limit`, none at the end. */
typedef enum tw_status (*tw_stored_page_fn)(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err);
enum tw_status tw_catalogue_stored_parts(struct tw_catalogue *c, const struct tw_stored_file *after,
        uint32_t limit, struct tw_arena *a, struct tw_stored_file **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_stored_mappings(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Of ready traces; what is "decoded". */
enum tw_status tw_catalogue_stored_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* For a copy: what is changed in it from here on does not enter the record of changes. */
void tw_catalogue_stop_record(struct tw_catalogue *c);
/* Writes all of it, as it stands at one moment, into a new file at path; the caller makes that
 * durable.  Writers go on meanwhile. */
enum tw_status tw_catalogue_copy(
        struct tw_catalogue *c, const char *path, struct tw_err *err) TW_MUST_USE;
/* The engine's own check of the whole database; each thing that is wrong, in its words. */
enum tw_status tw_catalogue_verify(struct tw_catalogue *c,
        void (*wrong)(void *arg, const char *text), void *arg, struct tw_err *err) TW_MUST_USE;

/* --- settings of a project (catalogue_setting.c) --- */

#define TW_SETTING_FRAMES "frames" /* frame_rules.h */

/* *ret NULL and time 0: not set.  The time rises with every change. */
enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err) TW_MUST_USE;

#endif

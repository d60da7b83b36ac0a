/*
 * catalogue.h - the server's database: projects, keys, builds, traces, parts and jobs.
 *
 * One database, SQLite's data/catalogue.db (WAL, synchronous=FULL) or one in PostgreSQL (engines:
 * catalogue_db.h).  This interface contains no SQL.  Every table's key starts with project_id and
 * every lookup takes it, so that no caller reaches another project's rows (I11).  Ids are ULIDs
 * made here. Strings in rows are copies in the arena passed in.  One writer at a time (an internal
 * mutex); readers do not wait for it.
 * Several processes may open it (`tracewell key create` while a server runs).
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
struct tw_fields; /* catalogue_row.h: the JSON of rows */

/* Opens or creates the catalogue at a path or postgres://..., and applies migrations
 * (schema/catalogue*).  Refuses a schema newer than this binary's. */
enum tw_status tw_catalogue_open(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c);
/* "sqlite" or "postgresql". */
const char *tw_catalogue_engine(const struct tw_catalogue *c);
/* Registers a server, as the only one or as one of several (PostgreSQL only).  TW_BUSY if another
 * server is registered in a conflicting way. */
enum tw_status tw_catalogue_serve(
        struct tw_catalogue *c, bool several, struct tw_err *err) TW_MUST_USE;
/* Whether a server is registered.  Always false with SQLite, where this is not known. */
enum tw_status tw_catalogue_is_served(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Whether other servers may use it. */
bool tw_catalogue_is_shared(const struct tw_catalogue *c);
/* Identity of a shared catalogue: unique, and fixed while its row exists. */
enum tw_status tw_catalogue_identity(
        struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err) TW_MUST_USE;
/* Records the location of its files: the data folder with that id, or a store (s3://...).
 * TW_CONFLICT if they are in a location other than `instead` ("" none). */
enum tw_status tw_catalogue_take_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* Whether they are in one of the two, or not stored yet.  TW_CONFLICT as above; "" none. */
enum tw_status tw_catalogue_may_have_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* From now on, commits of this thread succeed only while there(arg) is true: until its commit,
 * another server may delete files that the new rows are the first to refer to.  NULL: no condition.
 * A refused commit fails with TW_IO and changes nothing. */
void tw_catalogue_only_while(bool (*there)(void *arg), void *arg);
/* Takes or renews the lease `what` for this owner.  A single server always has it. */
enum tw_status tw_catalogue_lead(struct tw_catalogue *c, const char *what, const char *owner,
        int64_t lease_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* A named lock of a shared catalogue, shared or exclusive (`alone`), without waiting.  *ret_session
 * is needed to unlock; 0: it is held by another. */
enum tw_status tw_catalogue_key_lock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t *ret_session, struct tw_err *err) TW_MUST_USE;
/* Whether an exclusive lock is still held; sends a query. */
enum tw_status tw_catalogue_key_held(struct tw_catalogue *c, const char *name, uint64_t session,
        bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* *ret_held false: it had already been lost. */
enum tw_status tw_catalogue_key_unlock(struct tw_catalogue *c, const char *name, bool alone,
        uint64_t session, bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* Calls drop if nothing refers to the content, while no other connection can start to. */
/* Adds changes of counters to their rows, in the background. */
enum tw_status tw_catalogue_counts_add(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_unless_used(struct tw_catalogue *c, const char *sha256,
        enum tw_status (*drop)(void *arg, const char *sha256, struct tw_err *err), void *arg,
        struct tw_err *err) TW_MUST_USE;
/* A write transaction without visible changes.  In SQLite it writes a page and syncs it. */
enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err);

/* --- health (catalogue_health.c): health.h probes it, transactions report their result --- */

/* Reads one row, with a short time limit.  Writes nothing.  TW_BUSY also if the database is
 * read-only, like a replica. */
enum tw_status tw_catalogue_probe(struct tw_catalogue *c, bool *ret_writable, struct tw_err *err);
/* The result of the last write transactions, from memory.  Not TW_OK: the last one failed for a
 * reason that affects other transactions too (disk, connection), or one has been in progress for
 * long. */
enum tw_status tw_catalogue_writes(struct tw_catalogue *c, struct tw_err *err);
/* Writes again after a failed write, so that recovery is noticed even without other writes.  Does
 * nothing after a successful write, and in PostgreSQL, where every server writes all the time. */
void tw_catalogue_write_again(struct tw_catalogue *c);
/* Checkpoints SQLite's log, which keeps its disk space. */
void tw_catalogue_checkpoint(struct tw_catalogue *c);
/* Keeps that space when the catalogue is closed, for the next start. */
void tw_catalogue_keep_log(struct tw_catalogue *c);

/* --- projects and keys (catalogue_project.c, catalogue_key.c); people: catalogue_user.h --- */

/* The project of that name, created if missing. */
enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* The project of that name; TW_NOT_FOUND. */
enum tw_status tw_catalogue_project_named(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
struct tw_project_row {
	const char *id, *name;
	int64_t created_ms;
};
enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Whether the catalogue in that file, opened read-only, has projects and none of c's. */
enum tw_status tw_catalogue_is_strange(
        struct tw_catalogue *c, const char *path, bool *ret, struct tw_err *err) TW_MUST_USE;

/* Secrets are passed as hashes (auth_secret.h).  A key has one secret, and for a time after a
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
enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        struct tw_key_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
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

/* --- traces and their parts (catalogue_trace.c) --- */

enum tw_trace_state {
	TW_TRACE_QUEUED,
	TW_TRACE_DECODING,
	TW_TRACE_READY,
	TW_TRACE_FAILED,
	TW_TRACE_ARCHIVED, /* was ready; only its upload is kept, and decoded on request */
	TW_TRACE_STATES
};
extern const char *const tw_trace_state_words[TW_TRACE_STATES + 1]; /* ends with NULL */
const char *tw_trace_state_word(enum tw_trace_state s);

/* Metadata from the uploader; "" for missing values. */
struct tw_trace_meta {
	const char *app, *version_name, *version_code, *build_id, *mapping_id;
	const char *device, *os, *abi, *process, *scenario, *session_id, *uuid;
	const char *labels; /* JSON object text or "" */
	const char *commit; /* of the build, which stores it */
	const char *capture,
	        *device_id; /* counted on arrival (catalogue_capture.h), stored as a hash */
	uint32_t pid;
	int64_t started_ms; /* device's clock, 0 unknown */
};

struct tw_part {
	const char *part; /* "trace", "threads" */
	const char *sha256;
	const char *format; /* forced format or "" */
	uint64_t bytes;
	bool found; /* extracted from the trace's archive by the decoder */
};

struct tw_trace_summary { /* of a ready trace */
	uint64_t slices, input_bytes, decoded_bytes, file_bytes;
	uint32_t threads, methods, max_depth, losses, repairs; /* losses, repairs: number of
	                                                        * kinds */
	int64_t duration_ns;                                   /* -1: the trace has no times */
	const char *format;
	uint32_t decoder_version;
	const char *file_sha256; /* of the trace file, "" unknown */
	const char *anr;         /* the group of its ANR, "" none */
};

static inline bool tw_trace_is_timed(const struct tw_trace_summary *s)
{
	return s->duration_ns >= 0;
}

/* Whether the trace is counted in rollups; the value of column `folded`. */
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
	const char *title; /* set by people, "" */
	const char *tags;  /* JSON array of texts */
	bool pinned;
	const char *kept_for; /* why retention must keep it, "" */
	const char *anr;      /* the group of its ANR, "" none */
	bool first_anr;       /* and is the first of that group */
	bool upload_kept;     /* false: only the decoded file is left */
	uint32_t annotations;
	enum tw_counted counted;
};
/* The row's JSON lacks the error, and has a summary for every state. */
extern const struct tw_fields tw_trace_fields, tw_trace_meta_fields, tw_trace_summary_fields;

struct tw_arrival { /* a complete upload */
	const struct tw_caller *caller;
	const char *key; /* Idempotency-Key, "" none */
	const struct tw_trace_meta *meta;
	const struct tw_part *parts;
	size_t n_parts;
	/* Returns once the parts' files are durable, or the error; NULL: they already are.  Called
	 * from any thread, possibly more than once, while tw_catalogue_trace_add runs. */
	enum tw_status (*durable)(void *arg, struct tw_err *err);
	/* Whether a part's file still exists, for servers that delete files in one folder: called
	 * once no other server can delete it before the row is there.  NULL: files have no other
	 * owner. */
	enum tw_status (*present)(void *arg, const char *sha256, struct tw_err *err);
	void *arg;
};

/* Adds the row, its parts and its job in one transaction, which nobody sees before it and the files
 * are durable (I1).  The same idempotency key (or, when that is "", the same device, uuid and
 * content; without uuid the same device, start and content within a day) of the project gives the
 * earlier trace's id and *ret_new false; the same key with other content is TW_CONFLICT. */
enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_arrival *of,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* After a crash: parts of traces whose rows may have survived without their files, with the ids for
 * tw_catalogue_trace_delete.  Never traces that were acknowledged or visible. */
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

/* Adds a part that the decoder extracted from the trace's archive.  Replaces an extracted part of
 * that name, but not an uploaded one.  TW_NOT_FOUND: the trace is deleted. */
enum tw_status tw_catalogue_part_found(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_part *part, struct tw_err *err) TW_MUST_USE;

enum tw_trace_sort { TW_SORT_CREATED, TW_SORT_DURATION, TW_SORT_SLICES, TW_SORT_BYTES };
enum tw_trace_by { /* server/catalogue/traces/filters.def */
#define COLUMN(name)                   TW_BY_##name,
#define FILTER(name, kind, about, sql) TW_BY_##name,
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
	const char *cursor; /* from the previous page; "" the first */
};
/* Adds a condition by its name; any other name changes nothing. */
enum tw_status tw_trace_filter_add(struct tw_trace_filter *f, const char *name, const char *value,
        struct tw_err *err) TW_MUST_USE;
/* A list counts no further: on a large project that would take longer than its page. */
enum { TW_TRACE_TOTAL_MAX = 10000 };
/* ret_cursor "" when there are no more.  *ret_total is at most TW_TRACE_TOTAL_MAX + 1, which means
 * more than TW_TRACE_TOTAL_MAX. */
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
/* Removes the row; *ret_blobs are the parts' contents that are no longer referred to. */
enum tw_status tw_catalogue_trace_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, const char ***ret_blobs, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- titles, tags and annotations (catalogue_mark.c, catalogue_annotation.c) --- */

/* Tags have no commas, so that several fit one query parameter. */
enum { TW_TITLE_BYTES = 200, TW_TAG_BYTES = 64, TW_TAGS_MAX = 20 };

struct tw_trace_marks {    /* unset fields stay unchanged */
	const char *title; /* NULL: unset */
	bool sets_pinned, pinned;
	bool sets_tags;
	const char *const *tags; /* duplicates are ignored */
	size_t n_tags;
};
enum tw_status tw_catalogue_trace_mark(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_trace_marks *marks, struct tw_err *err) TW_MUST_USE;

enum { TW_ANNOTATION_BYTES = 4000, TW_ANNOTATIONS_MAX = 500, TW_METHOD_KEY_BYTES = 512 };

struct tw_annotation {
	const char *id, *author, *text;
	int64_t created_ms, edited_ms; /* edited_ms 0: never */
	int64_t ts_ns;                 /* from the trace's clock base; -1: no time */
	int64_t dur_ns;                /* 0: an instant */
	int64_t tid;                   /* -1: no thread */
	int64_t method_index;          /* -1: no method */
	const char *method_key;        /* finds the method again if its index changes */
};
extern const struct tw_fields tw_annotation_fields; /* its JSON lacks the method */
/* id, created_ms and edited_ms of *a are ignored.  TW_CONFLICT if the trace has
 * TW_ANNOTATIONS_MAX. */
enum tw_status tw_catalogue_annotation_add(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_annotation *a, char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* In the order of creation; none if the trace does not exist. */
enum tw_status tw_catalogue_annotations(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *arena, struct tw_annotation **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, const char *text, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, struct tw_err *err) TW_MUST_USE;

/* --- saved filters (catalogue_filter.c) --- */

enum { TW_FILTER_NAME_BYTES = 100, TW_FILTER_QUERY_BYTES = 2000, TW_FILTERS_MAX = 100 };

struct tw_filter_row {
	const char *name, *query, *author;
	int64_t updated_ms;
};
extern const struct tw_fields tw_filter_fields;
enum tw_status tw_catalogue_filters(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_filter_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Sets or replaces the filter of that name (updated_ms is ignored).  TW_CONFLICT if the project has
 * TW_FILTERS_MAX others. */
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
extern const char *const tw_mapping_state_words[]; /* ended by NULL */
struct tw_mapping_upload {
	enum tw_mapping_state state;
	/* "" if ready or none; the status is a word (tw_status_word).  If queued: why it was
	 * postponed. */
	const char *job_id, *error_status, *error_message;
	int64_t error_offset; /* -1 none */
	bool may_replace;     /* a mapping in use */
};

struct tw_build_retrace {
	const char *sha256;        /* compiled image, "" none */
	const char *source_sha256; /* text as uploaded */
	const char *id;            /* pg_map_id, "" none */
	uint64_t classes, methods, malformed;
	int64_t first_malformed; /* its offset, -1 none */
	int64_t updated_ms;      /* 0 none */
	struct tw_mapping_upload upload;
};

struct tw_name_counts { /* of method ids; methods named in the trace itself are not counted */
	uint64_t ids, resolved;
	uint64_t slices, resolved_slices; /* of methods with ids */
};

struct tw_build_names { /* of its ready traces counted so far */
	uint64_t traces;
	uint64_t lacking; /* with an id that no mapping resolves */
	struct tw_name_counts sum;
};

struct tw_build_row {
	const char *build_id;
	const char *map_sha256;    /* compiled image, "" none */
	const char *source_sha256; /* text as uploaded */
	const char *map_version;   /* its first comment line */
	uint64_t entries, malformed, duplicates;
	int64_t first_malformed;         /* its offset, -1 none */
	int64_t updated_ms;              /* of the mapping, 0 none */
	uint64_t traces;                 /* of this build */
	const char *app, *version_name;  /* of its latest trace */
	const char *commit;              /* source revision, "" unknown */
	struct tw_mapping_upload upload; /* of the method mapping */
	struct tw_build_retrace retrace;
	struct tw_build_names names;
};
extern const struct tw_fields tw_build_fields; /* its JSON lacks the state of the uploads */
/* TW_NOT_FOUND: no trace has it, and no mapping was uploaded for it. */
enum tw_status tw_catalogue_build_get(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_build_row *ret,
        struct tw_err *err) TW_MUST_USE;
/* Builds with a mapping or a trace, newest first, paged by cursor. */
enum tw_status tw_catalogue_builds(struct tw_catalogue *c, const char *project_id, uint32_t limit,
        const char *cursor, struct tw_arena *a, struct tw_build_row **ret, size_t *ret_n,
        const char **ret_cursor, struct tw_err *err) TW_MUST_USE;
struct tw_release { /* "" unknown */
	const char *app, *version_name, *build_id;
};
/* The newest build whose latest trace has that version and app, among the newest 5,000; "":
 * none. */
enum tw_status tw_catalogue_build_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- uploaded mappings that are not in use yet (catalogue_mapping.c) --- */

struct tw_job_row;
struct tw_mapping_sent {
	const char *project_id, *build_id;
	enum tw_mapping_kind kind;
	const char *source_sha256; /* the upload, stored as a blob */
	uint64_t bytes;
	bool may_replace;            /* may replace a different mapping of the build */
	const char *known_image;     /* compiled from the same upload and readable, "" none */
	uint64_t waiting_bytes_most; /* limit of the project's waiting mappings, including this
	                              * one */
};
/* TW_BUSY if too many of the project are queued.  Reads project, build, kind and bytes (0: unknown)
 * alone, and only shortly before the upload: tw_catalogue_mapping_add decides. */
enum tw_status tw_catalogue_mapping_room(
        struct tw_catalogue *c, const struct tw_mapping_sent *sent, struct tw_err *err) TW_MUST_USE;
/* Queues it, unless it is in use or queued already; ret_id is its job's id, "" if it is in use.
 * TW_DENIED if it may not replace another queued mapping, TW_BUSY if too many are queued.  Blobs no
 * longer used are returned as in trace_delete. */
enum tw_status tw_catalogue_mapping_add(struct tw_catalogue *c, const struct tw_mapping_sent *sent,
        struct tw_arena *a, char ret_id[TW_ID_BYTES], struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* Deletes failed uploads sent before then. */
enum tw_status tw_catalogue_mapping_expire(
        struct tw_catalogue *c, int64_t before_ms, struct tw_err *err) TW_MUST_USE;
/* The upload of a claimed job (tw_catalogue_queue_claim). */
enum tw_status tw_catalogue_mapping_get(struct tw_catalogue *c, const struct tw_job_row *job,
        struct tw_arena *a, struct tw_mapping_sent *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the job: the row's mapping of that kind is now in use, for earlier traces too.  TW_CONFLICT
 * and TW_NOT_FOUND as for traces' jobs; TW_DENIED if the build has another mapping that it may not
 * replace: then end the job as failed. */
enum tw_status tw_catalogue_mapping_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_build_row *row, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err) TW_MUST_USE;
/* Ends the job as failed.  The previous mapping stays in use. */
enum tw_status tw_catalogue_mapping_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_mapping_sent *sent, const struct tw_err *why, struct tw_arena *a,
        struct tw_blob_list *ret_unused, struct tw_err *err) TW_MUST_USE;

/* --- source revisions of builds (catalogue_commit.c) --- */

enum { TW_COMMIT_BYTES = 65 };
/* The build need not exist yet; "": removes the revision. */
enum tw_status tw_catalogue_commit_set(struct tw_catalogue *c, const char *project_id,
        const char *build_id, const char *commit, struct tw_err *err) TW_MUST_USE;
/* The build's revision; without a build, that of the builds of this version and app.  "": unknown,
 * or they differ. */
enum tw_status tw_catalogue_commit_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- resolved names per trace (catalogue_names.c) --- */

struct tw_named_trace {
	const char *project_id, *trace_id, *build_id, *mapping_id;
};
/* Nothing when the trace was deleted meanwhile. */
enum tw_status tw_catalogue_names_set(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_name_counts *counts, struct tw_err *err) TW_MUST_USE;
/* Marks some traces of a build with a new mapping as uncounted; *ret_more: call again. */
enum tw_status tw_catalogue_names_mark(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_mapping_ids { /* compiled images, "" none */
	char map[65], retrace[65];
};
/* The mappings of a trace (`trace_id` is ignored): those of mapping_id if that is a build with a
 * mapping, otherwise those of build_id. */
enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err) TW_MUST_USE;

/* --- jobs (catalogue_job.c) --- */

enum tw_queue { TW_QUEUE_TRACES, TW_QUEUE_MAPPINGS, TW_QUEUES };

struct tw_job_row {
	const char *project_id, *trace_id; /* of a mapping: the job's id */
	uint32_t tries;                    /* including this one */
	const char *owner;                 /* the claiming process */
	enum tw_queue queue;
};
/* Claims the oldest queued job of the project with the least decoder time (fair.h); of several such
 * projects, the next after the one served last.  Jobs with an expired lease come first.
 * TW_NOT_FOUND: no job.  `owner` is a name unique to this process.  Several servers never claim the
 * same job. */
enum tw_status tw_catalogue_job_claim(struct tw_catalogue *c, const char *owner, int64_t lease_ms,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* The same for either queue. */
struct tw_claim {
	enum tw_queue queue;
	const char *owner;
	int64_t lease_ms;
	unsigned per_project; /* limit of the owner's claims per project, 0: none */
};
enum tw_status tw_catalogue_queue_claim(struct tw_catalogue *c, const struct tw_claim *of,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err) TW_MUST_USE;
/* Renews these claims for lease_ms; lost ones stay lost.  Claims of the owner that are not listed
 * (it may not know that it got one) expire.  Call from one thread at a time. */
enum tw_status tw_catalogue_jobs_renew(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t lease_ms, struct tw_err *err) TW_MUST_USE;
/* Whether its owner holds it for at least for_ms.  Check before moving the result into place. */
enum tw_status tw_catalogue_job_held(struct tw_catalogue *c, const struct tw_job_row *job,
        int64_t for_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Ends the job: the trace is ready / failed / queued again.  TW_CONFLICT: its lease had expired and
 * another server has it; nothing was changed.  TW_NOT_FOUND: it was deleted. */
enum tw_status tw_catalogue_job_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, struct tw_err *err) TW_MUST_USE;
/* The same; if the owner still holds the job, calls put before the end becomes visible, to move the
 * result into place: no other server that had the job can do so then or later. */
struct tw_job_place {
	enum tw_status (*put)(void *arg, struct tw_err *err);
	void *arg;
};
enum tw_status tw_catalogue_job_publish(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *summary, const struct tw_job_place *place,
        struct tw_err *err) TW_MUST_USE;
/* `death`: decoders died on it, so it is quarantined; NULL: the decoder reported an error. */
struct tw_death_note;
enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, const struct tw_death_note *death,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err) TW_MUST_USE;
/* Queues the job again without consuming an attempt, because of the server's own state (a full
 * disk); the trace shows the reason until it is decoded.  TW_NOT_FOUND: deleted. */
enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* At start: a single server queues all claimed jobs again, as their claimer is dead; with several
 * servers they are claimed once their lease ends.  Clears the delays of postponed jobs. */
enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* Queues this owner's jobs again, as it stops. */
enum tw_status tw_catalogue_jobs_leave(
        struct tw_catalogue *c, const char *owner, struct tw_err *err) TW_MUST_USE;
/* Decodes a trace with a missing or damaged file again from its upload.  TW_NOT_FOUND if the upload
 * is not kept. */
enum tw_status tw_catalogue_trace_requeue(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
struct tw_queue_stats {
	uint64_t queued, decoding;
	uint64_t mappings, compiling; /* queued ones, and claimed ones */
	int64_t oldest_ms;            /* age of the oldest queued */
};
enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err) TW_MUST_USE;

struct tw_waiting { /* of a project: traces not decoded yet, including those being decoded */
	char project_id[TW_ID_BYTES];
	uint64_t traces, bytes;
};
/* Of each project that has any, by id. */
enum tw_status tw_catalogue_waiting(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_waiting **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* --- start-up sweep (I9) --- */

/* Whether a row refers to this blob / trace file.  Archived traces have no trace file. */
enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_decoded(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The project of a trace, "" if there is no such trace. */
enum tw_status tw_catalogue_project_of_trace(struct tw_catalogue *c, const char *trace_id,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

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
	bool keep_annotated; /* skip traces with a title or annotations */
	int64_t firsts_ms;   /* skip the first trace of an ANR group if created then or later */
};
struct tw_old_trace {
	const char *id, *name; /* as displayed */
	int64_t created_ms;
	int64_t since_ms; /* start of its age: created, or decoded */
	uint64_t bytes;   /* bytes freed by the deletion */
};
/* Decoded and failed traces that are neither pinned nor kept for a reason, oldest first. */
enum tw_old_which { TW_OLD_ALL, TW_OLD_WITHOUT_ANR, TW_OLD_WITH_ANR };
enum tw_status tw_catalogue_oldest(struct tw_catalogue *c, enum tw_old_which which,
        const struct tw_old_query *of, struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Of these, ready traces with a stored upload. */
enum tw_status tw_catalogue_oldest_uploads(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Of these, archived traces. */
enum tw_status tw_catalogue_oldest_archived(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Of the first traces of ANR groups, takes the newest created before before_ms, at most `limit` and
 * `bytes` in total.  *ret_ms: creation time of the oldest taken; INT64_MAX if there is none. */
enum tw_status tw_catalogue_firsts_since(struct tw_catalogue *c, const struct tw_old_query *of,
        uint64_t bytes, struct tw_arena *a, int64_t *ret_ms, struct tw_err *err) TW_MUST_USE;
/* Traces whose decoded file can be recreated, by decode time, to which before_ms refers. */
enum tw_status tw_catalogue_oldest_decoded(struct tw_catalogue *c, const struct tw_old_query *of,
        struct tw_arena *a, struct tw_old_trace **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Archives a ready trace; the caller may then delete its decoded file.  TW_NOT_FOUND as below. */
enum tw_status tw_catalogue_decoded_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
/* Drops a ready trace's upload except the device's own trace; *ret_unused as in trace_delete.
 * TW_NOT_FOUND if it was deleted, pinned or queued in the meantime. */
enum tw_status tw_catalogue_upload_drop(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;

/* --- files that should exist, for `tracewell check` and `backup` (catalogue_check.c) --- */

struct tw_stored_file {
	const char *project_id, *id; /* of a trace, or of a build */
	const char *what; /* a part's name; "mapping", "retrace", their "... image", "... upload" */
	const char *sha256; /* "" unknown */
	uint64_t bytes;     /* 0 unknown */
};
/* A page of files in a fixed order, after the row `after` (the last row of the previous page; NULL:
 * the first page); at most `limit`, none at the end. */
typedef enum tw_status (*tw_stored_page_fn)(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err);
enum tw_status tw_catalogue_stored_parts(struct tw_catalogue *c, const struct tw_stored_file *after,
        uint32_t limit, struct tw_arena *a, struct tw_stored_file **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_stored_mappings(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Of ready traces; `what` is "decoded". */
enum tw_status tw_catalogue_stored_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* For a copy: later changes are not recorded in the audit log. */
void tw_catalogue_stop_record(struct tw_catalogue *c);
/* Writes a snapshot into a new file at path; the caller makes it durable.  Writers are not
 * blocked. */
enum tw_status tw_catalogue_copy(
        struct tw_catalogue *c, const char *path, struct tw_err *err) TW_MUST_USE;
/* The engine's own check of the whole database; calls `wrong` with each of its messages. */
enum tw_status tw_catalogue_verify(struct tw_catalogue *c,
        void (*wrong)(void *arg, const char *text), void *arg, struct tw_err *err) TW_MUST_USE;

/* --- settings of a project (catalogue_setting.c) --- */

#define TW_SETTING_FRAMES "frames" /* frame_rules.h */

/* *ret NULL and time 0: unset.  The time rises with every change. */
enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err) TW_MUST_USE;

#endif

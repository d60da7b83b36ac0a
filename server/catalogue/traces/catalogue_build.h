/*
 * catalogue_build.h - builds, their source revision, and their mappings in use and uploaded.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_BUILD_H
#define TW_CATALOGUE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_blob_list;
struct tw_catalogue;
struct tw_job_row;
struct tw_fields; /* catalogue_row.h: the JSON of rows */

/* SYMBOLS: of a native library.  Its build's id is "elf:" and the library's build id; the build has
 * them in place of a method mapping, with functions as entries and SONAME as version. */
enum tw_mapping_kind { TW_MAPPING_METHODS, TW_MAPPING_RETRACE, TW_MAPPING_SYMBOLS };
extern const char *const tw_mapping_kind_words[]; /* by kind */
#define TW_NATIVE_BUILD "elf:"
enum tw_mapping_state { /* of a build's last upload of that kind */
	TW_MAPPING_NONE,
	TW_MAPPING_QUEUED,
	TW_MAPPING_COMPILING,
	TW_MAPPING_READY,
	TW_MAPPING_FAILED
};
extern const char *const tw_mapping_state_names[]; /* ended by NULL */
struct tw_mapping_upload {
	enum tw_mapping_state state;
	/* "" if ready or none; the status is a word (tw_status_name).  If queued: why it was
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

/* Deletes the build with its mappings, used and uploaded; blobs no longer used are returned as in
 * tw_catalogue_trace_delete.  TW_NOT_FOUND. */
enum tw_status tw_catalogue_build_delete(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;

struct tw_libraries {              /* native libraries, each once */
	const char *const *builds; /* ids of their builds, TW_NATIVE_BUILD and the build id */
	const char **images;       /* their compiled symbols, "" none */
	size_t n;
};
struct tw_used_libraries { /* by a trace */
	struct tw_libraries of;
	const char *build_id; /* of the trace */
	int64_t day;          /* the latest day of a trace with these libraries */
};
/* Sets io->images, in the arena. */
enum tw_status tw_catalogue_library_images(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_libraries *io, struct tw_err *err) TW_MUST_USE;

struct tw_release { /* "" unknown */
	const char *app, *version_name, *build_id;
};
/* The newest build whose latest trace has that version and app, among the newest 5,000; "":
 * none. */
enum tw_status tw_catalogue_build_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

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
enum tw_status tw_catalogue_mapping_has_space(
        struct tw_catalogue *c, const struct tw_mapping_sent *sent, struct tw_err *err) TW_MUST_USE;
/* Queues it, unless it is in use or queued already; ret_id is its job's id, "" if it is in use.
 * TW_DENIED if it may not replace another queued mapping, TW_BUSY if too many are queued.  Blobs no
 * longer used are returned as in tw_catalogue_trace_delete. */
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

enum { TW_COMMIT_BYTES = 65 };
/* The build need not exist yet; "": removes the revision. */
enum tw_status tw_catalogue_commit_set(struct tw_catalogue *c, const char *project_id,
        const char *build_id, const char *commit, struct tw_err *err) TW_MUST_USE;
/* The build's revision; without a build, that of the builds of this version and app.  "": unknown,
 * or they differ. */
enum tw_status tw_catalogue_commit_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- mappings of a trace --- */

struct tw_named_trace {
	const char *project_id, *trace_id, *build_id, *mapping_id;
};
struct tw_mapping_ids { /* compiled images, "" none */
	char map[65], retrace[65];
};
/* The mappings of a trace (`trace_id` is ignored): those of mapping_id if that is a build with a
 * mapping, otherwise those of build_id. */
enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * catalogue_trace.h - a trace's row, its parts and its deletion.  Thread: any.
 */
#ifndef TW_CATALOGUE_TRACE_H
#define TW_CATALOGUE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_blob_list; /* catalogue_files.h */
struct tw_catalogue;
struct tw_fields; /* catalogue_row.h: the JSON of rows */

enum tw_trace_state {
	TW_TRACE_QUEUED,
	TW_TRACE_DECODING, /* stored as QUEUED; the job is claimed */
	TW_TRACE_READY,
	TW_TRACE_FAILED,
	TW_TRACE_ARCHIVED, /* was ready; only its upload is stored, and decoded on request */
	TW_TRACE_STATES
};
extern const char *const tw_trace_state_names[TW_TRACE_STATES + 1]; /* ends with NULL */
const char *tw_trace_state_name(enum tw_trace_state s);

/* Metadata from the uploader; "" for missing values. */
struct tw_trace_meta {
	const char *app, *version_name, *version_code, *build_id, *mapping_id;
	const char *device, *os, *abi, *process, *scenario, *session_id, *uuid;
	const char *labels; /* JSON object text or "" */
	const char *commit; /* of the build, which stores it */
	const char *capture,
	        *device_id; /* counted on arrival (catalogue_capture.h), stored as a hash */
	uint32_t pid;
	int64_t started_ms;  /* device's clock, 0 unknown */
	int64_t sent_ms;     /* the same clock when the upload began, 0 unknown; not stored */
	int64_t recorded_ms; /* server's clock; 0: tw_catalogue_trace_add sets the arrival */
};

struct tw_part {
	const char *part; /* "trace", "threads" */
	const char *sha256;
	const char *format; /* forced format or "" */
	uint64_t bytes;
	bool found;      /* extracted from the trace's archive by the decoder */
	const char *hex; /* of an arrival: its content, stored in a row; NULL: it is a file */
};

struct tw_trace_summary { /* of a ready trace */
	uint64_t slices, input_bytes, decoded_bytes, file_bytes;
	uint32_t threads, methods, max_depth, losses, repairs; /* losses, repairs: number of
	                                                        * kinds */
	int64_t duration_ns;                                   /* -1: the trace has no times */
	const char *format;
	uint32_t decoder_version;
	const char *file_sha256; /* of the trace file, "" unknown */
	const char *file_hex;    /* its content, to be stored in a row; NULL: it is stored */
	const char *anr;         /* the group of its ANR, "" none */
};

static inline bool tw_trace_is_timed(const struct tw_trace_summary *s)
{
	return s->duration_ns >= 0;
}

/* Whether the trace is counted in rollups; the value of column `rollup_state`. */
enum tw_counted { TW_COUNTED_LATER, TW_COUNTED, TW_COUNTED_NEVER, TW_COUNTED_POSTPONED };

struct tw_trace_row {
	const char *id, *project_id, *key_id;
	enum tw_trace_state state;
	int64_t created_ms, ready_ms;
	struct tw_trace_meta meta;
	struct tw_trace_summary summary;
	struct tw_err error; /* FAILED: why */
	uint32_t attempts;
	uint64_t upload_bytes;
	const char *title; /* set by people, "" */
	const char *tags;  /* JSON array of texts */
	bool pinned;
	const char *exempt_reason; /* why retention must keep it, "" */
	const char *anr;           /* hash of its ANR's cause when it was decoded, "" none */
	const char *anr_group;     /* key of its group in the fleet, "" none or not known yet */
	const char *anr_title;     /* its cause, "" none */
	bool first_anr;            /* and is the first with that hash */
	bool has_upload;           /* false: only the decoded file is stored */
	uint32_t annotations;
	enum tw_counted counted;
};
/* The row's JSON lacks the error, and has a summary for every state. */
extern const struct tw_fields tw_trace_fields, tw_trace_meta_fields, tw_trace_summary_fields;

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

/* Removes the row; *ret_unused are the parts' contents that are no longer referred to.  Rollups
 * still count it. */
enum tw_status tw_catalogue_trace_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* The same of several, in one transaction; those that do not exist are skipped. */
enum tw_status tw_catalogue_traces_delete(struct tw_catalogue *c, const char *project_id,
        const char *const *trace_ids, size_t n, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;
/* The same of one; an engine outside the catalogue also erases its rows (catalogue_engine.h). */
enum tw_status tw_catalogue_trace_erase(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err) TW_MUST_USE;

#endif

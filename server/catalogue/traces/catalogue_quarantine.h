/*
 * catalogue_quarantine.h - uploads on which decoders died, with reasons and attempts.
 *
 * A row is added when a trace fails permanently that way (tw_catalogue_job_failed).  It stays while
 * the trace is retried, and is deleted when decoding succeeds or reports an error, or with the
 * trace.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_QUARANTINE_H
#define TW_CATALOGUE_QUARANTINE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/traces/catalogue_trace.h"

struct tw_catalogue;
struct tw_job_row;

struct tw_db; /* catalogue_db.h */

struct tw_death_note {
	const char *reason; /* tw_death_name */
	int signal;         /* 0: none */
	const char *format; /* "" not recognised */
	uint32_t decoder_version;
};

struct tw_quarantined {
	const char *id;
	const char *reason, *format, *message, *app, *build_id;
	int signal;
	uint32_t decoder_version;
	int64_t created_ms, first_ms, last_ms;
	uint32_t deaths;
	uint64_t bytes; /* of the upload */
	enum tw_trace_state state;
	const char *parts; /* JSON array of objects with part and bytes */
	bool pinned;       /* or kept for a reason */
	bool is_annotated; /* has a title or annotations */
};
extern const struct tw_fields tw_quarantined_fields;
/* Of a project, oldest first, after the page of `cursor` ("": from the first).  *ret_cursor: "" if
 * there are no more. */
enum tw_status tw_catalogue_quarantine(struct tw_catalogue *c, const char *project_id,
        const char *cursor, uint32_t limit, struct tw_arena *a, struct tw_quarantined **ret,
        size_t *ret_n, const char **ret_cursor, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND if it is not quarantined. */
enum tw_status tw_catalogue_quarantine_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_quarantined *ret,
        struct tw_err *err) TW_MUST_USE;
/* Totals of a project, or with "" of all projects. */
enum tw_status tw_catalogue_quarantine_size(struct tw_catalogue *c, const char *project_id,
        uint64_t *ret_traces, uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* Call in the transaction that ends a job. */
enum tw_status tw_cat_quarantine_enter(struct tw_db *db, const struct tw_job_row *job,
        const struct tw_death_note *note, struct tw_err *err);
enum tw_status tw_cat_quarantine_leave(
        struct tw_db *db, const struct tw_job_row *job, struct tw_err *err);

#endif

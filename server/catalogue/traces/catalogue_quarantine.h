/*
 * catalogue_quarantine.h - uploads of which decoders died: which, why, how often.
 *
 * A row comes when a trace fails for good that way (tw_catalogue_job_failed), stays while it is
 * tried again, and goes when that succeeds, when a decoder refuses it in words, or with the trace.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_QUARANTINE_H
#define TW_CATALOGUE_QUARANTINE_H

#include "server/catalogue/catalogue.h"

struct tw_db; /* catalogue_db.h */

enum { TW_QUARANTINE_PAGE = 1000 };

struct tw_death_note {
	const char *reason; /* tw_death_word */
	int signal;         /* 0 none */
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
	bool pinned;    /* or kept for something */
	bool spoken_of; /* has a title or annotations */
};
/* Of a project, the oldest first, at most TW_QUARANTINE_PAGE. */
enum tw_status tw_catalogue_quarantine(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_quarantined **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND when it is in no quarantine. */
enum tw_status tw_catalogue_quarantine_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_quarantined *ret,
        struct tw_err *err) TW_MUST_USE;
/* What lies in the quarantines of all projects together. */
enum tw_status tw_catalogue_quarantine_size(struct tw_catalogue *c, uint64_t *ret_traces,
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* Inside the transaction that ends a job. */
enum tw_status tw_cat_quarantine_enter(struct tw_db *db, const struct tw_job_row *job,
        const struct tw_death_note *note, struct tw_err *err);
enum tw_status tw_cat_quarantine_leave(
        struct tw_db *db, const struct tw_job_row *job, struct tw_err *err);

#endif

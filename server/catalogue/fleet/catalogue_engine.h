/*
 * catalogue_engine.h - records pending work for an engine outside the catalogue that stores sums
 * over traces (server/fleet/store/fleet_store.h).
 *
 * With such an engine, a trace that is decoded again is counted again, deleted traces are recorded
 * until their rows are erased, and ANRs until they are copied.  The records are written in the
 * transactions that cause them, so none is lost while the engine is unavailable.  Thread: any.
 */
#ifndef TW_CATALOGUE_ENGINE_H
#define TW_CATALOGUE_ENGINE_H

#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/traces/catalogue_trace.h"

/* name "": sums are in the catalogue, and notes are dropped. */
enum tw_status tw_catalogue_engine_set(
        struct tw_catalogue *c, const char *name, struct tw_err *err) TW_MUST_USE;

struct tw_erased {
	const char *project_id, *trace_id;
	int64_t day;
};
/* Deleted traces that still count; or, hidden, whose rows are still stored. */
enum tw_status tw_catalogue_erased(struct tw_catalogue *c, bool hidden, uint32_t limit,
        struct tw_arena *a, struct tw_erased **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Records that the traces are no longer counted; or, with hidden, that their rows are erased. */
enum tw_status tw_catalogue_erased_done(struct tw_catalogue *c, bool hidden,
        const struct tw_erased *of, size_t n, struct tw_err *err) TW_MUST_USE;

struct tw_anr_copy { /* of a trace */
	const char *project_id, *trace_id;
	struct tw_trace_row row; /* dimensions, labels and time */
	const char *device_class;
	int64_t who;   /* hash of the user or installation; 0 not known */
	int64_t keyed; /* version of the rules */
	bool anr;
	const char *key, *kind, *name, *title, *verdict; /* of its ANR; "" */
	struct tw_lock_wait *locks;
	size_t n_locks;
};
/* Named and grouped ANRs and lock waits of existing traces, which the engine lacks. */
enum tw_status tw_catalogue_anr_uncopied(struct tw_catalogue *c, uint32_t limit, struct tw_arena *a,
        struct tw_anr_copy **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_anr_copied(struct tw_catalogue *c, const struct tw_anr_copy *of,
        size_t n, struct tw_err *err) TW_MUST_USE;
/* Has all of a project copied again. */
enum tw_status tw_catalogue_anr_copy_again(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err) TW_MUST_USE;

#endif

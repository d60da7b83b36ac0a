/*
 * catalogue_capture.h - number of traces and devices per capture rule (capture.h).
 *
 * Days are days of the server's clock since 1970, UTC.  A device is identified by a hash of its id,
 * which is stored as long as its day is counted.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_CAPTURE_H
#define TW_CATALOGUE_CAPTURE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;
struct tw_trace_meta;

struct tw_db; /* catalogue_db.h */

enum { TW_CAPTURE_DAYS = 14 };

struct tw_capture_count {
	const char *rule; /* "": a rule that no longer exists */
	int64_t day;
	uint64_t traces, devices;
};

/* From first_day on, by rule and day; at most TW_CAPTURE_DAYS days per rule. */
enum tw_status tw_catalogue_capture_counts(struct tw_catalogue *c, const char *project_id,
        int64_t first_day, struct tw_arena *a, struct tw_capture_count **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* Deletes the devices of earlier days, in several transactions. */
enum tw_status tw_catalogue_capture_forget(
        struct tw_catalogue *c, int64_t before_day, struct tw_err *err) TW_MUST_USE;

/* Counts an upload for its rule, in the transaction that adds the trace. */
enum tw_status tw_cat_capture_count(struct tw_db *db, const char *project_id, const char *trace_id,
        const struct tw_trace_meta *m, int64_t now_ms, struct tw_err *err) TW_MUST_USE;

#endif

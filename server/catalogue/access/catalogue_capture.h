/*
 * catalogue_capture.h - how many traces came by which capture rule (capture.h), from how many
 * devices.
 *
 * Days are whole days of the server's clock since 1970, UTC.  A device is known by a hash of what
 * it calls itself, which is kept for as long as its day is counted.  Thread: any.
 */
#ifndef TW_CATALOGUE_CAPTURE_H
#define TW_CATALOGUE_CAPTURE_H

#include "server/catalogue/catalogue.h"

struct tw_db; /* catalogue_db.h */

enum { TW_CAPTURE_DAYS = 14 };

struct tw_capture_count {
	const char *rule; /* "": one that is no longer there */
	int64_t day;
	uint64_t traces, devices;
};

/* From first_day on, by rule and day; at most TW_CAPTURE_DAYS of each of the most rules there can
 * be. */
enum tw_status tw_catalogue_capture_counts(struct tw_catalogue *c, const char *project_id,
        int64_t first_day, struct tw_arena *a, struct tw_capture_count **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* Forgets the devices of days before that. */
enum tw_status tw_catalogue_capture_forget(
        struct tw_catalogue *c, int64_t before_day, struct tw_err *err) TW_MUST_USE;

/* An upload of a rule, in the transaction it arrives with. */
enum tw_status tw_cat_capture_count(struct tw_db *db, const char *project_id,
        const struct tw_trace_meta *m, int64_t now_ms, struct tw_err *err) TW_MUST_USE;

#endif

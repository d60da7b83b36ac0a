/*
 * stored.h - calls a function for every file in the catalogue.
 *
 * Reads a page of names at a time, so that neither memory nor a snapshot of the catalogue grows
 * with their number.
 * Thread: the caller's.
 */
#ifndef TW_STORED_H
#define TW_STORED_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/storage/catalogue_files.h"

struct tw_catalogue;

/* `f` may be modified; it, everything it points to and `a` are valid until the next page.  Within a
 * page, the previous rows precede it in memory. */
typedef enum tw_status (*tw_stored_fn)(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err);

/* Stops at the first failure of `one`. */
enum tw_status tw_stored_each(struct tw_catalogue *c, tw_stored_page_fn page, tw_stored_fn one,
        void *arg, struct tw_err *err) TW_MUST_USE;

/* Number of files; 0 if it cannot be determined. */
uint64_t tw_stored_count(struct tw_catalogue *c, tw_stored_page_fn page);

#endif

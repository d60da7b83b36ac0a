/*
 * stored.h - one thing done to every file that a catalogue names.
 *
 * Reads a page of names at a time, so that neither memory nor a snapshot of the
 * catalogue grows with it.  Thread: the caller's.
 */
#ifndef TW_STORED_H
#define TW_STORED_H

#include "decoder/base/err.h"
#include "server/catalogue/catalogue.h"

/* `f` may be changed; it and what it points to live until the next page, `a` too.  In a page, a
 * row's predecessors lie before it. */
typedef enum tw_status (*tw_stored_fn)(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err);

/* Ends with the first failure of `one`. */
enum tw_status tw_stored_each(struct tw_catalogue *c, tw_stored_page_fn page, tw_stored_fn one,
        void *arg, struct tw_err *err) TW_MUST_USE;

/* How many there are; 0 where it cannot be told. */
uint64_t tw_stored_count(struct tw_catalogue *c, tw_stored_page_fn page);

#endif

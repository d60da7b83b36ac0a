/*
 * anr_lock.h - the locks that threads of one trace waited for, from calls and from thread dumps.
 *
 * Independent of HTTP and SQL.  Thread: any.
 */
#ifndef TW_ANR_LOCK_H
#define TW_ANR_LOCK_H

#include <jansson.h>

#include "decoder/symbols/retrace.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/trace/trace_file.h"

struct tw_lock_list { /* in an arena */
	struct tw_lock_wait *at;
	size_t n, cap;
};

/* Adds contended locks from the notes of a trace: the TW_LOCKS_MAX with the longest waits. */
enum tw_status tw_locks_of_trace(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_lock_list *io, struct tw_err *err) TW_MUST_USE;
/* Adds the waits of a document "anr" in the names of its build, from which the list borrows. */
enum tw_status tw_locks_of_anr(const json_t *doc, struct tw_arena *a, struct tw_lock_list *io,
        struct tw_err *err) TW_MUST_USE;
/* Resolves the names of locks from calls, which have the trace's names; retrace may be NULL. */
enum tw_status tw_locks_name(const struct tw_retrace *retrace, struct tw_arena *a,
        struct tw_lock_list *io, struct tw_err *err) TW_MUST_USE;

#endif

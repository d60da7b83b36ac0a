/*
 * anr_brief.h - the parts of an ANR report from which its cause is determined, small enough for the
 * catalogue; and the locks that threads of a trace waited for.
 *
 * From the document "anr": the blamed process and the threads that wait for each other, unchanged;
 * from a trace's calls: the heaviest path of the main thread.  With it a cause can be determined
 * again, with other names and rules, after the trace was deleted.  Independent of HTTP and SQL.
 * Thread: any.
 */
#ifndef TW_ANR_BRIEF_H
#define TW_ANR_BRIEF_H

#include <jansson.h>

#include "decoder/symbols/retrace.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/query/query.h"
#include "server/trace/trace_file.h"

/* Compressed, in the arena; ptr NULL: out of memory.  doc and path may be NULL. */
struct tw_str tw_anr_brief(const json_t *doc, const json_t *path, struct tw_arena *a);
/* {"doc","path"}, either may be missing; NULL: damaged, or out of memory.  The caller frees with
 * json_decref. */
json_t *tw_anr_brief_read(struct tw_str brief);

/* The main thread's path in the waited_ns before end_ns (-1: before its last call ended):
 * {"frames":[{"id"}|{"name"}, the deepest first],"ns","window_ns"}, down to the last frame with at
 * least half of the time.  *ret NULL: the thread has no calls, or no such path.  The caller frees
 * with json_decref. */
enum tw_status tw_anr_path_of_calls(struct tw_trace_file *f, int64_t end_ns, int64_t waited_ns,
        struct tw_arena *a, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* --- locks, from calls and from thread dumps --- */

struct tw_lock_list { /* in an arena */
	struct tw_lock_wait *at;
	size_t n;
	uint32_t cap;
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

/*
 * anr_brief.h - what of a report its cause is found by, small enough to be kept in the catalogue.
 *
 * Of the document "anr" the blamed process with the threads that wait for each
 * other, as they stood in the report; of a trace's calls the heaviest path of the
 * main thread.  So a cause can be found again, by other names and rules, when the
 * trace is gone.  Knows neither HTTP nor SQL.  Thread: any.
 */
#ifndef TW_ANR_BRIEF_H
#define TW_ANR_BRIEF_H

#include <jansson.h>

#include "server/query/query.h"

/* Compressed, in the arena; ptr NULL: no memory.  doc and path may be NULL. */
struct tw_str tw_anr_brief(const json_t *doc, const json_t *path, struct tw_arena *a);
/* {"doc","path"}, either may be missing; NULL: damaged, or no memory.  json_decref is owed. */
json_t *tw_anr_unbrief(struct tw_str brief);

/* What the main thread did in the waited_ns before end_ns (-1: before its last call ended):
 * {"frames":[{"id"}|{"name"}, the deepest first],"ns","window_ns"}, down to where less than half of
 * the time is spent.  *ret NULL: there are no calls of it, or no such path.  json_decref is owed.
 */
enum tw_status tw_anr_path_of_calls(struct tw_trace_file *f, int64_t end_ns, int64_t waited_ns,
        struct tw_arena *a, json_t **ret, struct tw_err *err) TW_MUST_USE;

#endif

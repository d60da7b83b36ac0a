/*
 * delete.h - a trace, or its upload or its decoded file alone, goes for good: rows, then files that
 * nothing else names.
 *
 * A crash in between leaves files that the next sweep removes (I9).
 * Thread: any.
 */
#ifndef TW_DELETE_H
#define TW_DELETE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/app.h"

/* What expires stays in sums over traces.  What a user deletes is also taken out of sums in
 * ClickHouse; sums in the catalogue cannot be subtracted from. */
enum tw_delete_sums { TW_DELETE_FILES, TW_DELETE_WITH_SUMS };
/* TW_NOT_FOUND when there is no such trace. */
enum tw_status tw_delete_trace(struct tw_app *app, const char *project_id, const char *trace_id,
        enum tw_delete_sums sums, struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* What was decoded stays.  TW_NOT_FOUND when it is not ready, or pinned. */
enum tw_status tw_delete_upload(struct tw_app *app, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* The upload stays, and the trace is archived until somebody opens it.  TW_NOT_FOUND as above. */
enum tw_status tw_delete_decoded(struct tw_app *app, const char *project_id, const char *trace_id,
        struct tw_err *err) TW_MUST_USE;

#endif

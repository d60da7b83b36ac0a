/*
 * trace_sql.h - a trace as SQL tables, for ad-hoc queries.
 *
 *   slice(id, thread_id, ts_ns, dur_ns, cpu_ns, depth, parent_id, name)
 *   thread(thread_id, tid, name, is_main, pid, slices, busy_ns)
 *   method(method_id, name, count, total_ns, sum_ns, self_ns, max_ns, id)
 *   call_tree(node_id, thread_id, parent_id, method_id, name, depth, count, total_ns, self_ns,
 *             max_ns)
 *
 * The tables are virtual: slices are decoded from their chunks while a query scans them, and
 * conditions on thread_id and ts_ns select the chunks.  A slice's id is its number in the trace,
 * thread after thread in pre-order; parent_id is NULL for roots.  Read-only.
 * Thread: one at a time.
 */
#ifndef TW_TRACE_SQL_H
#define TW_TRACE_SQL_H

#include <stdint.h>

#include "decoder/symbols/names.h"
#include "server/base/clock.h"
#include "server/base/text/json_write.h"
#include "server/trace/trace_file.h"

struct tw_trace_sql;

enum tw_sql_type { TW_SQL_NULL, TW_SQL_INT, TW_SQL_REAL, TW_SQL_TEXT, TW_SQL_BLOB };
struct tw_sql_value { /* valid during the row's callback */
	enum tw_sql_type type;
	int64_t number;
	double real;
	struct tw_str text;
};

/* 15 digits of a number, as SQLite itself prints; infinity is null. */
void tw_sql_json(struct tw_json *j, const struct tw_sql_value *v);

/* `file` and everything that `names` (may be NULL) points to must outlive it. */
enum tw_status tw_trace_sql_open(struct tw_trace_file *file, const struct tw_names *names,
        struct tw_trace_sql **ret, struct tw_err *err) TW_MUST_USE;
struct tw_trace_sql *tw_trace_sql_close(struct tw_trace_sql *s);

/* Limits for statements of users who may only read the trace: only SELECT (no PRAGMA, no other
 * tables, no files, no virtual tables of other modules), sorting in memory, values of at most 1 MB.
 * A statement ends with TW_DEADLINE after the deadline, and with TW_TOO_LARGE if SQLite needs
 * more memory than that.  Functions refuse arguments that would make one call take too
 * long. */
struct tw_sql_limits {
	const struct tw_deadline *deadline; /* borrowed */
	int64_t memory;
};
enum tw_status tw_trace_sql_limit(
        struct tw_trace_sql *s, const struct tw_sql_limits *limits, struct tw_err *err) TW_MUST_USE;

/* head is called once with the column names, row for each row. TW_CONFLICT from row ends the query
 * with success, any other failure with its status. TW_BAD_REQUEST has SQLite's message. */
struct tw_sql_out {
	enum tw_status (*head)(void *arg, const char *const *names, int n);
	enum tw_status (*row)(void *arg, const struct tw_sql_value *values, int n);
	void *arg;
};
enum tw_status tw_trace_sql_run(struct tw_trace_sql *s, const char *sql,
        const struct tw_sql_out *out, struct tw_err *err) TW_MUST_USE;

#endif

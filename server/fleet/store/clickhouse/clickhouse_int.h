/* clickhouse_int.h - the fleet store in ClickHouse, shared by the files that write and read it. */
#ifndef TW_CLICKHOUSE_INT_H
#define TW_CLICKHOUSE_INT_H

#include <pthread.h>

#include "server/fleet/store/clickhouse/clickhouse.h"
#include "server/fleet/store/fleet_clickhouse.h"

enum { TW_CH_ANSWER_BYTES = 256 << 20, TW_CH_SQL_BYTES = 4 << 20 };
enum { TW_CH_QUERY_MS = 30000, TW_CH_INSERT_MS = 60000 };
enum { TW_CH_BACKGROUND_MS = 600000 }; /* time limit of queries without a deadline */

struct tw_fleet_clickhouse {
	struct tw_fleet_store store;
	struct tw_clickhouse *at;
	pthread_mutex_t lock; /* protects all members below */
	bool ready;           /* the tables exist */
	uint64_t attempt;     /* number of the last attempt */
	int64_t expired_day;  /* day of the last expiry; rollup thread only */
};

/* Creates the tables on first use. TW_BUSY while ClickHouse is unavailable. */
enum tw_status tw_clickhouse_ready(struct tw_fleet_clickhouse *f, struct tw_err *err) TW_MUST_USE;

/* --- writing (clickhouse_put.c) --- */

enum tw_status tw_clickhouse_put(
        struct tw_fleet_store *s, const struct tw_rollup_reading *of, size_t n, struct tw_err *err);
enum tw_status tw_clickhouse_name(
        struct tw_fleet_store *s, const struct tw_rollup_names *names, struct tw_err *err);
enum tw_status tw_clickhouse_rename(struct tw_fleet_store *s, const char *project_id,
        const struct tw_rollup_naming *methods, size_t n, struct tw_err *err);
enum tw_status tw_clickhouse_put_found(struct tw_fleet_store *s, const struct tw_found_trace *of,
        size_t n, int64_t number, struct tw_err *err);

/* The number of an attempt that began `ms` ago. */
uint64_t tw_clickhouse_attempt_before(int64_t ms);
/* An attempt that takes longer is not completed: its first rows may have been removed. */
enum { TW_CH_ATTEMPT_MS = 3600000 };
/* Shared with clickhouse_extra.c. */
enum tw_status tw_clickhouse_insert(struct tw_fleet_clickhouse *f, const char *sql,
        const struct tw_buf *rows, struct tw_err *err) TW_MUST_USE;
/* Reserves numbers for n attempts: returns the first; they are TW_CH_STEP apart. */
#define TW_CH_TAG_BITS 11
#define TW_CH_STEP     (UINT64_C(1) << TW_CH_TAG_BITS)
enum tw_status tw_clickhouse_attempts(
        struct tw_fleet_clickhouse *f, size_t n, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* The columns that most rows begin with. */
#define TW_CH_DIMS "project,day,app,version_name,build_id,scenario,device_class,os,trace,attempt"
void tw_clickhouse_put_dims(struct tw_buf *out, const char *project_id, const char *trace_id,
        const struct tw_rollup_dims *d, uint64_t attempt);
/* Two arrays: keys and values of a trace's labels; empty for NULL. */
enum tw_status tw_clickhouse_put_labels(
        struct tw_buf *out, const struct tw_trace_row *row, struct tw_err *err);
static inline uint64_t tw_clickhouse_unsigned(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}
/* A time in Unix milliseconds as DateTime. */
static inline void tw_clickhouse_put_time(struct tw_buf *out, int64_t ms)
{
	(void)tw_buf_add_u32le(out, (uint32_t)(ms < 0                   ? 0
	                                       : ms / 1000 > UINT32_MAX ? UINT32_MAX
	                                                                : ms / 1000));
}

/* --- ANRs and deleted traces (clickhouse_extra.c) --- */

enum tw_status tw_clickhouse_put_anrs(
        struct tw_fleet_store *s, const struct tw_anr_copy *of, size_t n, struct tw_err *err);
enum tw_status tw_clickhouse_hide(
        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err);
enum tw_status tw_clickhouse_erase(
        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err);
enum tw_status tw_clickhouse_drop_project(
        struct tw_fleet_store *s, const char *project_id, struct tw_err *err);
/* Removes rows of attempts before `before` that later attempts of their traces replaced, or that
 * did not end. */
enum tw_status tw_clickhouse_purge(
        struct tw_fleet_clickhouse *f, uint64_t before, struct tw_err *err) TW_MUST_USE;

/* --- conditions (clickhouse_where.c) --- */

/* Columns of the dimensions that the query keeps apart, each followed by a comma; a label as
 * "key=value". */
void tw_clickhouse_dims(struct tw_buf *sql, const struct tw_fleet_query *query, const char *table);
/* " WHERE ..." for a table with dimensions: the query's project, days and filter. Labels are those
 * of the rows if the table has them, otherwise those of traces. `cells` restricts the rows to these
 * cells, unless NULL. Only rows of the current attempt are selected. */
void tw_clickhouse_where(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *cells, const char *table);
/* The column cell_set: the number of the set of cells that a row is in, n if it is in none.  Cells
 * that differ only by their label are in one set. */
void tw_clickhouse_set(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, size_t n);
/* Runs the query and frees sql; as tw_clickhouse_read. */
enum tw_status tw_clickhouse_select(struct tw_fleet_clickhouse *f,
        const struct tw_fleet_query *query, struct tw_buf *sql, struct tw_clickhouse_reader *ret,
        struct tw_err *err) TW_MUST_USE;
/* The same, of a query for one number; 0 on failure. */
enum tw_status tw_clickhouse_number(struct tw_fleet_clickhouse *f,
        const struct tw_fleet_query *query, struct tw_buf *sql, uint64_t *ret,
        struct tw_err *err) TW_MUST_USE;
/* The same, of a statement without a result. */
enum tw_status tw_clickhouse_do(
        struct tw_fleet_clickhouse *f, struct tw_buf *sql, struct tw_err *err) TW_MUST_USE;
/* Reads the columns of tw_clickhouse_dims. False: the arena is full. */
bool tw_clickhouse_read_dims(struct tw_clickhouse_reader *r, unsigned dims, struct tw_arena *a,
        struct tw_rollup_dims *ret);

/* --- reading (clickhouse_cells.c, clickhouse_rows.c) --- */

enum tw_status tw_clickhouse_cells(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        struct tw_arena *a, struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err);
enum tw_status tw_clickhouse_trees(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, size_t n, struct tw_rollup_tree *to,
        struct tw_err *err);
enum tw_status tw_clickhouse_search(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_rollup_cell *cells, size_t n, struct tw_search *io, struct tw_err *err);
enum tw_status tw_clickhouse_found(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, const struct tw_fleet_findings *to, struct tw_err *err);

#endif

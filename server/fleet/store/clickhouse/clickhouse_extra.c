/*
 * clickhouse_extra.c - copies of ANRs and lock waits for SQL, and removal of rows.
 *
 * A deleted trace gets two more rows in `traces`, with larger attempts and `deleted` set, which
 * exclude it from results. Its rows are removed later, by a mutation of each table; so are rows
 * that a later attempt replaced.
 */
#include <inttypes.h>
#include <string.h>

#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"

enum { COPY_BYTES = 64 << 20 };

/* --- ANRs and lock waits --- */

static void put_lock(struct tw_buf *out, const struct tw_lock_wait *l, size_t number)
{
	(void)tw_buf_add_u8(out, (uint8_t)(number & 0xff));
	(void)tw_buf_add_u8(out, (uint8_t)(number >> 8));
	tw_clickhouse_put_text(out, l->monitor);
	tw_clickhouse_put_text(out, l->owner);
	tw_clickhouse_put_text(out, l->holder);
	(void)tw_buf_add_u8(out, l->is_main);
	(void)tw_buf_add_u8(out, l->dump);
	(void)tw_buf_add_u64le(out, l->waits);
	(void)tw_buf_add_u64le(out, l->timed);
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(l->total_ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(l->max_ns));
}

static enum tw_status put_anr(struct tw_buf *out, const struct tw_anr_copy *of, struct tw_err *err)
{
	const char *const texts[] = {of->key, of->kind, of->title, of->verdict};
	enum tw_status st;

	tw_clickhouse_put_time(out, of->row.meta.recorded_ms);
	tw_clickhouse_put_text(out, of->row.meta.device);
	(void)tw_buf_add_u64le(out, (uint64_t)of->who);
	st = tw_clickhouse_put_labels(out, &of->row, err);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		tw_clickhouse_put_text(out, texts[i]);
	return st;
}

/* Each trace has a row in `anrs`, with kind "" if it has only lock waits. That row determines the
 * current attempt. */
static enum tw_status put_copy(struct tw_buf *anrs, struct tw_buf *locks,
        const struct tw_anr_copy *of, uint64_t attempt, struct tw_err *err)
{
	const struct tw_trace_meta *m = &of->row.meta;
	const struct tw_rollup_dims d = {m->recorded_ms / TW_DAY_MS, m->app, m->version_name,
	        m->build_id, m->mapping_id, m->scenario, of->device_class, m->os, ""};
	struct tw_buf begin;
	enum tw_status st;

	tw_buf_init(&begin, 1 << 20);
	tw_clickhouse_put_dims(&begin, of->project_id, of->trace_id, &d, attempt);
	(void)tw_buf_add(anrs, begin.data, begin.len);
	st = put_anr(anrs, of, err);
	for (size_t i = 0; i < of->n_locks; i++) {
		(void)tw_buf_add(locks, begin.data, begin.len);
		put_lock(locks, &of->locks[i], i);
	}
	if (st == TW_OK && tw_buf_status(&begin) != TW_OK)
		st = tw_oom(err);
	tw_buf_done(&begin);
	return st;
}

static enum tw_status write_copies(
        struct tw_fleet_clickhouse *f, const struct tw_anr_copy *of, size_t n, struct tw_err *err)
{
	struct tw_buf anrs, locks;
	uint64_t attempt = 0;
	enum tw_status st = tw_clickhouse_attempts(f, n, &attempt, err);

	tw_buf_init(&anrs, COPY_BYTES);
	tw_buf_init(&locks, COPY_BYTES);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = put_copy(&anrs, &locks, &of[i], attempt + i * TW_CH_STEP, err);
	if (st == TW_OK)
		st = tw_clickhouse_insert(f,
		        "INSERT INTO lock_waits (" TW_CH_DIMS
		        ",lock,monitor,owner,holder,main,dump,"
		        "waits,timed,total_ns,max_ns) FORMAT RowBinary",
		        &locks, err);
	if (st == TW_OK) /* last: this row makes the others current */
		st = tw_clickhouse_insert(f,
		        "INSERT INTO anrs (" TW_CH_DIMS ",time,device,user,label_keys,label_values,"
		        "anr_group,kind,title,verdict) FORMAT RowBinary",
		        &anrs, err);
	tw_buf_done(&anrs);
	tw_buf_done(&locks);
	return st;
}

enum tw_status tw_clickhouse_put_anrs(
        struct tw_fleet_store *s, const struct tw_anr_copy *of, size_t n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	enum tw_status st = tw_clickhouse_ready(f, err);

	if (st == TW_OK)
		st = write_copies(f, of, n, err);
	return st == TW_OK ? tw_catalogue_anr_copied(s->catalogue, of, n, err) : st;
}

/* --- deleted traces --- */

static void put_ids(struct tw_buf *sql, const struct tw_erased *of, size_t n)
{
	(void)tw_buf_add_str(sql, TW_STR("(project,trace) IN ("));
	for (size_t i = 0; i < n; i++) {
		(void)tw_buf_add_str(sql, i ? TW_STR(",(") : TW_STR("("));
		tw_clickhouse_quote(sql, of[i].project_id);
		(void)tw_buf_add_u8(sql, ',');
		tw_clickhouse_quote(sql, of[i].trace_id);
		(void)tw_buf_add_u8(sql, ')');
	}
	(void)tw_buf_add_u8(sql, ')');
}

/* The reports of deleted traces remain counted, so their rate needs the number of all traces.  The
 * last row of each trace is copied without times, labels and device. */
static enum tw_status keep_number(struct tw_fleet_clickhouse *f, const struct tw_erased *of,
        size_t n, uint64_t attempt, struct tw_err *err)
{
	struct tw_buf sql;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("INSERT INTO traces (" TW_CH_DIMS
	                                  ",deleted) SELECT project,day,app,version_name,build_id,"
	                                  "scenario,device_class,os,trace,toUInt64(indexOf(["));
	for (size_t i = 0; i < n; i++) {
		(void)tw_buf_add_str(&sql, i ? TW_STR(",") : TW_STR(""));
		tw_clickhouse_quote(&sql, of[i].trace_id);
	}
	(void)tw_buf_printf(&sql,
	        "],toString(trace))-1)*%" PRIu64 "+%" PRIu64
	        ",2 FROM traces WHERE deleted<>1 AND day IN (",
	        TW_CH_STEP, attempt);
	for (size_t i = 0; i < n; i++)
		(void)tw_buf_printf(&sql, "%stoDate(%" PRId64 ")", i ? "," : "", of[i].day);
	(void)tw_buf_add_str(&sql, TW_STR(") AND "));
	put_ids(&sql, of, n);
	(void)tw_buf_add_str(&sql, TW_STR(" ORDER BY attempt DESC LIMIT 1 BY project,trace"));
	return tw_clickhouse_do(f, &sql, err);
}

enum tw_status tw_clickhouse_hide(
        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	struct tw_buf rows;
	uint64_t attempt = 0;
	enum tw_status st = tw_clickhouse_ready(f, err);

	tw_buf_init(&rows, COPY_BYTES);
	if (st == TW_OK)
		st = tw_clickhouse_attempts(f, 2 * n, &attempt, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const struct tw_rollup_dims d = {of[i].day, "", "", "", "", "", "", "", ""};

		tw_clickhouse_put_dims(
		        &rows, of[i].project_id, of[i].trace_id, &d, attempt + i * TW_CH_STEP);
		(void)tw_buf_add_u8(&rows, 1);
	}
	if (st == TW_OK)
		st = tw_clickhouse_insert(f,
		        "INSERT INTO traces (" TW_CH_DIMS ",deleted) FORMAT RowBinary", &rows, err);
	if (st == TW_OK)
		st = keep_number(f, of, n, attempt + n * TW_CH_STEP, err);
	tw_buf_done(&rows);
	return st;
}

/* A table over several shards does not support mutations: an administrator deletes rows
 * (guides/clickhouse.md). */
static enum tw_status can_mutate(struct tw_fleet_clickhouse *f, bool *ret, struct tw_err *err)
{
	struct tw_buf sql;
	uint64_t n;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	tw_buf_printf(&sql,
	        "SELECT count() FROM system.tables WHERE database='%s' AND name='traces'"
	        " AND engine LIKE '%%MergeTree'",
	        tw_clickhouse_database(f->at));
	st = tw_clickhouse_number(f, NULL, &sql, &n, err);
	*ret = n != 0;
	return st;
}

static const char *const tables_of_traces[] = {
        "method_times", "call_trees", "longest_calls", "findings", "anrs", "lock_waits", "traces"};
enum { TABLES_OF_TRACES = sizeof tables_of_traces / sizeof *tables_of_traces };

/* ClickHouse responds once a mutation is recorded, and runs it in the background. The rows that
 * hide the trace remain, as the others may be removed later. */
enum tw_status tw_clickhouse_erase(
        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	bool can = false;
	enum tw_status st = can_mutate(f, &can, err);

	for (size_t i = 0; st == TW_OK && can && i < TABLES_OF_TRACES; i++) {
		struct tw_buf sql;

		tw_buf_init(&sql, TW_CH_SQL_BYTES);
		tw_buf_printf(&sql, "ALTER TABLE %s DELETE WHERE ", tables_of_traces[i]);
		put_ids(&sql, of, n);
		if (strcmp(tables_of_traces[i], "traces") == 0)
			(void)tw_buf_add_str(&sql, TW_STR(" AND deleted=0"));
		st = tw_clickhouse_do(f, &sql, err);
	}
	return st;
}

enum tw_status tw_clickhouse_drop_project(
        struct tw_fleet_store *s, const char *project_id, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	bool can = false;
	enum tw_status st = can_mutate(f, &can, err);

	for (size_t i = 0; st == TW_OK && can && i <= TABLES_OF_TRACES; i++) {
		struct tw_buf sql;

		tw_buf_init(&sql, TW_CH_SQL_BYTES);
		tw_buf_printf(&sql, "ALTER TABLE %s DELETE WHERE project=",
		        i < TABLES_OF_TRACES ? tables_of_traces[i] : "methods");
		tw_clickhouse_quote(&sql, project_id);
		st = tw_clickhouse_do(f, &sql, err);
	}
	return st;
}

/* --- replaced rows --- */

static void put_replaced(
        struct tw_buf *sql, const struct tw_fleet_clickhouse *f, const char *of, uint64_t before)
{
	/* a mutation does not know the database of its query */
	(void)tw_buf_printf(sql,
	        " WHERE attempt<%" PRIu64
	        " AND attempt NOT IN (SELECT max(attempt) FROM %s.%s GROUP BY project,trace)",
	        before, tw_clickhouse_database(f->at), of);
}

static enum tw_status count_replaced(struct tw_fleet_clickhouse *f, const char *table,
        const char *of, uint64_t before, uint64_t *ret, struct tw_err *err)
{
	struct tw_buf sql;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_printf(&sql, "SELECT count() FROM %s", table);
	put_replaced(&sql, f, of, before);
	return tw_clickhouse_number(f, NULL, &sql, ret, err);
}

static enum tw_status remove_replaced(struct tw_fleet_clickhouse *f, const char *table,
        const char *of, uint64_t before, struct tw_err *err)
{
	struct tw_buf sql;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_printf(&sql, "ALTER TABLE %s DELETE", table);
	put_replaced(&sql, f, of, before);
	return tw_clickhouse_do(f, &sql, err);
}

enum tw_status tw_clickhouse_purge(
        struct tw_fleet_clickhouse *f, uint64_t before, struct tw_err *err)
{
	static const struct {
		const char *table, *of; /* whose attempts are current */
		bool counted;           /* alone; the others are if rows of `of` were replaced */
	} tables[] = {{"method_times", "traces", false}, {"call_trees", "traces", false},
	        {"longest_calls", "traces", false}, {"traces", "traces", false},
	        {"lock_waits", "anrs", true}};
	bool can = false;
	enum tw_status st = can_mutate(f, &can, err);

	for (size_t i = 0; st == TW_OK && can && i < sizeof tables / sizeof *tables; i++) {
		const char *by = tables[i].counted ? tables[i].table : tables[i].of;
		uint64_t n = 0;

		st = count_replaced(f, by, tables[i].of, before, &n, err);
		if (st == TW_OK && n)
			st = remove_replaced(f, tables[i].table, tables[i].of, before, err);
	}
	return st;
}

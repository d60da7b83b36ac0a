/*
 * clickhouse_store.c - the engine: its tables, recounting, and expiry.
 */
#include "server/fleet/store/fleet_clickhouse.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/fleet/store/clickhouse/clickhouse_int.h"

enum { BATCH = 256, TEXT_BYTES = 256 };

/* --- tables --- */

/* Version of the tables; raised when a change of tables.def needs other tables. */
enum { TABLES_VERSION = 1 };

static const char *const tables[] = {
#define TABLE(name, columns, engine) "CREATE TABLE IF NOT EXISTS " #name " (" columns ") " engine,
#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/fleet/store/clickhouse/tables.def"
#undef TABLE
        ("CREATE TABLE IF NOT EXISTS tracewell (version UInt32, attempt UInt64)"
         " ENGINE = ReplacingMergeTree(attempt) ORDER BY version")};

static enum tw_status run_once(
        struct tw_fleet_clickhouse *f, const char *sql, bool without, struct tw_err *err)
{
	const struct tw_clickhouse_query q = {
	        .sql = tw_str_of(sql), .ms = TW_CH_QUERY_MS, .without_database = without};

	return tw_clickhouse_request(f->at, &q, NULL, err);
}

/* Refuses tables of a later version.  Notes the version of new ones. */
static enum tw_status check_version(struct tw_fleet_clickhouse *f, struct tw_err *err)
{
	const struct tw_clickhouse_query q = {
	        .sql = TW_STR("SELECT toUInt64(max(version)) FROM tracewell"),
	        .ms = TW_CH_QUERY_MS};
	struct tw_clickhouse_reader r;
	char text[TEXT_BYTES];
	uint64_t version = 0;
	enum tw_status st = tw_clickhouse_read(f->at, &q, 4096, &r, err);

	if (st == TW_OK)
		version = tw_clickhouse_u64(&r);
	st = tw_clickhouse_end(&r, st, err);
	if (st == TW_OK && version > TABLES_VERSION)
		return tw_fail(err, TW_CONFLICT,
		        "the tables in ClickHouse were written by a later tracewell (version "
		        "%" PRIu64 ", this one supports %d)",
		        version, TABLES_VERSION);
	if (st != TW_OK || version == TABLES_VERSION)
		return st;
	(void)snprintf(text, sizeof text, "INSERT INTO tracewell VALUES (%d, 1)", TABLES_VERSION);
	return run_once(f, text, false, err);
}

/* A user without the right to create a database uses the one that an administrator created. */
static enum tw_status make_tables(struct tw_fleet_clickhouse *f, struct tw_err *err)
{
	char text[TEXT_BYTES];
	struct tw_err why;
	enum tw_status st;

	(void)snprintf(text, sizeof text, "CREATE DATABASE IF NOT EXISTS %s",
	        tw_clickhouse_database(f->at));
	st = run_once(f, text, true, &why);
	if (st == TW_BUSY) {
		tw_err_copy(err, &why);
		return st;
	}
	st = TW_OK;
	for (size_t i = 0; st == TW_OK && i < sizeof tables / sizeof *tables; i++)
		st = run_once(f, tables[i], false, err);
	return st == TW_OK ? check_version(f, err) : st;
}

enum tw_status tw_clickhouse_ready(struct tw_fleet_clickhouse *f, struct tw_err *err)
{
	bool ready;
	enum tw_status st;

	(void)pthread_mutex_lock(&f->lock);
	ready = f->ready;
	(void)pthread_mutex_unlock(&f->lock);
	if (ready)
		return TW_OK;
	st = make_tables(f, err); /* several threads may run this: it is idempotent */
	(void)pthread_mutex_lock(&f->lock);
	f->ready = f->ready || st == TW_OK;
	(void)pthread_mutex_unlock(&f->lock);
	return st;
}

/* --- counts --- */

static enum tw_status count(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        uint64_t *ret, struct tw_err *err)
{
	struct tw_buf sql;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("SELECT count()"));
	tw_clickhouse_where(&sql, query, NULL, "traces");
	return tw_clickhouse_number((struct tw_fleet_clickhouse *)s, query, &sql, ret, err);
}

/* Rows of existing traces are replaced when they are counted again; rows of expired traces
 * remain. */
static enum tw_status reset(struct tw_fleet_store *s, const char *project_id, const char *build_id,
        struct tw_rollup_reset *ret, struct tw_err *err)
{
	enum tw_status st =
	        tw_catalogue_rollup_reset_all(s->catalogue, project_id, build_id, ret, err);

	return st == TW_OK && !build_id[0]
	               ? tw_catalogue_anr_copy_again(s->catalogue, project_id, err)
	               : st;
}

/* --- expiry --- */

static enum tw_status drop_partition(
        struct tw_fleet_clickhouse *f, const char *table, const char *partition, struct tw_err *err)
{
	char text[TEXT_BYTES];

	(void)snprintf(text, sizeof text, "ALTER TABLE %s DROP PARTITION %s", table, partition);
	return run_once(f, text, false, err);
}

static bool is_number(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len == 6;
}

/* Drops months all of whose days have expired. */
static enum tw_status drop_months(struct tw_fleet_clickhouse *f, int64_t day, struct tw_err *err)
{
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_printf(&sql,
	        "SELECT DISTINCT table, partition FROM system.parts WHERE database='%s' AND active"
	        " AND table IN ('traces','method_times','call_trees','longest_calls','findings',"
	        "'anrs','lock_waits')"
	        " AND toUInt32OrZero(partition)<toYYYYMM(toDate(%" PRId64 "))",
	        tw_clickhouse_database(f->at), day);
	st = tw_clickhouse_select(f, NULL, &sql, &r, err);
	while (st == TW_OK && tw_clickhouse_more(&r)) {
		const struct tw_str table = tw_clickhouse_text(&r), month = tw_clickhouse_text(&r);
		char name[TEXT_BYTES / 4], number[8];

		if (r.damaged || !is_number(month) || table.len >= sizeof name)
			return tw_clickhouse_end(&r, tw_clickhouse_damaged(err), err);
		(void)snprintf(name, sizeof name, "%.*s", (int)table.len, table.ptr);
		(void)snprintf(number, sizeof number, "%.*s", (int)month.len, month.ptr);
		st = drop_partition(f, name, number, err);
	}
	return tw_clickhouse_end(&r, st, err);
}

/* Once per day. Names expire as with the other engine. */
static enum tw_status expire(
        struct tw_fleet_store *s, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	enum tw_status st = TW_OK;

	if (day > 0 && day != f->expired_day) {
		st = tw_clickhouse_ready(f, err);
		if (st == TW_OK)
			st = drop_months(f, day, err);
		if (st == TW_OK)
			f->expired_day = day;
	}
	return st == TW_OK ? tw_catalogue_rollup_expire(s->catalogue, day, ret_more, err) : st;
}

static enum tw_status purge(struct tw_fleet_store *s, struct tw_err *err)
{
	return tw_clickhouse_purge((struct tw_fleet_clickhouse *)s,
	        tw_clickhouse_attempt_before(TW_CH_ATTEMPT_MS), err);
}

/* --- the engine --- */

static struct tw_fleet_requests requests(struct tw_fleet_store *s)
{
	const struct tw_clickhouse_counts n =
	        tw_clickhouse_counts(((struct tw_fleet_clickhouse *)s)->at);

	return (struct tw_fleet_requests){n.answered, n.refused, n.unanswered};
}

static void free_store(struct tw_fleet_store *s)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;

	f->at = tw_clickhouse_free(f->at);
	(void)pthread_mutex_destroy(&f->lock);
	tw_mem_free(f);
}

static const struct tw_fleet_engine clickhouse = {.name = "clickhouse",
        .any_label = true,
        .threads = true,
        .batch = BATCH,
        .put = tw_clickhouse_put,
        .name_methods = tw_clickhouse_name,
        .rename = tw_clickhouse_rename,
        .put_found = tw_clickhouse_put_found,
        .put_anrs = tw_clickhouse_put_anrs,
        .hide = tw_clickhouse_hide,
        .erase = tw_clickhouse_erase,
        .drop_project = tw_clickhouse_drop_project,
        .cells = tw_clickhouse_cells,
        .count = count,
        .trees = tw_clickhouse_trees,
        .search = tw_clickhouse_search,
        .found = tw_clickhouse_found,
        .reset = reset,
        .expire = expire,
        .purge = purge,
        .requests = requests,
        .free = free_store};

enum tw_status tw_fleet_clickhouse_new(struct tw_catalogue *c, const struct tw_clickhouse_at *at,
        struct tw_fleet_store **ret, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = tw_mem_zalloc(1, sizeof *f);
	enum tw_status st;

	if (!f)
		return tw_oom(err);
	f->store = (struct tw_fleet_store){&clickhouse, c};
	(void)pthread_mutex_init(&f->lock, NULL);
	st = tw_clickhouse_new(at, &f->at, err);
	if (st == TW_OK)
		*ret = &f->store;
	else
		free_store(&f->store);
	return st;
}

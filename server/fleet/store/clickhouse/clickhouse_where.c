/*
 * clickhouse_where.c - a query's filter as SQL, and rows' dimensions.
 *
 * The only file that puts users' filter values into queries.
 */
#include <inttypes.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"

/* In the order of selected columns. */
static const struct {
	enum tw_fleet_dim dim;
	const char *column;
	size_t at;     /* in struct tw_rollup_dims */
	size_t filter; /* in struct tw_rollup_filter */
} texts[] = {
        {TW_DIM_APP, "app", offsetof(struct tw_rollup_dims, app),
                offsetof(struct tw_rollup_filter, app)},
        {TW_DIM_VERSION, "version_name", offsetof(struct tw_rollup_dims, version_name),
                offsetof(struct tw_rollup_filter, version_name)},
        {TW_DIM_BUILD, "build_id", offsetof(struct tw_rollup_dims, build_id),
                offsetof(struct tw_rollup_filter, build_id)},
        {TW_DIM_SCENARIO, "scenario", offsetof(struct tw_rollup_dims, scenario),
                offsetof(struct tw_rollup_filter, scenario)},
        {TW_DIM_CLASS, "device_class", offsetof(struct tw_rollup_dims, device_class),
                offsetof(struct tw_rollup_filter, device_class)},
        {TW_DIM_OS, "os", offsetof(struct tw_rollup_dims, os),
                offsetof(struct tw_rollup_filter, os)},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static const char *filter_of(const struct tw_fleet_query *query, size_t i)
{
	return *(const char *const *)((const char *)&query->filter + texts[i].filter);
}

static const char **dim_of(struct tw_rollup_dims *d, size_t i)
{
	return (const char **)((char *)d + texts[i].at);
}

static const char *text_of(const struct tw_rollup_dims *d, size_t i)
{
	return *(const char *const *)((const char *)d + texts[i].at);
}

/* --- labels --- */

/* The value of a label; '' if there is none. */
static void put_value(struct tw_buf *sql, const char *key)
{
	(void)tw_buf_add_str(sql, TW_STR("label_values[indexOf(label_keys,"));
	tw_clickhouse_quote(sql, key);
	(void)tw_buf_add_str(sql, TW_STR(")]"));
}

static const char *key_of(const char *label, char out[TW_ROLLUP_VALUE_BYTES])
{
	const char *end = strchr(label, '=');
	const size_t n = end ? (size_t)(end - label) : strlen(label);

	(void)tw_utf8_clean(out, TW_ROLLUP_VALUE_BYTES, (struct tw_str){label, n});
	return out;
}

static void put_label(struct tw_buf *sql, const char *label)
{
	char key[TW_ROLLUP_VALUE_BYTES];

	put_value(sql, key_of(label, key));
	(void)tw_buf_add_u8(sql, '=');
	tw_clickhouse_quote(sql, strchr(label, '=') + 1);
}

static bool has_labels(const struct tw_fleet_query *query)
{
	return strchr(query->filter.label, '=') || query->n_labels;
}

static void put_labels(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	if (strchr(query->filter.label, '=')) {
		(void)tw_buf_add_str(sql, TW_STR(" AND "));
		put_label(sql, query->filter.label);
	}
	for (size_t i = 0; i < query->n_labels; i++) {
		(void)tw_buf_add_str(sql, TW_STR(" AND "));
		put_label(sql, query->labels[i]);
	}
}

/* --- columns --- */

static const char *group_key(const struct tw_fleet_query *query)
{
	return query->label_key && query->label_key[0] ? query->label_key : query->filter.label;
}

/* The label as "key=value". */
static void put_label_column(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	char key[TW_ROLLUP_VALUE_BYTES];

	(void)tw_buf_add_str(sql, TW_STR("concat("));
	(void)key_of(group_key(query), key);
	tw_clickhouse_quote(sql, key);
	(void)tw_buf_add_str(sql, TW_STR(",'=',"));
	put_value(sql, key);
	(void)tw_buf_add_str(sql, TW_STR(") AS label"));
}

static bool has_own_labels(const char *table)
{
	return strcmp(table, "traces") == 0 || strcmp(table, "findings") == 0;
}

void tw_clickhouse_dims(struct tw_buf *sql, const struct tw_fleet_query *query, const char *table)
{

	if (query->dims & TW_DIM_DAY)
		(void)tw_buf_add_str(sql, TW_STR("toUInt16(day) AS d,"));
	for (size_t i = 0; i < TEXTS; i++)
		if (query->dims & texts[i].dim)
			(void)tw_buf_printf(sql, "%s,", texts[i].column);
	if (!(query->dims & TW_DIM_LABEL))
		return;
	if (has_own_labels(table))
		put_label_column(sql, query);
	else
		(void)tw_buf_add_str(sql, TW_STR("label")); /* of the join below */
	(void)tw_buf_add_u8(sql, ',');
}

static const char *keep(struct tw_arena *a, struct tw_str s)
{
	return tw_arena_str(a, s);
}

bool tw_clickhouse_read_dims(struct tw_clickhouse_reader *r, unsigned dims, struct tw_arena *a,
        struct tw_rollup_dims *ret)
{
	bool fits = true;

	*ret = (struct tw_rollup_dims){.mapping_id = "", .label = ""};
	if (dims & TW_DIM_DAY)
		ret->day = tw_clickhouse_u16(r);
	for (size_t i = 0; i < TEXTS; i++) {
		*dim_of(ret, i) = dims & texts[i].dim ? keep(a, tw_clickhouse_text(r)) : "";
		fits = fits && *dim_of(ret, i);
	}
	if (dims & TW_DIM_LABEL)
		ret->label = keep(a, tw_clickhouse_text(r));
	return fits && ret->label;
}

/* --- conditions --- */

static void put_days(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	enum { DAY_MAX = 49710 }; /* of Date, in 2106 */
	const int64_t first = query->filter.first_day, last = query->filter.last_day;

	(void)tw_buf_add_str(sql, TW_STR("project="));
	tw_clickhouse_quote(sql, query->project_id);
	(void)tw_buf_printf(sql, " AND day>=toDate(%" PRId64 ") AND day<=toDate(%" PRId64 ")",
	        first < 0         ? 0
	        : first > DAY_MAX ? DAY_MAX
	                          : first,
	        last < 0         ? 0
	        : last > DAY_MAX ? DAY_MAX
	                         : last);
}

static void put_filter(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	for (size_t i = 0; i < TEXTS; i++)
		if (filter_of(query, i)[0]) {
			(void)tw_buf_printf(sql, " AND %s=", texts[i].column);
			tw_clickhouse_quote(sql, filter_of(query, i));
		}
}

/* The values of a dimension in the cells. Adjacent repeats are left out; others are harmless. */
static void put_in(struct tw_buf *sql, const struct tw_fleet_cells_of *cells, size_t i)
{
	const char *last = NULL;

	(void)tw_buf_printf(sql, " AND %s IN (", texts[i].column);
	for (size_t k = 0; k < cells->n; k++) {
		const char *text = text_of(&cells->list[k]->dims, i);

		if (last && strcmp(last, text) == 0)
			continue;
		if (last)
			(void)tw_buf_add_u8(sql, ',');
		tw_clickhouse_quote(sql, text);
		last = text;
	}
	(void)tw_buf_add_u8(sql, ')');
}

/* cells[].label is the label before its values were grouped. */
static void put_labels_in(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *cells)
{
	char key[TW_ROLLUP_VALUE_BYTES];

	(void)tw_buf_add_str(sql, TW_STR(" AND "));
	put_value(sql, key_of(group_key(query), key));
	(void)tw_buf_add_str(sql, TW_STR(" IN ("));
	for (size_t k = 0; k < cells->n; k++) {
		const char *value = strchr(cells->list[k]->label, '=');

		(void)tw_buf_add_str(sql, k ? TW_STR(",") : TW_STR(""));
		tw_clickhouse_quote(sql, value ? value + 1 : "");
	}
	(void)tw_buf_add_u8(sql, ')');
}

static void put_cells(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *cells)
{
	for (size_t i = 0; i < TEXTS; i++)
		if (query->dims & texts[i].dim)
			put_in(sql, cells, i);
	if (query->dims & TW_DIM_DAY) {
		(void)tw_buf_add_str(sql, TW_STR(" AND toUInt16(day) IN ("));
		for (size_t k = 0; k < cells->n; k++)
			(void)tw_buf_printf(
			        sql, "%s%" PRId64, k ? "," : "", cells->list[k]->dims.day);
		(void)tw_buf_add_u8(sql, ')');
	}
}

void tw_clickhouse_set(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, size_t n)
{
	(void)tw_buf_add_str(sql, TW_STR("toUInt64(multiIf("));
	for (size_t k = 0; k < n; k++) {
		if (!of[k].n)
			continue;
		(void)tw_buf_add_str(sql, TW_STR("1"));
		put_cells(sql, query, &of[k]);
		(void)tw_buf_printf(sql, ",%zu,", k);
	}
	(void)tw_buf_printf(sql, "0,0,%zu)) AS cell_set", n); /* at least one condition */
}

/* The current attempts of traces or findings; those of query->state if it is set. */
static void put_last(struct tw_buf *sql, const struct tw_fleet_query *query, const char *table)
{
	(void)tw_buf_printf(sql, " AND attempt IN (SELECT max(attempt) FROM %s WHERE ", table);
	put_days(sql, query);
	if (query->state)
		(void)tw_buf_printf(sql, " AND attempt<=%" PRIu64, query->state);
	(void)tw_buf_add_str(sql, TW_STR(" GROUP BY trace"));
	if (strcmp(table, "traces") == 0)
		(void)tw_buf_printf(sql, " HAVING argMax(deleted,attempt)%s",
		        query->with_deleted ? "<>1" : "=0");
	(void)tw_buf_add_u8(sql, ')');
}

/* The current attempts of traces, filtered by label. */
static void put_traces(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *cells)
{
	(void)tw_buf_add_str(sql, TW_STR(" FROM traces WHERE "));
	put_days(sql, query);
	put_filter(sql, query);
	put_labels(sql, query);
	if (cells && query->dims & TW_DIM_LABEL)
		put_labels_in(sql, query, cells);
	put_last(sql, query, "traces");
}

/* A table without labels is filtered by those of traces, and joined if rows are grouped by
 * label. */
void tw_clickhouse_where(struct tw_buf *sql, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *cells, const char *table)
{
	const bool own = has_own_labels(table), label = query->dims & TW_DIM_LABEL;
	const bool join = !own && label && !cells;

	(void)tw_buf_printf(sql, " FROM %s", table);
	if (join) {
		(void)tw_buf_add_str(sql, TW_STR(" ALL INNER JOIN (SELECT attempt,"));
		put_label_column(sql, query);
		put_traces(sql, query, NULL);
		(void)tw_buf_add_str(sql, TW_STR(") USING attempt"));
	}
	(void)tw_buf_add_str(sql, TW_STR(" WHERE "));
	put_days(sql, query);
	put_filter(sql, query);
	if (cells)
		put_cells(sql, query, cells);
	if (own) {
		put_labels(sql, query);
		if (cells && label)
			put_labels_in(sql, query, cells);
		put_last(sql, query, table);
	} else if (!join && (label || has_labels(query))) {
		(void)tw_buf_add_str(sql, TW_STR(" AND attempt IN (SELECT attempt"));
		put_traces(sql, query, cells);
		(void)tw_buf_add_u8(sql, ')');
	} else if (!join) {
		put_last(sql, query, "traces");
	}
}

/* --- running --- */

enum tw_status tw_clickhouse_select(struct tw_fleet_clickhouse *f,
        const struct tw_fleet_query *query, struct tw_buf *sql, struct tw_clickhouse_reader *ret,
        struct tw_err *err)
{
	struct tw_clickhouse_query q = {.ms = query ? TW_CH_BACKGROUND_MS : TW_CH_QUERY_MS};
	enum tw_status st = tw_clickhouse_ready(f, err);

	*ret = (struct tw_clickhouse_reader){.damaged = false};
	if (query && query->until_ms)
		q.ms = query->until_ms - tw_monotonic_ms();
	if (st == TW_OK && q.ms <= 0)
		st = tw_fail(err, TW_DEADLINE,
		        "ClickHouse did not respond in time; narrow the filter or the time range");
	if (st == TW_OK && tw_buf_status(sql) != TW_OK)
		st = tw_fail(err, TW_TOO_LARGE, "the filter is too long");
	q.sql = tw_buf_str(sql);
	if (st == TW_OK)
		st = tw_clickhouse_read(f->at, &q, TW_CH_ANSWER_BYTES, ret, err);
	tw_buf_done(sql);
	return st;
}

enum tw_status tw_clickhouse_number(struct tw_fleet_clickhouse *f,
        const struct tw_fleet_query *query, struct tw_buf *sql, uint64_t *ret, struct tw_err *err)
{
	struct tw_clickhouse_reader r;
	enum tw_status st = tw_clickhouse_select(f, query, sql, &r, err);

	*ret = st == TW_OK ? tw_clickhouse_u64(&r) : 0;
	return tw_clickhouse_end(&r, st, err);
}

enum tw_status tw_clickhouse_do(
        struct tw_fleet_clickhouse *f, struct tw_buf *sql, struct tw_err *err)
{
	struct tw_clickhouse_reader r;
	enum tw_status st = tw_clickhouse_select(f, NULL, sql, &r, err);

	return tw_clickhouse_end(&r, st, err);
}

/*
 * clickhouse_cells.c - cells: durations and methods' values by the dimensions of a query.
 *
 * ClickHouse counts values by the buckets of sketches, so the sketches equal those of the embedded
 * engine for the same traces.
 *
 * ClickHouse has no snapshots.  Durations and each metric are separate queries, and traces may
 * be counted again in between, so the later queries read the attempts that the first one saw:
 * larger numbers are later, and rows of replaced attempts remain for a while.
 */
#include <inttypes.h>
#include <string.h>

#include "decoder/base/list.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"
#include "server/stats/rollup.h"

enum { PART_BYTES = 256 << 20 };
#define COLUMN_LETTERS "abcdefghijklmnopqrstuvwxyz_"

/* tw_bucket_of as SQL.  log2 may round up just below a power of two, which is corrected. */
static void put_bucket(struct tw_buf *sql)
{
	(void)tw_buf_add_str(sql, TW_STR("toUInt16(if(v<32,v,toUInt64((k-5)*32)+bitShiftRight(v,"
	                                 "toUInt8(k-5)))) AS b"));
}

/* A column's value on all threads except main; negative: unknown. */
static void put_others(struct tw_buf *sql, const char *column, int len)
{
	(void)tw_buf_printf(sql,
	        "if(%.*s<0,-1,greatest(0,toInt64(%.*s)-toInt64(thread_%.*s[indexOf(threads,'main')]"
	        ")))",
	        len, column, len, column, len, column);
}

/* The expression with the columns of all threads, or the values of the query's. */
static void put_columns(struct tw_buf *sql, const struct tw_fleet_query *query, const char *text)
{
	for (const char *p = text; *p;) {
		const size_t n = strcspn(p, "@"),
		             name = strspn(p + n + (p[n] != 0), COLUMN_LETTERS);

		(void)tw_buf_add(sql, p, n);
		p += n;
		if (!*p)
			break;
		p++;
		if (query->thread && strcmp(query->thread, TW_FLEET_OTHERS) == 0) {
			put_others(sql, p, (int)name);
		} else if (query->thread) {
			(void)tw_buf_printf(sql,
			        "if(length(threads)=1,%.*s,thread_%.*s[indexOf(threads,", (int)name,
			        p, (int)name, p);
			tw_clickhouse_quote(sql, query->thread);
			(void)tw_buf_add_str(sql, TW_STR(")])"));
		} else {
			(void)tw_buf_add(sql, p, name);
		}
		p += name;
	}
}

/* Rows of a value v and its highest bit k, from rows with a value. */
static void put_values(struct tw_buf *sql, const struct tw_fleet_query *query, const char *table,
        const char *value)
{
	(void)tw_buf_add_str(
	        sql, TW_STR("SELECT *,toUInt8(l-(intExp2(l)>v)) AS k FROM (SELECT *,"
	                    "toUInt8(floor(log2(greatest(v,32)))) AS l FROM (SELECT "));
	tw_clickhouse_dims(sql, query, table);
	if (strcmp(table, "method_times") == 0)
		(void)tw_buf_add_str(sql, TW_STR("method,"));
	else
		(void)tw_buf_add_str(sql, TW_STR("attempt,"));
	(void)tw_buf_add_str(sql, TW_STR("trace,toUInt64("));
	put_columns(sql, query, value);
	(void)tw_buf_add_str(sql, TW_STR(") AS v"));
}

/* --- durations --- */

struct growing { /* the cells of a result */
	struct tw_arena *arena;
	struct tw_rollup_cell *cells;
	size_t n;
	uint32_t cap;
	struct tw_rollup_head *head; /* of the current cell */
	uint64_t last;               /* attempt */
};

/* In the order of selected columns, as ClickHouse sorts them. */
static int compare_dims(const struct tw_rollup_dims *a, const struct tw_rollup_dims *b)
{
	const char *const pairs[][2] = {{a->app, b->app}, {a->version_name, b->version_name},
	        {a->build_id, b->build_id}, {a->scenario, b->scenario},
	        {a->device_class, b->device_class}, {a->os, b->os}, {a->label, b->label}};
	int c = a->day < b->day ? -1 : a->day > b->day;

	for (size_t i = 0; c == 0 && i < sizeof pairs / sizeof *pairs; i++)
		c = strcmp(pairs[i][0], pairs[i][1]);
	return c;
}

static bool same_dims(const struct tw_rollup_dims *a, const struct tw_rollup_dims *b)
{
	return compare_dims(a, b) == 0;
}

static enum tw_status end_cell(struct growing *g, struct tw_err *err)
{
	struct tw_rollup_cell *cell = g->n ? &g->cells[g->n - 1] : NULL;
	struct tw_buf out;
	char *copy;

	if (!cell)
		return TW_OK;
	tw_buf_init(&out, PART_BYTES);
	tw_rollup_head_write(g->head, &out);
	cell->traces = g->head->lengths.n;
	tw_rollup_head_clear(g->head);
	copy = tw_buf_status(&out) == TW_OK ? tw_arena_str(g->arena, tw_buf_str(&out)) : NULL;
	cell->head = (struct tw_str){copy, out.len};
	tw_buf_done(&out);
	return copy ? TW_OK : tw_rollup_fail_too_large(err);
}

static enum tw_status begin_cell(
        struct growing *g, const struct tw_rollup_dims *d, struct tw_err *err)
{
	enum tw_status st = end_cell(g, err);

	if (st != TW_OK)
		return st;
	if (g->n == TW_ROLLUP_CELLS_READ || !TW_GROW(g->arena, g->cells, g->n, g->cap))
		return tw_rollup_fail_too_large(err);
	g->cells[g->n++] =
	        (struct tw_rollup_cell){.cell_id = (int64_t)g->n, .dims = *d, .version = 1};
	return TW_OK;
}

static enum tw_status read_heads(struct tw_clickhouse_reader *r, const struct tw_fleet_query *query,
        struct growing *g, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_clickhouse_more(r)) {
		struct tw_rollup_dims d;
		struct tw_sketch_bucket b;
		struct tw_str trace;
		uint64_t attempt;

		if (!tw_clickhouse_read_dims(r, query->dims, g->arena, &d))
			return tw_rollup_fail_too_large(err);
		b.bucket = tw_clickhouse_u16(r);
		b.n = tw_clickhouse_u64(r);
		b.sum = tw_clickhouse_i64(r);
		b.min = tw_clickhouse_i64(r);
		b.max = tw_clickhouse_i64(r);
		trace = tw_clickhouse_fixed(r, TW_ROLLUP_ID);
		attempt = tw_clickhouse_u64(r);
		if (r->damaged || b.bucket >= TW_BUCKETS || !trace.ptr[0])
			return tw_clickhouse_damaged(err);
		if (g->n == 0 || !same_dims(&g->cells[g->n - 1].dims, &d))
			st = begin_cell(g, &d, err);
		g->last = attempt > g->last ? attempt : g->last;
		tw_rollup_head_add_bucket(g->head, trace.ptr, &b);
	}
	return st == TW_OK ? end_cell(g, err) : st;
}

/* Names of the selected dimensions, each followed by a comma. */
static void name_dims(struct tw_buf *sql, unsigned dims)
{
	static const struct {
		enum tw_fleet_dim dim;
		const char *name;
	} names[] = {{TW_DIM_DAY, "d,"}, {TW_DIM_APP, "app,"}, {TW_DIM_VERSION, "version_name,"},
	        {TW_DIM_BUILD, "build_id,"}, {TW_DIM_SCENARIO, "scenario,"},
	        {TW_DIM_CLASS, "device_class,"}, {TW_DIM_OS, "os,"}, {TW_DIM_LABEL, "label,"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (dims & names[i].dim)
			(void)tw_buf_add_str(sql, tw_str_of(names[i].name));
}

static void select_heads(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	(void)tw_buf_add_str(sql, TW_STR("SELECT "));
	name_dims(sql, query->dims);
	put_bucket(sql);
	(void)tw_buf_add_str(
	        sql, TW_STR(",count(),sum(v),min(v),max(v),min(trace),max(attempt) FROM ("));
	put_values(sql, query, "traces", "duration_ns");
	tw_clickhouse_where(sql, query, NULL, "traces");
	(void)tw_buf_add_str(sql, TW_STR("))) GROUP BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("b ORDER BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("b"));
}

/* --- methods --- */

/* @ precedes columns that also exist by kind of thread. */
static const struct {
	const char *value, *known; /* a condition, "" none */
} metrics[TW_ROLLUP_METRICS] = {[TW_ROLLUP_WALL] = {"@total_ns", ""},
        [TW_ROLLUP_SELF] = {"@self_ns", ""},
        [TW_ROLLUP_CPU] = {"@cpu_ns", " AND @cpu_ns>=0"},
        [TW_ROLLUP_WAITING] = {"if(toInt64(@total_ns)>@cpu_ns,toInt64(@total_ns)-@cpu_ns,0)",
                " AND @cpu_ns>=0"},
        [TW_ROLLUP_CALLS] = {"@calls", ""},
        [TW_ROLLUP_CALL] = {"intDiv(@sum_ns,greatest(@calls,1))", " AND @calls>0"}};

struct part { /* encoded methods of one metric of a cell */
	struct growing *g;
	unsigned metric;
	size_t cell;         /* index of the cell */
	struct tw_buf out;   /* all methods, encoded */
	struct tw_buf one;   /* the sketch of one method, encoded */
	struct tw_sketch *s; /* of the current method */
	uint64_t method;
	struct tw_str worst_id;
};

static void end_method(struct part *p)
{
	if (p->s->n == 0)
		return;
	tw_buf_clear(&p->one);
	tw_sketch_write(p->s, &p->one);
	(void)tw_buf_add_u64le(&p->out, p->method);
	(void)tw_buf_add_varint(&p->out, TW_ROLLUP_ID + p->one.len);
	(void)tw_buf_add(&p->out, p->worst_id.ptr, TW_ROLLUP_ID);
	(void)tw_buf_add(&p->out, p->one.data, p->one.len);
	tw_sketch_clear(p->s);
}

static enum tw_status end_part(struct part *p, struct tw_err *err)
{
	struct growing *g = p->g;
	char *copy;

	end_method(p);
	if (p->out.len == 0 || p->cell >= g->n)
		return TW_OK;
	if (tw_buf_status(&p->out) != TW_OK || tw_buf_status(&p->one) != TW_OK)
		return tw_rollup_fail_too_large(err);
	copy = tw_arena_alloc(g->arena, p->out.len, 1);
	if (!copy)
		return tw_rollup_fail_too_large(err);
	memcpy(copy, p->out.data, p->out.len);
	g->cells[p->cell].parts[p->metric] = (struct tw_str){copy, p->out.len};
	tw_buf_clear(&p->out);
	return TW_OK;
}

/* Finds the cell of these dimensions; both are in ClickHouse's order. Traces that arrived between
 * the two queries may have none: they are left out. */
static enum tw_status find_cell(
        struct part *p, const struct tw_rollup_dims *d, bool *ret_there, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t at = p->cell;

	while (at < p->g->n && !same_dims(&p->g->cells[at].dims, d))
		at++;
	*ret_there = at < p->g->n;
	if (*ret_there && at != p->cell) {
		st = end_part(p, err);
		p->cell = at;
	} else if (!*ret_there) {
		end_method(p);
	}
	return st;
}

struct total { /* of a method in a cell; texts are in `arena` */
	struct tw_arena *arena;
	struct tw_rollup_dims dims;
	uint64_t method;
	int64_t sum, min, max;
	struct tw_str worst;
	bool there;
};

static enum tw_status next_total(struct tw_clickhouse_reader *r, const struct tw_fleet_query *query,
        struct total *t, struct tw_err *err)
{
	t->there = tw_clickhouse_more(r);
	if (!t->there)
		return TW_OK;
	tw_arena_reset(t->arena);
	if (!tw_clickhouse_read_dims(r, query->dims, t->arena, &t->dims))
		return tw_rollup_fail_too_large(err);
	t->method = tw_clickhouse_u64(r);
	t->sum = tw_clickhouse_i64(r);
	t->min = tw_clickhouse_i64(r);
	t->max = tw_clickhouse_i64(r);
	t->worst = tw_clickhouse_fixed(r, TW_ROLLUP_ID);
	return r->damaged || !t->worst.ptr[0] ? tw_clickhouse_damaged(err) : TW_OK;
}

/* Counts of the method's buckets, as two arrays. */
static enum tw_status read_buckets(struct tw_clickhouse_reader *r, const struct total *t,
        struct tw_sketch *s, struct tw_err *err)
{
	uint16_t buckets[TW_BUCKETS];
	const uint64_t n = tw_clickhouse_n(r);

	if (n > TW_BUCKETS)
		return tw_clickhouse_damaged(err);
	for (uint64_t i = 0; i < n; i++)
		buckets[i] = tw_clickhouse_u16(r);
	if (tw_clickhouse_n(r) != n)
		return tw_clickhouse_damaged(err);
	for (uint64_t i = 0; i < n; i++)
		tw_sketch_add_bucket(s, &(struct tw_sketch_bucket){buckets[i], tw_clickhouse_u64(r),
		                                i ? 0 : t->sum, t->min, t->max});
	return r->damaged ? tw_clickhouse_damaged(err) : TW_OK;
}

/* Compares a total's position with a method of the counts: negative before it, 0 at it, positive
 * after it. */
static int compare_total(const struct total *t, const struct tw_rollup_dims *d, uint64_t method)
{
	const int c = compare_dims(&t->dims, d);

	return c ? c : t->method < method ? -1 : t->method > method;
}

/* Both results have the same order. A method in only one of them was removed between the queries,
 * and is left out. */
static enum tw_status read_parts(struct tw_clickhouse_reader *counts,
        struct tw_clickhouse_reader *totals, const struct tw_fleet_query *query, struct part *p,
        struct tw_arena *scratch, struct tw_err *err)
{
	struct total t = {.arena = tw_arena_new(1 << 20)};
	enum tw_status st = t.arena ? next_total(totals, query, &t, err) : tw_oom(err);

	while (st == TW_OK && tw_clickhouse_more(counts)) {
		struct tw_rollup_dims d;
		bool there = false;

		tw_arena_reset(scratch);
		if (!tw_clickhouse_read_dims(counts, query->dims, scratch, &d)) {
			st = tw_rollup_fail_too_large(err);
			break;
		}
		end_method(p);
		p->method = tw_clickhouse_u64(counts);
		while (st == TW_OK && t.there && compare_total(&t, &d, p->method) < 0)
			st = next_total(totals, query, &t, err);
		if (st == TW_OK && t.there && compare_total(&t, &d, p->method) == 0)
			st = find_cell(p, &d, &there, err);
		if (st == TW_OK)
			st = read_buckets(counts, &t, p->s, err);
		p->worst_id = t.worst;
		if (!there)
			tw_sketch_clear(p->s);
	}
	tw_arena_free(t.arena);
	return st == TW_OK ? end_part(p, err) : st;
}

static void put_only(struct tw_buf *sql, const struct tw_fleet_query *query)
{
	if (!query->only)
		return;
	(void)tw_buf_add_str(sql, TW_STR(" AND method IN (0"));
	for (size_t i = 0; i < query->n_only; i++)
		(void)tw_buf_printf(sql, ",%" PRIu64, query->only[i]);
	(void)tw_buf_add_u8(sql, ')');
}

/* Selects rows with a known value of the metric. */
static void put_rows(struct tw_buf *sql, const struct tw_fleet_query *query, unsigned metric)
{
	put_values(sql, query, "method_times", metrics[metric].value);
	tw_clickhouse_where(sql, query, NULL, "method_times");
	if (query->thread && strcmp(query->thread, TW_FLEET_OTHERS) == 0) {
		(void)tw_buf_add_str(sql, TW_STR(" AND threads!=['main']"));
	} else if (query->thread) {
		(void)tw_buf_add_str(sql, TW_STR(" AND has(threads,"));
		tw_clickhouse_quote(sql, query->thread);
		(void)tw_buf_add_u8(sql, ')');
	}
	put_columns(sql, query, metrics[metric].known);
	put_only(sql, query);
	(void)tw_buf_add_str(sql, TW_STR("))"));
}

/* Sums are grouped by method and are cheap. Buckets are numerous, so that query returns only their
 * counts. */
static void select_totals(struct tw_buf *sql, const struct tw_fleet_query *query, unsigned metric)
{
	(void)tw_buf_add_str(sql, TW_STR("SELECT "));
	name_dims(sql, query->dims);
	/* of traces with the largest value, the lowest id, as in the embedded engine */
	(void)tw_buf_add_str(sql,
	        TW_STR("method,sum(v),min(v),max(v),argMin(trace,tuple(bitNot(v),trace)) FROM ("));
	put_rows(sql, query, metric);
	(void)tw_buf_add_str(sql, TW_STR(") GROUP BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method ORDER BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method"));
}

static void select_counts(struct tw_buf *sql, const struct tw_fleet_query *query, unsigned metric)
{
	(void)tw_buf_add_str(sql, TW_STR("SELECT "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method,groupArray(b),groupArray(n) FROM (SELECT "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method,"));
	put_bucket(sql);
	(void)tw_buf_add_str(sql, TW_STR(",count() AS n FROM ("));
	put_rows(sql, query, metric);
	(void)tw_buf_add_str(sql, TW_STR(") GROUP BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method,b) GROUP BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method ORDER BY "));
	name_dims(sql, query->dims);
	(void)tw_buf_add_str(sql, TW_STR("method"));
}

static enum tw_status add_parts(struct tw_fleet_clickhouse *f, const struct tw_fleet_query *query,
        unsigned metric, struct growing *g, struct tw_err *err)
{
	struct part p = {.g = g, .metric = metric, .s = &g->head->lengths};
	struct tw_arena *scratch = tw_arena_new(1 << 20);
	struct tw_clickhouse_reader counts, totals = {.damaged = false};
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	tw_buf_init(&p.out, PART_BYTES);
	tw_buf_init(&p.one, 1 << 20);
	select_counts(&sql, query, metric);
	st = tw_clickhouse_select(f, query, &sql, &counts, err);
	if (st == TW_OK) {
		tw_buf_init(&sql, TW_CH_SQL_BYTES);
		select_totals(&sql, query, metric);
		st = tw_clickhouse_select(f, query, &sql, &totals, err);
	}
	if (st == TW_OK)
		st = scratch ? read_parts(&counts, &totals, query, &p, scratch, err) : tw_oom(err);
	tw_sketch_clear(p.s);
	tw_buf_done(&p.one);
	tw_buf_done(&p.out);
	tw_arena_free(scratch);
	st = tw_clickhouse_end(&totals, st, err);
	return tw_clickhouse_end(&counts, st, err);
}

/* --- the query --- */

enum tw_status tw_clickhouse_cells(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        struct tw_arena *a, struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	struct growing g = {.arena = a, .head = tw_arena_zalloc(a, 1, sizeof *g.head)};
	struct tw_fleet_query then = *query;
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	if (!g.head)
		return tw_oom(err);
	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	select_heads(&sql, query);
	st = tw_clickhouse_select(f, query, &sql, &r, err);
	if (st == TW_OK)
		st = read_heads(&r, query, &g, err);
	st = tw_clickhouse_end(&r, st, err);
	then.state = g.last;
	for (unsigned m = 0; st == TW_OK && g.n && m < TW_ROLLUP_METRICS; m++)
		if (query->metrics >> m & 1)
			st = add_parts(f, &then, m, &g, err);
	if (st == TW_OK) {
		*ret = g.cells;
		*ret_n = g.n;
	}
	return st;
}

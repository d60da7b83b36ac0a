/*
 * clickhouse_rows.c - queries for call trees, the longest calls, and findings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/fleet/found.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"
#include "server/stats/rollup_tree.h"

enum { NODES_MAX = 100000, FIGURES = 5 };

/* --- call trees --- */

enum { SLOTS = 1 << 18 }; /* of a tree's paths */

struct placed { /* a path and its node */
	uint64_t path;
	uint32_t node;
};

static const struct placed *find_path(const struct placed *slots, uint64_t path)
{
	uint32_t at = (uint32_t)(path >> 32) & (SLOTS - 1);

	while (slots[at].path && slots[at].path != path)
		at = (at + 1) & (SLOTS - 1);
	return &slots[at];
}

struct row {
	uint64_t path, parent, method;
	struct tw_str thread;
	struct tw_rollup_tree_sum sum;
};

static struct row read_row(struct tw_clickhouse_reader *r)
{
	struct row x = {.path = tw_clickhouse_u64(r)};

	x.parent = tw_clickhouse_u64(r);
	(void)tw_clickhouse_u16(r); /* depth: parents precede their children */
	x.method = tw_clickhouse_u64(r);
	x.thread = tw_clickhouse_text(r);
	x.sum.traces = tw_clickhouse_u64(r);
	x.sum.calls = tw_clickhouse_u64(r);
	x.sum.total_ns = tw_clickhouse_i64(r);
	x.sum.self_ns = tw_clickhouse_i64(r);
	x.sum.cpu_ns = tw_clickhouse_i64(r);
	x.sum.cpu_self_ns = tw_clickhouse_i64(r);
	x.sum.square = tw_clickhouse_double(r);
	return x;
}

/* Sets of cells, whose trees are read together. */
struct sets {
	struct tw_fleet_clickhouse *store;
	struct tw_fleet_query query;
	const struct tw_fleet_cells_of *of;
	size_t n;
	struct tw_fleet_cells_of all; /* the cells of all sets */
	struct tw_rollup_tree *to;
};

/* The tree of the row's set; NULL: there is no such set. */
static struct tw_rollup_tree *tree_of(const struct sets *x, struct tw_clickhouse_reader *r)
{
	const uint64_t set = tw_clickhouse_u64(r);

	return set < x->n ? &x->to[set] : NULL;
}

/* Rows of a tree are adjacent.  A node whose caller was left out is left out too. */
static enum tw_status add_rows(
        struct tw_clickhouse_reader *r, const struct sets *x, struct tw_err *err)
{
	struct placed *slots = tw_arena_alloc(x->to->arena, SLOTS, sizeof *slots);
	struct tw_rollup_tree *last = NULL;

	if (!slots)
		return tw_tree_fail_too_large(err);
	for (size_t n = 0; tw_clickhouse_more(r); n++) {
		struct tw_rollup_tree *to = tree_of(x, r);
		const struct row row = read_row(r);
		struct placed *at;
		uint32_t node;

		if (to != last) {
			memset(slots, 0, SLOTS * sizeof *slots);
			n = 0;
		}
		if (r->damaged || to < last || !to || n >= NODES_MAX || !row.path)
			return tw_clickhouse_damaged(err);
		last = to;
		at = (struct placed *)(uintptr_t)find_path(slots, row.path);
		if (row.parent == 0) {
			node = tw_rollup_tree_thread(to, row.thread);
		} else {
			const struct placed *caller = find_path(slots, row.parent);

			if (!caller->path)
				continue;
			node = tw_rollup_tree_child(to, caller->node, row.method);
		}
		if (node == TW_ROLLUP_NO_NODE || !tw_rollup_tree_add(to, node, &row.sum))
			return tw_tree_fail_too_large(err);
		*at = (struct placed){row.path, node};
	}
	return TW_OK;
}

/* Reads the number of traces with trees and the level of omitted times of each set.  The query then
 * reads the attempts up to the last of these. */
static enum tw_status read_heads(struct sets *x, struct tw_err *err)
{
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("SELECT "));
	tw_clickhouse_set(&sql, &x->query, x->of, x->n);
	(void)tw_buf_add_str(&sql, TW_STR(",count(),max(tree_level),max(attempt)"));
	tw_clickhouse_where(&sql, &x->query, &x->all, "traces");
	(void)tw_buf_printf(&sql, " AND tree=1 AND cell_set<%zu GROUP BY cell_set", x->n);
	st = tw_clickhouse_select(x->store, &x->query, &sql, &r, err);
	while (st == TW_OK && tw_clickhouse_more(&r)) {
		struct tw_rollup_tree *to = tree_of(x, &r);
		const uint64_t traces = tw_clickhouse_u64(&r);
		const unsigned level = tw_clickhouse_u8(&r);
		const uint64_t last = tw_clickhouse_u64(&r);

		if (!to)
			st = tw_clickhouse_damaged(err);
		if (st != TW_OK)
			break;
		to->traces += traces;
		to->omitted_level = level > to->omitted_level ? level : to->omitted_level;
		x->query.state = last > x->query.state ? last : x->query.state;
	}
	return tw_clickhouse_end(&r, st, err);
}

static enum tw_status read_nodes(struct sets *x, struct tw_err *err)
{
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("SELECT * FROM (SELECT "));
	tw_clickhouse_set(&sql, &x->query, x->of, x->n);
	(void)tw_buf_add_str(&sql,
	        TW_STR(",path,any(parent),min(depth) AS least,any(method),any(thread),count(),"
	               "sum(calls),sum(total_ns) AS total,sum(self_ns),sum(cpu_ns),"
	               "sum(cpu_self_ns),sum(toFloat64(total_ns)*toFloat64(total_ns))"));
	tw_clickhouse_where(&sql, &x->query, &x->all, "call_trees");
	(void)tw_buf_printf(&sql,
	        " AND cell_set<%zu GROUP BY cell_set,path ORDER BY total DESC,least,path LIMIT %d"
	        " BY cell_set) ORDER BY cell_set,least,path",
	        x->n, NODES_MAX);
	st = tw_clickhouse_select(x->store, &x->query, &sql, &r, err);
	if (st == TW_OK)
		st = add_rows(&r, x, err);
	return tw_clickhouse_end(&r, st, err);
}

/* All sets by two queries. */
enum tw_status tw_clickhouse_trees(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, size_t n, struct tw_rollup_tree *to, struct tw_err *err)
{
	struct sets x = {.store = (struct tw_fleet_clickhouse *)s,
	        .query = *query,
	        .of = of,
	        .n = n,
	        .to = to};
	const struct tw_rollup_cell **all;
	enum tw_status st;

	for (size_t k = 0; k < n; k++) {
		to[k].coarse = true;
		x.all.n += of[k].n;
	}
	if (x.all.n == 0)
		return TW_OK;
	all = tw_arena_alloc(to->arena, x.all.n, sizeof(const struct tw_rollup_cell *));
	if (!all)
		return tw_oom(err);
	x.all = (struct tw_fleet_cells_of){all, 0, 0};
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < of[k].n; i++)
			all[x.all.n++] = of[k].list[i];
	st = read_heads(&x, err);
	return st == TW_OK ? read_nodes(&x, err) : st;
}

/* --- the longest calls --- */

static void put_methods(struct tw_buf *sql, const struct tw_search *of)
{
	(void)tw_buf_add_str(sql, TW_STR(" AND method IN (0"));
	for (size_t i = 0; i < of->n_methods; i++)
		(void)tw_buf_printf(sql, ",%" PRIu64, of->numbers[i]);
	(void)tw_buf_printf(sql, ") AND toInt64(max_ns)>%" PRId64, of->over_ns);
	if (!of->thread)
		return;
	(void)tw_buf_add_str(sql, TW_STR(" AND (thread="));
	tw_clickhouse_quote(sql, of->thread);
	(void)tw_buf_add_str(
	        sql, strcmp(of->thread, "main") == 0 ? TW_STR(" OR main=1)") : TW_STR(")"));
}

static enum tw_status read_call(struct tw_clickhouse_reader *r, const struct tw_fleet_query *query,
        struct tw_arena *a, struct tw_search *io, struct tw_err *err)
{
	struct tw_search_found *f = &io->found[io->n];
	struct tw_rollup_dims *d = tw_arena_alloc(a, 1, sizeof *d);
	struct tw_str trace, thread;
	const uint64_t *which;
	uint64_t method;

	if (!d || !tw_clickhouse_read_dims(r, query->dims, a, d))
		return tw_tree_fail_too_large(err);
	*f = (struct tw_search_found){.dims = d};
	trace = tw_clickhouse_fixed(r, TW_ROLLUP_ID);
	method = tw_clickhouse_u64(r);
	thread = tw_clickhouse_text(r);
	f->is_main = tw_clickhouse_u8(r) != 0;
	f->max_ns = tw_clickhouse_i64(r);
	which = bsearch(&method, io->numbers, io->n_methods, sizeof *io->numbers, tw_by_u64);
	if (r->damaged || !which)
		return tw_clickhouse_damaged(err);
	memcpy(f->trace_id, trace.ptr, TW_ROLLUP_ID);
	memcpy(f->thread, thread.ptr,
	        thread.len < TW_INDEX_THREAD_BYTES ? thread.len : TW_INDEX_THREAD_BYTES);
	f->which = (uint32_t)(which - io->numbers);
	io->n++;
	return TW_OK;
}

static enum tw_status count_calls(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        struct tw_search *io, struct tw_err *err)
{
	struct tw_buf sql;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("SELECT count()"));
	tw_clickhouse_where(&sql, query, NULL, "longest_calls");
	put_methods(&sql, io);
	return tw_clickhouse_number(
	        (struct tw_fleet_clickhouse *)s, query, &sql, &io->matches, err);
}

enum tw_status tw_clickhouse_search(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_rollup_cell *cells, size_t n, struct tw_search *io, struct tw_err *err)
{
	struct tw_fleet_query all = *query;
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	(void)cells, (void)n;
	if (io->n_methods == 0)
		return TW_OK;
	st = count_calls(s, query, io, err);
	if (st != TW_OK)
		return st;
	all.dims = TW_DIM_DAY | TW_DIM_APP | TW_DIM_VERSION | TW_DIM_SCENARIO | TW_DIM_CLASS |
	           TW_DIM_OS;
	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR("SELECT "));
	tw_clickhouse_dims(&sql, &all, "longest_calls");
	(void)tw_buf_add_str(&sql, TW_STR("trace,method,thread,main,max_ns"));
	tw_clickhouse_where(&sql, &all, NULL, "longest_calls");
	put_methods(&sql, io);
	(void)tw_buf_printf(&sql, " ORDER BY max_ns DESC,trace,thread,method LIMIT %d",
	        (int)TW_SEARCH_HITS_MAX);
	st = tw_clickhouse_select((struct tw_fleet_clickhouse *)s, &all, &sql, &r, err);
	while (st == TW_OK && tw_clickhouse_more(&r) && io->n < TW_SEARCH_HITS_MAX)
		st = read_call(&r, &all, io->results_arena, io, err);
	return tw_clickhouse_end(&r, st, err);
}

/* --- findings --- */

struct taking {
	struct tw_catalogue *c;
	const struct tw_fleet_findings *to;
	struct tw_found found; /* of the current trace */
	struct tw_arena *ids;  /* for ids of its rules */
	char trace_id[TW_ROLLUP_ID + 1];
	struct tw_buf data;
};

static enum tw_status end_trace(struct taking *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool there = false;

	if (!t->trace_id[0])
		return TW_OK;
	tw_buf_clear(&t->data);
	tw_found_write(&t->found, &t->data);
	st = tw_buf_status(&t->data) == TW_OK
	             ? tw_catalogue_has_trace(t->c, t->trace_id, &there, err)
	             : tw_oom(err);
	if (st == TW_OK && there) /* findings of deleted traces are skipped */
		st = t->to->take(t->to->arg, t->trace_id, tw_buf_str(&t->data), err);
	t->trace_id[0] = '\0';
	t->found.n = 0;
	t->found.partial = false;
	tw_arena_reset(t->ids);
	return st;
}

static void read_callers(struct tw_clickhouse_reader *r, struct tw_found_rule *rule)
{
	for (int column = 0; column < 4; column++) {
		const uint64_t n = tw_clickhouse_n(r);

		r->damaged = r->damaged || n > TW_FOUND_CALLERS || (column && n != rule->n);
		rule->n = r->damaged ? 0 : (uint32_t)n;
		for (uint32_t i = 0; i < rule->n; i++) {
			struct tw_found_caller *c = &rule->callers[i];

			if (column == 0)
				c->method = tw_clickhouse_u64(r);
			else if (column == 1)
				c->found = tw_clickhouse_u64(r);
			else if (column == 2)
				c->ns = tw_clickhouse_i64(r);
			else
				c->max_ns = tw_clickhouse_i64(r);
		}
	}
}

static enum tw_status read_finding(
        struct tw_clickhouse_reader *r, struct taking *t, struct tw_err *err)
{
	const struct tw_str trace = tw_clickhouse_fixed(r, TW_ROLLUP_ID);
	struct tw_found f = {.partial = tw_clickhouse_u8(r) != 0};
	struct tw_found_rule rule = {.found = 0};
	struct tw_str id;
	const char *copy;
	enum tw_status st = TW_OK;

	r->damaged = tw_clickhouse_n(r) != FIGURES || r->damaged;
	f.frames = tw_clickhouse_u64(r);
	f.slow_frames = tw_clickhouse_u64(r);
	f.frozen_frames = tw_clickhouse_u64(r);
	f.initial_ns = tw_clickhouse_i64(r);
	f.full_ns = tw_clickhouse_i64(r);
	id = tw_clickhouse_text(r);
	rule.found = tw_clickhouse_u64(r);
	rule.ns = tw_clickhouse_i64(r);
	rule.main_ns = tw_clickhouse_i64(r);
	rule.max_ns = tw_clickhouse_i64(r);
	read_callers(r, &rule);
	if (r->damaged)
		return tw_clickhouse_damaged(err);
	if (memcmp(trace.ptr, t->trace_id, TW_ROLLUP_ID) != 0)
		st = end_trace(t, err);
	memcpy(t->trace_id, trace.ptr, TW_ROLLUP_ID);
	f.rules = t->found.rules;
	f.n = t->found.n;
	t->found = f;
	if (st != TW_OK || id.len == 0)
		return st;
	copy = tw_arena_str(t->ids, id);
	if (!copy || t->found.n == TW_DETECT_RULES_MAX)
		return tw_clickhouse_damaged(err);
	rule.id = (struct tw_str){copy, id.len};
	t->found.rules[t->found.n++] = rule;
	return TW_OK;
}

static enum tw_status read_findings(
        struct tw_clickhouse_reader *r, struct taking *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_clickhouse_more(r))
		st = read_finding(r, t, err);
	return st == TW_OK ? end_trace(t, err) : st;
}

enum tw_status tw_clickhouse_found(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, const struct tw_fleet_findings *to, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(4 << 20);
	struct taking t = {.c = s->catalogue, .to = to, .ids = tw_arena_new(4 << 20)};
	struct tw_clickhouse_reader r;
	struct tw_buf sql;
	enum tw_status st;

	t.found.rules = a ? tw_arena_alloc(a, TW_DETECT_RULES_MAX, sizeof *t.found.rules) : NULL;
	tw_buf_init(&t.data, 4 << 20);
	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql,
	        TW_STR("SELECT trace,partial,figures,rule,found,ns,main_ns,max_ns,caller_methods,"
	               "caller_found,caller_ns,caller_max_ns"));
	tw_clickhouse_where(&sql, query, of, "findings");
	(void)tw_buf_add_str(&sql, TW_STR(" ORDER BY trace,rule"));
	st = tw_clickhouse_select((struct tw_fleet_clickhouse *)s, query, &sql, &r, err);
	if (st == TW_OK)
		st = t.found.rules && t.ids ? read_findings(&r, &t, err) : tw_oom(err);
	tw_buf_done(&t.data);
	tw_arena_free(t.ids);
	tw_arena_free(a);
	return tw_clickhouse_end(&r, st, err);
}

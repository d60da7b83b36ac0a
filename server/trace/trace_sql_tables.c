/* trace_sql_tables.c - thread, method and call_tree: small enough for full scans. */

#include "server/trace/trace_sql_internal.h"

struct walk {                     /* a cursor over one table; for call_tree, thread by thread */
	sqlite3_vtab_cursor base; /* first member */
	struct tw_trace_sql *sql;
	uint32_t n, at;
	struct tw_arena *arena; /* call_tree: memory of the tree */
	struct tw_tree tree;
	uint32_t node;
};

static int open_walk(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
	struct walk *w = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return SQLITE_NOMEM;
	w->sql = ((struct tw_sql_table *)(void *)t)->sql;
	*ret = &w->base;
	return SQLITE_OK;
}

static struct walk *walk_of(sqlite3_vtab_cursor *c)
{
	return (struct walk *)(void *)c;
}

static int close_walk(sqlite3_vtab_cursor *c)
{
	tw_arena_free(walk_of(c)->arena);
	tw_mem_free(c);
	return SQLITE_OK;
}

static int full_scan(sqlite3_vtab *t, sqlite3_index_info *i)
{
	(void)t;
	i->estimatedCost = 1000;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *c)
{
	walk_of(c)->at++;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *c)
{
	return walk_of(c)->at >= walk_of(c)->n;
}

static int row_number(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
	*ret = walk_of(c)->at;
	return SQLITE_OK;
}

#define FULL_SCAN(filter, next, column, number)                                                    \
	{                                                                                          \
		.xConnect = tw_sql_connect, .xBestIndex = full_scan,                               \
		.xDisconnect = tw_sql_disconnect, .xOpen = open_walk, .xClose = close_walk,        \
		.xFilter = (filter), .xNext = (next), .xEof = at_end, .xColumn = (column),         \
		.xRowid = (number)                                                                 \
	}

/* --- thread --- */

static int thread_filter(
        sqlite3_vtab_cursor *c, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)plan, (void)text, (void)argc, (void)argv;
	walk_of(c)->at = 0;
	(void)tw_trace_file_threads(walk_of(c)->sql->file, &walk_of(c)->n);
	return SQLITE_OK;
}

static int thread_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int col)
{
	uint32_t n;
	const struct tw_thread_info *t =
	        &tw_trace_file_threads(walk_of(c)->sql->file, &n)[walk_of(c)->at];
	const int64_t numbers[] = {t->thread_id, (int64_t)t->tid, 0, t->is_main, t->pid,
	        (int64_t)t->slices, t->busy_ns};

	if (col == 2)
		sqlite3_result_text(out, t->name.ptr, (int)t->name.len, SQLITE_TRANSIENT);
	else
		sqlite3_result_int64(out, numbers[col]);
	return SQLITE_OK;
}

const sqlite3_module tw_sql_thread = FULL_SCAN(thread_filter, next_row, thread_column, row_number);

/* --- method --- */

static int method_filter(
        sqlite3_vtab_cursor *c, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)plan, (void)text, (void)argc, (void)argv;
	walk_of(c)->at = 0;
	walk_of(c)->n = walk_of(c)->sql->n_methods;
	return SQLITE_OK;
}

static int method_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int col)
{
	const struct walk *w = walk_of(c);
	const struct tw_method_info *m = &w->sql->methods[w->at];
	const int64_t numbers[] = {w->at, 0, (int64_t)m->count, m->total_ns, m->sum_ns, m->self_ns,
	        m->max_ns, (int64_t)m->id};

	if (col == 1)
		tw_sql_name(w->sql, w->at, out);
	else if (col == 7 && !m->has_id)
		sqlite3_result_null(out);
	else
		sqlite3_result_int64(out, numbers[col]);
	return SQLITE_OK;
}

const sqlite3_module tw_sql_method = FULL_SCAN(method_filter, next_row, method_column, row_number);

/* --- call_tree: `at` is the thread, `node` the node of its tree --- */

/* Loads the tree of the thread at `at`, or of the next one that has a tree. */
static int load_tree(struct walk *w)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(w->sql->file, &n);
	struct tw_err err;

	w->arena = tw_arena_free(w->arena);
	w->tree.n = 0;
	w->node = 1;
	for (; w->at < w->n; w->at++) {
		if (t[w->at].slices == 0)
			continue;
		w->arena = tw_arena_new((size_t)2 << 30);
		if (!w->arena)
			return SQLITE_NOMEM;
		if (tw_trace_file_tree(
		            w->sql->file, t[w->at].thread_id, w->arena, &w->tree, &err) != TW_OK)
			return tw_sql_error(w->base.pVtab, &err);
		if (w->tree.n > 1)
			return SQLITE_OK;
		w->arena = tw_arena_free(w->arena);
	}
	return SQLITE_OK;
}

static int tree_filter(
        sqlite3_vtab_cursor *c, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)plan, (void)text, (void)argc, (void)argv;
	walk_of(c)->at = 0;
	(void)tw_trace_file_threads(walk_of(c)->sql->file, &walk_of(c)->n);
	return load_tree(walk_of(c));
}

static int tree_next(sqlite3_vtab_cursor *c)
{
	struct walk *w = walk_of(c);

	if (++w->node < w->tree.n)
		return SQLITE_OK;
	w->at++;
	return load_tree(w);
}

static int tree_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int col)
{
	const struct walk *w = walk_of(c);
	const struct tw_tree_node *t = &w->tree.nodes[w->node];
	uint32_t n;
	int64_t thread_id = tw_trace_file_threads(w->sql->file, &n)[w->at].thread_id;
	const int64_t numbers[] = {w->node, thread_id, t->parent, t->method, 0,
	        (int64_t)t->depth - 1, (int64_t)t->count, t->total_ns, t->self_ns, t->max_ns};

	if (col == 4)
		tw_sql_name(w->sql, t->method, out);
	else if (col == 2 && t->parent == 0)
		sqlite3_result_null(out);
	else
		sqlite3_result_int64(out, numbers[col]);
	return SQLITE_OK;
}

static int tree_row_number(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)walk_of(c)->at << 32 | walk_of(c)->node;
	return SQLITE_OK;
}

const sqlite3_module tw_sql_call_tree =
        FULL_SCAN(tree_filter, tree_next, tree_column, tree_row_number);

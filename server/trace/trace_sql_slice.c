/*
 * trace_sql_slice.c - slices as rows, decoded chunk by chunk.
 *
 * A thread's pre-order is sorted by begin, so bounds on ts_ns skip complete chunks at both ends.
 * parent_id needs the ids of the calls open at the start of the first chunk; they are searched in
 * earlier chunks, only if a query uses parent_id after a skip.
 */

#include "decoder/base/list.h"
#include "server/trace/trace_sql_internal.h"

enum { PLAN_THREAD = 1, PLAN_FROM = 2, PLAN_TO = 4, PLAN_PARENT = 8 };
enum { COL_ID, COL_THREAD, COL_TS, COL_DUR, COL_CPU, COL_DEPTH, COL_PARENT, COL_NAME };

struct scan {
	sqlite3_vtab_cursor base; /* first member */
	struct tw_trace_sql *sql;
	int64_t only_thread, from_ns, to_ns; /* only_thread -1: all */
	bool parents;
	uint32_t thread;     /* index */
	int64_t thread_base; /* id of the thread's first slice */
	const struct tw_chunk_row *rows;
	uint32_t n_rows, row; /* level 0; row is the loaded one */
	int64_t chunk_base;   /* id of its first slice */
	struct tw_chunk chunk;
	size_t at;
	int64_t *stack; /* ids of the enclosing calls, by depth */
	uint32_t cap_stack;
	bool done;
};

static struct scan *scan_of(sqlite3_vtab_cursor *c)
{
	return (struct scan *)(void *)c;
}

static int plan_of(const struct sqlite3_index_constraint *k)
{
	if (!k->usable)
		return 0;
	if (k->iColumn == COL_THREAD && k->op == SQLITE_INDEX_CONSTRAINT_EQ)
		return PLAN_THREAD;
	if (k->iColumn == COL_TS &&
	        (k->op == SQLITE_INDEX_CONSTRAINT_GE || k->op == SQLITE_INDEX_CONSTRAINT_GT))
		return PLAN_FROM;
	if (k->iColumn == COL_TS &&
	        (k->op == SQLITE_INDEX_CONSTRAINT_LE || k->op == SQLITE_INDEX_CONSTRAINT_LT))
		return PLAN_TO;
	return 0;
}

/* Arguments are in the order of the plan's bits; SQLite checks every row again. */
static int slice_plan(sqlite3_vtab *t, sqlite3_index_info *i)
{
	int at[3] = {-1, -1, -1};
	int n = 0;

	(void)t;
	for (int k = 0; k < i->nConstraint; k++) {
		int bit = plan_of(&i->aConstraint[k]);
		int slot = bit == PLAN_THREAD ? 0 : bit == PLAN_FROM ? 1 : 2;

		if (bit && at[slot] < 0) {
			at[slot] = k;
			i->idxNum |= bit;
		}
	}
	for (int slot = 0; slot < 3; slot++)
		if (at[slot] >= 0)
			i->aConstraintUsage[at[slot]].argvIndex = ++n;
	if (i->colUsed & (UINT64_C(1) << COL_PARENT))
		i->idxNum |= PLAN_PARENT;
	i->estimatedCost = 1e7 / (1 + 9 * n);
	return SQLITE_OK;
}

static int slice_open(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
	struct scan *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return SQLITE_NOMEM;
	s->sql = ((struct tw_sql_table *)(void *)t)->sql;
	tw_chunk_init(&s->chunk);
	*ret = &s->base;
	return SQLITE_OK;
}

static int slice_close(sqlite3_vtab_cursor *c)
{
	struct scan *s = scan_of(c);

	tw_chunk_done(&s->chunk);
	tw_mem_free(s->stack);
	tw_mem_free(s);
	return SQLITE_OK;
}

/* Finds the ids of the calls open at the start of `row`: the last earlier slice at each depth. */
static int find_open(struct scan *s, uint32_t row, size_t n_open, int64_t base)
{
	struct tw_chunk earlier;
	size_t missing = n_open;
	struct tw_err err;

	if (!TW_RESERVE(NULL, s->stack, 0, n_open + 1, s->cap_stack))
		return SQLITE_NOMEM;
	tw_chunk_init(&earlier);
	while (missing > 0 && row > 0) {
		row--;
		if (tw_trace_file_chunk(s->sql->file, &s->rows[row], &earlier, &err) != TW_OK) {
			tw_chunk_done(&earlier);
			return tw_sql_error(s->base.pVtab, &err);
		}
		base -= (int64_t)earlier.n;
		for (size_t i = earlier.n; i-- > 0 && missing > 0;)
			if (earlier.slices[i].depth == missing - 1)
				s->stack[--missing] = base + (int64_t)i;
	}
	tw_chunk_done(&earlier);
	return SQLITE_OK;
}

static int load_chunk(struct scan *s, bool skipped)
{
	struct tw_err err;

	if (tw_trace_file_chunk(s->sql->file, &s->rows[s->row], &s->chunk, &err) != TW_OK)
		return tw_sql_error(s->base.pVtab, &err);
	s->at = 0;
	if (s->parents && skipped)
		return find_open(s, s->row, s->chunk.n_open, s->chunk_base);
	return SQLITE_OK;
}

/* The chunk directory of the thread, and the first chunk within the bounds. */
static int enter_thread(struct scan *s, const struct tw_thread_info *t)
{
	struct tw_err err;

	if (tw_trace_file_call_chunks(s->sql->file, t->thread_id, &s->rows, &s->n_rows, &err) !=
	        TW_OK)
		return tw_sql_error(s->base.pVtab, &err);
	s->chunk_base = s->thread_base;
	for (s->row = 0; s->row + 1 < s->n_rows && s->rows[s->row + 1].info.start_ns < s->from_ns;)
		s->chunk_base += s->rows[s->row++].info.slices;
	return SQLITE_OK;
}

static bool wanted(const struct scan *s, const struct tw_thread_info *t)
{
	return t->slices > 0 && (s->only_thread < 0 || s->only_thread == (int64_t)t->thread_id);
}

/* From s->thread on, loads the first chunk that may contain rows, or sets done. */
static int find_chunk(struct scan *s)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(s->sql->file, &n);

	for (; s->thread < n; s->thread++) {
		int rc;

		if (wanted(s, &t[s->thread])) {
			rc = enter_thread(s, &t[s->thread]);
			if (rc != SQLITE_OK)
				return rc;
			if (s->row < s->n_rows && s->rows[s->row].info.start_ns <= s->to_ns)
				return load_chunk(s, s->row > 0);
		}
		s->thread_base += (int64_t)t[s->thread].slices;
	}
	s->done = true;
	return SQLITE_OK;
}

static void note_parent(struct scan *s)
{
	uint32_t depth = s->chunk.slices[s->at].depth;

	if (s->parents && TW_RESERVE(NULL, s->stack, 0, (size_t)depth + 1, s->cap_stack))
		s->stack[depth] = s->chunk_base + (int64_t)s->at;
}

static int slice_filter(
        sqlite3_vtab_cursor *c, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct scan *s = scan_of(c);
	int n = 0;
	int rc;

	(void)text, (void)argc;
	s->only_thread = plan & PLAN_THREAD ? sqlite3_value_int64(argv[n++]) : -1;
	s->from_ns = plan & PLAN_FROM ? sqlite3_value_int64(argv[n++]) : INT64_MIN;
	s->to_ns = plan & PLAN_TO ? sqlite3_value_int64(argv[n++]) : INT64_MAX;
	s->parents = (plan & PLAN_PARENT) != 0;
	s->thread = 0;
	s->thread_base = 0;
	s->done = false;
	rc = find_chunk(s);
	if (rc == SQLITE_OK && !s->done)
		note_parent(s);
	return rc;
}

static int next_chunk(struct scan *s)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(s->sql->file, &n);

	s->chunk_base += (int64_t)s->chunk.n;
	if (++s->row < s->n_rows && s->rows[s->row].info.start_ns <= s->to_ns)
		return load_chunk(s, false);
	s->thread_base += (int64_t)t[s->thread++].slices;
	return find_chunk(s);
}

static int slice_next(sqlite3_vtab_cursor *c)
{
	struct scan *s = scan_of(c);
	int rc = SQLITE_OK;

	if (++s->at >= s->chunk.n)
		rc = next_chunk(s);
	if (rc == SQLITE_OK && !s->done)
		note_parent(s);
	return rc;
}

static int slice_eof(sqlite3_vtab_cursor *c)
{
	return scan_of(c)->done;
}

static int slice_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int col)
{
	const struct scan *s = scan_of(c);
	const struct tw_slice *x = &s->chunk.slices[s->at];
	const int64_t numbers[] = {s->chunk_base + (int64_t)s->at, s->rows[s->row].info.thread_id,
	        x->start_ns, x->dur_ns, x->cpu_ns, x->depth};

	if (col == COL_NAME)
		tw_sql_name(s->sql, x->method, out);
	else if (col == COL_PARENT && x->depth > 0 && s->cap_stack >= x->depth)
		sqlite3_result_int64(out, s->stack[x->depth - 1]);
	else if (col == COL_PARENT || (col == COL_CPU && x->cpu_ns < 0))
		sqlite3_result_null(out);
	else
		sqlite3_result_int64(out, numbers[col]);
	return SQLITE_OK;
}

static int slice_row_number(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
	*ret = scan_of(c)->chunk_base + (sqlite3_int64)scan_of(c)->at;
	return SQLITE_OK;
}

const sqlite3_module tw_sql_slice = {
        .xConnect = tw_sql_connect,
        .xBestIndex = slice_plan,
        .xDisconnect = tw_sql_disconnect,
        .xOpen = slice_open,
        .xClose = slice_close,
        .xFilter = slice_filter,
        .xNext = slice_next,
        .xEof = slice_eof,
        .xColumn = slice_column,
        .xRowid = slice_row_number,
};

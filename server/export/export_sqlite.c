/*
 * export_sqlite.c - a trace as an SQLite database of ordinary tables.
 *
 * The tables have the columns of `tracewell sql` (trace_sql.h), except that slices refer to methods
 * by id; the view `call` joins both.
 */
#include "server/export/export_format.h"
#include "server/export/sqlite_pages.h"

static const struct tw_sqlite_table tables[] = {
        {"table", "meta", "CREATE TABLE meta(key TEXT, value)"},
        {"table", "thread",
                "CREATE TABLE thread(thread_id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, "
                "name TEXT, is_main INTEGER, source TEXT, slices INTEGER, start_ns INTEGER, "
                "end_ns INTEGER, busy_ns INTEGER)"},
        {"table", "slice",
                "CREATE TABLE slice(id INTEGER PRIMARY KEY, thread_id INTEGER, parent_id INTEGER, "
                "depth INTEGER, ts_ns INTEGER, dur_ns INTEGER, cpu_ns INTEGER, method_id INTEGER)"},
        {"table", "method",
                "CREATE TABLE method(method_id INTEGER PRIMARY KEY, name TEXT, count INTEGER, "
                "total_ns INTEGER, sum_ns INTEGER, self_ns INTEGER, max_ns INTEGER, cpu_ns "
                "INTEGER)"},
        {"table", "event",
                "CREATE TABLE event(id INTEGER PRIMARY KEY, kind TEXT, thread_id INTEGER, ts_ns "
                "INTEGER, dur_ns INTEGER, value INTEGER, text TEXT, detail TEXT, system INTEGER)"},
        {"table", "document", "CREATE TABLE document(kind TEXT, json TEXT)"},
        {"table", "repair", "CREATE TABLE repair(name TEXT, count INTEGER, first_offset INTEGER)"},
        {"view", "call",
                "CREATE VIEW call AS SELECT s.id, s.thread_id, t.name AS thread, s.parent_id, "
                "s.depth, s.ts_ns, s.dur_ns, s.cpu_ns, s.method_id, m.name FROM slice s LEFT JOIN "
                "method m USING(method_id) LEFT JOIN thread t USING(thread_id)"},
};

struct state {
	struct tw_sqlite_pages pages;
	int64_t rows; /* of the current table, if its rows are only numbered */
	bool again;
};

static struct tw_sqlite_value or_null(int64_t v)
{
	return v < 0 ? (struct tw_sqlite_value){.type = TW_SQLITE_NULL} : tw_sqlite_int(v);
}

static struct tw_sqlite_value id_or_null(uint64_t id)
{
	return id ? tw_sqlite_int((int64_t)id) : (struct tw_sqlite_value){.type = TW_SQLITE_NULL};
}

static struct tw_sqlite_value text_or_null(struct tw_str s)
{
	return s.len ? tw_sqlite_text(s) : (struct tw_sqlite_value){.type = TW_SQLITE_NULL};
}

static void begin(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;

	(void)i;
	tw_sqlite_begin(
	        &s->pages, tables, sizeof tables / sizeof *tables, s->again ? &x->out : NULL);
	s->again = true;
}

static void table_end(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;

	(void)i;
	tw_sqlite_table_end(&s->pages);
	s->rows = 0;
}

static void fact(struct tw_export *x, const char *key, struct tw_sqlite_value value)
{
	struct state *s = x->state;
	const struct tw_sqlite_value row[] = {tw_sqlite_text(tw_str_of(key)), value};

	if (value.type != TW_SQLITE_TEXT || value.text.len)
		tw_sqlite_row(&s->pages, ++s->rows, row, 2);
}

static void meta(struct tw_export *x, uint32_t i)
{
	const struct tw_export_facts *f = &x->facts;

	fact(x, "exporter", tw_sqlite_text(TW_STR("tracewell " TW_VERSION)));
	fact(x, "title", tw_sqlite_text(tw_str_of(f->title)));
	fact(x, "trace", tw_sqlite_text(tw_str_of(f->trace_id)));
	fact(x, "url", tw_sqlite_text(tw_str_of(f->url)));
	fact(x, "app", tw_sqlite_text(tw_str_of(f->app)));
	fact(x, "version_name", tw_sqlite_text(tw_str_of(f->version_name)));
	fact(x, "build_id", tw_sqlite_text(tw_str_of(f->build_id)));
	fact(x, "process", tw_sqlite_text(tw_str_of(f->process)));
	fact(x, "device", tw_sqlite_text(tw_str_of(f->device)));
	fact(x, "scenario", tw_sqlite_text(tw_str_of(f->scenario)));
	if (f->started_ms)
		fact(x, "started_ms", tw_sqlite_int(f->started_ms));
	fact(x, "format", tw_sqlite_text(tw_str_of(tw_trace_file_facts(x->file)->format)));
	fact(x, "pid", tw_sqlite_int(x->info->pid));
	if (x->q.sel.ranged) {
		fact(x, "from_ns", tw_sqlite_int(x->q.sel.from_ns));
		fact(x, "to_ns", tw_sqlite_int(x->q.sel.to_ns));
	}
	table_end(x, i);
}

static void threads(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);

	for (uint32_t k = 0; k < n; k++) {
		const struct tw_sqlite_value row[] = {{.type = TW_SQLITE_NULL},
		        tw_sqlite_int(t[k].pid), tw_sqlite_int((int64_t)t[k].tid),
		        tw_sqlite_text(t[k].name), tw_sqlite_int(t[k].is_main),
		        tw_sqlite_text(tw_str_of(tw_slice_source_name(t[k].source))),
		        tw_sqlite_int((int64_t)t[k].slices), tw_sqlite_int(t[k].start_ns),
		        tw_sqlite_int(t[k].end_ns), tw_sqlite_int(t[k].busy_ns)};

		if (tw_selection_has(&x->q.sel, &t[k]))
			tw_sqlite_row(&s->pages, t[k].thread_id, row, 10);
	}
	table_end(x, i);
}

static void slice(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	const struct tw_slice *c = &x->slice;
	const struct tw_sqlite_value row[] = {{.type = TW_SQLITE_NULL},
	        tw_sqlite_int(x->thread->thread_id), or_null(x->parent), tw_sqlite_int(c->depth),
	        tw_sqlite_int(c->start_ns), tw_sqlite_int(c->dur_ns), or_null(c->cpu_ns),
	        tw_sqlite_int(c->method)};

	(void)i;
	(void)tw_export_number(x, c->method);
	tw_sqlite_row(&s->pages, x->slice_id, row, 8);
}

static void method(struct tw_export *x, uint32_t i)
{
	static const struct tw_method_info none = {.cpu_ns = -1};
	struct state *s = x->state;
	const struct tw_method_info *m = x->totals.rows ? &x->totals.rows[i] : &none;

	if (m->count || x->numbers[i]) {
		const struct tw_sqlite_value row[] = {{.type = TW_SQLITE_NULL},
		        tw_sqlite_text(tw_export_name(x, i)), tw_sqlite_int((int64_t)m->count),
		        tw_sqlite_int(m->total_ns), tw_sqlite_int(m->sum_ns),
		        tw_sqlite_int(m->self_ns), tw_sqlite_int(m->max_ns), or_null(m->cpu_ns)};

		tw_sqlite_row(&s->pages, i, row, 8);
	}
}

static void event(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	const struct tw_note_row *n = x->note;
	const struct tw_sqlite_value row[] = {{.type = TW_SQLITE_NULL},
	        tw_sqlite_text(tw_str_of(tw_note_info(n->kind)->name)), id_or_null(n->thread_id),
	        tw_sqlite_int(n->ts_ns), or_null(n->dur_ns), tw_sqlite_int(n->value),
	        tw_sqlite_text(n->text), text_or_null(n->detail), tw_sqlite_int(n->from_system)};

	(void)i;
	tw_sqlite_row(&s->pages, ++s->rows, row, 9);
}

static void document(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	const struct tw_sqlite_value row[] = {
	        tw_sqlite_text(x->document_kind), tw_sqlite_text(x->document)};

	(void)i;
	tw_sqlite_row(&s->pages, ++s->rows, row, 2);
}

static void repairs(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(x->file, &n);

	for (uint32_t k = 0; k < n; k++) {
		const struct tw_sqlite_value row[] = {
		        tw_sqlite_text(tw_str_of(tw_repair_info(r[k].what)->name)),
		        tw_sqlite_int((int64_t)r[k].count),
		        or_null(r[k].first_offset == TW_NO_OFFSET ? -1
		                                                  : (int64_t)r[k].first_offset)};

		tw_sqlite_row(&s->pages, ++s->rows, row, 3);
	}
	table_end(x, i);
	table_end(x, i); /* the view */
	if (!tw_sqlite_end(&s->pages))
		x->is_bad = true;
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, begin},
        {TW_WALK_ONCE, meta},
        {TW_WALK_ONCE, threads},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_SLICES, slice},
        {TW_WALK_TOTALS, NULL},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_ONCE, table_end},
        {TW_WALK_EACH_METHOD, method},
        {TW_WALK_ONCE, table_end},
        {TW_WALK_NOTES, event},
        {TW_WALK_ONCE, table_end},
        {TW_WALK_DOCUMENTS, document},
        {TW_WALK_ONCE, table_end},
        {TW_WALK_ONCE, repairs},
        {TW_WALK_AGAIN, NULL},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_sqlite = {
        .kind = {"sqlite", ".sqlite", "application/vnd.sqlite3", false,
                "SQLite database of calls, threads, methods and events"},
        .program = program,
        .state_bytes = sizeof(struct state),
        .metrics = 1 << TW_EXPORT_WALL,
};

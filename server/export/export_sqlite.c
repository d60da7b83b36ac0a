/*
 * export_sqlite.c - a trace as an SQLite database of ordinary tables.
 *
 * The tables have the columns of `tracewell sql` (trace_sql.h), except that slices refer to methods
 * by id; the view `call` joins both.  SQLite needs a file that it can seek in, so the database is
 * complete in an unnamed file, or in memory if it is small, before its first byte is sent.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/export/export_format.h"
#include "server/trace/trace_file_internal.h"
#include "server/trace/trace_file_vfs.h"

enum insert { META, THREAD, FIRST_SLICE, SLICES, METHOD, EVENT, DOCUMENT, REPAIR, INSERTS };

/* Large pages are written faster; a small trace would leave most of them empty. */
enum { SMALL_PAGE = 8192, LARGE_PAGE = 32768, MANY_SLICES = 100000 };
enum { CHECKED_TEXT = 16 << 20 };

static const char schema[] =
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
        "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1024; BEGIN;"
        "CREATE TABLE meta(key TEXT, value);"
        "CREATE TABLE thread(thread_id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, "
        "name TEXT, is_main INTEGER, source TEXT, slices INTEGER, start_ns INTEGER, "
        "end_ns INTEGER, busy_ns INTEGER);"
        "CREATE TABLE slice(id INTEGER PRIMARY KEY, thread_id INTEGER, parent_id INTEGER, "
        "depth INTEGER, ts_ns INTEGER, dur_ns INTEGER, cpu_ns INTEGER, method_id INTEGER);"
        "CREATE TABLE method(method_id INTEGER PRIMARY KEY, name TEXT, count INTEGER, "
        "total_ns INTEGER, sum_ns INTEGER, self_ns INTEGER, max_ns INTEGER, cpu_ns INTEGER);"
        "CREATE TABLE event(id INTEGER PRIMARY KEY, kind TEXT, thread_id INTEGER, ts_ns INTEGER, "
        "dur_ns INTEGER, value INTEGER, text TEXT, detail TEXT, system INTEGER);"
        "CREATE TABLE document(kind TEXT, json TEXT);"
        "CREATE TABLE repair(name TEXT, count INTEGER, first_offset INTEGER);"
        "CREATE VIEW call AS SELECT s.id, s.thread_id, t.name AS thread, s.parent_id, "
        "s.depth, s.ts_ns, s.dur_ns, s.cpu_ns, s.method_id, m.name FROM slice s LEFT JOIN "
        "method m USING(method_id) LEFT JOIN thread t USING(thread_id)";

/* Slices are inserted from a virtual table of the pending ones: a statement costs more than the
 * insertion of a row, and so does SQLite's search for an id.  A row without an id gets the one
 * after the last. */
static const char *const inserts[INSERTS] = {
        [META] = "INSERT INTO meta VALUES(?,?)",
        [THREAD] = "INSERT INTO thread VALUES(?,?,?,?,?,?,?,?,?,?)",
        [FIRST_SLICE] = "INSERT INTO slice SELECT 0, * FROM pending",
        [SLICES] = "INSERT INTO slice SELECT NULL, * FROM pending",
        [METHOD] = "INSERT INTO method VALUES(?,?,?,?,?,?,?,?)",
        [EVENT] = "INSERT INTO event VALUES(NULL,?,?,?,?,?,?,?,?)",
        [DOCUMENT] = "INSERT INTO document VALUES(?,?)",
        [REPAIR] = "INSERT INTO repair VALUES(?,?,?)",
};

enum { PENDING = 512 };
enum pending_column {
	P_THREAD,
	P_PARENT,
	P_DEPTH,
	P_START,
	P_DURATION,
	P_CPU,
	P_METHOD,
	P_COLUMNS
};

struct state {
	sqlite3 *db;
	sqlite3_stmt *inserts[INSERTS];
	int64_t pending[PENDING][P_COLUMNS];
	int n_pending;
	struct tw_trace_image image;
	uint64_t sent;         /* bytes of the image */
	size_t unchecked_text; /* bytes since the disk's space was checked */
};

/* --- rows --- */

enum type { NONE, INT, TEXT };

struct value {
	enum type type;
	int64_t number;
	struct tw_str text;
};

static struct value int_of(int64_t v)
{
	return (struct value){.type = INT, .number = v};
}

static struct value int_or_null(int64_t v)
{
	return v < 0 ? (struct value){.type = NONE} : int_of(v);
}

static struct value id_or_null(uint64_t id)
{
	return id ? int_of((int64_t)id) : (struct value){.type = NONE};
}

static struct value text_of(struct tw_str s)
{
	return (struct value){.type = TEXT, .text = s.ptr ? s : TW_STR("")};
}

static struct value text_or_null(struct tw_str s)
{
	return s.len ? text_of(s) : (struct value){.type = NONE};
}

static void fail(struct tw_export *x)
{
	const struct state *s = x->state;

	(void)tw_trace_sql_fail(s->db, "writing the database", &x->failure);
}

static void check_space(struct tw_export *x)
{
	struct state *s = x->state;

	s->unchecked_text = 0;
	if (x->q.check_space)
		(void)x->q.check_space(x->q.file_arg, &x->failure);
}

static void row(struct tw_export *x, enum insert insert, const struct value *v, int n)
{
	struct state *state = x->state;
	sqlite3_stmt *s = state->inserts[insert];

	if (x->failure.code != TW_OK)
		return;
	for (int i = 0; i < n; i++) {
		state->unchecked_text += v[i].text.len;
		if (v[i].type == TEXT)
			(void)sqlite3_bind_text64(
			        s, i + 1, v[i].text.ptr, v[i].text.len, SQLITE_STATIC, SQLITE_UTF8);
		else if (v[i].type == INT)
			(void)sqlite3_bind_int64(s, i + 1, v[i].number);
		else
			(void)sqlite3_bind_null(s, i + 1);
	}
	if (sqlite3_step(s) != SQLITE_DONE)
		fail(x);
	else if (state->unchecked_text >= CHECKED_TEXT)
		check_space(x);
	(void)sqlite3_reset(s);
}

/* --- pending slices --- */

struct pending_table {
	sqlite3_vtab base; /* first member */
	const struct state *state;
};

struct pending_cursor {
	sqlite3_vtab_cursor base; /* first member */
	const struct state *state;
	int at;
};

static struct pending_cursor *cursor_of(sqlite3_vtab_cursor *c)
{
	return (struct pending_cursor *)(void *)c;
}

static int pending_connect(
        sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret, char **why)
{
	struct pending_table *t;
	int rc = sqlite3_declare_vtab(db,
	        "CREATE TABLE x(thread_id, parent_id, depth, ts_ns, dur_ns, cpu_ns, method_id)");

	(void)argc, (void)argv, (void)why;
	if (rc != SQLITE_OK)
		return rc;
	t = tw_mem_zalloc(1, sizeof *t);
	if (!t)
		return SQLITE_NOMEM;
	t->state = arg;
	*ret = &t->base;
	return SQLITE_OK;
}

static int pending_disconnect(sqlite3_vtab *t)
{
	tw_mem_free(t);
	return SQLITE_OK;
}

static int pending_plan(sqlite3_vtab *t, sqlite3_index_info *i)
{
	(void)t, (void)i;
	return SQLITE_OK;
}

static int pending_open(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
	struct pending_cursor *c = tw_mem_zalloc(1, sizeof *c);

	if (!c)
		return SQLITE_NOMEM;
	c->state = ((struct pending_table *)(void *)t)->state;
	*ret = &c->base;
	return SQLITE_OK;
}

static int pending_close(sqlite3_vtab_cursor *c)
{
	tw_mem_free(c);
	return SQLITE_OK;
}

static int pending_filter(
        sqlite3_vtab_cursor *c, int plan, const char *text, int argc, sqlite3_value **argv)
{
	(void)plan, (void)text, (void)argc, (void)argv;
	cursor_of(c)->at = 0;
	return SQLITE_OK;
}

static int pending_next(sqlite3_vtab_cursor *c)
{
	cursor_of(c)->at++;
	return SQLITE_OK;
}

static int pending_eof(sqlite3_vtab_cursor *c)
{
	return cursor_of(c)->at >= cursor_of(c)->state->n_pending;
}

static int pending_column(sqlite3_vtab_cursor *c, sqlite3_context *out, int col)
{
	const int64_t v = cursor_of(c)->state->pending[cursor_of(c)->at][col];

	if (v >= 0 || (col != P_PARENT && col != P_CPU))
		sqlite3_result_int64(out, v);
	return SQLITE_OK;
}

static int pending_row_number(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
	*ret = cursor_of(c)->at;
	return SQLITE_OK;
}

static const sqlite3_module pending = {
        .xConnect = pending_connect,
        .xBestIndex = pending_plan,
        .xDisconnect = pending_disconnect,
        .xOpen = pending_open,
        .xClose = pending_close,
        .xFilter = pending_filter,
        .xNext = pending_next,
        .xEof = pending_eof,
        .xColumn = pending_column,
        .xRowid = pending_row_number,
};

static void flush(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;

	(void)i;
	row(x, x->slice_id == 0 ? FIRST_SLICE : SLICES, NULL, 0);
	s->n_pending = 0;
}

/* --- the database --- */

static void begin(struct tw_export *x, uint32_t i)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	struct state *s = x->state;
	char page_size[64];
	bool done;

	(void)i;
	(void)snprintf(page_size, sizeof page_size, "PRAGMA page_size=%d",
	        x->info->slices < MANY_SLICES ? SMALL_PAGE : LARGE_PAGE);
	tw_trace_image_begin(&s->image);
	if (tw_export_open_file(x, &s->image.fd) != TW_OK)
		return;
	done = tw_trace_vfs_open(&s->image, flags, &s->db) == SQLITE_OK &&
	       sqlite3_exec(s->db, page_size, NULL, NULL, NULL) == SQLITE_OK &&
	       sqlite3_exec(s->db, schema, NULL, NULL, NULL) == SQLITE_OK &&
	       sqlite3_create_module(s->db, "pending", &pending, s) == SQLITE_OK;
	for (int t = 0; done && t < INSERTS; t++)
		done = sqlite3_prepare_v2(s->db, inserts[t], -1, &s->inserts[t], NULL) == SQLITE_OK;
	if (!done)
		fail(x);
}

static void end(struct tw_export *x, uint32_t i)
{
	const struct state *s = x->state;

	(void)i;
	if (sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		fail(x);
}

static void send(struct tw_export *x, uint32_t i)
{
	struct state *s = x->state;
	ssize_t n;

	(void)i;
	if (tw_buf_reserve(&x->out, TW_EXPORT_PIECE) != TW_OK)
		return;
	n = tw_trace_image_read(&s->image, x->out.data + x->out.len, TW_EXPORT_PIECE, s->sent);
	if (n < 0)
		(void)tw_fail_errno(&x->failure, tw_disk_status(errno),
		        "the database cannot be written or read");
	else {
		x->out.len += (size_t)n;
		s->sent += (uint64_t)n;
	}
}

static void done(struct tw_export *x)
{
	struct state *s = x->state;

	for (int t = 0; t < INSERTS; t++)
		(void)sqlite3_finalize(s->inserts[t]);
	(void)sqlite3_close(s->db);
	if (s->image.fd > 0)
		(void)close(s->image.fd);
	tw_trace_image_done(&s->image);
}

/* --- its tables --- */

static void fact(struct tw_export *x, const char *key, struct value value)
{
	const struct value v[] = {text_of(tw_str_of(key)), value};

	if (value.type != TEXT || value.text.len)
		row(x, META, v, 2);
}

static void meta(struct tw_export *x, uint32_t i)
{
	const struct tw_export_facts *f = &x->facts;

	(void)i;
	fact(x, "exporter", text_of(TW_STR("tracewell " TW_VERSION)));
	fact(x, "title", text_of(tw_str_of(f->title)));
	fact(x, "trace", text_of(tw_str_of(f->trace_id)));
	fact(x, "url", text_of(tw_str_of(f->url)));
	fact(x, "app", text_of(tw_str_of(f->app)));
	fact(x, "version_name", text_of(tw_str_of(f->version_name)));
	fact(x, "build_id", text_of(tw_str_of(f->build_id)));
	fact(x, "process", text_of(tw_str_of(f->process)));
	fact(x, "device", text_of(tw_str_of(f->device)));
	fact(x, "scenario", text_of(tw_str_of(f->scenario)));
	if (f->started_ms)
		fact(x, "started_ms", int_of(f->started_ms));
	fact(x, "format", text_of(tw_str_of(tw_trace_file_facts(x->file)->format)));
	fact(x, "pid", int_of(x->info->pid));
	if (x->q.sel.ranged) {
		fact(x, "from_ns", int_of(x->q.sel.from_ns));
		fact(x, "to_ns", int_of(x->q.sel.to_ns));
	}
}

static void threads(struct tw_export *x, uint32_t i)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);

	(void)i;
	for (uint32_t k = 0; k < n; k++) {
		const struct value v[] = {int_of(t[k].thread_id), int_of(t[k].pid),
		        int_of((int64_t)t[k].tid), text_of(t[k].name), int_of(t[k].is_main),
		        text_of(tw_str_of(tw_slice_source_name(t[k].source))),
		        int_of((int64_t)t[k].slices), int_of(t[k].start_ns), int_of(t[k].end_ns),
		        int_of(t[k].busy_ns)};

		if (tw_selection_has(&x->q.sel, &t[k]))
			row(x, THREAD, v, 10);
	}
}

static void slice(struct tw_export *x, uint32_t i)
{
	const struct tw_slice *c = &x->slice;
	struct state *s = x->state;
	const int64_t v[P_COLUMNS] = {[P_THREAD] = x->thread->thread_id,
	        [P_PARENT] = x->parent,
	        [P_DEPTH] = c->depth,
	        [P_START] = c->start_ns,
	        [P_DURATION] = c->dur_ns,
	        [P_CPU] = c->cpu_ns,
	        [P_METHOD] = c->method};

	(void)tw_export_number(x, c->method);
	memcpy(s->pending[s->n_pending++], v, sizeof v);
	if (x->slice_id == 0 || s->n_pending == PENDING)
		flush(x, i);
}

static void method(struct tw_export *x, uint32_t i)
{
	static const struct tw_method_info none = {.cpu_ns = -1};
	const struct tw_method_info *m = x->totals.rows ? &x->totals.rows[i] : &none;

	if (m->count || x->numbers[i]) {
		const struct value v[] = {int_of(i), text_of(tw_export_name(x, i)),
		        int_of((int64_t)m->count), int_of(m->total_ns), int_of(m->sum_ns),
		        int_of(m->self_ns), int_of(m->max_ns), int_or_null(m->cpu_ns)};

		row(x, METHOD, v, 8);
	}
}

static void event(struct tw_export *x, uint32_t i)
{
	const struct tw_note_row *n = x->note;
	const struct value v[] = {text_of(tw_str_of(tw_note_info(n->kind)->name)),
	        id_or_null(n->thread_id), int_of(n->ts_ns), int_or_null(n->dur_ns),
	        int_of(n->value), text_of(n->text), text_or_null(n->detail),
	        int_of(n->from_system)};

	(void)i;
	row(x, EVENT, v, 8);
}

static void document(struct tw_export *x, uint32_t i)
{
	const struct value v[] = {text_of(x->document_kind), text_of(x->document)};

	(void)i;
	row(x, DOCUMENT, v, 2);
}

static void repairs(struct tw_export *x, uint32_t i)
{
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(x->file, &n);

	(void)i;
	for (uint32_t k = 0; k < n; k++) {
		const struct value v[] = {text_of(tw_str_of(tw_repair_info(r[k].what)->name)),
		        int_of((int64_t)r[k].count),
		        int_or_null(r[k].first_offset == TW_NO_OFFSET
		                            ? -1
		                            : (int64_t)r[k].first_offset)};

		row(x, REPAIR, v, 3);
	}
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, begin},
        {TW_WALK_ONCE, meta},
        {TW_WALK_ONCE, threads},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_SLICES, slice},
        {TW_WALK_TOTALS, NULL},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_ONCE, flush},
        {TW_WALK_EACH_METHOD, method},
        {TW_WALK_NOTES, event},
        {TW_WALK_DOCUMENTS, document},
        {TW_WALK_ONCE, repairs},
        {TW_WALK_ONCE, end},
        {TW_WALK_REPEAT, send},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_sqlite = {
        .kind = {.name = "sqlite",
                .suffix = ".sqlite",
                .type = "application/vnd.sqlite3",
                .summary = "SQLite database of calls, threads, methods and events",
                .needs_file = true},
        .program = program,
        .done = done,
        .state_bytes = sizeof(struct state),
        .metrics = 1 << TW_EXPORT_WALL,
};

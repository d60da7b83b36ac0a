/*
 * trace_file_notes.c - notes and documents of a trace file, and the processes that notes name.
 */
#include "server/trace/trace_file_internal.h"

#include <stdlib.h>

#include "decoder/base/order.h"

#define TOUCHING                                                                                   \
	"SELECT note_id, kind, thread_id, ts_ns, dur_ns, value, text, detail, system"              \
	" FROM trace_note WHERE note_id>?1 AND ts_ns<?3 AND ts_ns+ifnull(dur_ns,0)>=?2"            \
	" AND (?4 IS NULL OR kind=?4) AND note_id<=?6 ORDER BY note_id LIMIT ?5"

static enum tw_status prepare(
        struct tw_trace_file *f, const char *sql, sqlite3_stmt **ret, struct tw_err *err)
{
	*ret = tw_trace_file_statement(f, sql);
	if (*ret)
		return TW_OK;
	return tw_trace_file_noted(f, tw_trace_sql_fail(tw_trace_file_db(f), "reading notes", err));
}

static enum tw_status ended(struct tw_trace_file *f, int rc, struct tw_err *err)
{
	if (tw_trace_text_oom())
		return tw_oom(err);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return TW_OK;
	return tw_trace_file_noted(f, tw_trace_sql_fail(tw_trace_file_db(f), "reading notes", err));
}

static void bind_query(sqlite3_stmt *s, const struct tw_note_query *q)
{
	(void)sqlite3_bind_int64(s, 1, (int64_t)q->after);
	(void)sqlite3_bind_int64(s, 2, q->from_ns);
	(void)sqlite3_bind_int64(s, 3, q->to_ns);
	if (q->kind != TW_NOTE_COUNT)
		(void)sqlite3_bind_text(s, 4, tw_note_info(q->kind)->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 5, q->limit);
	(void)sqlite3_bind_int64(s, 6, q->until ? (int64_t)q->until : INT64_MAX);
}

static bool pass_on(sqlite3_stmt *s, tw_note_fn each, void *arg)
{
	enum tw_note_kind kind = tw_note_of_name(tw_trace_text_at(s, 1).ptr);
	const struct tw_note_row row = {
	        .kind = kind,
	        .thread_id = (uint32_t)sqlite3_column_int64(s, 2),
	        .ts_ns = sqlite3_column_int64(s, 3),
	        .dur_ns =
	                sqlite3_column_type(s, 4) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 4),
	        .value = sqlite3_column_int64(s, 5),
	        .text = tw_trace_text_at(s, 6),
	        .detail = tw_trace_text_at(s, 7),
	        .from_system = sqlite3_column_int(s, 8) != 0,
	};

	if (kind == TW_NOTE_COUNT)
		return true; /* written by a newer decoder */
	return each(arg, (uint64_t)sqlite3_column_int64(s, 0), &row);
}

enum tw_status tw_trace_file_notes(struct tw_trace_file *f, const struct tw_note_query *q,
        tw_note_fn each, void *arg, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st;
	int rc = SQLITE_DONE;

	st = prepare(f, TOUCHING, &s, err);
	if (st != TW_OK)
		return st;
	bind_query(s, q);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		if (!pass_on(s, each, arg))
			break;
	st = ended(f, rc, err);
	tw_trace_file_statement_done(f, s);
	return st;
}

/* Counted here, because GROUP BY would sort, and a sorter beyond its cache needs a temporary file,
 * which trace_file_vfs.c refuses. There is one row per block, kind, thread and text. */
enum tw_status tw_trace_file_note_counts(
        struct tw_trace_file *f, uint64_t ret[TW_NOTE_COUNT], struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st;
	int rc;

	for (int i = 0; i < TW_NOTE_COUNT; i++)
		ret[i] = 0;
	st = prepare(f, "SELECT kind, notes FROM trace_note_sum", &s, err);
	if (st != TW_OK)
		return st;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		enum tw_note_kind kind = tw_note_of_name(tw_trace_text_at(s, 0).ptr);

		if (kind != TW_NOTE_COUNT)
			ret[kind] += (uint64_t)sqlite3_column_int64(s, 1);
	}
	st = ended(f, rc, err);
	tw_trace_file_statement_done(f, s);
	return st;
}

enum tw_status tw_trace_file_documents(
        struct tw_trace_file *f, tw_document_fn each, void *arg, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st;
	int rc;

	st = prepare(f, "SELECT kind, json FROM trace_document ORDER BY document_id", &s, err);
	if (st != TW_OK)
		return st;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		if (!each(arg, tw_trace_text_at(s, 0), tw_trace_text_at(s, 1)))
			break;
	st = ended(f, rc, err);
	tw_trace_file_statement_done(f, s);
	return st;
}

enum tw_status tw_trace_file_system(struct tw_trace_file *f, struct tw_buf *out, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	bool found = false;
	enum tw_status st = prepare(
	        f, "SELECT value FROM trace_meta WHERE key='" TW_TRACE_SYSTEM_KEY "'", &s, err);
	int rc;

	if (st != TW_OK)
		return st;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		const void *facts = sqlite3_column_blob(s, 0);

		found = true;
		(void)tw_buf_add(out, facts, (size_t)sqlite3_column_bytes(s, 0));
	}
	st = ended(f, rc, err);
	tw_trace_file_statement_done(f, s);
	if (st == TW_OK && tw_buf_status(out) != TW_OK)
		st = tw_oom(err);
	if (st == TW_OK && !found)
		st = tw_fail(err, TW_NOT_FOUND, "nothing of the device's trace is stored");
	return st;
}

/* --- processes --- */

struct naming {
	struct tw_arena *arena;
	struct tw_trace_process *list;
	uint32_t n;
	bool no_memory;
};

TW_ORDER_BY(by_pid, struct tw_trace_process, TW_RISING(pid))

/* The first name wins. */
static bool take_name(void *arg, uint64_t id, const struct tw_note_row *note)
{
	struct naming *m = arg;
	const struct tw_trace_process sought = {.pid = (uint32_t)note->value};
	struct tw_trace_process *p = NULL;

	(void)id;
	if (note->value >= 0 && note->value <= UINT32_MAX && note->text.len)
		p = bsearch(&sought, m->list, m->n, sizeof *m->list, by_pid);
	if (!p || p->name.len)
		return true;
	p->name.ptr = tw_arena_str(m->arena, note->text);
	m->no_memory = !p->name.ptr;
	p->name.len = p->name.ptr ? note->text.len : 0;
	return !m->no_memory;
}

enum tw_status tw_trace_processes(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_trace_process **ret, uint32_t *ret_n, struct tw_err *err)
{
	const struct tw_note_query q = {.kind = TW_NOTE_process,
	        .from_ns = INT64_MIN,
	        .to_ns = INT64_MAX,
	        .limit = UINT32_MAX};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct naming m = {.arena = a, .list = tw_arena_alloc(a, (size_t)n + 1, sizeof *m.list)};
	enum tw_status st;

	if (!m.list)
		return tw_oom(err);
	for (uint32_t i = 0; i < n; i++)
		m.list[i] = (struct tw_trace_process){t[i].pid, 1, {"", 0}};
	TW_SORT(m.list, n, by_pid);
	for (uint32_t i = 0; i < n; i++) {
		if (m.n && m.list[m.n - 1].pid == m.list[i].pid)
			m.list[m.n - 1].threads++;
		else
			m.list[m.n++] = m.list[i];
	}
	st = tw_trace_file_notes(f, &q, take_name, &m, err);
	*ret = m.list;
	*ret_n = m.n;
	return st == TW_OK && m.no_memory ? tw_oom(err) : st;
}

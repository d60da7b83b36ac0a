/*
 * trace_file_notes.c - notes and documents of a trace file, and the processes that notes name.
 */
#include "server/trace/trace_file_internal.h"

#include <stdlib.h>

#include "decoder/base/order.h"

#define BLOCKS(columns)                                                                            \
	"SELECT block_id, " columns                                                                \
	" FROM trace_note_block WHERE last_id>?1 AND block_id<=?2 AND start_ns<?3"                 \
	" AND end_ns>=?4 ORDER BY block_id"

/* Rows and texts of a block take up to a third of it. */
enum { BLOCK_MEMORY = 1 << 20 };

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
	(void)sqlite3_bind_int64(s, 2, q->until ? (int64_t)q->until : INT64_MAX);
	(void)sqlite3_bind_int64(s, 3, q->to_ns);
	(void)sqlite3_bind_int64(s, 4, q->from_ns);
}

enum tw_status tw_trace_file_note_blocks(
        struct tw_trace_file *f, tw_note_block_fn each, void *arg, struct tw_err *err)
{
	const struct tw_note_query all = {.from_ns = INT64_MIN, .to_ns = INT64_MAX};
	sqlite3_stmt *s = NULL;
	enum tw_status st = prepare(f, BLOCKS("last_id, start_ns, end_ns"), &s, err);
	int rc;

	if (st != TW_OK)
		return st;
	bind_query(s, &all);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		const struct tw_note_block b = {(uint64_t)sqlite3_column_int64(s, 0),
		        (uint64_t)sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2),
		        sqlite3_column_int64(s, 3)};

		if (!each(arg, &b))
			break;
	}
	st = ended(f, rc, err);
	tw_trace_file_statement_done(f, s);
	return st;
}

/* Rows and texts are the caller's, as a callback may read the file. */
static enum tw_status pass_blocks(struct tw_trace_file *f, sqlite3_stmt *s, struct tw_arena *a,
        struct tw_buf *payload, tw_block_fn each, void *arg, struct tw_err *err)
{
	struct tw_notes notes;
	enum tw_status st = TW_OK;
	int rc = SQLITE_ROW;

	while (st == TW_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		const struct tw_str frame = {
		        sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1)};

		tw_arena_reset(a);
		st = tw_trace_file_notes_of(f, frame, a, payload, &notes, err);
		if (st == TW_OK && !each(arg, (uint64_t)sqlite3_column_int64(s, 0), &notes))
			break;
	}
	return st == TW_OK ? ended(f, rc, err) : st;
}

enum tw_status tw_trace_file_each_block(struct tw_trace_file *f, enum tw_block_part part,
        const struct tw_note_query *q, tw_block_fn each, void *arg, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	struct tw_arena *a;
	struct tw_buf payload;
	enum tw_status st =
	        prepare(f, part == TW_BLOCK_SUMS ? BLOCKS("sums") : BLOCKS("notes"), &s, err);

	if (st != TW_OK)
		return st;
	bind_query(s, q);
	a = tw_arena_new(BLOCK_MEMORY);
	tw_buf_init(&payload, TW_NOTES_MAX_BYTES);
	st = a ? pass_blocks(f, s, a, &payload, each, arg, err) : tw_oom(err);
	tw_buf_done(&payload);
	tw_arena_free(a);
	tw_trace_file_statement_done(f, s);
	return st;
}

struct note_pass {
	bool sanitized;
	const struct tw_note_query *q;
	tw_note_fn each;
	void *arg;
	uint32_t n;
};

static bool matches(const struct tw_note_query *q, const struct tw_note_row *n, uint64_t id)
{
	const int64_t end_ns = n->dur_ns > 0 ? n->ts_ns + n->dur_ns : n->ts_ns;

	return id > q->after && (!q->until || id <= q->until) && n->ts_ns < q->to_ns &&
	       end_ns >= q->from_ns && n->kind != TW_NOTE_COUNT &&
	       (q->kind == TW_NOTE_COUNT || n->kind == q->kind);
}

/* False: without its texts, nothing is left of the note. */
static bool sanitize(struct tw_note_row *n)
{
	if (n->kind != TW_NOTE_state)
		n->text = TW_STR("");
	n->detail = TW_STR("");
	return n->kind != TW_NOTE_counter && n->kind != TW_NOTE_process;
}

static bool pass_notes(void *arg, uint64_t first, const struct tw_notes *notes)
{
	struct note_pass *p = arg;

	for (size_t i = 0; i < notes->n && p->n < p->q->limit; i++) {
		if (!matches(p->q, &notes->rows[i], first + i))
			continue;
		if (p->sanitized && !sanitize(&notes->rows[i]))
			continue;
		p->n++;
		if (!p->each(p->arg, first + i, &notes->rows[i]))
			return false;
	}
	return p->n < p->q->limit;
}

enum tw_status tw_trace_file_notes(struct tw_trace_file *f, const struct tw_note_query *q,
        tw_note_fn each, void *arg, struct tw_err *err)
{
	struct note_pass p = {tw_trace_file_is_sanitized(f), q, each, arg, 0};

	return tw_trace_file_each_block(f, TW_BLOCK_NOTES, q, pass_notes, &p, err);
}

enum tw_status tw_trace_file_documents(
        struct tw_trace_file *f, tw_document_fn each, void *arg, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st;
	int rc;

	if (tw_trace_file_is_sanitized(f))
		return TW_OK;
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

/* trace_file_sums.c - sums of notes by block: computed while notes are written, and read back. */

#include "decoder/base/sum.h"
#include "server/trace/note_keys.h"
#include "server/trace/trace_file_internal.h"

/* Keys and sums of one block: at most one per note, and their texts. */
#define ARENA_MAX_BYTES ((size_t)256 << 20)

struct sum {
	int64_t notes, dur_ns;
};

struct tw_sums_maker {
	struct tw_arena *arena;
	struct tw_note_keys keys; /* of the current block */
	struct sum sums[TW_NOTE_BLOCK];
	struct tw_note_block block;
	struct tw_buf clean;
};

static void begin(struct tw_sums_maker *m, uint64_t first)
{
	tw_arena_reset(m->arena);
	m->keys = (struct tw_note_keys){.a = m->arena, .max = TW_NOTE_BLOCK};
	m->block = (struct tw_note_block){.first = first, .last = first - 1};
}

struct tw_sums_maker *tw_sums_maker_new(void)
{
	struct tw_sums_maker *m = tw_mem_zalloc(1, sizeof *m);

	if (!m)
		return NULL;
	tw_buf_init(&m->clean, SIZE_MAX / 2);
	m->arena = tw_arena_new(ARENA_MAX_BYTES);
	if (!m->arena)
		return tw_sums_maker_free(m);
	begin(m, 1);
	return m;
}

struct tw_sums_maker *tw_sums_maker_free(struct tw_sums_maker *m)
{
	if (!m)
		return NULL;
	tw_arena_free(m->arena);
	tw_buf_done(&m->clean);
	tw_mem_free(m);
	return NULL;
}

static enum tw_status step(sqlite3 *db, sqlite3_stmt *s, struct tw_err *err)
{
	int rc = sqlite3_step(s);

	(void)sqlite3_reset(s);
	return rc == SQLITE_DONE ? TW_OK : tw_trace_sql_fail(db, "adding up notes", err);
}

static enum tw_status store_block(struct tw_sums_maker *m, sqlite3 *db, struct tw_err *err)
{
	const struct tw_note_block *b = &m->block;
	const int64_t v[] = {(int64_t)b->first, (int64_t)b->last, b->start_ns, b->end_ns};
	sqlite3_stmt *s = NULL;
	enum tw_status st;

	if (sqlite3_prepare_v2(db, "INSERT INTO trace_note_block VALUES(?,?,?,?)", -1, &s, NULL) !=
	        SQLITE_OK)
		return tw_trace_sql_fail(db, "adding up notes", err);
	for (int i = 0; i < 4; i++)
		(void)sqlite3_bind_int64(s, i + 1, v[i]);
	st = step(db, s, err);
	(void)sqlite3_finalize(s);
	return st;
}

static enum tw_status store_sum(
        struct tw_sums_maker *m, sqlite3 *db, sqlite3_stmt *s, uint32_t i, struct tw_err *err)
{
	const struct tw_note_key *k = &m->keys.keys[i];

	(void)sqlite3_bind_int64(s, 1, (int64_t)m->block.first);
	(void)sqlite3_bind_text(s, 2, tw_note_info(k->kind)->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 3, k->thread_id);
	tw_trace_bind_text(s, 4, k->text, &m->clean);
	(void)sqlite3_bind_int64(s, 5, m->sums[i].notes);
	(void)sqlite3_bind_int64(s, 6, m->sums[i].dur_ns);
	return step(db, s, err);
}

static enum tw_status store(struct tw_sums_maker *m, sqlite3 *db, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	enum tw_status st = store_block(m, db, err);

	if (st != TW_OK)
		return st;
	if (sqlite3_prepare_v2(db, "INSERT INTO trace_note_sum VALUES(?,?,?,?,?,?)", -1, &s,
	            NULL) != SQLITE_OK)
		return tw_trace_sql_fail(db, "adding up notes", err);
	for (uint32_t i = 0; st == TW_OK && i < m->keys.n; i++)
		st = store_sum(m, db, s, i, err);
	(void)sqlite3_finalize(s);
	begin(m, m->block.last + 1);
	return st;
}

static void reach(struct tw_note_block *b, const struct tw_note_row *n)
{
	int64_t end = n->dur_ns > 0 ? tw_sum_ns(n->ts_ns, n->dur_ns) : n->ts_ns;

	if (b->last < b->first || n->ts_ns < b->start_ns)
		b->start_ns = n->ts_ns;
	if (b->last < b->first || end > b->end_ns)
		b->end_ns = end;
	b->last++;
}

enum tw_status tw_sums_maker_add(
        struct tw_sums_maker *m, sqlite3 *db, const struct tw_note_row *note, struct tw_err *err)
{
	uint32_t at = 0;
	enum tw_note_found found = tw_note_keys_number(&m->keys, tw_note_key_of_sum(note), &at);

	if (found != TW_NOTE_KNOWN && found != TW_NOTE_ADDED)
		return tw_oom(err);
	if (found == TW_NOTE_ADDED)
		m->sums[at] = (struct sum){0, 0};
	m->sums[at].notes++;
	m->sums[at].dur_ns = tw_sum_ns(m->sums[at].dur_ns, note->dur_ns > 0 ? note->dur_ns : 0);
	reach(&m->block, note);
	return m->block.last - m->block.first + 1 == TW_NOTE_BLOCK ? store(m, db, err) : TW_OK;
}

enum tw_status tw_sums_maker_end(struct tw_sums_maker *m, sqlite3 *db, struct tw_err *err)
{
	return m->block.last < m->block.first ? TW_OK : store(m, db, err);
}

/* --- reading --- */

static enum tw_status read_rows(struct tw_trace_file *f, const char *sql, const int64_t bounds[2],
        bool (*row)(sqlite3_stmt *s, void *arg), void *arg, struct tw_err *err)
{
	sqlite3_stmt *s = tw_trace_file_statement(f, sql);
	int rc = SQLITE_ERROR;
	enum tw_status st = TW_OK;

	for (int i = 0; s && i < 2; i++)
		(void)sqlite3_bind_int64(s, i + 1, bounds[i]);
	while (s && (rc = sqlite3_step(s)) == SQLITE_ROW)
		if (!row(s, arg))
			break;
	if (tw_trace_text_oom())
		st = tw_oom(err);
	else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		st = tw_trace_sql_fail(tw_trace_file_db(f), "reading sums of notes", err);
	tw_trace_file_statement_done(f, s);
	return st;
}

struct sum_reader {
	tw_note_block_fn block;
	tw_note_sum_fn sum;
	void *arg;
};

static bool pass_block(sqlite3_stmt *s, void *arg)
{
	const struct sum_reader *t = arg;
	const struct tw_note_block b = {(uint64_t)sqlite3_column_int64(s, 0),
	        (uint64_t)sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2),
	        sqlite3_column_int64(s, 3)};

	return t->block(t->arg, &b);
}

enum tw_status tw_trace_file_note_blocks(
        struct tw_trace_file *f, tw_note_block_fn each, void *arg, struct tw_err *err)
{
	static const int64_t none[2];
	struct sum_reader t = {.block = each, .arg = arg};

	return read_rows(f,
	        "SELECT block_id, last_id, start_ns, end_ns FROM trace_note_block"
	        " ORDER BY block_id",
	        none, pass_block, &t, err);
}

static bool pass_sum(sqlite3_stmt *s, void *arg)
{
	const struct sum_reader *t = arg;
	const struct tw_note_sum sum = {
	        .kind = tw_note_of_name(tw_trace_text_at(s, 0).ptr),
	        .thread_id = (uint32_t)sqlite3_column_int64(s, 1),
	        .text = tw_trace_text_at(s, 2),
	        .notes = (uint64_t)sqlite3_column_int64(s, 3),
	        .dur_ns = sqlite3_column_int64(s, 4),
	};

	return sum.kind == TW_NOTE_COUNT || t->sum(t->arg, &sum);
}

enum tw_status tw_trace_file_note_sums(struct tw_trace_file *f, uint64_t first, uint64_t last,
        tw_note_sum_fn each, void *arg, struct tw_err *err)
{
	const int64_t bounds[] = {(int64_t)first, (int64_t)last};
	struct sum_reader t = {.sum = each, .arg = arg};

	return read_rows(f,
	        "SELECT kind, thread_id, text, notes, dur_ns FROM trace_note_sum"
	        " WHERE block_id BETWEEN ?1 AND ?2",
	        bounds, pass_sum, &t, err);
}

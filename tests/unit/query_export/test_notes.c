/*
 * The contents of a trace that are not calls: notes, documents, sources, CPU clocks. They pass from
 * the sink through the builder into a trace file, and are read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/clock.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_file_vfs.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct tw_builder *b;
	struct tw_sink *s;
	uint32_t main, other;
};

static void begin(struct world *w, const struct tw_limits *limits)
{
	struct tw_limits l = limits ? *limits : tw_limits_default();

	w->b = tw_builder_new(&l);
	assert_non_null(w->b);
	w->s = tw_builder_sink(w->b);
	w->main = w->s->ops->track(w->s, 100, 100, TW_TID_FULL);
	w->other = w->s->ops->track(w->s, 100, 101, TW_TID_FULL);
}

static void tell(struct world *w, enum tw_ev_kind kind, int64_t ts, int64_t cpu, uint64_t id)
{
	struct tw_event ev = {.kind = kind, .ts_ns = ts, .cpu_ns = cpu, .track = w->main};

	ev.sym = id ? w->s->ops->method(w->s, id) : 0;
	assert_int_equal(w->s->ops->events(w->s, &ev, 1, NULL), TW_OK);
}

static enum tw_status say(struct world *w, const struct tw_note *n)
{
	return w->s->ops->note(w->s, n, NULL);
}

struct rows {
	struct tw_note_row row[16];
	char text[16][64], detail[16][64];
	uint64_t ids[16];
	size_t n;
};

static bool collect(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct rows *r = arg;

	assert_true(r->n < 16 && n->text.len < 64 && n->detail.len < 64);
	memcpy(r->text[r->n], n->text.ptr, n->text.len);
	memcpy(r->detail[r->n], n->detail.ptr, n->detail.len);
	r->ids[r->n] = id;
	r->row[r->n++] = *n;
	return true;
}

static void read_notes(struct trace_fixture *f, const struct tw_note_query *q, struct rows *r)
{
	*r = (struct rows){0};
	assert_int_equal(tw_trace_file_notes(f->file, q, collect, r, NULL), TW_OK);
}

static void make(struct trace_fixture *f)
{
	struct world w;

	begin(&w, NULL);
	tell(&w, TW_EV_BEGIN, 10, 3, 7);
	tell(&w, TW_EV_END, 30, 8, 7);
	w.s->ops->source(w.s, w.other, TW_SOURCE_SAMPLES, 1000000);
	assert_int_equal(say(&w, &(struct tw_note){.kind = TW_NOTE_counter,
	                                 .ts_ns = 20,
	                                 .dur_ns = -1,
	                                 .value = -5,
	                                 .text = TW_STR("free <b>")}),
	        TW_OK);
	assert_int_equal(say(&w, &(struct tw_note){.kind = TW_NOTE_contention,
	                                 .track = w.other,
	                                 .ts_ns = 5,
	                                 .dur_ns = 10,
	                                 .value = 100,
	                                 .text = TW_STR("Lock"),
	                                 .detail = TW_STR("{\"waiters\":1}")}),
	        TW_OK);
	assert_int_equal(
	        w.s->ops->document(w.s, "anr", TW_STR("{\"verdict\":\"x\"}"), NULL), TW_OK);
	assert_int_equal(trace_fixture_write(f, w.b), TW_OK);
}

static void test_round_trip(void **state)
{
	struct trace_fixture f;
	struct tw_note_query all = {.kind = TW_NOTE_COUNT, .to_ns = INT64_MAX, .limit = 100};
	struct rows r;
	uint64_t counts[TW_NOTE_COUNT];

	(void)state;
	make(&f);
	read_notes(&f, &all, &r);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.row[0].kind, TW_NOTE_contention); /* by time */
	assert_int_equal(r.row[0].thread_id, 2);
	assert_int_equal(r.row[0].dur_ns, 10);
	assert_int_equal(r.row[0].value, 100);
	assert_string_equal(r.text[0], "Lock");
	assert_string_equal(r.detail[0], "{\"waiters\":1}");
	assert_int_equal(r.row[1].kind, TW_NOTE_counter);
	assert_int_equal(r.row[1].thread_id, 0);
	assert_int_equal(r.row[1].dur_ns, -1);
	assert_int_equal(r.row[1].value, -5);
	assert_string_equal(r.text[1], "free <b>");
	assert_int_equal(tw_trace_file_note_counts(f.file, counts, NULL), TW_OK);
	assert_int_equal(counts[TW_NOTE_counter], 1);
	assert_int_equal(counts[TW_NOTE_state], 0);
	trace_fixture_done(&f);
}

/* Note i of many: each column that may be NULL is so in other rows. */
static struct tw_note nth_note(const struct world *w, int64_t i)
{
	static const char *const texts[] = {"", "text", "\xC3\xA4"};
	static const char *const unclean[] = {"a\xFF", "b\xFF", "c\xFF", "d\xFF"};

	return (struct tw_note){.kind = i % 2 ? TW_NOTE_counter : TW_NOTE_instant,
	        .track = i % 3 ? w->other : 0,
	        .ts_ns = i,
	        .dur_ns = i % 5 ? i : -1,
	        .value = -i,
	        .text = tw_str_of(i % 4 == 3 ? unclean[i / 4 % 4] : texts[i % 4]),
	        .detail = i % 7 ? TW_STR("") : TW_STR("{\"i\":1}")};
}

struct many {
	const struct world *w;
	int64_t n;
};

static bool check_nth(void *arg, uint64_t id, const struct tw_note_row *n)
{
	static const char *const cleaned[] = {
	        "a\xEF\xBF\xBD", "b\xEF\xBF\xBD", "c\xEF\xBF\xBD", "d\xEF\xBF\xBD"};
	struct many *m = arg;
	const struct tw_note is = nth_note(m->w, m->n);

	assert_int_equal(id, m->n + 1);
	assert_int_equal(n->kind, is.kind);
	assert_int_equal(n->thread_id != 0, is.track != 0);
	assert_int_equal(n->ts_ns, is.ts_ns);
	assert_int_equal(n->dur_ns, is.dur_ns);
	assert_int_equal(n->value, is.value);
	assert_true(tw_str_eq(n->text, m->n % 4 == 3 ? tw_str_of(cleaned[m->n / 4 % 4]) : is.text));
	assert_true(tw_str_eq(n->detail, is.detail));
	m->n++;
	return true;
}

/* Several blocks, the last one with fewer notes. */
static void test_many(void **state)
{
	const struct tw_note_query all = {
	        .kind = TW_NOTE_COUNT, .to_ns = INT64_MAX, .limit = 10 * TW_NOTES_AT_ONCE};
	struct trace_fixture f;
	struct world w;
	struct many m = {.w = &w};

	(void)state;
	begin(&w, NULL);
	for (int64_t i = 0; i < 2 * TW_NOTES_AT_ONCE + 100; i++) {
		const struct tw_note n = nth_note(&w, i);

		assert_int_equal(say(&w, &n), TW_OK);
	}
	assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
	assert_int_equal(tw_trace_file_notes(f.file, &all, check_nth, &m, NULL), TW_OK);
	assert_int_equal(m.n, 2 * TW_NOTES_AT_ONCE + 100);
	trace_fixture_done(&f);
}

struct order {
	int64_t ts_ns, value;
	int64_t n;
};

static bool check_order(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct order *o = arg;

	(void)id;
	assert_true(n->ts_ns > o->ts_ns || (n->ts_ns == o->ts_ns && n->value > o->value));
	*o = (struct order){n->ts_ns, n->value, o->n + 1};
	return true;
}

/* Notes that are emitted in any order are stored by time, those of one time as emitted. */
static void test_order(void **state)
{
	static const int64_t many[] = {2, 100, 3 * TW_NOTES_AT_ONCE + 1};
	const struct tw_note_query all = {
	        .kind = TW_NOTE_COUNT, .to_ns = INT64_MAX, .limit = UINT32_MAX};
	const int64_t far_ns = INT64_C(1) << 45;

	(void)state;
	for (size_t k = 0; k < sizeof many / sizeof *many; k++) {
		struct order o = {.ts_ns = -1};
		struct trace_fixture f;
		struct world w;

		begin(&w, NULL);
		for (int64_t i = 0; i < many[k]; i++) {
			const int64_t at = i * 7919 % many[k] / 2;

			assert_int_equal(say(&w, &(struct tw_note){.kind = TW_NOTE_instant,
			                                 .ts_ns = at + at % 3 * far_ns,
			                                 .dur_ns = -1,
			                                 .value = i}),
			        TW_OK);
		}
		assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
		assert_int_equal(tw_trace_file_notes(f.file, &all, check_order, &o, NULL), TW_OK);
		assert_int_equal(o.n, many[k]);
		trace_fixture_done(&f);
	}
}

static bool count_blocks(void *arg, const struct tw_note_block *b)
{
	(void)b;
	++*(int *)arg;
	return true;
}

static bool count_long(void *arg, uint64_t id, const struct tw_note_row *n)
{
	(void)id;
	*(size_t *)arg += n->detail.len;
	return true;
}

/* Long texts end a block early, so that reading one takes little memory. */
static void test_long_texts(void **state)
{
	enum { DETAIL = 60000, LONG = 3 * TW_NOTES_TEXT_BYTES / DETAIL };
	const struct tw_note_query all = {
	        .kind = TW_NOTE_COUNT, .to_ns = INT64_MAX, .limit = UINT32_MAX};
	struct tw_note n = {.kind = TW_NOTE_instant, .dur_ns = -1};
	struct trace_fixture f;
	struct world w;
	size_t bytes = 0;
	int blocks = 0;
	char *detail = malloc(DETAIL);

	(void)state;
	assert_non_null(detail);
	memset(detail, 'x', DETAIL);
	n.detail = (struct tw_str){detail, DETAIL};
	begin(&w, NULL);
	for (n.ts_ns = 0; n.ts_ns < LONG; n.ts_ns++)
		assert_int_equal(say(&w, &n), TW_OK);
	assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
	assert_int_equal(tw_trace_file_note_blocks(f.file, count_blocks, &blocks, NULL), TW_OK);
	assert_int_equal(blocks, 3);
	assert_int_equal(tw_trace_file_notes(f.file, &all, count_long, &bytes, NULL), TW_OK);
	assert_int_equal(bytes, (size_t)LONG * DETAIL);
	trace_fixture_done(&f);
	free(detail);
}

static void test_queries(void **state)
{
	static const struct {
		struct tw_note_query q;
		size_t n;
	} rows[] = {
	        {{.kind = TW_NOTE_counter, .to_ns = 100, .limit = 9}, 1},
	        {{.kind = TW_NOTE_gc, .to_ns = 100, .limit = 9}, 0},
	        {{.kind = TW_NOTE_COUNT, .from_ns = 16, .to_ns = 100, .limit = 9}, 1},
	        {{.kind = TW_NOTE_COUNT, .from_ns = 15, .to_ns = 100, .limit = 9}, 2},
	        {{.kind = TW_NOTE_COUNT, .to_ns = 20, .limit = 9}, 1},
	        {{.kind = TW_NOTE_COUNT, .to_ns = 100, .limit = 1}, 1},
	        {{.kind = TW_NOTE_COUNT, .after = 1, .to_ns = 100, .limit = 9}, 1},
	        {{.kind = TW_NOTE_COUNT, .after = 2, .to_ns = 100, .limit = 9}, 0},
	};
	struct trace_fixture f;
	struct rows r;

	(void)state;
	make(&f);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		read_notes(&f, &rows[i].q, &r);
		assert_int_equal(r.n, rows[i].n);
	}
	trace_fixture_done(&f);
}

static bool collect_document(void *arg, struct tw_str kind, struct tw_str json)
{
	assert_true(tw_str_eq(kind, TW_STR("anr")));
	assert_true(tw_str_eq(json, TW_STR("{\"verdict\":\"x\"}")));
	++*(int *)arg;
	return true;
}

static void test_documents_and_sources(void **state)
{
	const struct tw_thread_info *t;
	struct trace_fixture f;
	uint32_t n;
	int documents = 0;

	(void)state;
	make(&f);
	assert_int_equal(
	        tw_trace_file_documents(f.file, collect_document, &documents, NULL), TW_OK);
	assert_int_equal(documents, 1);
	t = tw_trace_file_threads(f.file, &n);
	assert_int_equal(n, 2);
	assert_int_equal(t[0].source, TW_SOURCE_CALLS);
	assert_int_equal(t[1].source, TW_SOURCE_SAMPLES);
	assert_int_equal(t[1].interval_ns, 1000000);
	assert_int_equal(f.methods[0].cpu_ns, 5); /* 8 - 3 on the thread's own clock */
	assert_int_equal(f.methods[0].total_ns, 20);
	trace_fixture_done(&f);
}

/* A trace may have notes and no calls; with nothing at all it is refused. */
static void test_without_calls(void **state)
{
	struct trace_fixture f;
	struct world w;

	(void)state;
	begin(&w, NULL);
	assert_int_equal(
	        say(&w, &(struct tw_note){.kind = TW_NOTE_gc, .ts_ns = 1, .dur_ns = 2}), TW_OK);
	assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
	assert_int_equal(tw_trace_file_info(f.file)->slices, 0);
	trace_fixture_done(&f);
	begin(&w, NULL);
	assert_int_equal(trace_fixture_write(&f, w.b), TW_CORRUPT);
	trace_fixture_done(&f);
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_note n = {.kind = TW_NOTE_instant, .dur_ns = -1, .text = TW_STR("tick")};
	struct trace_fixture f;
	struct world w;
	uint32_t repairs;
	const struct tw_repair_count *r;

	(void)state;
	l.max_notes = 3;
	begin(&w, &l);
	for (n.ts_ns = 0; n.ts_ns < 5; n.ts_ns++) {
		n.offset = 100 + (uint64_t)n.ts_ns;
		assert_int_equal(say(&w, &n), TW_OK);
	}
	assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
	r = tw_trace_file_repairs(f.file, &repairs);
	assert_int_equal(repairs, 1);
	assert_int_equal(r[0].what, TW_REPAIR_note_limit);
	assert_int_equal(r[0].count, 2);
	assert_int_equal(r[0].first_offset, 103);
	trace_fixture_done(&f);
}

static void test_no_memory(void **state)
{
	uint64_t steps = 0;
	enum tw_status st = TW_NOMEM;

	(void)state;
	while (st != TW_OK && ++steps < 200) {
		struct world w;
		struct trace_fixture f;

		begin(&w, NULL);
		tw_mem_fail_at(steps);
		st = TW_OK;
		for (int i = 0; st == TW_OK && i < 300; i++) {
			char text[16] = {(char)('a' + i % 26), (char)('a' + i / 26), 0};

			st = say(&w, &(struct tw_note){.kind = TW_NOTE_instant,
			                     .ts_ns = i,
			                     .dur_ns = -1,
			                     .text = tw_str_of(text)});
		}
		tw_mem_fail_at(0);
		if (st == TW_OK) {
			assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
			trace_fixture_done(&f);
		} else {
			assert_int_equal(st, TW_NOMEM);
			tw_builder_free(w.b);
		}
	}
	assert_in_range(steps, 3, 199);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < TW_NOTE_COUNT; i++)
		assert_int_equal(tw_note_of_name(tw_note_info((enum tw_note_kind)i)->name), i);
	assert_int_equal(tw_note_of_name("nothing"), TW_NOTE_COUNT);
	for (int i = 0; i <= TW_SOURCE_COUNTS; i++)
		assert_int_equal(
		        tw_slice_source_of_name(tw_slice_source_name((enum tw_source)i)), i);
	assert_int_equal(tw_slice_source_of_name(""), TW_SOURCE_CALLS);
}

/* --- plans: a trace file's VFS refuses temporary files, so no statement may sort --- */

enum { STATEMENTS_MAX = 40 };

struct statements {
	char sql[STATEMENTS_MAX][400];
	size_t n;
};

static struct statements seen;

static int on_statement(unsigned what, void *arg, void *statement, void *text)
{
	const char *sql = sqlite3_sql(statement);
	size_t i = 0;

	(void)what, (void)arg, (void)text;
	while (i < seen.n && strcmp(seen.sql[i], sql) != 0)
		i++;
	if (i == seen.n && strncmp(sql, "SELECT", 6) == 0) {
		assert_true(seen.n < STATEMENTS_MAX && strlen(sql) < sizeof seen.sql[0]);
		(void)snprintf(seen.sql[seen.n++], sizeof seen.sql[0], "%s", sql);
	}
	return 0;
}

static int watch(sqlite3 *db, char **why, const struct sqlite3_api_routines *api)
{
	(void)why, (void)api;
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_statement, NULL);
}

static bool pass_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	(void)arg, (void)id, (void)n;
	return true;
}

static bool pass_block(void *arg, const struct tw_note_block *b)
{
	*(struct tw_note_block *)arg = *b;
	return true;
}

static bool pass_sum(void *arg, const struct tw_note_sum *s)
{
	(void)arg, (void)s;
	return true;
}

/* Every statement that trace_file*.c reads with. */
static void read_everything(const char *path)
{
	const struct tw_note_query all = {.kind = TW_NOTE_COUNT, .to_ns = INT64_MAX, .limit = 100};
	struct tw_trace_file *f = NULL;
	const struct tw_method_info *methods;
	const struct tw_method_ref *refs;
	const struct tw_chunk_row *rows = NULL;
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_note_block block = {.first = 1};
	uint64_t counts[TW_NOTE_COUNT];
	struct tw_chunk chunk;
	struct tw_tree tree;
	struct tw_buf out;
	int documents = 0;
	uint32_t n = 0;

	tw_buf_init(&out, 1 << 20);
	tw_chunk_init(&chunk);
	assert_int_equal(tw_trace_file_open(path, &f, NULL), TW_OK);
	assert_int_equal(tw_trace_file_methods(f, &methods, &n, NULL), TW_OK);
	assert_int_equal(tw_trace_file_method_refs(f, &refs, &n, NULL), TW_OK);
	assert_int_equal(tw_trace_file_chunks(f, 1, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_trace_file_chunk(f, rows, &chunk, NULL), TW_OK);
	assert_int_equal(tw_trace_file_tree(f, 1, a, &tree, NULL), TW_OK);
	assert_int_equal(tw_trace_file_notes(f, &all, pass_note, NULL, NULL), TW_OK);
	assert_int_equal(tw_trace_file_note_counts(f, counts, NULL), TW_OK);
	assert_int_equal(counts[TW_NOTE_counter], 1);
	assert_int_equal(counts[TW_NOTE_contention], 1);
	assert_int_equal(tw_trace_file_documents(f, collect_document, &documents, NULL), TW_OK);
	assert_int_equal(tw_trace_file_system(f, &out, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_trace_file_note_blocks(f, pass_block, &block, NULL), TW_OK);
	assert_int_equal(
	        tw_trace_file_note_sums(f, block.first, block.last, pass_sum, NULL, NULL), TW_OK);
	tw_trace_file_close(f);
	tw_chunk_done(&chunk);
	tw_buf_done(&out);
	tw_arena_free(a);
}

/* Past the limit of the thread's work nothing is read, and what was open goes on once it has more.
 */
static void test_overdue(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	const struct tw_chunk_row *rows = NULL;
	struct trace_fixture f;
	struct tw_chunk chunk;
	struct tw_tree tree;
	uint32_t n = 0;

	(void)state;
	make(&f);
	tw_chunk_init(&chunk);
	assert_int_equal(tw_trace_file_chunks(f.file, 1, &rows, &n, NULL), TW_OK);
	tw_work_limit_set((struct tw_work_limit){.until_ms = 1});
	assert_true(tw_work_is_overdue());
	assert_int_equal(tw_trace_file_chunk(f.file, rows, &chunk, NULL), TW_DEADLINE);
	assert_int_equal(tw_trace_file_tree(f.file, 1, a, &tree, NULL), TW_DEADLINE);
	assert_false(tw_trace_file_is_damaged(f.file));
	tw_work_limit_set((struct tw_work_limit){.until_ms = tw_monotonic_ms() + 3600000});
	assert_int_equal(tw_trace_file_chunk(f.file, rows, &chunk, NULL), TW_OK);
	assert_int_equal(tw_trace_file_tree(f.file, 1, a, &tree, NULL), TW_OK);
	tw_work_limit_set((struct tw_work_limit){0});
	tw_chunk_done(&chunk);
	tw_arena_free(a);
	trace_fixture_done(&f);
}

/* The table of methods takes one statement, which ends within. */
static void test_overdue_statement(void **state)
{
	const struct tw_method_info *methods;
	const struct tw_method_ref *refs;
	struct tw_trace_file *file = NULL;
	struct trace_fixture f;
	struct world w;
	uint32_t n;

	(void)state;
	begin(&w, NULL);
	for (uint64_t i = 0; i < 20000; i++) {
		tell(&w, TW_EV_BEGIN, (int64_t)i * 10, -1, i + 1);
		tell(&w, TW_EV_END, (int64_t)i * 10 + 5, -1, i + 1);
	}
	assert_int_equal(trace_fixture_write(&f, w.b), TW_OK);
	assert_int_equal(tw_trace_file_open(f.path, &file, NULL), TW_OK);
	tw_work_limit_set((struct tw_work_limit){.until_ms = 1});
	assert_int_equal(tw_trace_file_methods(file, &methods, &n, NULL), TW_DEADLINE);
	assert_int_equal(tw_trace_file_method_refs(file, &refs, &n, NULL), TW_DEADLINE);
	tw_work_limit_set((struct tw_work_limit){0});
	assert_int_equal(tw_trace_file_method_refs(file, &refs, &n, NULL), TW_OK);
	assert_int_equal(n, 20000);
	assert_true(tw_method_named(refs).has_id);
	tw_trace_file_close(file);
	trace_fixture_done(&f);
}

static bool sorts(sqlite3 *db, const char *sql)
{
	char explain[500];
	sqlite3_stmt *s = NULL;
	bool sorted = false;

	(void)snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(sqlite3_prepare_v2(db, explain, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		sorted |= strstr((const char *)sqlite3_column_text(s, 3), "TEMP B-TREE") != NULL;
	(void)sqlite3_finalize(s);
	return sorted;
}

static void test_plans(void **state)
{
	void (*extension)(void);
	int (*const entry)(sqlite3 *, char **, const struct sqlite3_api_routines *) = watch;
	struct tw_trace_image image;
	struct trace_fixture f;
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	sqlite3 *db = NULL;
	int fd;

	(void)state;
	memcpy(&extension, &entry, sizeof extension);
	make(&f);
	assert_int_equal(sqlite3_auto_extension(extension), SQLITE_OK);
	seen.n = 0;
	read_everything(f.path);
	sqlite3_reset_auto_extension();
	assert_true(seen.n >= 16);
	fd = open(f.path, O_RDONLY | O_CLOEXEC); /* a small file is compressed */
	assert_int_equal(tw_trace_image_load(&image, fd, zstd, NULL), TW_OK);
	(void)ZSTD_freeDCtx(zstd);
	assert_int_equal(tw_trace_vfs_open(&image, SQLITE_OPEN_READONLY, &db), SQLITE_OK);
	for (size_t i = 0; i < seen.n; i++)
		if (sorts(db, seen.sql[i]))
			fail_msg("a sort: %s", seen.sql[i]);
	(void)sqlite3_close(db);
	tw_trace_image_done(&image);
	(void)close(fd);
	trace_fixture_done(&f);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_documents_and_sources),
        cmocka_unit_test(test_without_calls),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_overdue_statement),
        cmocka_unit_test(test_plans),
};

UNIT_TESTS("notes", tests)

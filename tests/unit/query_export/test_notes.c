/*
 * What a trace says beside its calls: notes, documents, sources, CPU clocks; from the sink through
 * the builder into a trace file and out again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "trace_file.h"
#include "trace_fixture.h"

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

static void test_queries(void **state)
{
	static const struct {
		struct tw_note_query q;
		size_t n;
	} rows[] = {
	        {{.kind = TW_NOTE_counter, .to_ns = 100, .limit = 9}, 1},
	        {{.kind = TW_NOTE_gc, .to_ns = 100, .limit = 9}, 0},
	        {{.kind = TW_NOTE_COUNT, .thread_id = 2, .to_ns = 100, .limit = 9}, 1},
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
		assert_int_equal(tw_source_of_word(tw_source_word((enum tw_source)i)), i);
	assert_int_equal(tw_source_of_word(""), TW_SOURCE_CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_round_trip),
	        cmocka_unit_test(test_queries),
	        cmocka_unit_test(test_documents_and_sources),
	        cmocka_unit_test(test_without_calls),
	        cmocka_unit_test(test_limits),
	        cmocka_unit_test(test_no_memory),
	        cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

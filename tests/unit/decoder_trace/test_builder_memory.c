/* The builder without memory: every allocation in turn fails, and nothing leaks; and when the limit
 * of names is reached, further names are counted, and the rest is a trace (I2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder_internal.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static enum tw_status drop_chunk(struct tw_trace_out *out, const struct tw_chunk_info *info,
        struct tw_buf *payload, struct tw_err *err)
{
	(void)out, (void)info, (void)payload, (void)err;
	return TW_OK;
}

static enum tw_status drop_tree(struct tw_trace_out *out, uint32_t thread_id, uint32_t nodes,
        struct tw_buf *payload, struct tw_err *err)
{
	(void)out, (void)thread_id, (void)nodes, (void)payload, (void)err;
	return TW_OK;
}

static void drop_sums(struct tw_trace_out *out, struct tw_tree_sums *sums)
{
	(void)out, (void)sums;
}

static enum tw_status drop_thread(
        struct tw_trace_out *out, const struct tw_thread_info *t, struct tw_err *err)
{
	(void)out, (void)t, (void)err;
	return TW_OK;
}

static enum tw_status drop_method(
        struct tw_trace_out *out, const struct tw_method_info *m, struct tw_err *err)
{
	(void)out, (void)m, (void)err;
	return TW_OK;
}

static enum tw_status drop_notes(
        struct tw_trace_out *o, const struct tw_note_row *rows, size_t n, struct tw_err *err)
{
	(void)o, (void)rows, (void)n, (void)err;
	return TW_OK;
}

static enum tw_status drop_document(
        struct tw_trace_out *o, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)o, (void)kind, (void)json, (void)err;
	return TW_OK;
}

static enum tw_status drop_repair(
        struct tw_trace_out *out, const struct tw_repair_count *r, struct tw_err *err)
{
	(void)out, (void)r, (void)err;
	return TW_OK;
}

static enum tw_status drop_info(
        struct tw_trace_out *out, const struct tw_trace_info *info, struct tw_err *err)
{
	(void)out, (void)info, (void)err;
	return TW_OK;
}

enum { SHARED_FROM = 64 };

/* shared: written by two threads. */
static enum tw_status build_dropping(const struct model *m, enum model_form form, bool shared)
{
	static const struct tw_trace_out_ops ops = {drop_chunk, drop_tree, drop_thread, drop_method,
	        drop_notes, drop_document, drop_repair, drop_info, drop_sums, NULL};
	struct tw_trace_out out = {&ops};
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	enum tw_status st = b ? model_emit(m, tw_builder_sink(b), form, NULL) : TW_NOMEM;

	if (b && shared)
		b->shared_from = SHARED_FROM;
	if (st == TW_OK) {
		tw_builder_sink(b)->ops->thread_name(tw_builder_sink(b), 0, 5, TW_STR("t"));
		st = tw_builder_write(b, &out, NULL);
	}
	tw_builder_free(b);
	return st;
}

static void fails_at_each(const struct model *m, enum model_form form, bool shared)
{
	bool done = false;

	for (uint64_t n = 1; !done; n++) {
		enum tw_status st;

		tw_mem_fail_at(n);
		st = build_dropping(m, form, shared);
		done = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_int_equal(st, done ? TW_OK : TW_NOMEM);
		assert_in_range(n, 1, 1000);
	}
}

static void test_no_memory(void **state)
{
	struct model_shape shape = {99, 2, 300, 20, true};
	struct model m;

	(void)state;
	model_make(&m, &shape);
	for (int form = MODEL_RECORDS; form <= MODEL_SHUFFLED; form++) {
		fails_at_each(&m, (enum model_form)form, false);
		fails_at_each(&m, (enum model_form)form, true);
	}
	model_done(&m);
}

/* --- the share of names is full --- */

enum { ARENA = 256 << 10, SMALL = 4 * ARENA, TRIES = 2000 };

static struct tw_builder *small_builder(void)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;

	l.max_memory_bytes = SMALL;
	b = tw_builder_new(&l);
	assert_non_null(b);
	return b;
}

static void note(struct tw_sink *s, int i)
{
	char text[300];
	char detail[300];
	struct tw_note n = {
	        .kind = TW_NOTE_instant, .ts_ns = i, .dur_ns = -1, .offset = (uint64_t)i};

	memset(text, 'x', sizeof text);
	n.text = (struct tw_str){text, (size_t)snprintf(text, sizeof text, "%0200d", i)};
	n.detail = (struct tw_str){
	        detail, (size_t)snprintf(detail, sizeof detail, "{\"a\":\"%0200d\"}", i)};
	assert_int_equal(s->ops->note(s, &n, NULL), TW_OK);
}

static void slice(struct tw_sink *s, int i)
{
	char name[300];
	struct tw_event ev = {.kind = TW_EV_SLICE, .ts_ns = 10 * i, .dur_ns = 5, .cpu_ns = -1};

	ev.track = s->ops->track(s, 1, 7, TW_TID_FULL);
	ev.sym = s->ops->name(
	        s, (struct tw_str){name, (size_t)snprintf(name, sizeof name, "a.b.C.%0200d", i)});
	assert_int_not_equal(ev.sym, 0);
	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

/* Notes and documents that fill it are left out; names that come later have their quarter. */
static void test_notes_fill_it(void **state)
{
	static char document[ARENA];
	struct tw_builder *b = small_builder();
	struct tw_sink *s = tw_builder_sink(b);
	struct trace_log log;

	(void)state;
	trace_log_init(&log);
	memset(document, ' ', sizeof document);
	memcpy(document, "{}", 2);
	assert_int_equal(s->ops->document(s, "d", TW_STR("{}"), NULL), TW_OK);
	for (int i = 0; i < TRIES; i++)
		note(s, i);
	assert_int_equal(
	        s->ops->document(s, "d", (struct tw_str){document, sizeof document}, NULL), TW_OK);
	for (int i = 0; i < 100; i++)
		slice(s, i);
	s->ops->transaction(s, TW_STR("a.b.IShop"), 1, TW_STR("buy"));
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.documents, 1);
	assert_in_range(log.n_notes, ARENA / 2 / 500, ARENA / 400);
	assert_int_equal(log.repairs[TW_REPAIR_note_limit], TRIES - log.n_notes + 1);
	assert_int_equal(log.info.slices, 100);
	assert_int_equal(log.n_methods, 100);
	assert_int_equal(log.repairs[TW_REPAIR_name_limit], 1); /* the transaction's */
	tw_builder_free(b);
	trace_log_done(&log);
}

/* Names that fill it: all calls are there, the rest of them under one name. */
static void test_names_fill_it(void **state)
{
	struct tw_builder *b = small_builder();
	struct tw_sink *s = tw_builder_sink(b);
	struct trace_log log;
	char long_name[250];

	(void)state;
	trace_log_init(&log);
	for (int i = 0; i < TRIES; i++)
		slice(s, i);
	memset(long_name, 'n', sizeof long_name);
	s->ops->thread_name(s, 1, 7, (struct tw_str){long_name, sizeof long_name});
	s->ops->method_name(s, 5, (struct tw_str){long_name, sizeof long_name});
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.info.slices, TRIES);
	assert_in_range(log.n_methods, ARENA / 400, ARENA / 200);
	assert_int_equal(log.repairs[TW_REPAIR_name_limit], TRIES - (log.n_methods - 1) + 2);
	tw_builder_free(b);
	trace_log_done(&log);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_notes_fill_it),
        cmocka_unit_test(test_names_fill_it),
};

UNIT_TESTS("builder_memory", tests)

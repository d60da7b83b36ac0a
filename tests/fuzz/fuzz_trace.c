/*
 * An upload becomes a trace: decoder and builder, whose output is read back and checked for the
 * properties of every trace (trace_oracle.h); in one piece and written by two threads, and split as
 * the last byte selects with most records in scratch.
 */
#include "decoder/formats/sink.h"
#include "decoder/trace/builder_internal.h"
#include "fuzz.h"
#include "oracle/digest.h"
#include "oracle/trace_oracle.h"
#include "tests/fixtures/scratch.h"

enum { MOST_METHODS = 20000 }; /* so that a builder is small */
enum { SHARED_FROM = 32 };     /* inputs are small */

static enum tw_status push(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_decoder_push(arg, p, n, err);
}

static enum tw_status decode(const struct digest_task *t, struct tw_sink *sink)
{
	struct tw_decoder *d = tw_decoder_new(t->a, &t->limits, NULL, NULL, sink);
	enum tw_status st;

	FUZZ_CHECK(d);
	st = digest_feed(t, push, d, NULL);
	if (st == TW_OK)
		st = tw_decoder_finish(d, NULL);
	(void)tw_decoder_free(d);
	return st;
}

static enum tw_status make(
        struct digest_task *t, uint64_t seed, uint64_t window_bytes, struct trace_log *log)
{
	struct tw_builder *b = tw_builder_new(&t->limits);
	struct scratch s = {0};
	enum tw_status st;

	t->seed = seed;
	t->a = tw_arena_new((size_t)512 << 20);
	FUZZ_CHECK(b && t->a);
	if (window_bytes)
		scratch_begin(&s, b, window_bytes);
	else
		b->shared_from = SHARED_FROM;
	st = decode(t, tw_builder_sink(b));
	trace_log_init(log);
	if (st == TW_OK)
		st = tw_builder_write(b, &log->out, NULL);
	if (st == TW_OK)
		trace_oracle_check(log, &t->limits);
	(void)tw_builder_free(b);
	if (window_bytes)
		scratch_done(&s);
	(void)tw_arena_free(t->a);
	return st;
}

static void check_same_slices(struct trace_log *a, struct trace_log *b, uint32_t thread_id)
{
	size_t n, n_b;
	const struct tw_slice *s = trace_log_slices(a, thread_id, 0, &n);
	const struct tw_slice *s_b = trace_log_slices(b, thread_id, 0, &n_b);

	FUZZ_CHECK(n == n_b);
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(s[i].start_ns == s_b[i].start_ns && s[i].dur_ns == s_b[i].dur_ns &&
		           s[i].depth == s_b[i].depth && s[i].method == s_b[i].method &&
		           s[i].cpu_ns == s_b[i].cpu_ns);
}

static void check_same_notes(const struct trace_log *a, const struct trace_log *b)
{
	FUZZ_CHECK(a->n_notes == b->n_notes && a->documents == b->documents);
	for (size_t i = 0; i < a->n_notes; i++) {
		const struct tw_note_row *n = &a->notes[i];
		const struct tw_note_row *m = &b->notes[i];

		FUZZ_CHECK(n->kind == m->kind && n->thread_id == m->thread_id);
		FUZZ_CHECK(n->ts_ns == m->ts_ns && n->dur_ns == m->dur_ns && n->value == m->value);
		FUZZ_CHECK(tw_str_eq(n->text, m->text) && n->from_system == m->from_system);
	}
}

static void check_same(struct trace_log *a, struct trace_log *b)
{
	FUZZ_CHECK(a->n_threads == b->n_threads && a->n_methods == b->n_methods);
	check_same_notes(a, b);
	for (size_t i = 0; i < a->n_threads; i++) {
		FUZZ_CHECK(a->threads[i].tid == b->threads[i].tid &&
		           a->threads[i].pid == b->threads[i].pid &&
		           a->threads[i].is_main == b->threads[i].is_main);
		check_same_slices(a, b, a->threads[i].thread_id);
	}
	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		FUZZ_CHECK(a->repairs[i] == b->repairs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct digest_task t = {.p = data, .n = size - 2};
	struct trace_log whole, pieces;
	enum tw_status st;

	if (size < 2)
		return 0;
	t.limits = digest_limits(data[size - 2]);
	if (t.limits.max_methods > MOST_METHODS)
		t.limits.max_methods = MOST_METHODS;
	st = make(&t, 0, 0, &whole);
	FUZZ_CHECK(make(&t, (uint64_t)data[size - 1] + 1, 1024, &pieces) == st);
	if (st == TW_OK)
		check_same(&whole, &pieces);
	trace_log_done(&whole);
	trace_log_done(&pieces);
	return 0;
}

/* merged_fixture.c - see merged_fixture.h. */
#include "merged_fixture.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int merged_file(const struct tw_buf *b)
{
	char path[] = "/tmp/tracewell-system-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)unlink(path);
	assert_int_equal(write(fd, b->data, b->len), b->len);
	return fd;
}

struct system_shape merged_usual(void)
{
	return (struct system_shape){.boot_ns = 500 * S,
	        .mono_ns = 400 * S,
	        .length_ns = 60000,
	        .pid = MODEL_PID,
	        .threads = THREADS};
}

static void make_ours(struct merged *x, int64_t mono_ns, int64_t boot_ns)
{
	const struct model_shape shape = {7, THREADS, PER_THREAD, 40, false};
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s;

	assert_non_null(b);
	s = tw_builder_sink(b);
	model_make(&x->m, &shape);
	assert_int_equal(model_tell(&x->m, s, MODEL_RECORDS, NULL), TW_OK);
	s->ops->clock(s, &(struct tw_clock){MODEL_PID, mono_ns, boot_ns, 0});
	assert_int_equal(trace_fixture_write(&x->f, b), TW_OK);
}

void merged_export(struct tw_buf *out, const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *o, size_t step)
{
	struct tw_perfetto *p = NULL;
	size_t got;

	tw_buf_init(out, 256 << 20);
	assert_int_equal(tw_perfetto_open(sources, n, o, &p, NULL), TW_OK);
	do {
		assert_int_equal(tw_buf_reserve(out, step), TW_OK);
		assert_int_equal(
		        tw_perfetto_read(p, out->data + out->len, step, &got, NULL), TW_OK);
		assert_true(got <= step);
		out->len += got;
	} while (got);
	assert_null(tw_perfetto_close(p));
}

struct tw_perfetto_source merged_source(const struct merged *x)
{
	return (struct tw_perfetto_source){.file = x->f.file,
	        .sel = {.all_threads = true},
	        .facts = {"01ABC", "com.example.app", "com.example.app", "1", "b", "d", "start",
	                "https://t.example/traces/01ABC", "s"},
	        .system_fd = x->fd};
}

void merged_read(struct merged *x, struct perfetto_trace *t, const struct tw_buf *b)
{
	assert_true(perfetto_read(t, (struct tw_str){(const char *)b->data, b->len}, x->arena));
}

void merged_make(struct merged *x, const struct system_shape *shape, int64_t mono_ns,
        int64_t boot_ns, const struct tw_perfetto_options *o)
{
	struct tw_perfetto_source source;

	*x = (struct merged){.arena = tw_arena_new((size_t)1 << 30)};
	system_make(&x->system, shape);
	x->fd = merged_file(&x->system);
	make_ours(x, mono_ns, boot_ns);
	source = merged_source(x);
	merged_export(&x->bytes, &source, 1, o, 70000);
	merged_read(x, &x->alone, &x->system);
	if (o->form == TW_PERFETTO_PLAIN)
		merged_read(x, &x->trace, &x->bytes);
}

void merged_done(struct merged *x)
{
	(void)close(x->fd);
	tw_buf_done(&x->system);
	tw_buf_done(&x->bytes);
	trace_fixture_done(&x->f);
	model_done(&x->m);
	tw_arena_free(x->arena);
}

/* Every packet of the device's trace is there as it was, in order, and no other uses its
 * sequences. */
void merged_same_packets(const struct merged *x)
{
	size_t at = 0;

	for (size_t i = 0; i < x->trace.n_packets; i++) {
		const struct perfetto_packet *p = &x->trace.packets[i];

		if (at < x->alone.n_packets && tw_str_eq(p->bytes, x->alone.packets[at].bytes)) {
			at++;
			continue;
		}
		for (size_t k = 0; k < x->alone.n_packets && p->sequence; k++)
			assert_int_not_equal(p->sequence, x->alone.packets[k].sequence);
	}
	assert_int_equal(at, x->alone.n_packets);
}

/* Trace time to BOOTTIME by what the device did. */
static int64_t truth(const struct system_shape *s, int64_t mono_ns, int64_t ts_ns)
{
	int64_t since = mono_ns + ts_ns - s->mono_ns;

	return s->boot_ns + since + (s->sleep_ns && since >= s->sleep_at_ns ? s->sleep_ns : 0);
}

bool merged_is_call(const struct perfetto_slice *s)
{
	return tw_str_starts(s->track, TW_STR("methods"));
}

/* All calls of the recording, each where `at` puts it. */
void merged_same_calls(const struct merged *x, const struct system_shape *s, int64_t mono_ns)
{
	for (uint32_t t = 0; t < THREADS; t++) {
		size_t at = 0;

		for (size_t i = 0; i < x->m.n; i++) {
			const struct model_slice *want = &x->m.slices[i];
			const struct perfetto_slice *got;
			char name[40];

			if (want->tid != MODEL_PID + t)
				continue;
			while (at < x->trace.n && (!merged_is_call(&x->trace.slices[at]) ||
			                                  x->trace.slices[at].tid != MODEL_PID + t))
				at++;
			assert_true(at < x->trace.n);
			got = &x->trace.slices[at++];
			(void)snprintf(name, sizeof name, "unknown:%u", want->method_id);
			assert_int_equal(got->pid, MODEL_PID);
			assert_true(tw_str_eq(got->name, tw_str_of(name)));
			assert_int_equal(got->depth, want->depth);
			assert_int_equal(got->begin_ns, truth(s, mono_ns, want->start_ns));
			assert_int_equal(
			        got->end_ns, truth(s, mono_ns, want->start_ns + want->dur_ns));
		}
	}
}

bool merged_says(const struct merged *x, const char *key, const char *text)
{
	struct tw_str got;
	int64_t number;

	return perfetto_attribute(&x->trace, key, &got, &number) && tw_str_eq(got, tw_str_of(text));
}

/* As text, for a failure's message. */
void merged_print_why(const struct merged *x, const char *what)
{
	struct tw_str clock = TW_STR("?"), why = TW_STR("");
	int64_t number;

	(void)perfetto_attribute(&x->trace, "clock", &clock, &number);
	(void)perfetto_attribute(&x->trace, "system_trace_left_out", &why, &number);
	print_message(
	        "# %s: clock %.*s %.*s\n", what, (int)clock.len, clock.ptr, (int)why.len, why.ptr);
}

int64_t merged_number(const struct merged *x, const char *key)
{
	struct tw_str got;
	int64_t number = INT64_MIN;

	(void)perfetto_attribute(&x->trace, key, &got, &number);
	return number;
}

void merged_beside(struct merged *x, const struct tw_buf *system)
{
	const struct tw_perfetto_options o = {0};
	struct tw_perfetto_source source;

	tw_buf_done(&x->bytes);
	tw_arena_reset(x->arena);
	(void)close(x->fd);
	x->fd = merged_file(system);
	source = merged_source(x);
	merged_export(&x->bytes, &source, 1, &o, 1 << 20);
	merged_read(x, &x->trace, &x->bytes);
}

/* art_fixture.c - see art_fixture.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/unit/decoder_formats/art_fixture.h"

/* --- building traces --- */

void art_text(struct tw_buf *b, const char *s)
{
	(void)tw_buf_add_str(b, tw_str_of(s));
}

void art_u16(struct tw_buf *b, unsigned v)
{
	(void)tw_buf_add_u8(b, (uint8_t)v);
	(void)tw_buf_add_u8(b, (uint8_t)(v >> 8));
}

void art_u32(struct tw_buf *b, uint32_t v)
{
	(void)tw_buf_add_u32le(b, v);
}

void art_bytes(struct tw_buf *b, const char *hex)
{
	for (; *hex; hex++) {
		unsigned v[2];

		if (*hex == ' ')
			continue;
		for (int i = 0; i < 2; i++)
			v[i] = hex[i] <= '9' ? (unsigned)(hex[i] - '0')
			                     : (unsigned)(hex[i] - 'a' + 10);
		(void)tw_buf_add_u8(b, (uint8_t)(v[0] << 4 | v[1]));
		hex++;
	}
}

void art_lead(struct tw_buf *b, unsigned version, uint64_t start_us, unsigned size)
{
	art_text(b, "SLOW");
	art_u16(b, version);
	art_u16(b, 32);
	(void)tw_buf_add_u64le(b, start_us);
	art_u16(b, size);
	for (int i = 0; i < 14; i++)
		(void)tw_buf_add_u8(b, 0);
}

void art_header(struct tw_buf *b, int version, const char *keys)
{
	tw_buf_init(b, 1 << 20);
	(void)tw_buf_printf(
	        b, "*version\n%d\n%s*threads\n1\tmain\n70007\tlate one\n", version, keys);
	art_text(b, "*methods\n0\tcom.a.B\tzero\t()V\tB.java\n0x4\tcom.a.B\tfour\t(I)V\n"
	            "0x8\tjava/lang/String\teight\t()V\tString.java\t-1\n*end\n");
	art_lead(b, (unsigned)version, 1000000, version == 3 ? 14 : 0);
}

void art_record2(struct tw_buf *b, unsigned tid, uint32_t word, uint32_t us)
{
	art_u16(b, tid);
	art_u32(b, word);
	art_u32(b, us);
}

void art_record3(struct tw_buf *b, unsigned tid, uint32_t word, uint32_t cpu, uint32_t wall)
{
	art_u16(b, tid);
	art_u32(b, word);
	art_u32(b, cpu);
	art_u32(b, wall);
}

/* --- checking the emitted events --- */

/* Runs whole, and in pieces, which must give the same. */
void art_run(struct event_log *log, const struct tw_buf *b)
{
	event_log_run(log, b->data, b->len, 0, NULL);
	for (uint64_t seed = 1; seed < 6; seed++) {
		struct event_log pieces;
		const char *why;

		event_log_run(&pieces, b->data, b->len, seed, NULL);
		why = event_log_differs(log, &pieces);
		if (why)
			fail_msg("cut by %d: %s", (int)seed, why);
		event_log_done(&pieces);
	}
}

void art_run_done(struct event_log *log, struct tw_buf *b)
{
	art_run(log, b);
	tw_buf_done(b);
}

bool art_reported(const struct event_log *log, const char *line)
{
	size_t n = strlen(line);

	for (size_t i = 0; i + n <= log->names.len; i++)
		if (memcmp(log->names.data + i, line, n) == 0)
			return true;
	return false;
}

void art_check(const struct event_log *log, size_t i, enum tw_ev_kind kind, uint64_t method,
        int64_t ts_ns, int64_t cpu_ns)
{
	assert_in_range(i, 0, log->n - 1);
	assert_int_equal(log->events[i].kind, kind);
	assert_int_equal(log->events[i].sym, method == UNNAMED ? 0 : (uint32_t)method + 1);
	assert_int_equal(log->events[i].ts_ns, ts_ns);
	assert_int_equal(log->events[i].cpu_ns, cpu_ns);
}

/* --- the builder's trace --- */

enum tw_status art_build(const struct tw_buf *b, struct trace_log *log)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_builder *builder = a ? tw_builder_new(&limits) : NULL;
	struct tw_decoder *d =
	        builder ? tw_decoder_new(a, &limits, NULL, NULL, tw_builder_sink(builder)) : NULL;
	enum tw_status st = d ? tw_decoder_push(d, b->data, b->len, NULL) : TW_NOMEM;

	if (st == TW_OK)
		st = tw_decoder_finish(d, NULL);
	tw_decoder_free(d);
	trace_log_init(log);
	if (st == TW_OK)
		st = tw_builder_write(builder, &log->out, NULL);
	tw_builder_free(builder);
	tw_arena_free(a);
	return st;
}

const struct tw_method_info *art_method_named(const struct trace_log *log, const char *name)
{
	for (size_t i = 0; i < log->n_methods; i++)
		if (tw_str_eq(log->methods[i].name, tw_str_of(name)))
			return &log->methods[i];
	fail_msg("%s is missing", name);
	return &log->methods[0];
}

void art_fail_each(const struct tw_buf *b)
{
	enum tw_status st = TW_NOMEM;

	for (uint64_t n = 1; st != TW_OK && n < 2000; n++) {
		struct trace_log log;

		tw_mem_fail_at(n);
		st = art_build(b, &log);
		tw_mem_fail_at(0);
		if (st != TW_OK && st != TW_NOMEM)
			fail_msg("allocation %d: status %d", (int)n, (int)st);
		trace_log_done(&log);
	}
	assert_int_equal(st, TW_OK);
}

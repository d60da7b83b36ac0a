/*
 * export_system_facts.c - see the header.
 *
 * One zstd frame over
 *   version, fault, flags, packets, bytes, damages, first_ns + 1, last_ns + 1     varints
 *   sequences, prefixes                                                           bitmaps
 *   the trace's clock, clocks: id, pairs of times                                 u64
 *   threads: pid, tid, uuid
 * A decoder wrote it, which may have been taken over: all of it is untrusted.
 */
#include "server/export/perfetto/system/export_system_facts.h"

#include <string.h>
#include <zstd.h>

#include "server/base/text/json_write.h"
#include "server/export/perfetto/export_trace.h"

enum { VERSION = 1, LEVEL = 3 };
enum { IS_CUT = 1, IS_FLUSHED = 2, HAS_ZLIB = 4, HAS_ZSTD = 8 };
#define MAX_TIME_NS ((int64_t)1 << 61) /* of clocks; a sum of two does not overflow */

/* --- encoding --- */

static void put_clocks(const struct tw_perfetto_clocks *c, struct tw_buf *out)
{
	(void)tw_buf_add_varint(out, c->trace_clock);
	(void)tw_buf_add_varint(out, c->n_clocks);
	for (uint32_t i = 0; i < c->n_clocks; i++) {
		const struct tw_perfetto_clock *k = &c->clocks[i];

		(void)tw_buf_add_varint(out, k->id);
		(void)tw_buf_add_varint(out, k->n);
		for (uint32_t p = 0; p < k->n; p++) {
			(void)tw_buf_add_u64le(out, (uint64_t)k->pairs[p].from_ns);
			(void)tw_buf_add_u64le(out, (uint64_t)k->pairs[p].to_ns);
		}
	}
}

static void put_all(const struct tw_system *s, struct tw_buf *out)
{
	const uint64_t head[] = {VERSION, s->fault,
	        (s->cut ? IS_CUT : 0) | (s->flushed ? IS_FLUSHED : 0) |
	                (s->has_zlib ? HAS_ZLIB : 0) | (s->has_zstd ? HAS_ZSTD : 0),
	        s->packets, s->bytes, s->damages, (uint64_t)(s->first_ns + 1),
	        (uint64_t)(s->last_ns + 1)};

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		(void)tw_buf_add_varint(out, head[i]);
	(void)tw_buf_add(out, s->sequences, sizeof s->sequences);
	(void)tw_buf_add(out, s->prefixes, sizeof s->prefixes);
	put_clocks(&s->clocks, out);
	(void)tw_buf_add_varint(out, s->n_threads);
	for (uint32_t i = 0; i < s->n_threads; i++) {
		(void)tw_buf_add_varint(out, s->threads[i].pid);
		(void)tw_buf_add_varint(out, s->threads[i].tid);
		(void)tw_buf_add_u64le(out, s->threads[i].uuid);
	}
}

enum tw_status tw_system_pack(const struct tw_system *s, struct tw_buf *out, struct tw_err *err)
{
	struct tw_buf plain;
	size_t cap;
	size_t n;

	tw_buf_init(&plain, TW_SYSTEM_FACTS_MAX_BYTES);
	put_all(s, &plain);
	if (tw_buf_status(&plain) == TW_TOO_LARGE) {
		tw_buf_done(&plain);
		return TW_OK;
	}
	cap = ZSTD_compressBound(plain.len);
	if (tw_buf_status(&plain) != TW_OK || tw_buf_reserve(out, cap) != TW_OK) {
		tw_buf_done(&plain);
		return tw_oom(err);
	}
	n = ZSTD_compress(out->data + out->len, cap, plain.data, plain.len, LEVEL);
	tw_buf_done(&plain);
	if (ZSTD_isError(n))
		return tw_oom(err);
	out->len += n;
	return TW_OK;
}

/* --- decoding --- */

struct facts {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct facts *f)
{
	uint64_t v = 0;

	f->bad = f->bad || !tw_get_varint(&f->p, f->end, &v);
	return f->bad ? 0 : v;
}

static uint64_t take_most(struct facts *f, uint64_t most)
{
	uint64_t v = take(f);

	f->bad = f->bad || v > most;
	return f->bad ? 0 : v;
}

static const uint8_t *take_bytes(struct facts *f, size_t n)
{
	const uint8_t *p = f->p;

	if (f->bad || (size_t)(f->end - f->p) < n) {
		f->bad = true;
		return NULL;
	}
	f->p += n;
	return p;
}

static int64_t take_time(struct facts *f)
{
	const uint8_t *p = take_bytes(f, 8);
	int64_t ns = p ? (int64_t)tw_u64le(p) : 0;

	f->bad = f->bad || ns > MAX_TIME_NS || ns < -MAX_TIME_NS;
	return f->bad ? 0 : ns;
}

static void take_head(struct facts *f, struct tw_system *s)
{
	uint64_t flags;

	s->fault = (enum tw_system_fault)take_most(f, TW_SYSTEM_FAULTS - 1);
	flags = take_most(f, 15);
	s->cut = flags & IS_CUT;
	s->flushed = flags & IS_FLUSHED;
	s->has_zlib = flags & HAS_ZLIB;
	s->has_zstd = flags & HAS_ZSTD;
	s->packets = take(f);
	s->bytes = take(f);
	s->damages = take(f);
	s->first_ns = (int64_t)take_most(f, (uint64_t)MAX_TIME_NS) - 1;
	s->last_ns = (int64_t)take_most(f, (uint64_t)MAX_TIME_NS) - 1;
}

static void take_bits(struct facts *f, uint8_t *to, size_t n)
{
	const uint8_t *p = take_bytes(f, n);

	if (p)
		memcpy(to, p, n);
}

static bool take_pairs(struct facts *f, struct tw_arena *a, struct tw_perfetto_clock *k)
{
	uint64_t n = take_most(f, (uint64_t)(f->end - f->p) / 16);

	k->pairs = tw_arena_alloc(a, n + 1, sizeof *k->pairs);
	if (!k->pairs)
		return false;
	k->cap = (uint32_t)n + 1;
	for (; k->n < n && !f->bad; k->n++) {
		struct tw_perfetto_pair *p = &k->pairs[k->n];

		p->from_ns = take_time(f);
		p->to_ns = take_time(f);
		f->bad = f->bad || (k->n && p->from_ns <= p[-1].from_ns);
	}
	return true;
}

static bool take_clocks(struct facts *f, struct tw_system *s)
{
	struct tw_perfetto_clocks *c = &s->clocks;
	uint64_t n;

	c->trace_clock = (uint32_t)take_most(f, UINT32_MAX);
	n = take_most(f, TW_PERFETTO_CLOCKS_MAX);
	for (; c->n_clocks < n && !f->bad; c->n_clocks++) {
		struct tw_perfetto_clock *k = &c->clocks[c->n_clocks];

		k->id = (uint32_t)take_most(f, UINT32_MAX);
		if (!take_pairs(f, s->arena, k))
			return false;
		f->bad = f->bad || k->n == 0; /* a clock is stored with at least one pair */
	}
	return true;
}

static bool take_threads(struct facts *f, struct tw_system *s)
{
	uint64_t n = take_most(f, TW_SYSTEM_THREADS);

	s->threads = tw_arena_alloc(s->arena, n + 1, sizeof *s->threads);
	for (; s->threads && s->n_threads < n && !f->bad; s->n_threads++) {
		struct tw_system_thread *t = &s->threads[s->n_threads];
		const uint8_t *uuid;

		*t = (struct tw_system_thread){.pid = (uint32_t)take_most(f, UINT32_MAX)};
		t->tid = take(f);
		uuid = take_bytes(f, 8);
		t->uuid = uuid ? tw_u64le(uuid) : 0;
	}
	return s->threads != NULL;
}

static enum tw_status read_facts(struct facts *f, struct tw_system *s, struct tw_err *err)
{
	if (take(f) != VERSION)
		f->bad = true;
	take_head(f, s);
	take_bits(f, s->sequences, sizeof s->sequences);
	take_bits(f, s->prefixes, sizeof s->prefixes);
	if (!take_clocks(f, s) || !take_threads(f, s))
		return tw_oom(err);
	if (f->bad || f->p != f->end)
		return tw_fail(err, TW_CORRUPT, "the stored part of the device's trace is damaged");
	return TW_OK;
}

enum tw_status tw_system_unpack(struct tw_str bytes, struct tw_system **ret, struct tw_err *err)
{
	uint8_t *plain = tw_mem_alloc(TW_SYSTEM_FACTS_MAX_BYTES, 1);
	struct tw_system *s = tw_system_new();
	struct facts f = {.p = plain, .end = plain};
	enum tw_status st;

	if (plain && s) {
		size_t n = ZSTD_decompress(plain, TW_SYSTEM_FACTS_MAX_BYTES, bytes.ptr, bytes.len);

		f.bad = ZSTD_isError(n);
		f.end = plain + (f.bad ? 0 : n);
		st = read_facts(&f, s, err);
	} else {
		st = tw_oom(err);
	}
	tw_mem_free(plain);
	if (st == TW_OK)
		*ret = s;
	else
		tw_system_free(s);
	return st;
}

/* --- report --- */

enum { ARENA_BYTES = 64 << 20 };

static void put_clock_sync(
        struct tw_json *j, const struct tw_trace_info *t, const struct tw_clock_sync *sync)
{
	int64_t base = sync->choice == TW_CLOCK_SYNC_MONOTONIC ? t->mono_base_ns : t->boot_base_ns;
	uint32_t at = 0;

	tw_json_key_text(j, "clock", tw_clock_sync_name(sync->choice));
	if (sync->choice != TW_CLOCK_SYNC_START && base >= 0)
		tw_json_key_int(j, "offset_ns",
		        tw_clock_sync_time(sync, &at, t->start_ns) - t->start_ns - base);
	else if (sync->choice == TW_CLOCK_SYNC_START)
		tw_json_key_int(
		        j, "offset_ns", tw_clock_sync_time(sync, &at, t->start_ns) - t->start_ns);
	if (sync->residual_ns != INT64_MIN)
		tw_json_key_int(j, "residual_ns", sync->residual_ns);
	tw_json_key_int(j, "steps", sync->n);
}

static enum tw_status put_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_arena *a, struct tw_buf *out, struct tw_err *err)
{
	struct tw_json j = tw_json_to(out);
	struct tw_clock_sync sync = {0};
	const char *why;

	if (s->fault == TW_SYSTEM_FINE) {
		enum tw_status st = tw_clock_sync_make(trace, s, a, &sync, err);

		if (st != TW_OK)
			return st;
	}
	why = tw_clock_sync_why_not(s, &sync);
	tw_json_open(&j, '{');
	tw_json_key_bool(&j, "joined", !why);
	tw_json_key_text(&j, "reason", why);
	if (!why && sync.n)
		put_clock_sync(&j, trace, &sync);
	TW_JSON_MEMBERS(&j, s, packets, damages, cut);
	tw_json_key_bool(&j, "written_while_recorded", s->flushed);
	tw_json_close(&j, '}');
	return tw_buf_status(out);
}

enum tw_status tw_system_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_buf *out, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	st = put_report(s, trace, a, out, err);
	tw_arena_free(a);
	return st;
}

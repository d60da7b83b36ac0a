/*
 * art.c - method traces of Dalvik and ART (`.trace`), as recorded by Debug.startMethodTracing,
 * Android Studio and `am profile`.
 *
 *   *version ... *end, then SLOW and records   versions 1, 2, 3 (art_text.c, art_record.c)
 *   SLOW with 0xF2, 0xF3: items, the text last  the same, streaming
 *   SLOW with 4, 5, 0xF4, 0xF5: packets         version 2 of the format (art_packet.c,
 *                                               art_early.c)
 *   SLOW with 0xF6, or 3 and two times: packets dumps of always-on recording
 *
 * All integers little-endian.  Learned from AOSP's trace.cc, Perfetto's importer and Android
 * Studio's perflib, and checked with files of each.
 *
 * State machine: a step consumes items that are complete in the pushed bytes without a copy; an
 * incomplete item is buffered until the bytes that the step needs are there (I3).
 *
 * A record states that a method was entered, left, or left by an exception, on one or two clocks.
 * Records of a thread are in order; those of different threads are not.  Times begin at the
 * header's start, thread CPU time at the thread's first record.
 */
#include "decoder/formats/art/art_internal.h"

#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10 };

static int probe_lead(const uint8_t *head, size_t len)
{
	unsigned version = len >= 6 ? tw_u16le(head + 4) : 0;

	if (version >= 0xF1 && version <= 0xF6)
		return 95;
	return version >= 1 && version <= 5 ? 95 : 60;
}

static int probe(const uint8_t *head, size_t len)
{
	if (len >= 9 && memcmp(head, "*version\n", 9) == 0)
		return 95;
	if (len >= 4 && memcmp(head, "SLOW", 4) == 0)
		return probe_lead(head, len);
	return tw_art_packet_probe(head, len) ? 40 : 0;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct tw_art *s = state;

	s->sink = sink;
	s->arena = a;
	s->limits = *limits;
	s->unit_ns = 1000;
	s->last_method = &s->first_method;
	return tw_art_table_init(s) ? TW_OK : tw_oom(err);
}

void tw_art_repair(struct tw_art *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

void tw_art_drop(struct tw_art *s, uint64_t offset)
{
	tw_art_repair(s, TW_REPAIR_input_corrupt, offset);
	s->state = TW_ART_LOST;
}

void tw_art_emit_clock(struct tw_art *s)
{
	/* Dalvik wrote the time of day: 10^15 microseconds are more than 30 years of uptime. */
	bool monotonic = s->start_ns && s->start_ns < (uint64_t)1000000000 * 1000000000;
	struct tw_clock clock = {.pid = s->pid,
	        .mono_base_ns = monotonic ? (int64_t)s->start_ns : -1,
	        .boot_base_ns = -1};

	if (s->form == TW_ART_FORM_LONG_RUNNING)
		clock.mono_base_ns = 0; /* its times are readings of that clock */
	s->sink->ops->clock(s->sink, &clock);
	s->emitted_pid = s->pid;
}

static enum tw_status lead_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	unsigned version;

	s->want = TW_ART_HEADER;
	if (n < TW_ART_HEADER)
		return TW_OK;
	if (memcmp(p, "SLOW", 4) != 0)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "the records of an ART trace must begin with SLOW");
	version = tw_u16le(p + 4);
	s->streaming = version >> 4 == 0xF;
	s->version = s->streaming ? version & 0xF : version;
	if (version == 0xF1 || s->version == 0 || s->version > 6 || version == 6)
		return tw_fail_at(err, TW_UNSUPPORTED, s->offset + 4,
		        "ART trace of version 0x%x; this server reads 1 to 5 and "
		        "0xf2 to 0xf6",
		        version);
	s->has_lead = true;
	*ret_used = TW_ART_HEADER;
	if (s->version <= 3)
		st = tw_art_record_header(s, p, err);
	else
		st = tw_art_packet_header(s, p, err);
	if (st == TW_OK && s->version != 6)
		tw_art_emit_clock(s);
	return st;
}

static enum tw_status skip_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	(void)p, (void)err;
	*ret_used = n < s->skip ? n : (size_t)s->skip;
	s->skip -= *ret_used;
	if (s->skip == 0)
		s->state = s->streaming ? TW_ART_ITEMS : TW_ART_RECORDS;
	return TW_OK;
}

static bool is_blank(uint8_t c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == 0;
}

static enum tw_status done_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	size_t blank = 0;

	(void)err;
	while (blank < n && is_blank(p[blank]))
		blank++;
	if (blank < n && !s->trailer) {
		tw_art_repair(s, TW_REPAIR_trailing_data, s->offset + blank);
		s->trailer = true;
	}
	*ret_used = n;
	return TW_OK;
}

static enum tw_status lost_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	(void)s, (void)p, (void)err;
	*ret_used = n;
	return TW_OK;
}

static const tw_art_step steps[] = {
        [TW_ART_TEXT] = tw_art_text_step,
        [TW_ART_LEAD] = lead_step,
        [TW_ART_SKIP] = skip_step,
        [TW_ART_RECORDS] = tw_art_record_step,
        [TW_ART_ITEMS] = tw_art_item_step,
        [TW_ART_PACKETS] = tw_art_packet_step,
        [TW_ART_CALLS] = tw_art_calls_step,
        [TW_ART_EARLY] = tw_art_early_step,
        [TW_ART_DONE] = done_step,
        [TW_ART_LOST] = lost_step,
};

/* Number of the n bytes at p that belong to the buffered item. */
static size_t missing(const struct tw_art *s, const uint8_t *p, size_t n)
{
	size_t take = s->want - s->hold.n;

	if (s->state == TW_ART_TEXT) { /* up to the end of the line, within the limit of a line */
		size_t room = (size_t)LINE_MAX_BYTES + 1 - s->hold.n;
		const uint8_t *end = memchr(p, '\n', n < room ? n : room);

		take = end ? (size_t)(end - p) + 1 : room;
	}
	return take < n ? take : n;
}

static enum tw_status push_held(struct tw_art *s, const uint8_t **p, size_t *n, struct tw_err *err)
{
	size_t take = missing(s, *p, *n);
	size_t used = 0;
	enum tw_status st;

	if (!tw_bytes_add(&s->hold, s->arena, *p, take))
		return tw_oom(err);
	*p += take;
	*n -= take;
	if (s->hold.n < s->want)
		return TW_OK;
	st = steps[s->state](s, s->hold.data, s->hold.n, &used, err);
	if (used) { /* completely: a step receives at most s->want bytes */
		s->offset += used;
		s->hold.n = 0;
	}
	return st;
}

static enum tw_status push_direct(
        struct tw_art *s, const uint8_t **p, size_t *n, struct tw_err *err)
{
	size_t used = 0;
	enum tw_status st = steps[s->state](s, *p, *n, &used, err);

	if (st != TW_OK)
		return st;
	if (used == 0) {
		if (!tw_bytes_add(&s->hold, s->arena, *p, *n))
			return tw_oom(err);
		used = *n;
	} else {
		s->offset += used;
	}
	*p += used;
	*n -= used;
	return st;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_art *s = state;
	enum tw_status st = TW_OK;

	if (!s->started && n) {
		s->started = true;
		s->state = *p == '*' ? TW_ART_TEXT : *p == 3 ? TW_ART_PACKETS : TW_ART_LEAD;
		s->version = *p == 3 ? 6 : 0;
	}
	while (st == TW_OK && n)
		st = s->hold.n ? push_held(s, &p, &n, err) : push_direct(s, &p, &n, err);
	if (st == TW_OK && s->no_memory)
		st = tw_oom(err);
	return st;
}

/* --- the end --- */

static bool all_blank(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_blank(p[i]))
			return false;
	return true;
}

/* Whether the trace is truncated.  Streams and packets end with a summary, unless the text came
 * first; dumps can end anywhere. */
static bool ends_early(const struct tw_art *s)
{
	bool summary = s->version != 6 && !s->text_ended;
	bool open = s->state == TW_ART_ITEMS || (s->state == TW_ART_PACKETS && summary);

	return open || s->state == TW_ART_TEXT || s->state == TW_ART_CALLS ||
	       (s->state == TW_ART_EARLY && !s->early.may_end) ||
	       (s->hold.n && !all_blank(s->hold.data, s->hold.n));
}

static enum tw_status finish_held(struct tw_art *s, bool cut, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->state == TW_ART_PACKETS && s->hold.n)
		st = tw_art_packet_cut(s, s->hold.data, s->hold.n, err);
	if (!cut && ends_early(s))
		tw_art_repair(s, TW_REPAIR_input_truncated, s->offset);
	else if (s->hold.n && s->state == TW_ART_RECORDS)
		tw_art_repair(s, TW_REPAIR_trailing_data, s->offset);
	if (s->records < s->declared_records)
		s->sink->ops->repair(s->sink, TW_REPAIR_records_missing, s->offset,
		        s->declared_records - s->records);
	return st;
}

static enum tw_status nothing(const struct tw_art *s, struct tw_err *err)
{
	if (s->has_text && !s->text_ended)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "the ART trace ends before *end, in its header text");
	if (!s->has_lead && s->version != 6)
		return tw_fail_at(err, TW_CORRUPT, s->offset,
		        "an ART header has %d bytes, this file only %u", TW_ART_HEADER, s->hold.n);
	return tw_fail_at(err, TW_CORRUPT, s->offset, "no readable record");
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct tw_art *s = state;
	enum tw_status st = finish_held(s, cut, err);

	if (st == TW_OK && s->events == 0 && !s->text_ended)
		st = nothing(s, err);
	if (st == TW_OK)
		st = tw_art_table_finish(s, err);
	if (st == TW_OK && s->no_memory)
		st = tw_oom(err);
	if (st != TW_OK)
		return st;
	if (s->pid != s->emitted_pid || s->version == 6)
		tw_art_emit_clock(s);
	if (s->overflow)
		tw_art_repair(s, TW_REPAIR_buffer_overrun, s->clock_offset);
	if (s->clock == TW_ART_CLOCK_CPU && s->events)
		tw_art_repair(s, TW_REPAIR_cpu_clock_only, s->clock_offset);
	return tw_art_text_emit(s, err);
}

const struct tw_format tw_format_art = {
        .name = "art",
        .title = "ART method trace (.trace)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct tw_art),
        .start = start,
        .push = push,
        .finish = finish,
};

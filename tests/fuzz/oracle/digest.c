/* digest.c - the sink of the fuzz targets; see digest.h. */
#include "tests/fuzz/oracle/digest.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static struct digest *digest_of(struct tw_sink *s)
{
	return (struct digest *)(void *)s;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

void digest_word(struct digest *d, uint64_t word)
{
	d->parts[DIGEST_WORDS] = mix(d->parts[DIGEST_WORDS], word);
}

static uint64_t mix_text(uint64_t h, struct tw_str s)
{
	uint64_t word;
	size_t at = 0;

	for (; s.len - at >= sizeof word; at += sizeof word) {
		memcpy(&word, s.ptr + at, sizeof word);
		h = mix(h, word);
	}
	word = 0;
	if (at < s.len)
		memcpy(&word, s.ptr + at, s.len - at);
	return mix(mix(h, word), s.len);
}

/* --- handles --- */

static void put(struct digest_handles *t, uint64_t key, uint32_t number)
{
	uint32_t at = (uint32_t)key & (t->cap - 1);

	while (t->slots[at])
		at = (at + 1) & (t->cap - 1);
	t->slots[at] = key;
	t->numbers[at] = number;
}

static void widen(struct digest_handles *t)
{
	struct digest_handles wide = {.n = t->n, .cap = t->cap ? t->cap * 2 : 256};

	wide.slots = tw_mem_zalloc(wide.cap, sizeof *wide.slots);
	wide.numbers = tw_mem_alloc(wide.cap, sizeof *wide.numbers);
	FUZZ_CHECK(wide.slots && wide.numbers);
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slots[i])
			put(&wide, t->slots[i], t->numbers[i]);
	tw_mem_free(t->slots);
	tw_mem_free(t->numbers);
	*t = wide;
}

static uint32_t handle(struct digest_handles *t, uint64_t key)
{
	uint32_t at;

	key |= 1;
	if (t->n * 2 >= t->cap)
		widen(t);
	for (at = (uint32_t)key & (t->cap - 1); t->slots[at]; at = (at + 1) & (t->cap - 1))
		if (t->slots[at] == key)
			return t->numbers[at];
	t->slots[at] = key;
	return t->numbers[at] = ++t->n;
}

static void forget(struct digest_handles *t)
{
	enum { KEPT = 4096 };

	if (t->cap > KEPT) {
		tw_mem_free(t->slots);
		tw_mem_free(t->numbers);
		*t = (struct digest_handles){0};
	} else if (t->n) {
		memset(t->slots, 0, t->cap * sizeof *t->slots);
		t->n = 0;
	}
}

static void note_handle(struct digest *d, uint64_t key)
{
	d->parts[DIGEST_HANDLES] = mix(d->parts[DIGEST_HANDLES], key);
}

static uint32_t track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	struct digest *d = digest_of(s);
	uint64_t key = mix(mix(mix(1, pid), tid), kind);

	FUZZ_CHECK(kind <= TW_TID_LOW16);
	note_handle(d, key);
	return handle(&d->tracks, key);
}

static uint32_t method(struct tw_sink *s, uint64_t id)
{
	note_handle(digest_of(s), mix(2, id));
	return handle(&digest_of(s)->syms, mix(2, id));
}

static uint32_t name(struct tw_sink *s, struct tw_str text)
{
	uint64_t key = mix_text(3, text);

	note_handle(digest_of(s), key);
	return handle(&digest_of(s)->syms, key);
}

/* --- emitted data --- */

static void say(struct digest *d, uint64_t what, uint64_t a, uint64_t b, struct tw_str text)
{
	uint64_t *h = &d->parts[DIGEST_WORDS];

	*h = mix_text(mix(mix(mix(*h, what), a), b), text);
}

static void method_name(struct tw_sink *s, uint64_t id, struct tw_str text)
{
	say(digest_of(s), 1, id, 0, text);
}

static enum tw_status events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	struct digest *d = digest_of(s);
	uint64_t h = d->parts[DIGEST_EVENTS];

	(void)err;
	for (size_t i = 0; i < n; i++) {
		FUZZ_CHECK(ev[i].kind <= TW_EV_END_ALL);
		FUZZ_CHECK(ev[i].track >= 1 && ev[i].track <= d->tracks.n);
		FUZZ_CHECK(ev[i].sym <= d->syms.n && (ev[i].sym || ev[i].kind > TW_EV_BEGIN));
		FUZZ_CHECK(ev[i].cpu_ns >= -1);
		h = mix(mix(mix(h, (uint64_t)ev[i].ts_ns), (uint64_t)ev[i].dur_ns),
		        (uint64_t)ev[i].cpu_ns);
		h = mix(mix(h, ev[i].offset), (uint64_t)ev[i].track << 32 | ev[i].sym);
		h = mix(h, ev[i].kind);
	}
	d->n_events += n;
	d->parts[DIGEST_EVENTS] = h;
	return TW_OK;
}

static void thread_name(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str text)
{
	say(digest_of(s), 2, pid, tid, text);
}

static void thread_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	say(digest_of(s), 3, pid, tid, TW_STR(""));
}

static void transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str text)
{
	say(digest_of(s), 4, code, 0, interface);
	say(digest_of(s), 5, 0, 0, text);
}

/* One code is known, so that renaming shows. */
static struct tw_str transaction_name(struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	(void)s;
	return tw_str_eq(interface, TW_STR("a.b.IKnown")) && code == 7 ? TW_STR("TRANSACTION_known")
	                                                               : TW_STR("");
}

static void clock_reported(struct tw_sink *s, const struct tw_clock *clock)
{
	digest_of(s)->clock = *clock;
}

static void source(struct tw_sink *s, uint32_t at, enum tw_source from, int64_t interval_ns)
{
	FUZZ_CHECK(from <= TW_SOURCE_COUNTS && at <= digest_of(s)->tracks.n);
	say(digest_of(s), 6, at, mix(from, (uint64_t)interval_ns), TW_STR(""));
}

/* Emitted JSON parses as JSON, whatever bytes it contains. */
static void check_json(struct digest *d, struct tw_str json)
{
	json_t *o;

	if (!d->check_fields)
		return;
	o = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL);
	FUZZ_CHECK(json_is_object(o));
	json_decref(o);
}

static enum tw_status note(struct tw_sink *s, const struct tw_note *n, struct tw_err *err)
{
	struct digest *d = digest_of(s);

	(void)err;
	FUZZ_CHECK(n->kind < TW_NOTE_COUNT && n->track <= d->tracks.n && n->dur_ns >= -1);
	if (n->detail.len)
		check_json(d, n->detail);
	say(d, 7, mix(mix(n->kind, n->track), (uint64_t)n->ts_ns),
	        mix(mix((uint64_t)n->dur_ns, (uint64_t)n->value), n->offset), n->text);
	say(d, 8, 0, 0, n->detail);
	return TW_OK;
}

static enum tw_status document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)err;
	check_json(digest_of(s), json);
	say(digest_of(s), 9, 0, 0, tw_str_of(kind));
	say(digest_of(s), 10, 0, 0, json);
	return TW_OK;
}

static void repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct digest *d = digest_of(s);

	FUZZ_CHECK(what < TW_REPAIR_COUNT && n > 0);
	if (d->counts[what] == 0)
		d->offsets[what] = offset;
	d->counts[what] += n;
}

static const struct tw_sink_ops ops = {
        .track = track,
        .method = method,
        .name = name,
        .method_name = method_name,
        .events = events,
        .thread_name = thread_name,
        .thread_process = thread_process,
        .transaction = transaction,
        .transaction_name = transaction_name,
        .clock = clock_reported,
        .source = source,
        .note = note,
        .document = document,
        .repair = repair,
};

void digest_begin(struct digest *d, bool check_fields)
{
	struct digest_handles tracks = d->tracks;
	struct digest_handles syms = d->syms;

	forget(&tracks);
	forget(&syms);
	*d = (struct digest){
	        .sink = {&ops}, .tracks = tracks, .syms = syms, .check_fields = check_fields};
}

static const char *repairs_differ(const struct digest *a, const struct digest *b)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		if (a->counts[i] != b->counts[i] || a->offsets[i] != b->offsets[i])
			return tw_repair_info((enum tw_repair)i)->name;
	return NULL;
}

static bool same_clock(const struct tw_clock *a, const struct tw_clock *b)
{
	return a->pid == b->pid && a->mono_base_ns == b->mono_base_ns &&
	       a->boot_base_ns == b->boot_base_ns && a->session_ns == b->session_ns &&
	       a->some_base_ns == b->some_base_ns;
}

const char *digest_differs(const struct digest *a, const struct digest *b)
{
	static const char *const words[DIGEST_PARTS] = {
	        "events", "requested handles", "notes, names and documents"};

	if (a->status != b->status)
		return "status";
	if (a->status != TW_OK &&
	        (a->err.offset != b->err.offset || strcmp(a->err.msg, b->err.msg) != 0))
		return "error";
	if (a->format != b->format)
		return "format";
	if (a->n_events != b->n_events)
		return "number of events";
	for (int i = 0; i < DIGEST_PARTS; i++)
		if (a->parts[i] != b->parts[i])
			return words[i];
	if (!same_clock(&a->clock, &b->clock))
		return "clock";
	return repairs_differ(a, b);
}

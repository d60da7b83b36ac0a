/*
 * pprof.c - profiles in pprof's format, profile.proto.
 *
 *   1 sample_type {1 type, 2 unit}    2 sample {1 locations, innermost first; 2 values; 3 labels}
 *   3 mapping {1 id, 2 start, 3 limit, 4 offset, 5 filename, 6 build id}
 *       4 location {1 id, 2 mapping, 3 address, 4 line {1 function}}
 *   5 function {1 id, 2 name}         6 string_table        14 default_sample_type
 *   label {1 key, 2 text, 3 number}
 *
 * Fields come in any order, so the message is kept and read at its end.  A profile holds one sum
 * per stack and no times: the value of the default type, otherwise of the first type that is a
 * time, otherwise of the last type, is laid out as one call per path (samples.h).  Labels "thread"
 * or "thread_name" and "tid" or "thread_id" separate threads.  A truncated profile is read as far
 * as it came; its names are often at its end.  Learned from google/pprof.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/format.h"
#include "decoder/formats/sampled/sums.h"

enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	MAPPING = 3,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	DEFAULT_TYPE = 14,
	LAST_FIELD = 20,
	MAX_BYTES = 512 << 20,
	MAX_TYPES = 64
};

struct entry { /* a location, function or mapping */
	uint64_t id;
	struct tw_pb message;
	uint32_t sym; /* of a function, once it is known */
	bool has_sym;
};

struct table {
	struct entry *list;
	size_t n;
	bool sorted;
};

struct pprof {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_sums sums;
	struct tw_bytes input;
	struct table mappings, locations, functions;
	struct tw_str *strings;
	size_t n_strings;
	struct {
		uint64_t type, unit;
	} types[MAX_TYPES];
	size_t n_types, value; /* value: the one that is read */
	uint64_t default_type;
	int64_t scale; /* of the value to nanoseconds; 0: not a time */
};

/* --- recognition --- */

/* Whether it is {1: number, 2: number}: the first message of most profiles, and of no other
 * format. */
static bool is_value_type(struct tw_pb m)
{
	struct tw_pb_field f;
	bool any = false;

	while (tw_pb_next(&m, &f)) {
		if ((f.number != 1 && f.number != 2) || f.type != TW_PB_VARINT)
			return false;
		any = true;
	}
	return any && !tw_pb_bad(&m);
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_pb m = tw_pb_of(head, len);
	struct tw_pb_field f;
	unsigned types = 0;
	unsigned others = 0;

	while (tw_pb_next(&m, &f)) {
		bool number = f.type == TW_PB_VARINT;

		if (f.number == 0 || f.number > LAST_FIELD || f.type == TW_PB_FIXED32 ||
		        f.type == TW_PB_FIXED64)
			return 0;
		if (f.number == SAMPLE_TYPE && !is_value_type(tw_pb_in(&f)))
			return 0;
		if (f.number >= SAMPLE && f.number <= STRING && number)
			return 0;
		types += f.number == SAMPLE_TYPE;
		others += f.number != SAMPLE_TYPE;
	}
	return types && (others || tw_pb_is_complete(head, len)) ? 85 : 0;
}

/* --- the message --- */

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct pprof *s = state;

	if (n > MAX_BYTES - s->input.n)
		return tw_fail_at(err, TW_TOO_LARGE, s->input.n,
		        "a pprof profile of more than %d MiB", MAX_BYTES >> 20);
	return tw_bytes_add(&s->input, s->arena, p, n) ? TW_OK : tw_oom(err);
}

static struct tw_str text(const struct pprof *s, uint64_t index)
{
	return index < s->n_strings ? s->strings[index] : (struct tw_str){0};
}

static struct table *table_of(struct pprof *s, uint32_t field)
{
	switch (field) {
	case MAPPING:
		return &s->mappings;
	case LOCATION:
		return &s->locations;
	case FUNCTION:
		return &s->functions;
	default:
		return NULL;
	}
}

static bool reserve_tables(struct pprof *s)
{
	struct tw_pb m = tw_pb_of(s->input.data, s->input.n);
	size_t counts[LAST_FIELD + 1] = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&m, &f))
		if (f.number <= LAST_FIELD)
			counts[f.number]++;
	for (uint32_t k = MAPPING; k <= FUNCTION; k++)
		if (counts[k]) {
			struct table *t = table_of(s, k);

			t->list = tw_arena_alloc(s->arena, counts[k], sizeof *t->list);
			if (!t->list)
				return false;
		}
	s->strings = tw_arena_alloc(s->arena, counts[STRING] + 1, sizeof *s->strings);
	return s->strings != NULL;
}

static void read_type(struct pprof *s, struct tw_pb m)
{
	if (s->n_types == MAX_TYPES)
		return;
	s->types[s->n_types].type = tw_pb_number_of(m, 1);
	s->types[s->n_types++].unit = tw_pb_number_of(m, 2);
}

static void read_tables(struct pprof *s, bool cut)
{
	struct tw_pb m = tw_pb_of(s->input.data, s->input.n);
	struct tw_pb_field f;

	while (tw_pb_next(&m, &f)) {
		struct table *t = table_of(s, f.number);

		if (f.number == SAMPLE_TYPE)
			read_type(s, tw_pb_in(&f));
		else if (f.number == DEFAULT_TYPE)
			s->default_type = f.value;
		else if (f.number == STRING)
			s->strings[s->n_strings++] = tw_pb_str(&f);
		else if (t)
			t->list[t->n++] = (struct entry){
			        .id = tw_pb_number_of(tw_pb_in(&f), 1), .message = tw_pb_in(&f)};
	}
	if (tw_pb_bad(&m) && !cut)
		s->sink->ops->repair(s->sink, TW_REPAIR_input_truncated, s->input.n, 1);
}

static void choose_value(struct pprof *s)
{
	size_t chosen = s->n_types;

	for (size_t i = s->n_types; i-- > 0 && s->default_type;)
		if (tw_str_eq(text(s, s->types[i].type), text(s, s->default_type)))
			chosen = i;
	for (size_t i = 0; i < s->n_types && chosen == s->n_types; i++)
		if (tw_sums_unit_ns(text(s, s->types[i].unit)))
			chosen = i;
	if (chosen == s->n_types)
		chosen = s->n_types ? s->n_types - 1 : 0;
	s->value = chosen;
	s->scale = s->n_types ? tw_sums_unit_ns(text(s, s->types[chosen].unit)) : 0;
}

/* --- names --- */

TW_ORDER_BY(by_id, struct entry, TW_RISING(id))

static struct entry *find(struct table *t, uint64_t id)
{
	struct entry key = {.id = id};

	/* writers number from 1 on */
	if (id && id <= t->n && t->list[id - 1].id == id)
		return &t->list[id - 1];
	if (!t->sorted && t->n)
		TW_SORT(t->list, t->n, by_id);
	t->sorted = true;
	return t->n ? bsearch(&key, t->list, t->n, sizeof *t->list, by_id) : NULL;
}

static size_t size_of(const struct entry *e)
{
	return (size_t)(e->message.end - e->message.at);
}

/* A location without a function. */
static uint32_t address_sym(struct pprof *s, struct tw_pb location)
{
	const struct entry *mapping = find(&s->mappings, tw_pb_number_of(location, 2));
	struct tw_sums_location frame = {.address = tw_pb_number_of(location, 3)};

	if (mapping && tw_sums_may_read(&s->sums, size_of(mapping))) {
		frame.start = tw_pb_number_of(mapping->message, 2);
		frame.limit = tw_pb_number_of(mapping->message, 3);
		frame.offset = tw_pb_number_of(mapping->message, 4);
		frame.path = text(s, tw_pb_number_of(mapping->message, 5));
		frame.build_id = text(s, tw_pb_number_of(mapping->message, 6));
	}
	return tw_sums_address(&s->sums, &frame);
}

static uint32_t function_sym(struct pprof *s, uint64_t id)
{
	struct entry *function = find(&s->functions, id);
	struct tw_str name = {0};
	uint32_t sym;

	if (function && function->has_sym)
		return function->sym;
	if (function)
		name = text(s, tw_pb_number_of(function->message, 2));
	if (function && name.len == 0)
		name = text(s, tw_pb_number_of(function->message, 3));
	sym = s->sink->ops->name(s->sink, name.len ? name : TW_STR("(unknown)"));
	if (function) {
		function->sym = sym;
		function->has_sym = true;
	}
	return sym;
}

/* Adds a location's frames, innermost first: several where functions are inlined. */
static void add_location(struct pprof *s, uint64_t id)
{
	const struct entry *location = find(&s->locations, id);
	struct tw_pb m = location ? location->message : tw_pb_of(NULL, 0);
	struct tw_pb_field f;
	bool named = false;

	if (tw_sums_is_full(&s->sums) ||
	        (location && !tw_sums_may_read(&s->sums, size_of(location)))) {
		tw_sums_frame(&s->sums, 0);
		return;
	}
	while (!tw_sums_is_full(&s->sums) && tw_pb_next(&m, &f)) {
		if (f.number != 4 || f.type != TW_PB_BYTES)
			continue;
		named = true;
		tw_sums_frame(&s->sums, function_sym(s, tw_pb_number_of(tw_pb_in(&f), 1)));
	}
	if (!named)
		tw_sums_frame(&s->sums,
		        location ? address_sym(s, location->message) : function_sym(s, 0));
}

/* --- samples --- */

struct sample {
	uint64_t values; /* number of them */
	struct tw_sum sum;
};

static void read_label(struct pprof *s, struct tw_pb m, struct sample *x)
{
	struct tw_str key = text(s, tw_pb_number_of(m, 1));
	struct tw_str value = text(s, tw_pb_number_of(m, 2));
	uint64_t number = tw_pb_number_of(m, 3);

	if (!tw_sums_may_read(&s->sums, value.len))
		return;
	if (tw_str_eq(key, TW_STR("thread")) || tw_str_eq(key, TW_STR("thread_name")) ||
	        tw_str_eq(key, TW_STR("thread name"))) {
		x->sum.thread = value;
	} else if (tw_str_eq(key, TW_STR("tid")) || tw_str_eq(key, TW_STR("thread_id")) ||
	           tw_str_eq(key, TW_STR("thread id"))) {
		x->sum.has_tid = value.len ? tw_str_u64(value, UINT32_MAX, &x->sum.tid)
		                           : number <= UINT32_MAX;
		if (value.len == 0)
			x->sum.tid = number;
	}
}

static void read_value(struct pprof *s, uint64_t value, struct sample *x)
{
	if (x->values++ == s->value)
		x->sum.value = (int64_t)value;
}

static struct sample read_sample(struct pprof *s, struct tw_pb m)
{
	struct sample x = {0};
	struct tw_pb_field f;
	uint64_t v;

	while (tw_pb_next(&m, &f)) {
		struct tw_pb packed = tw_pb_in(&f);

		if (f.number == 1 && f.type == TW_PB_VARINT)
			add_location(s, f.value);
		else if (f.number == 2 && f.type == TW_PB_VARINT)
			read_value(s, f.value, &x);
		else if (f.number == 3)
			read_label(s, packed, &x);
		while (f.type == TW_PB_BYTES && f.number <= 2 && tw_pb_number(&packed, &v))
			if (f.number == 1)
				add_location(s, v);
			else
				read_value(s, v, &x);
	}
	return x;
}

static enum tw_status take_sample(struct pprof *s, const struct tw_pb_field *f, struct tw_err *err)
{
	struct sample x;

	s->sums.n = 0;
	x = read_sample(s, tw_pb_in(f));
	x.sum.offset = (uint64_t)(f->bytes - s->input.data);
	if (tw_sums_status(&s->sums, x.sum.offset, err) != TW_OK)
		return TW_TOO_LARGE;
	if (__builtin_mul_overflow(x.sum.value, s->scale ? s->scale : 1, &x.sum.value) ||
	        x.sum.value < 0 || x.values <= s->value) {
		s->sink->ops->repair(s->sink, TW_REPAIR_record_malformed, x.sum.offset, 1);
		return TW_OK;
	}
	return x.sum.value ? tw_sums_add(&s->sums, &x.sum, err) : TW_OK;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct pprof *s = state;

	s->sink = sink;
	s->arena = a;
	return tw_sums_init(&s->sums, a, limits, sink) ? TW_OK : tw_oom(err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct pprof *s = state;
	struct tw_pb m = tw_pb_of(s->input.data, s->input.n);
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	if (!reserve_tables(s))
		return tw_oom(err);
	read_tables(s, cut);
	choose_value(s);
	tw_sums_limit(&s->sums, s->input.n);
	while (st == TW_OK && tw_pb_next(&m, &f))
		if (f.number == SAMPLE && f.type == TW_PB_BYTES)
			st = take_sample(s, &f, err);
	if (st == TW_OK && tw_samples_count(s->sums.samples) == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, 0, "no sample with a value in this pprof profile");
	if (st != TW_OK)
		return st;
	return tw_samples_emit_sums(
	        s->sums.samples, s->scale ? TW_SOURCE_SAMPLES : TW_SOURCE_COUNTS, err);
}

const struct tw_format tw_format_pprof = {
        .name = "pprof",
        .title = "pprof profile",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct pprof),
        .start = start,
        .push = push,
        .finish = finish,
};

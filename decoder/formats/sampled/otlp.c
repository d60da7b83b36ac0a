/*
 * otlp.c - profiles of OpenTelemetry, v1development, as protobuf: a file, or the body of an export
 * request, which is the same message.
 *
 *   1 resource_profiles {1 resource {1 attributes}, 2 scope_profiles {2 profiles}}
 *   2 dictionary {1 mappings, 2 locations, 3 functions, 5 strings, 6 attributes, 7 stacks}
 *   profile {1 sample_type, 2 samples, 5 period_type, 6 period}
 *   sample {1 stack, 2 attributes, 4 values, 5 timestamps}      stack {1 locations}
 *   location {1 mapping, 2 address, 3 lines {1 function}}        function {1 name}
 *   type {1 type, 2 unit}    attribute {1 key, 2 value {1 text, 3 number}}
 *   mapping {1 start, 2 limit, 3 offset, 4 file, 5 attributes}
 *
 * References are indexes into the dictionary, which may come last, so the message is kept and read
 * at its end.  A recording may hold profiles of several types; those of the first one's type are
 * read.  If samples have timestamps they are stacks at those times, and a sample without one is
 * counted as lost; otherwise they are sums without times (samples.h).  A count of samples with a
 * period of time is that much time.  "thread.id", "thread.name" of a sample and "process.pid" of
 * its resource separate threads; "process.executable.build_id.gnu" of a mapping is its build id.
 * Stacks as ranges of locations, before stacks had a table, are refused.  Learned from
 * open-telemetry/opentelemetry-proto.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/format.h"
#include "decoder/formats/sampled/sums.h"

enum table { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

enum { MAX_BYTES = 512 << 20 };

#define MAX_NS (UINT64_C(1) << 61)

struct otlp {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_sums sums;
	struct tw_bytes input;
	struct tw_list tables[TABLES]; /* struct tw_pb; of strings their bytes */
	uint32_t *syms;                /* of each function, once it is known; 0 is none */
	bool has_type;
	struct tw_str type; /* of the profiles that are read */
	int64_t scale;      /* of values to nanoseconds; 0: not a time */
	bool timed;         /* samples have timestamps */
	uint64_t first_ns;  /* the earliest of them */
	uint32_t pid;       /* of the resource being read */
};

/* A handler of the submessages of one field. */
typedef enum tw_status (*visit_fn)(struct otlp *s, struct tw_pb m, struct tw_err *err);

static enum tw_status each(
        struct otlp *s, struct tw_pb m, uint32_t field, visit_fn visit, struct tw_err *err)
{
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_pb_next(&m, &f))
		if (f.number == field && f.type == TW_PB_BYTES)
			st = visit(s, tw_pb_in(&f), err);
	return st;
}

static struct tw_pb message_of(struct tw_pb m, uint32_t field)
{
	struct tw_pb_field f;
	struct tw_pb found = tw_pb_of(NULL, 0);

	while (tw_pb_next(&m, &f))
		if (f.number == field)
			found = tw_pb_in(&f);
	return found;
}

static struct tw_str text_of(struct tw_pb m)
{
	struct tw_pb found = message_of(m, 1);

	return (struct tw_str){(const char *)found.at, (size_t)(found.end - found.at)};
}

/* --- recognition --- */

/* A resource's profiles: a resource of attributes, and profiles of a scope below it. */
static bool is_resource_profiles(struct tw_pb m)
{
	struct tw_pb_field f;
	bool scopes = false;

	while (tw_pb_next(&m, &f)) {
		if (f.type != TW_PB_BYTES || f.number == 0 || f.number > 3)
			return false;
		scopes |= f.number == 2;
	}
	return scopes;
}

static bool is_dictionary(struct tw_pb m)
{
	struct tw_pb_field f;
	bool any = false;

	while (tw_pb_next(&m, &f)) {
		if (f.type != TW_PB_BYTES || f.number == 0 || f.number >= TABLES)
			return false;
		any |= f.number == STRINGS || f.number == LOCATIONS || f.number == MAPPINGS;
	}
	return any;
}

/* The bytes of the first field, of which the head may hold only the beginning. */
static struct tw_pb first_field(const uint8_t *head, size_t len)
{
	size_t at = 1;
	uint64_t size = 0;

	for (unsigned shift = 0; at < len && shift < 35; shift += 7) {
		size |= (uint64_t)(head[at] & 0x7f) << shift;
		if (!(head[at++] >> 7))
			break;
	}
	return tw_pb_of(head + at, size < len - at ? (size_t)size : len - at);
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_pb m;

	if (len < 8)
		return 0;
	m = first_field(head, len);
	if (head[0] == (1 << 3 | TW_PB_BYTES))
		return is_resource_profiles(m) ? 70 : 0;
	return head[0] == (2 << 3 | TW_PB_BYTES) && is_dictionary(m) ? 70 : 0;
}

/* --- the dictionary --- */

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct otlp *s = state;

	if (n > MAX_BYTES - s->input.n)
		return tw_fail_at(err, TW_TOO_LARGE, s->input.n,
		        "an OpenTelemetry profile of more than %d MiB", MAX_BYTES >> 20);
	return tw_bytes_add(&s->input, s->arena, p, n) ? TW_OK : tw_oom(err);
}

static enum tw_status read_dictionary(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	struct tw_pb_field f;

	while (tw_pb_next(&m, &f)) {
		struct tw_pb *item;

		if (f.number == 0 || f.number >= TABLES || f.type != TW_PB_BYTES)
			continue;
		item = tw_list_add(&s->tables[f.number], s->arena, sizeof *item);
		if (!item)
			return tw_oom(err);
		*item = tw_pb_in(&f);
	}
	if (s->tables[LOCATIONS].n > 1 && s->tables[STACKS].n == 0)
		return tw_fail_at(err, TW_UNSUPPORTED, 0,
		        "an OpenTelemetry profile of an earlier draft, without a table of stacks");
	return TW_OK;
}

static struct tw_pb entry(const struct otlp *s, enum table table, uint64_t index)
{
	const struct tw_list *l = &s->tables[table];

	return index < l->n ? ((const struct tw_pb *)l->items)[index] : tw_pb_of(NULL, 0);
}

/* Reads an element through a reference; empty once the limit of such bytes is reached. */
static struct tw_pb referred(struct otlp *s, enum table table, uint64_t index)
{
	struct tw_pb m = entry(s, table, index);

	return tw_sums_may_read(&s->sums, (size_t)(m.end - m.at)) ? m : tw_pb_of(NULL, 0);
}

static struct tw_str text(const struct otlp *s, uint64_t index)
{
	struct tw_pb m = entry(s, STRINGS, index);

	return (struct tw_str){(const char *)m.at, (size_t)(m.end - m.at)};
}

/* --- stacks --- */

static uint32_t function_sym(struct otlp *s, uint64_t index)
{
	struct tw_pb function = entry(s, FUNCTIONS, index);
	struct tw_str name;
	uint32_t sym;

	if (index < s->tables[FUNCTIONS].n && s->syms[index])
		return s->syms[index];
	name = text(s, tw_pb_number_of(function, 1));
	if (name.len == 0)
		name = text(s, tw_pb_number_of(function, 2));
	sym = s->sink->ops->name(s->sink, name.len ? name : TW_STR("(unknown)"));
	if (index < s->tables[FUNCTIONS].n)
		s->syms[index] = sym;
	return sym;
}

static struct tw_str build_id_of(struct otlp *s, uint64_t attribute)
{
	struct tw_pb m = referred(s, ATTRIBUTES, attribute);

	if (!tw_str_eq(text(s, tw_pb_number_of(m, 1)), TW_STR("process.executable.build_id.gnu")))
		return (struct tw_str){0};
	return text_of(message_of(m, 2));
}

/* A location without a function. */
static uint32_t address_sym(struct otlp *s, struct tw_pb location)
{
	struct tw_pb m = referred(s, MAPPINGS, tw_pb_number_of(location, 1));
	struct tw_sums_location frame = {.address = tw_pb_number_of(location, 2),
	        .start = tw_pb_number_of(m, 1),
	        .limit = tw_pb_number_of(m, 2),
	        .offset = tw_pb_number_of(m, 3),
	        .path = text(s, tw_pb_number_of(m, 4))};
	struct tw_pb_field f;
	uint64_t attribute;

	while (frame.build_id.len == 0 && tw_pb_next(&m, &f)) {
		struct tw_pb packed = tw_pb_in(&f);

		if (f.number == 5 && f.type == TW_PB_VARINT)
			frame.build_id = build_id_of(s, f.value);
		while (f.number == 5 && f.type == TW_PB_BYTES && frame.build_id.len == 0 &&
		        tw_pb_number(&packed, &attribute))
			frame.build_id = build_id_of(s, attribute);
	}
	return tw_sums_address(&s->sums, &frame);
}

static void add_location(struct otlp *s, uint64_t index)
{
	struct tw_pb location =
	        tw_sums_is_full(&s->sums) ? tw_pb_of(NULL, 0) : referred(s, LOCATIONS, index);
	struct tw_pb m = location;
	struct tw_pb_field f;
	bool named = false;

	if (tw_sums_is_full(&s->sums)) {
		tw_sums_frame(&s->sums, 0);
		return;
	}
	while (!tw_sums_is_full(&s->sums) && tw_pb_next(&m, &f)) {
		if (f.number != 3 || f.type != TW_PB_BYTES)
			continue;
		named = true;
		tw_sums_frame(&s->sums, function_sym(s, tw_pb_number_of(tw_pb_in(&f), 1)));
	}
	if (!named)
		tw_sums_frame(&s->sums, address_sym(s, location));
}

static void add_stack(struct otlp *s, uint64_t index)
{
	struct tw_pb m = referred(s, STACKS, index);
	struct tw_pb_field f;
	uint64_t location;

	s->sums.n = 0;
	while (tw_pb_next(&m, &f)) {
		struct tw_pb packed = tw_pb_in(&f);

		if (f.number == 1 && f.type == TW_PB_VARINT)
			add_location(s, f.value);
		while (f.number == 1 && f.type == TW_PB_BYTES && tw_pb_number(&packed, &location))
			add_location(s, location);
	}
}

/* --- samples --- */

struct sample {
	uint64_t stack;
	int64_t value; /* the sum of its values */
	bool has_value;
	struct tw_pb times; /* packed fixed64 */
	struct tw_sum sum;  /* its thread */
};

static void read_attribute(struct otlp *s, uint64_t index, struct sample *x)
{
	struct tw_pb attribute = referred(s, ATTRIBUTES, index);
	struct tw_str key = text(s, tw_pb_number_of(attribute, 1));
	struct tw_pb value = message_of(attribute, 2);

	if (tw_str_eq(key, TW_STR("thread.name"))) {
		x->sum.thread = text_of(value);
	} else if (tw_str_eq(key, TW_STR("thread.id"))) {
		x->sum.tid = tw_pb_number_of(value, 3);
		x->sum.has_tid = x->sum.tid <= UINT32_MAX;
	}
}

static void read_value(uint64_t value, struct sample *x)
{
	x->has_value = true;
	if (__builtin_add_overflow(x->value, (int64_t)value, &x->value))
		x->value = -1;
}

static struct sample read_sample(struct otlp *s, struct tw_pb m)
{
	struct sample x = {.times = tw_pb_of(NULL, 0), .sum = {.pid = s->pid}};
	struct tw_pb_field f;
	uint64_t v;

	while (tw_pb_next(&m, &f)) {
		struct tw_pb packed = tw_pb_in(&f);

		if (f.number == 1)
			x.stack = f.value;
		else if (f.number == 5 && f.type == TW_PB_BYTES)
			x.times = packed;
		else if (f.number == 2 && f.type == TW_PB_VARINT)
			read_attribute(s, f.value, &x);
		else if (f.number == 4 && f.type == TW_PB_VARINT)
			read_value(f.value, &x);
		while (f.type == TW_PB_BYTES && (f.number == 2 || f.number == 4) &&
		        tw_pb_number(&packed, &v))
			if (f.number == 2)
				read_attribute(s, v, &x);
			else
				read_value(v, &x);
	}
	return x;
}

static bool next_time(struct tw_pb *times, uint64_t *ret)
{
	if (times->end - times->at < 8)
		return false;
	*ret = tw_u64le(times->at);
	times->at += 8;
	return true;
}

static enum tw_status add_times(struct otlp *s, struct sample *x, struct tw_err *err)
{
	uint64_t at;
	enum tw_status st = TW_OK;

	while (st == TW_OK && next_time(&x->times, &at)) {
		if (at - s->first_ns > MAX_NS) {
			s->sink->ops->repair(s->sink, TW_REPAIR_impossible_time, x->sum.offset, 1);
			continue;
		}
		x->sum.value = (int64_t)(at - s->first_ns);
		add_stack(s, x->stack);
		st = tw_sums_status(&s->sums, x->sum.offset, err);
		if (st == TW_OK)
			st = tw_sums_add(&s->sums, &x->sum, err);
	}
	return st;
}

static enum tw_status take_sample(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	struct sample x = read_sample(s, m);

	x.sum.offset = (uint64_t)(m.at - s->input.data);
	if (tw_sums_status(&s->sums, x.sum.offset, err) != TW_OK)
		return TW_TOO_LARGE;
	if (s->timed && x.times.end - x.times.at >= 8)
		return add_times(s, &x, err);
	if (s->timed || !x.has_value || x.value < 0 ||
	        __builtin_mul_overflow(x.value, s->scale ? s->scale : 1, &x.sum.value)) {
		s->sink->ops->repair(s->sink, TW_REPAIR_record_malformed, x.sum.offset, 1);
		return TW_OK;
	}
	add_stack(s, x.stack);
	if (tw_sums_status(&s->sums, x.sum.offset, err) != TW_OK)
		return TW_TOO_LARGE;
	return x.sum.value ? tw_sums_add(&s->sums, &x.sum, err) : TW_OK;
}

/* --- profiles --- */

static struct tw_str type_of(struct otlp *s, struct tw_pb profile)
{
	return text(s, tw_pb_number_of(message_of(profile, 1), 1));
}

static int64_t scale_of(struct otlp *s, struct tw_pb profile)
{
	int64_t scale = tw_sums_unit_ns(text(s, tw_pb_number_of(message_of(profile, 1), 2)));
	int64_t period_ns = tw_sums_unit_ns(text(s, tw_pb_number_of(message_of(profile, 5), 2)));
	uint64_t period = tw_pb_number_of(profile, 6);

	if (scale || period_ns == 0 || period == 0 || period > MAX_NS / (uint64_t)period_ns)
		return scale;
	return (int64_t)period * period_ns;
}

static enum tw_status find_time(struct otlp *s, struct tw_pb sample, struct tw_err *err)
{
	struct tw_pb times = message_of(sample, 5);
	uint64_t at;

	(void)err;
	while (next_time(&times, &at)) {
		if (!s->timed || at < s->first_ns)
			s->first_ns = at;
		s->timed = true;
	}
	return TW_OK;
}

/* First pass: finds the type to read, and whether its samples have timestamps. */
static enum tw_status scan_profile(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	if (!s->has_type) {
		s->has_type = true;
		s->type = type_of(s, m);
		s->scale = scale_of(s, m);
	}
	return tw_str_eq(type_of(s, m), s->type) ? each(s, m, 2, find_time, err) : TW_OK;
}

static enum tw_status take_profile(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	return tw_str_eq(type_of(s, m), s->type) ? each(s, m, 2, take_sample, err) : TW_OK;
}

static enum tw_status scan_scope(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	return each(s, m, 2, scan_profile, err);
}

static enum tw_status take_scope(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	return each(s, m, 2, take_profile, err);
}

static enum tw_status scan_resource(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	return each(s, m, 2, scan_scope, err);
}

static enum tw_status take_resource_attribute(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	uint64_t pid = tw_pb_number_of(message_of(m, 2), 3);

	(void)err;
	if (tw_str_eq(text_of(m), TW_STR("process.pid")) && pid <= INT32_MAX)
		s->pid = (uint32_t)pid;
	return TW_OK;
}

static enum tw_status take_resource(struct otlp *s, struct tw_pb m, struct tw_err *err)
{
	enum tw_status st;

	s->pid = 0;
	st = each(s, message_of(m, 1), 1, take_resource_attribute, err);
	return st == TW_OK ? each(s, m, 2, take_scope, err) : st;
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct otlp *s = state;

	s->sink = sink;
	s->arena = a;
	return tw_sums_init(&s->sums, a, limits, sink) ? TW_OK : tw_oom(err);
}

static enum tw_status emit(struct otlp *s, struct tw_err *err)
{
	if (s->timed)
		return tw_samples_emit(s->sums.samples, 0, err);
	return tw_samples_emit_sums(
	        s->sums.samples, s->scale ? TW_SOURCE_SAMPLES : TW_SOURCE_COUNTS, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct otlp *s = state;
	struct tw_pb m = tw_pb_of(s->input.data, s->input.n);
	enum tw_status st;

	if (!tw_pb_is_complete(s->input.data, s->input.n) && !cut)
		s->sink->ops->repair(s->sink, TW_REPAIR_input_truncated, s->input.n, 1);
	st = each(s, m, 2, read_dictionary, err);
	if (st == TW_OK && s->tables[STACKS].n == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, 0, "an OpenTelemetry profile without its dictionary");
	s->syms = tw_arena_zalloc(s->arena, s->tables[FUNCTIONS].n + 1, sizeof *s->syms);
	if (!s->syms)
		return tw_oom(err);
	tw_sums_limit(&s->sums, s->input.n);
	if (st == TW_OK)
		st = each(s, m, 1, scan_resource, err);
	if (st == TW_OK)
		st = each(s, m, 1, take_resource, err);
	if (st == TW_OK && tw_samples_count(s->sums.samples) == 0)
		return tw_fail_at(
		        err, TW_CORRUPT, 0, "no sample with a value in this OpenTelemetry profile");
	return st == TW_OK ? emit(s, err) : st;
}

const struct tw_format tw_format_otlp = {
        .name = "otlp",
        .title = "OpenTelemetry profile (OTLP)",
        .part = "trace",
        .probe = probe,
        .state_size = sizeof(struct otlp),
        .start = start,
        .push = push,
        .finish = finish,
};

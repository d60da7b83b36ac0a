#include "decoder/formats/perfetto/perfetto_parts.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/native_frame.h"

static const struct tw_perfetto_scope everywhere = {0, 0};

static void repair(struct tw_perfetto_stacks *s, enum tw_repair what, uint64_t offset)
{
	s->sink->ops->repair(s->sink, what, offset, 1);
}

/* --- interned data --- */

struct item { /* of InternedData */
	uint64_t iid;
	struct tw_str text; /* field 2, if it is bytes */
	uint64_t number[9]; /* fields 2..8 that are numbers */
	struct tw_pb message;
};

static struct item read_item(struct tw_pb message)
{
	struct item i = {.message = message};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			i.iid = f.value;
		else if (f.number == 2 && f.type == TW_PB_BYTES)
			i.text = tw_pb_str(&f);
		else if (f.number < 9 && f.type != TW_PB_BYTES)
			i.number[f.number] = f.value;
	return i;
}

static bool set(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid, uint64_t value)
{
	return tw_perfetto_intern_set(s->texts, scope, kind, iid, value);
}

/* The meaning of a number; 0 if undefined. */
static uint64_t get(const struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid)
{
	uint64_t value = 0;

	(void)tw_perfetto_intern_get(s->texts, scope, kind, iid, &value);
	return value;
}

static bool set_text(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, const struct item *i, uint64_t offset)
{
	uint32_t number;

	return tw_perfetto_intern_text(s->texts, i->text, offset, &number) &&
	       set(s, scope, kind, i->iid, number);
}

/* The last part of the path names the mapping. */
static bool set_mapping(
        struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope, const struct item *i)
{
	struct tw_pb message = i->message;
	struct tw_pb_field f;
	uint64_t path = 0;

	while (tw_pb_next(&message, &f)) {
		struct tw_pb packed = tw_pb_in(&f);

		if (f.number == 7 && f.type == TW_PB_VARINT)
			path = f.value;
		while (f.number == 7 && f.type == TW_PB_BYTES && tw_pb_number(&packed, &path))
			;
	}
	return set(s, scope, TW_PERFETTO_MAPPING, i->iid,
	        get(s, scope, TW_PERFETTO_BUILD_ID, i->number[2]) << 32 |
	                get(s, scope, TW_PERFETTO_PATH, path));
}

/* As bytes, or as digits. */
static bool set_build_id(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        const struct item *i, uint64_t offset)
{
	char hex[TW_BUILD_ID_HEX];
	uint32_t number;

	if (!tw_build_id_clean(i->text, hex) &&
	        !tw_build_id_hex((const uint8_t *)i->text.ptr, i->text.len, hex))
		return true;
	return tw_perfetto_intern_text(s->texts, tw_str_of(hex), offset, &number) &&
	       set(s, scope, TW_PERFETTO_BUILD_ID, i->iid, number);
}

/* The name of an address in a mapping. */
static struct tw_str format_location(struct tw_str file, struct tw_str build_id, uint64_t address,
        char out[TW_NATIVE_FRAME_BYTES])
{
	const struct tw_native_frame native = {
	        .module = file, .build_id = build_id, .address = address};
	int n;

	if (file.len == 0)
		return TW_STR("[unknown]");
	if (build_id.len)
		return tw_native_frame_name(&native, out);
	n = snprintf(out, TW_NATIVE_FRAME_BYTES, "%.*s+0x%llx",
	        (int)(file.len < 256 ? file.len : 256), file.ptr, (unsigned long long)address);
	return (struct tw_str){out, (size_t)n};
}

/* A frame without a function is named by its address in its mapping. */
static bool set_frame(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        const struct item *i, uint64_t offset)
{
	uint32_t name = (uint32_t)get(s, scope, TW_PERFETTO_FUNCTION, i->number[2]);
	uint64_t map = get(s, scope, TW_PERFETTO_MAPPING, i->number[3]);
	struct tw_str path = tw_perfetto_intern_str(s->texts, (uint32_t)map);
	struct tw_str build_id = tw_perfetto_intern_str(s->texts, (uint32_t)(map >> 32));
	char location[TW_NATIVE_FRAME_BYTES];

	if (tw_perfetto_intern_str(s->texts, name).len == 0 &&
	        !tw_perfetto_intern_text(s->texts,
	                format_location(
	                        tw_str_last_component(path), build_id, i->number[4], location),
	                offset, &name))
		return false;
	return set(s, scope, TW_PERFETTO_FRAME, i->iid, tw_perfetto_intern_sym(s->texts, name));
}

static enum tw_status add_frame(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        uint64_t iid, uint64_t offset, struct tw_err *err)
{
	uint64_t sym;

	if (!tw_perfetto_intern_get(s->texts, scope, TW_PERFETTO_FRAME, iid, &sym)) {
		uint32_t unknown;

		if (!tw_perfetto_intern_text(s->texts, TW_STR("[unknown]"), offset, &unknown))
			return tw_oom(err);
		repair(s, TW_REPAIR_method_unnamed, offset);
		sym = tw_perfetto_intern_sym(s->texts, unknown);
	}
	return tw_samples_frame(s->samples, (uint32_t)sym, offset, err);
}

static enum tw_status set_stack(struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope,
        const struct item *i, uint64_t offset, struct tw_err *err)
{
	uint32_t first = tw_samples_frames(s->samples);
	struct tw_pb message = i->message;
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_pb_next(&message, &f)) {
		struct tw_pb packed = tw_pb_in(&f);
		uint64_t iid;

		if (f.number == 2 && f.type == TW_PB_VARINT)
			st = add_frame(s, scope, f.value, offset, err);
		while (st == TW_OK && f.number == 2 && f.type == TW_PB_BYTES &&
		        tw_pb_number(&packed, &iid))
			st = add_frame(s, scope, iid, offset, err);
	}
	if (st != TW_OK)
		return st;
	return set(s, scope, TW_PERFETTO_STACK, i->iid,
	               (uint64_t)first << 32 | (tw_samples_frames(s->samples) - first))
	               ? TW_OK
	               : tw_oom(err);
}

static bool set_task(
        struct tw_perfetto_stacks *s, struct tw_perfetto_scope scope, const struct item *i)
{
	return set(s, scope, TW_PERFETTO_TASK, i->iid,
	        i->number[2] << 32 | (i->number[3] & UINT32_MAX));
}

/* The pass in which a field is read: later passes use results of earlier ones. */
static int pass_of(uint32_t field)
{
	switch (field) {
	case 2:  /* event names */
	case 5:  /* functions */
	case 16: /* build ids */
	case 17: /* mapping paths */
	case 48: /* tasks */
		return 0;
	case 19: /* mappings */
		return 1;
	case 6: /* frames */
		return 2;
	case 7: /* stacks */
		return 3;
	default:
		return -1;
	}
}

static enum tw_status take(struct tw_perfetto_stacks *s, const struct tw_pb_field *f,
        struct tw_perfetto_scope scope, uint64_t offset, struct tw_err *err)
{
	const struct item i = read_item(tw_pb_in(f));
	bool ok = true;

	switch (f->number) {
	case 1:
		ok = set_text(s, scope, TW_PERFETTO_CATEGORY, &i, offset);
		break;
	case 2:
		ok = set_text(s, scope, TW_PERFETTO_EVENT_NAME, &i, offset);
		break;
	case 5:
		ok = set_text(s, scope, TW_PERFETTO_FUNCTION, &i, offset);
		break;
	case 16:
		ok = set_build_id(s, scope, &i, offset);
		break;
	case 17:
		ok = set_text(s, scope, TW_PERFETTO_PATH, &i, offset);
		break;
	case 48:
		ok = set_task(s, scope, &i);
		break;
	case 19:
		ok = set_mapping(s, scope, &i);
		break;
	case 6:
		ok = set_frame(s, scope, &i, offset);
		break;
	default:
		return set_stack(s, scope, &i, offset, err);
	}
	return ok ? TW_OK : tw_oom(err);
}

enum tw_status tw_perfetto_stacks_intern(struct tw_perfetto_stacks *s, struct tw_pb message,
        struct tw_perfetto_scope scope, uint64_t offset, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	int last = 0;

	for (int pass = 0; pass <= last; pass++) {
		struct tw_pb again = message;
		struct tw_pb_field f;

		while (st == TW_OK && tw_pb_next(&again, &f)) {
			int when = f.type == TW_PB_BYTES ? pass_of(f.number) : -1;

			if (when > last)
				last = when;
			if (when == pass)
				st = take(s, &f, scope, offset, err);
		}
		if (pass == 0 && tw_pb_bad(&again))
			repair(s, TW_REPAIR_record_malformed, offset);
	}
	return st;
}

/* --- samples --- */

void tw_perfetto_stacks_defaults(struct tw_perfetto_stacks *s, struct tw_pb message)
{
	struct tw_pb_field f;
	struct tw_pb timebase = {0};

	while (tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_BYTES)
			timebase = tw_pb_in(&f);
	while (tw_pb_next(&timebase, &f))
		if (f.number == 2 && f.value > 0 && f.value <= 1000000000)
			s->interval_ns = 1000000000 / (int64_t)f.value;
		else if (f.number == 6 && f.value > 0 && f.value <= 1000000)
			s->interval_ns = (int64_t)f.value * 1000000;
}

/* Calls and samples of one thread are on separate tracks: the first to occur gets the thread's
 * usual one. */
static bool track_of(struct tw_perfetto_stacks *s, struct tw_tid *k, uint32_t *ret)
{
	uint64_t known;

	if (tw_perfetto_intern_get(
	            s->texts, everywhere, TW_PERFETTO_SAMPLE_TRACK, k->tid, &known)) {
		*ret = (uint32_t)known;
		return true;
	}
	if (k->track) {
		*ret = s->sink->ops->track(s->sink, 0, k->tid, TW_TID_FULL);
	} else {
		*ret = s->sink->ops->track(s->sink, k->pid, k->tid, TW_TID_FULL);
		k->track = s->sink->ops->track(s->sink, 0, k->tid, TW_TID_FULL);
	}
	if (k->pid)
		s->sink->ops->thread_process(s->sink, k->tid, k->pid);
	return tw_perfetto_intern_set(s->texts, everywhere, TW_PERFETTO_SAMPLE_TRACK, k->tid, *ret);
}

static enum tw_status add_piece(struct tw_perfetto_stacks *s, uint32_t pid, uint64_t tid,
        uint64_t stack, const struct tw_perfetto_when *when, struct tw_err *err)
{
	struct tw_sample_piece piece = {.ts_ns = when->ts_ns,
	        .offset = when->offset,
	        .first = (uint32_t)(stack >> 32),
	        .n = (uint32_t)stack};
	struct tw_tid *k;

	if (tid == 0 || tid > UINT32_MAX)
		return TW_OK;
	k = tw_tids_get(&s->markers->tids, tid, when->offset);
	if (!k)
		return TW_OK;
	tw_tids_process(&s->markers->tids, k, pid);
	if (!track_of(s, k, &piece.track))
		return tw_oom(err);
	if (!piece.track)
		return TW_OK;
	if (when->ts_ns > s->markers->last_ns)
		s->markers->last_ns = when->ts_ns;
	if (s->tracks->pid == 0)
		s->tracks->pid = pid;
	else if (pid && pid != s->tracks->pid)
		s->tracks->many_pids = true;
	s->markers->emitted++;
	return tw_samples_add(s->samples, &piece, err);
}

enum tw_status tw_perfetto_stacks_add(struct tw_perfetto_stacks *s, uint32_t pid, uint64_t tid,
        uint64_t iid, const struct tw_perfetto_when *when, struct tw_err *err)
{
	uint64_t stack;

	if (!tw_perfetto_intern_get(s->texts, when->scope, TW_PERFETTO_STACK, iid, &stack)) {
		repair(s, TW_REPAIR_state_lost, when->offset);
		return TW_OK;
	}
	return add_piece(s, pid, tid, stack, when, err);
}

enum tw_status tw_perfetto_stacks_perf(struct tw_perfetto_stacks *s, struct tw_pb message,
        const struct tw_perfetto_when *when, struct tw_err *err)
{
	struct tw_pb_field f;
	uint64_t number[24] = {0};
	uint32_t has = 0;

	while (tw_pb_next(&message, &f))
		if (f.number < 24) {
			number[f.number] = f.value;
			has |= UINT32_C(1) << f.number;
		}
	if (has >> 17 & 1)
		repair(s, TW_REPAIR_kernel_overrun, when->offset);
	if (has >> 18 & 1)
		repair(s, TW_REPAIR_sample_failed, when->offset);
	if (has >> 17 & 7 || !(has >> 4 & 1))
		return TW_OK; /* not a sample, or only a counter */
	if (number[16])
		repair(s, TW_REPAIR_sample_failed, when->offset);
	return tw_perfetto_stacks_add(s, (uint32_t)number[2], number[3], number[4], when, err);
}

/* An InlineCallstack. */
static enum tw_status inline_stack(struct tw_perfetto_stacks *s, struct tw_pb message,
        uint64_t offset, uint64_t *ret, struct tw_err *err)
{
	uint32_t first = tw_samples_frames(s->samples);
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_pb_next(&message, &f)) {
		struct tw_str name = {0};
		struct tw_pb frame = tw_pb_in(&f);
		struct tw_pb_field g;
		uint32_t number;

		if (f.number != 1)
			continue;
		while (tw_pb_next(&frame, &g))
			if (g.number == 1 && g.type == TW_PB_BYTES)
				name = tw_pb_str(&g);
		if (name.len == 0)
			name = TW_STR("[unknown]");
		if (!tw_perfetto_intern_text(s->texts, name, offset, &number))
			return tw_oom(err);
		st = tw_samples_frame(
		        s->samples, tw_perfetto_intern_sym(s->texts, number), offset, err);
	}
	*ret = (uint64_t)first << 32 | (tw_samples_frames(s->samples) - first);
	return st;
}

enum tw_status tw_perfetto_stacks_sample(struct tw_perfetto_stacks *s, struct tw_pb message,
        const struct tw_perfetto_when *when, struct tw_err *err)
{
	struct tw_pb_field f;
	struct tw_pb_field stack = {0};
	uint64_t task = 0;
	uint64_t found = 0;
	enum tw_status st;

	while (tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_BYTES) {
			const struct item i = read_item(tw_pb_in(&f));

			task = i.number[2] << 32 | (i.number[3] & UINT32_MAX);
			if (i.iid && !set_task(s, when->scope, &i))
				return tw_oom(err);
		} else if (f.number == 2) {
			task = get(s, when->scope, TW_PERFETTO_TASK, f.value);
		} else if (f.number == 5 || f.number == 6) {
			stack = f;
		}
	if (stack.number == 6)
		return tw_perfetto_stacks_add(
		        s, (uint32_t)(task >> 32), task & UINT32_MAX, stack.value, when, err);
	if (stack.number != 5)
		return TW_OK;
	st = inline_stack(s, tw_pb_in(&stack), when->offset, &found, err);
	if (st != TW_OK)
		return st;
	return add_piece(s, (uint32_t)(task >> 32), task & UINT32_MAX, found, when, err);
}

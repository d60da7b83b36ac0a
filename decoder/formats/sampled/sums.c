#include "decoder/formats/sampled/sums.h"

#include <stdio.h>

#include "decoder/base/hash.h"
#include "decoder/base/native_frame.h"
#include "decoder/formats/label.h"

enum { ALL = 1, FILE_BYTES = 200 };
enum { READS_A_BYTE = 8192, READS_LEAST = 1 << 20 };
#define READS_MOST (UINT64_C(1) << 36)

bool tw_sums_init(
        struct tw_sums *s, struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink)
{
	s->sink = sink;
	s->samples = tw_samples_new(a, limits, sink);
	return s->samples != NULL;
}

void tw_sums_limit(struct tw_sums *s, size_t profile_bytes)
{
	const uint64_t most = (uint64_t)profile_bytes * READS_A_BYTE + READS_LEAST;

	s->most_reads = most < READS_MOST ? most : READS_MOST;
}

bool tw_sums_may_read(struct tw_sums *s, size_t bytes)
{
	if (s->reads <= s->most_reads)
		s->reads += bytes;
	return s->reads <= s->most_reads;
}

enum tw_status tw_sums_status(const struct tw_sums *s, uint64_t offset, struct tw_err *err)
{
	return s->reads <= s->most_reads
	               ? TW_OK
	               : tw_fail_at(err, TW_TOO_LARGE, offset,
	                         "the profile's stacks are too large for its size");
}

void tw_sums_frame(struct tw_sums *s, uint32_t sym)
{
	if (s->n < TW_SUMS_STACK)
		s->stack[s->n] = sym;
	s->n++;
}

static uint64_t id_of_name(struct tw_str name)
{
	return tw_fnv32(name) & INT32_MAX;
}

static uint32_t track_of(struct tw_sums *s, struct tw_sum *x)
{
	struct tw_str name = x->thread;
	uint64_t labelled;
	uint32_t track;

	if (tw_thread_label(x->thread, &name, &labelled) && !x->has_tid) {
		x->tid = labelled;
		x->has_tid = true;
	}
	if (!x->has_tid)
		x->tid = name.len ? id_of_name(name) : ALL;
	if (!x->has_tid && name.len == 0)
		name = TW_STR("all stacks");
	track = s->sink->ops->track(s->sink, x->pid, x->tid, TW_TID_FULL);
	if (name.len && track != s->track)
		s->sink->ops->thread_name(s->sink, x->pid, x->tid, name);
	s->track = track;
	return track;
}

enum tw_status tw_sums_add(struct tw_sums *s, struct tw_sum *sum, struct tw_err *err)
{
	struct tw_sample_piece p = {
	        .ts_ns = sum->value, .offset = sum->offset, .first = tw_samples_frames(s->samples)};
	size_t n = s->n < TW_SUMS_STACK ? s->n : TW_SUMS_STACK;
	enum tw_status st = TW_OK;

	if (s->n > n)
		s->sink->ops->repair(s->sink, TW_REPAIR_depth_clipped, sum->offset, s->n - n);
	s->n = 0;
	p.track = track_of(s, sum);
	for (size_t i = n; st == TW_OK && i-- > 0;)
		st = tw_samples_frame(s->samples, s->stack[i], sum->offset, err);
	return st == TW_OK && p.track ? tw_samples_add_stack(s->samples, &p, n, err) : st;
}

int64_t tw_sums_unit_ns(struct tw_str unit)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {{"nanoseconds", 1}, {"ns", 1}, {"nanosecond", 1}, {"microseconds", 1000},
	        {"us", 1000}, {"milliseconds", 1000000}, {"ms", 1000000}, {"seconds", 1000000000},
	        {"s", 1000000000}};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (tw_str_eq(unit, tw_str_of(units[i].name)))
			return units[i].ns;
	return 0;
}

uint32_t tw_sums_address(struct tw_sums *s, const struct tw_sums_location *p)
{
	struct tw_str file = tw_str_last_component(p->path);
	const bool in_memory = p->address >= p->start && p->address < p->limit;
	char id[TW_BUILD_ID_HEX], name[TW_NATIVE_FRAME_BYTES];
	struct tw_native_frame native = {.module = file, .is_offset = in_memory};
	int n;

	if (file.len && tw_build_id_clean(p->build_id, id)) {
		native.build_id = tw_str_of(id);
		native.address = in_memory ? p->address - p->start + p->offset : p->address;
		return s->sink->ops->name(s->sink, tw_native_frame_name(&native, name));
	}
	if (file.len)
		n = snprintf(name, sizeof name, "[%.*s]",
		        (int)(file.len < FILE_BYTES ? file.len : FILE_BYTES), file.ptr);
	else
		n = snprintf(name, sizeof name, "0x%llx", (unsigned long long)p->address);
	return s->sink->ops->name(s->sink, (struct tw_str){name, (size_t)n});
}

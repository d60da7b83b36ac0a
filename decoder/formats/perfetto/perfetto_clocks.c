#include "decoder/formats/perfetto/perfetto_clocks.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"

enum { KERNEL_BOOT = 0, KERNEL_MONO_RAW = 4 }; /* values of FtraceClock */
enum { FIRST_OWN = 64, LAST_OWN = 127, MAX_PAIRS = 1 << 20, MAX_OF_SNAPSHOT = 32 };

#define LEAD_NS     ((int64_t)60 * 1000000000)
#define MAX_TIME_NS ((int64_t)1 << 61)

struct reading {
	uint64_t value, unit_ns;
	uint32_t id;
	bool incremental;
};

static bool is_own(uint32_t id)
{
	return id >= FIRST_OWN && id <= LAST_OWN;
}

/* --- global clocks --- */

static struct tw_perfetto_clock *find(const struct tw_perfetto_clocks *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_clocks; i++)
		if (c->clocks[i].id == id)
			return (struct tw_perfetto_clock *)(uintptr_t)&c->clocks[i];
	return NULL;
}

/* The latest pair at or before a reading, otherwise the first. */
static const struct tw_perfetto_pair *pair_of(const struct tw_perfetto_clock *k, int64_t from_ns)
{
	uint32_t at;

	TW_BISECT(at, k->n, k->pairs[at].from_ns <= from_ns);
	return &k->pairs[at ? at - 1 : 0];
}

bool tw_perfetto_clocks_convert(
        const struct tw_perfetto_clocks *c, uint32_t id, int64_t reading_ns, int64_t *ret_ns)
{
	const struct tw_perfetto_clock *k;
	const struct tw_perfetto_pair *p;

	if (reading_ns < 0 || reading_ns > MAX_TIME_NS)
		return false;
	if (id == c->trace_clock || c->trace_clock == 0) {
		*ret_ns = reading_ns;
		return id != 0 && !is_own(id);
	}
	k = find(c, id);
	if (!k || k->n == 0)
		return false;
	p = pair_of(k, reading_ns);
	*ret_ns = p->to_ns + (reading_ns - p->from_ns);
	/* the result is used in pairs again, so it must not grow */
	return *ret_ns >= -MAX_TIME_NS && *ret_ns <= MAX_TIME_NS;
}

static bool add_pair(struct tw_perfetto_clocks *c, uint32_t id, int64_t from_ns, int64_t to_ns)
{
	struct tw_perfetto_clock *k = find(c, id);
	struct tw_perfetto_pair *last;

	if (!k) {
		if (c->n_clocks == TW_PERFETTO_CLOCKS_MAX)
			return true;
		k = &c->clocks[c->n_clocks++];
		*k = (struct tw_perfetto_clock){.id = id};
	}
	last = k->pairs ? &k->pairs[k->n - 1] : NULL; /* never empty once allocated */
	/* a clock that was set back keeps its earlier readings; one that continues at the same rate
	 * needs no new pair */
	if (last && (from_ns <= last->from_ns || to_ns - last->to_ns == from_ns - last->from_ns))
		return true;
	if (k->n == MAX_PAIRS)
		return true;
	if (!TW_GROW_FROM(8, c->arena, k->pairs, k->n, k->cap))
		return false;
	k->pairs[k->n++] = (struct tw_perfetto_pair){from_ns, to_ns};
	return true;
}

/* --- snapshots --- */

static struct reading read_clock(struct tw_pb message)
{
	struct reading r = {.unit_ns = 1};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			r.id = f.value <= UINT32_MAX ? (uint32_t)f.value : 0;
		else if (f.number == 2)
			r.value = f.value;
		else if (f.number == 3)
			r.incremental = f.value != 0;
		else if (f.number == 4 && f.value)
			r.unit_ns = f.value;
	return r;
}

static bool has(const struct reading *r, unsigned n, uint32_t id)
{
	for (unsigned i = 0; i < n; i++)
		if (r[i].id == id)
			return true;
	return false;
}

static bool in_ns(const struct reading *r, int64_t *ret)
{
	uint64_t ns;

	if (__builtin_mul_overflow(r->value, r->unit_ns, &ns) || ns > (uint64_t)MAX_TIME_NS)
		return false;
	*ret = (int64_t)ns;
	return true;
}

static void choose_trace_clock(
        struct tw_perfetto_clocks *c, const struct reading *r, unsigned n, uint32_t primary)
{
	if (c->trace_clock)
		return;
	if (has(r, n, TW_PERFETTO_BOOTTIME))
		c->trace_clock = TW_PERFETTO_BOOTTIME;
	else if (has(r, n, TW_PERFETTO_MONOTONIC))
		c->trace_clock = TW_PERFETTO_MONOTONIC;
	else if (primary && !is_own(primary) && has(r, n, primary))
		c->trace_clock = primary;
}

/* The trace clock's reading at the snapshot. */
static bool moment_of(
        const struct tw_perfetto_clocks *c, const struct reading *r, unsigned n, int64_t *ret_ns)
{
	int64_t ns;

	for (unsigned i = 0; i < n; i++)
		if (r[i].id == c->trace_clock && in_ns(&r[i], ret_ns))
			return true;
	for (unsigned i = 0; i < n; i++)
		if (!is_own(r[i].id) && in_ns(&r[i], &ns) &&
		        tw_perfetto_clocks_convert(c, r[i].id, ns, ret_ns))
			return true;
	return false;
}

static void set_own(struct tw_perfetto_own_clock *own, const struct reading *r, int64_t moment_ns)
{
	struct tw_perfetto_own_clock *k = NULL;

	for (unsigned i = 0; i < TW_PERFETTO_OWN_CLOCKS && !k; i++)
		if (own[i].id == r->id || own[i].id == 0)
			k = &own[i];
	if (!k || r->value > (uint64_t)MAX_TIME_NS)
		return;
	*k = (struct tw_perfetto_own_clock){.id = r->id,
	        .incremental = r->incremental,
	        .unit_ns = r->unit_ns,
	        .now = (int64_t)r->value,
	        .base = (int64_t)r->value,
	        .base_ns = moment_ns};
}

static bool take_reading(struct tw_perfetto_clocks *c, const struct reading *r, int64_t moment_ns,
        struct tw_perfetto_own_clock *own)
{
	int64_t ns;

	if (is_own(r->id)) {
		if (own)
			set_own(own, r, moment_ns);
		return true;
	}
	return r->id == c->trace_clock || !in_ns(r, &ns) || add_pair(c, r->id, ns, moment_ns);
}

enum tw_status tw_perfetto_clocks_snapshot(struct tw_perfetto_clocks *c, struct tw_pb message,
        struct tw_perfetto_own_clock *own, struct tw_err *err)
{
	struct reading r[MAX_OF_SNAPSHOT];
	struct tw_pb_field f;
	unsigned n = 0;
	uint32_t primary = 0;
	int64_t moment_ns;

	while (tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_BYTES && n < MAX_OF_SNAPSHOT)
			r[n++] = read_clock(tw_pb_in(&f));
		else if (f.number == 2)
			primary = (uint32_t)f.value;
	choose_trace_clock(c, r, n, primary);
	if (c->trace_clock == 0 || !moment_of(c, r, n, &moment_ns))
		return TW_OK;
	if (!c->have_zero)
		(void)tw_perfetto_clocks_event(c, moment_ns, TW_NO_OFFSET);
	for (unsigned i = 0; i < n; i++)
		if (!take_reading(c, &r[i], moment_ns, own))
			return tw_oom(err);
	return TW_OK;
}

/* --- times --- */

struct tw_perfetto_kernel tw_perfetto_clocks_kernel(uint64_t kind, uint64_t reading, uint64_t boot)
{
	struct tw_perfetto_kernel k = {.clock = TW_PERFETTO_BOOTTIME};

	if (kind == KERNEL_BOOT)
		return k;
	if (reading && boot && reading <= INT64_MAX && boot <= INT64_MAX)
		k.shift_ns = (int64_t)boot - (int64_t)reading;
	else
		k.clock = kind == KERNEL_MONO_RAW ? TW_PERFETTO_MONOTONIC_RAW : 0;
	return k;
}

bool tw_perfetto_clocks_own(
        struct tw_perfetto_own_clock *own, uint32_t id, uint64_t reading, int64_t *ret_ns)
{
	struct tw_perfetto_own_clock *k = NULL;
	int64_t now = (int64_t)reading; /* a difference may be negative */
	int64_t ns;

	for (unsigned i = 0; i < TW_PERFETTO_OWN_CLOCKS && !k; i++)
		if (own[i].id == id)
			k = &own[i];
	if (!k || (k->incremental && __builtin_add_overflow(k->now, now, &now)))
		return false;
	k->now = now;
	if (__builtin_sub_overflow(now, k->base, &now) || k->unit_ns > INT64_MAX ||
	        __builtin_mul_overflow(now, (int64_t)k->unit_ns, &ns) ||
	        __builtin_add_overflow(ns, k->base_ns, &ns) || ns < 0 || ns > MAX_TIME_NS)
		return false;
	*ret_ns = ns;
	return true;
}

int64_t tw_perfetto_clocks_event(struct tw_perfetto_clocks *c, int64_t trace_ns, uint64_t offset)
{
	if (!c->have_zero) {
		c->have_zero = true;
		c->first_ns = trace_ns;
		c->zero_ns = trace_ns > LEAD_NS ? trace_ns - LEAD_NS : 0;
	}
	if (trace_ns < c->zero_ns) {
		c->sink->ops->repair(c->sink, TW_REPAIR_begin_clamped, offset, 1);
		return 0;
	}
	return trace_ns - c->zero_ns;
}

/* The reading of a clock at `trace_ns` of the trace's clock; -1 unknown. */
static int64_t back(const struct tw_perfetto_clocks *c, uint32_t id, int64_t trace_ns)
{
	const struct tw_perfetto_clock *k = find(c, id);
	int64_t ns;

	if (id == c->trace_clock)
		return trace_ns;
	if (!k || k->n == 0)
		return -1;
	ns = k->pairs[0].from_ns + (trace_ns - k->pairs[0].to_ns);
	return ns >= 0 ? ns : -1;
}

void tw_perfetto_clocks_emit(struct tw_perfetto_clocks *c, uint32_t pid)
{
	const struct tw_clock clock = {.pid = pid,
	        .mono_base_ns = back(c, TW_PERFETTO_MONOTONIC, c->zero_ns),
	        .boot_base_ns = back(c, TW_PERFETTO_BOOTTIME, c->zero_ns),
	        .session_ns = c->first_ns - c->zero_ns};

	c->sink->ops->clock(c->sink, &clock);
	c->emitted = true;
}

#include "decoder/trace/running.h"

#include "decoder/base/list.h"

enum { UNCOVERED_SHARE = 16 };

static bool add_run(struct tw_running *r, int64_t ts_ns, int64_t end_ns)
{
	const struct tw_run *last = r->n ? &r->runs[r->n - 1] : NULL;
	int64_t before = last ? last->before_ns + last->end_ns - last->start_ns : 0;

	if (!TW_GROW_MEM(r->runs, r->n, r->cap))
		return false;
	r->runs[r->n++] = (struct tw_run){ts_ns, end_ns, before};
	return true;
}

bool tw_running_add(struct tw_running *r, int64_t ts_ns, int64_t dur_ns, bool on_cpu)
{
	int64_t end_ns = dur_ns > 0 ? ts_ns + dur_ns : ts_ns;

	if (!r->any)
		r->from_ns = r->to_ns = ts_ns;
	r->any = true;
	if (ts_ns < r->to_ns)
		ts_ns = r->to_ns;
	if (end_ns <= ts_ns)
		return true;
	r->to_ns = end_ns;
	return !on_cpu || add_run(r, ts_ns, end_ns);
}

bool tw_running_covers(const struct tw_running *r, int64_t from_ns, int64_t to_ns)
{
	int64_t missing = 0;

	if (r->from_ns > from_ns)
		missing += r->from_ns - from_ns;
	if (r->to_ns < to_ns)
		missing += to_ns - r->to_ns;
	return r->any && missing <= (to_ns - from_ns) / UNCOVERED_SHARE;
}

/* The number of runs that begin before t. */
static uint32_t begun(const struct tw_running *r, int64_t t, uint32_t hint)
{
	uint32_t lo = 0;
	uint32_t hi = r->n;

	if (hint && hint <= r->n && r->runs[hint - 1].start_ns < t) {
		uint32_t step = 1;

		for (lo = hint; lo + step <= r->n && r->runs[lo + step - 1].start_ns < t; step *= 2)
			lo += step;
		if (lo + step < hi)
			hi = lo + step;
	}
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->runs[mid].start_ns < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Time on a CPU before t; n: number of runs that begin before t. */
static int64_t until(const struct tw_running *r, int64_t t, uint32_t n)
{
	const struct tw_run *last = n ? &r->runs[n - 1] : NULL;

	if (!last)
		return 0;
	return last->before_ns + (t < last->end_ns ? t : last->end_ns) - last->start_ns;
}

int64_t tw_running_within(const struct tw_running *r, int64_t from_ns, int64_t to_ns, uint32_t *at)
{
	int64_t unknown = 0;

	if (from_ns < r->from_ns) {
		unknown += (to_ns < r->from_ns ? to_ns : r->from_ns) - from_ns;
		from_ns = r->from_ns;
	}
	if (to_ns > r->to_ns) {
		unknown += to_ns - (from_ns > r->to_ns ? from_ns : r->to_ns);
		to_ns = r->to_ns;
	}
	if (from_ns >= to_ns)
		return unknown;
	*at = begun(r, from_ns, *at);
	return unknown + until(r, to_ns, begun(r, to_ns, *at)) - until(r, from_ns, *at);
}

void tw_running_free(struct tw_running *r)
{
	tw_mem_free(r->runs);
	*r = (struct tw_running){.runs = NULL};
}

/*
 * query_activity.c - a thread's activity over time, as cells.
 *
 * Outermost calls cover cells, except for waits in them. Coarser levels merge calls across small
 * gaps, which a cell cannot show anyway; the finest level with few enough slices in the range is
 * used. The running time is the CPU time of outermost calls, if known.
 */
#include "server/query/query_notes.h"

#include "decoder/base/sum.h"

enum { SLICES_FEW = 1 << 17 };

struct strip {
	int64_t from_ns, to_ns, width_ns;
	int64_t covered_ns[TW_LANE_CELLS_MAX];
	int64_t cpu_ns;   /* of outermost calls */
	bool cpu_unknown; /* an outermost call has no CPU time */
	uint32_t cells;
	const struct tw_waits *waits;
	uint64_t few; /* maximum number of slices to read; 0: the coarsest level */
};

struct level { /* neighbours in a chunk directory */
	const struct tw_chunk_row *rows;
	uint32_t n;
};

/* sign: 1 for a call, -1 for a wait in it. */
static void cover(struct strip *s, const struct tw_slice *slice, int sign)
{
	int64_t end = slice->start_ns + slice->dur_ns;
	int64_t from = (slice->start_ns > s->from_ns ? slice->start_ns : s->from_ns) - s->from_ns;
	int64_t to = (end < s->to_ns ? end : s->to_ns) - s->from_ns;

	for (int64_t cell = from / s->width_ns; cell < s->cells && from < to; cell++) {
		int64_t edge = (cell + 1) * s->width_ns;
		int64_t upto = to < edge ? to : edge;

		s->covered_ns[cell] += sign * (upto - from);
		from = upto;
	}
}

/* The chunks of one level that may overlap the range; at most one begins before it. */
static struct level in_range(struct level l, const struct strip *s)
{
	while (l.n > 1 && l.rows[1].info.start_ns <= s->from_ns) {
		l.rows++;
		l.n--;
	}
	while (l.n && l.rows[l.n - 1].info.start_ns >= s->to_ns)
		l.n--;
	return l;
}

static struct level next_level(const struct tw_chunk_row *rows, uint32_t n, uint32_t at)
{
	struct level l = {rows + at, 0};

	while (at + l.n < n && l.rows[l.n].info.level == l.rows[0].info.level)
		l.n++;
	return l;
}

static struct level pick_level(const struct tw_chunk_row *rows, uint32_t n, const struct strip *s)
{
	struct level best = {rows, 0};

	for (uint32_t at = 0; at < n;) {
		struct level l = next_level(rows, n, at);
		uint64_t slices = 0;

		at += l.n;
		best = in_range(l, s);
		for (uint32_t i = 0; i < best.n; i++)
			slices += best.rows[i].info.slices;
		if (slices <= s->few)
			break;
	}
	return best;
}

/* A wait within a wait is not subtracted twice: slices are in pre-order. */
static int64_t add(struct strip *s, const struct tw_slice *slice, int64_t wait_end)
{
	int64_t end = slice->start_ns + slice->dur_ns;

	if (slice->depth == 0) {
		cover(s, slice, 1);
		s->cpu_unknown |= slice->cpu_ns < 0;
		s->cpu_ns = tw_sum_ns(
		        s->cpu_ns, slice->cpu_ns < slice->dur_ns ? slice->cpu_ns : slice->dur_ns);
	}
	if (!s->waits || !tw_waits(s->waits, slice->method) || end <= wait_end)
		return wait_end;
	cover(s, slice, -1);
	return end;
}

/* A root that began in an earlier chunk was covered there, except before the first chunk. */
static enum tw_status cover_level(
        struct tw_trace_file *f, struct level l, struct strip *s, struct tw_err *err)
{
	struct tw_chunk c;
	int64_t wait_end = INT64_MIN;
	enum tw_status st = TW_OK;

	tw_chunk_init(&c);
	for (uint32_t i = 0; st == TW_OK && i < l.n; i++) {
		st = tw_trace_file_chunk(f, &l.rows[i], &c, err);
		for (size_t k = 0; st == TW_OK && i == 0 && k < c.n_open; k++)
			wait_end = add(s, &c.open[k], wait_end);
		for (size_t k = 0; st == TW_OK && k < c.n; k++)
			wait_end = add(s, &c.slices[k], wait_end);
	}
	tw_chunk_done(&c);
	return st;
}

static enum tw_status shares(struct tw_trace_file *f, const struct tw_thread_info *t,
        struct strip *s, uint8_t *ret_cells, struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_chunks(f, t->thread_id, &rows, &n, err);

	s->width_ns = (s->to_ns - s->from_ns) / s->cells + 1;
	if (st == TW_OK)
		st = cover_level(f, pick_level(rows, n, s), s, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < s->cells; i++) {
		double share = (double)s->covered_ns[i] * 255 / (double)s->width_ns;
		uint8_t cell = share >= 255 ? 255 : share > 0 ? (uint8_t)share : 0;

		ret_cells[i] = cell == 0 && s->covered_ns[i] > 0 ? 1 : cell;
	}
	return TW_OK;
}

enum tw_status tw_query_activity_range(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_lanes_query *q, uint8_t *ret_cells, struct tw_err *err)
{
	struct strip s = {.from_ns = q->from_ns,
	        .to_ns = q->to_ns,
	        .cells = q->cells,
	        .waits = &q->waits,
	        .few = SLICES_FEW};

	return shares(f, t, &s, ret_cells, err);
}

enum tw_status tw_query_activity(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_waits *waits, uint8_t ret[TW_ACTIVITY_CELLS], int64_t *ret_running_ns,
        struct tw_err *err)
{
	const struct tw_trace_info *info = tw_trace_file_info(f);
	struct strip s = {.from_ns = info->start_ns,
	        .to_ns = info->end_ns > info->start_ns ? info->end_ns : info->start_ns + 1,
	        .waits = waits,
	        .cells = TW_ACTIVITY_CELLS};
	enum tw_status st = shares(f, t, &s, ret, err);

	if (ret_running_ns && !s.cpu_unknown)
		*ret_running_ns = s.cpu_ns;
	for (uint32_t i = 0; ret_running_ns && s.cpu_unknown && i < s.cells; i++)
		*ret_running_ns = (i ? *ret_running_ns : 0) + s.covered_ns[i];
	return st;
}

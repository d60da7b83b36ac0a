/*
 * builder_mip.c - chunks of one level, and the zoomed-out levels.
 *
 * A mip level is a simplified view of a thread: slices at least as long as the level's threshold
 * are kept, and a run of shorter siblings separated by less than the threshold becomes one slice
 * with their common span, the method of the longest, and the number of slices it represents
 * (including those below them).  Parents are never shorter than their children, so the result is
 * always a forest, in the same pre-order and the same columns.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

#include "decoder/base/sum.h"

enum { MIP_FROM = TW_CHUNK_SLICES, MIP_STOP = 4096, FIRST_SHARE = 64, NEXT_SHARE = 8 };

enum tw_status tw_chunker_init(struct chunker *c, struct tw_buf *payload, struct tw_trace_out *out)
{
	*c = (struct chunker){.payload = payload, .out = out, .writer = tw_chunk_writer_new()};
	return c->writer ? TW_OK : TW_NOMEM;
}

void tw_chunker_done(struct chunker *c)
{
	tw_chunk_writer_free(c->writer);
	*c = (struct chunker){0};
}

void tw_chunker_start(struct chunker *c, uint32_t thread_id, uint32_t level, int64_t min_dur_ns)
{
	(void)tw_chunk_writer_start(c->writer, NULL, 0);
	c->thread_id = thread_id;
	c->level = level;
	c->min_dur_ns = min_dur_ns;
}

enum tw_status tw_chunker_flush(struct chunker *c, struct tw_err *err)
{
	const struct tw_chunk_facts facts = *tw_chunk_writer_facts(c->writer);
	const struct tw_chunk_info info = {.thread_id = c->thread_id,
	        .level = c->level,
	        .start_ns = facts.start_ns,
	        .end_ns = facts.end_ns,
	        .slices = facts.slices,
	        .open = facts.open,
	        .min_dur_ns = c->min_dur_ns};

	if (facts.slices == 0)
		return TW_OK;
	tw_buf_clear(c->payload);
	if (tw_chunk_writer_finish(c->writer, c->payload) != TW_OK)
		return tw_fail(err, TW_NOMEM, "no memory to write a chunk");
	return c->out->ops->chunk(c->out, &info, c->payload, err);
}

enum tw_status tw_chunker_add(
        struct chunker *c, const struct tw_slice *s, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t added;

	for (; st == TW_OK && n; s += added, n -= added) {
		st = tw_chunk_writer_add(c->writer, s, n, &added);
		if (st != TW_OK)
			return tw_fail(err, st, "no memory to write a chunk");
		if (tw_chunk_writer_facts(c->writer)->slices == TW_CHUNK_SLICES)
			st = tw_chunker_flush(c, err);
	}
	return st;
}

uint32_t tw_mip_plan(const struct track *t, int64_t thresholds_ns[TW_MIP_LEVELS])
{
	uint64_t counts[TW_DURATION_BITS + 1] = {0};
	uint64_t allowed = t->n / FIRST_SHARE;
	uint64_t longer = 0;
	uint32_t levels = 0;
	int bit = TW_DURATION_BITS;
	int cuts[TW_MIP_LEVELS];

	if (t->n <= MIP_FROM)
		return 0;
	if (t->by_bits)
		memcpy(counts, t->by_bits, sizeof counts);
	for (uint64_t i = 0; !t->by_bits && i < t->n; i++)
		counts[tw_duration_bits(tw_record_call(&t->records, i).dur_ns)]++;
	while (levels < TW_MIP_LEVELS) {
		longer = 0;
		for (bit = TW_DURATION_BITS; bit > 0 && longer + counts[bit] <= allowed; bit--)
			longer += counts[bit];
		if (levels == 0 || bit != cuts[levels - 1]) {
			cuts[levels] = bit;
			thresholds_ns[levels++] = (int64_t)1 << bit;
		}
		if (allowed <= MIP_STOP)
			break;
		allowed /= NEXT_SHARE;
	}
	return levels;
}

static enum tw_status flush_run(struct mip *m, struct tw_err *err)
{
	if (!m->running)
		return TW_OK;
	m->running = false;
	return tw_chunker_add(&m->chunker, &m->run, 1, err);
}

static void extend_run(struct mip *m, const struct tw_slice *s)
{
	m->run.dur_ns = s->start_ns + s->dur_ns - m->run.start_ns;
	m->run.merged++;
	if (s->cpu_ns >= 0)
		m->run.cpu_ns = tw_sum_ns(m->run.cpu_ns < 0 ? 0 : m->run.cpu_ns, s->cpu_ns);
	if (s->dur_ns > m->longest_ns) {
		m->longest_ns = s->dur_ns;
		m->run.method = s->method;
	}
}

static enum tw_status add_slice(struct mip *m, const struct tw_slice *s, struct tw_err *err)
{
	enum tw_status st;

	if (m->running && s->depth == m->run.depth && s->dur_ns < m->threshold_ns &&
	        s->start_ns - (m->run.start_ns + m->run.dur_ns) < m->threshold_ns) {
		extend_run(m, s);
		return TW_OK;
	}
	st = flush_run(m, err);
	if (st != TW_OK)
		return st;
	if (s->dur_ns >= m->threshold_ns)
		return tw_chunker_add(&m->chunker, s, 1, err);
	m->running = true;
	m->run = *s;
	m->run.merged = 1;
	m->longest_ns = s->dur_ns;
	return TW_OK;
}

static bool is_below_run(const struct mip *m, const struct tw_slice *s)
{
	return m->running && s->depth > m->run.depth;
}

/* Most slices are below a run of the first level.  They are below one of each other level too: its
 * threshold is larger, so the run's slices are short there as well, and in a run or below one. */
enum tw_status tw_mips_add(
        struct mip *mips, uint32_t n_mips, const struct tw_slice *s, uint32_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	uint32_t i = 0;

	while (st == TW_OK && n_mips && i < n) {
		uint32_t from = i;

		while (i < n && is_below_run(&mips[0], &s[i]))
			i++;
		for (uint32_t k = 0; k < n_mips; k++)
			mips[k].run.merged += i - from;
		for (uint32_t k = 0; st == TW_OK && i < n && k < n_mips; k++)
			if (is_below_run(&mips[k], &s[i]))
				mips[k].run.merged++;
			else
				st = add_slice(&mips[k], &s[i], err);
		i++;
	}
	return st;
}

enum tw_status tw_mip_finish(struct mip *m, struct tw_err *err)
{
	enum tw_status st = flush_run(m, err);

	return st == TW_OK ? tw_chunker_flush(&m->chunker, err) : st;
}

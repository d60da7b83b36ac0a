/*
 * fleet_bootstrap.c - quantiles and means of both sides, with bootstrap intervals.
 *
 * A resample counts each trace a Poisson number of times, so it can be drawn from the counts of a
 * sketch's buckets. The seed is fixed: the same traces give the same intervals.
 */
#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/fleet/fleet_compare.h"
#include "server/stats/rollup.h"

/* BELOW, ABOVE: ranks of 500 sorted resamples, with 2.5 % beyond each */
enum { FEW = 12, BELOW = 12, ABOVE = 487 };

struct bin { /* values in one bucket of the sketch */
	double value;
	double count[TW_MIX_CLASSES]; /* observed or resampled */
};
struct side {
	struct bin *real, *drawn; /* by rising value */
	size_t n;
	const double *weight;
};

/* --- drawing --- */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static double uniform(uint64_t *seed) /* above 0, up to 1 */
{
	return (double)((next(seed) >> 11) + 1) / 9007199254740992.0;
}

static double poisson(double mean, uint64_t *seed)
{
	double n = 0, p;

	if (mean <= 0)
		return 0;
	if (mean > FEW) { /* normal approximation */
		n = mean +
		    sqrt(mean) * sqrt(-2 * log(uniform(seed))) * cos(2 * M_PI * uniform(seed));
		return n < 0 ? 0 : floor(n + 0.5);
	}
	p = uniform(seed);
	while (p > exp(-mean)) {
		p *= uniform(seed);
		n++;
	}
	return n;
}

static void draw(struct side *s, uint64_t *seed)
{
	for (size_t i = 0; i < s->n; i++)
		for (int k = 0; k < TW_MIX_CLASSES; k++)
			s->drawn[i].count[k] = poisson(s->real[i].count[k], seed);
}

/* --- numbers of a sample --- */

/* The weight of one value of each class. */
static double weigh(const struct bin *bins, const struct side *s, double each[TW_MIX_CLASSES])
{
	double all = 0;

	for (int k = 0; k < TW_MIX_CLASSES; k++) {
		double n = 0;

		for (size_t i = 0; i < s->n; i++)
			n += bins[i].count[k];
		each[k] = n > 0 ? s->weight[k] / n : 0;
		all += n > 0 ? s->weight[k] : 0;
	}
	return all;
}

static void measure(const struct bin *bins, const struct side *s, double ret[TW_COMPARE_STATS])
{
	double each[TW_MIX_CLASSES], all = weigh(bins, s, each), sum = 0, so_far = 0;
	int q = 0;

	memset(ret, 0, TW_COMPARE_STATS * sizeof *ret);
	for (size_t i = 0; all > 0 && i < s->n; i++) {
		double here = 0;

		for (int k = 0; k < TW_MIX_CLASSES; k++)
			here += bins[i].count[k] * each[k];
		so_far += here;
		sum += here * bins[i].value;
		while (q < TW_FLEET_QUANTILES && here > 0 &&
		        so_far >= all * (tw_fleet_percents[q] / 100.0) * (1 - 1e-12))
			ret[q++] = bins[i].value;
	}
	ret[TW_COMPARE_MEAN] = all > 0 ? sum / all : 0;
}

/* --- both sides --- */

static double clamped(uint32_t bucket, const struct tw_sketch *s)
{
	int64_t v = tw_bucket_ns(bucket);

	return (double)(v < s->min ? s->min : v > s->max ? s->max : v);
}

static bool fill(struct side *s, const struct tw_sketch *of, struct tw_arena *a)
{
	s->real = tw_arena_zalloc(a, TW_BUCKETS, sizeof *s->real);
	s->drawn = tw_arena_zalloc(a, TW_BUCKETS, sizeof *s->drawn);
	if (!s->real || !s->drawn)
		return false;
	for (uint32_t i = 0; i < TW_BUCKETS; i++) {
		struct bin *b = &s->real[s->n];
		bool any = false;

		for (int k = 0; k < TW_MIX_CLASSES; k++) {
			b->count[k] = s->weight[k] > 0 ? (double)of[k].counts[i] : 0;
			if (b->count[k] > 0 && !any)
				b->value = clamped(i, &of[k]);
			any = any || b->count[k] > 0;
		}
		s->drawn[s->n].value = b->value;
		s->n += any;
	}
	return true;
}

static int rising(const void *pa, const void *pb)
{
	double a = *(const double *)pa;
	double b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static void interval(double *samples, double *ret_low, double *ret_high)
{
	TW_SORT(samples, TW_COMPARE_RESAMPLES, rising);
	*ret_low = samples[BELOW];
	*ret_high = samples[ABOVE];
}

struct samples { /* resampled values of one statistic */
	double of[TW_SIDES][TW_COMPARE_RESAMPLES], change[TW_COMPARE_RESAMPLES];
};

static void resample(struct side sides[TW_SIDES], struct samples all[TW_COMPARE_STATS])
{
	uint64_t seed = UINT64_C(0x9E3779B97F4A7C15);
	double one[TW_SIDES][TW_COMPARE_STATS];

	for (int i = 0; i < TW_COMPARE_RESAMPLES; i++) {
		for (int side = 0; side < TW_SIDES; side++) {
			draw(&sides[side], &seed);
			measure(sides[side].drawn, &sides[side], one[side]);
		}
		for (int k = 0; k < TW_COMPARE_STATS; k++) {
			double a = one[TW_SIDE_A][k], b = one[TW_SIDE_B][k];

			all[k].of[TW_SIDE_A][i] = a;
			all[k].of[TW_SIDE_B][i] = b;
			all[k].change[i] = a > 0 ? b / a - 1 : 0;
		}
	}
}

/* For a quantile, at least one trace must be expected beyond it. */
static bool enough(uint64_t n, int stat)
{
	double beyond = stat < TW_FLEET_QUANTILES
	                        ? (double)n * (100 - tw_fleet_percents[stat]) / 100
	                        : (double)n;

	return n >= TW_COMPARE_ENOUGH && beyond >= 1;
}

static void conclude(
        struct tw_compared_stat *s, struct samples *of, const uint64_t n[TW_SIDES], int stat)
{
	double a = s->of[TW_SIDE_A], b = s->of[TW_SIDE_B];

	s->change = a > 0 ? b / a - 1 : 0;
	s->enough = a > 0 && enough(n[TW_SIDE_A], stat) && enough(n[TW_SIDE_B], stat);
	for (int side = 0; side < TW_SIDES; side++)
		interval(of->of[side], &s->low[side], &s->high[side]);
	interval(of->change, &s->change_low, &s->change_high);
	s->sure = s->enough && (s->change_low > 0 || s->change_high < 0);
}

enum tw_status tw_fleet_compare_stats(const struct tw_mix *m, const tw_mix_sketches s,
        struct tw_arena *a, struct tw_compared_stat ret[TW_COMPARE_STATS], struct tw_err *err)
{
	struct samples *all = tw_arena_alloc(a, TW_COMPARE_STATS, sizeof *all);
	struct side sides[TW_SIDES] = {
	        {.weight = m->weight[TW_SIDE_A]}, {.weight = m->weight[TW_SIDE_B]}};
	double real[TW_SIDES][TW_COMPARE_STATS];
	uint64_t n[TW_SIDES] = {0};

	for (int side = 0; side < TW_SIDES; side++) {
		if (!all || !fill(&sides[side], s[side], a))
			return tw_rollup_fail_too_large(err);
		measure(sides[side].real, &sides[side], real[side]);
		for (int k = 0; k < TW_MIX_CLASSES; k++)
			n[side] += m->weight[side][k] > 0 ? s[side][k].n : 0;
	}
	resample(sides, all);
	memset(ret, 0, TW_COMPARE_STATS * sizeof *ret);
	for (int k = 0; k < TW_COMPARE_STATS; k++) {
		ret[k].of[TW_SIDE_A] = real[TW_SIDE_A][k];
		ret[k].of[TW_SIDE_B] = real[TW_SIDE_B][k];
		conclude(&ret[k], &all[k], n, k);
	}
	return TW_OK;
}

enum tw_status tw_fleet_mix_lengths(
        const struct tw_mix *m, struct tw_arena *a, tw_mix_sketches s, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(a, 1, sizeof *h);
	enum tw_status st = TW_OK;

	if (!h)
		return tw_rollup_fail_too_large(err);
	for (int k = 0; st == TW_OK && k < TW_SIDES * TW_MIX_CLASSES; k++) {
		int side = k / TW_MIX_CLASSES, class = k % TW_MIX_CLASSES;
		const struct tw_fleet_cells *cells = &m->of[side][class];
		const struct tw_fleet_group g = {"", "", cells->traces, cells->list, cells->n};
		struct tw_fleet_lengths unused;

		st = tw_fleet_lengths(&g, h, &unused, err);
		if (st == TW_OK)
			s[side][class] = h->lengths;
	}
	return st;
}

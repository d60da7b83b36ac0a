/*
 * fleet_bootstrap.c - quantiles and means of both sides, with bootstrap intervals.
 *
 * A resample counts each trace a Poisson number of times, so it can be drawn from the counts of a
 * sketch's buckets. The seed is fixed: the same traces give the same intervals.
 */
#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/fleet/fleet_compare.h"
#include "server/stats/rollup.h"

/* BELOW, ABOVE: ranks of 500 sorted resamples, with 2.5 % beyond each */
enum { FEW = 12, BELOW = 12, ABOVE = 487 };

struct bin { /* values of one stratum in one bucket of the sketch */
	double value;
	size_t stratum;
	double count; /* observed or resampled */
};
struct side {
	const struct tw_mix *m;
	int side;
	struct bin *real, *drawn; /* by rising value */
	size_t n;
	double *each; /* scratch space, one per stratum */
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
	double n = 0, p, least;

	if (mean <= 0)
		return 0;
	if (mean > FEW) { /* normal approximation */
		n = mean +
		    sqrt(mean) * sqrt(-2 * log(uniform(seed))) * cos(2 * M_PI * uniform(seed));
		return n < 0 ? 0 : floor(n + 0.5);
	}
	least = exp(-mean);
	p = uniform(seed);
	while (p > least) {
		p *= uniform(seed);
		n++;
	}
	return n;
}

static void draw(struct side *s, uint64_t *seed)
{
	for (size_t i = 0; i < s->n; i++)
		s->drawn[i].count = poisson(s->real[i].count, seed);
}

/* --- numbers of a sample --- */

/* Sets s->each to the weight of one value of each stratum, and returns that of all. */
static double weigh(const struct bin *bins, const struct side *s)
{
	double all = 0;

	memset(s->each, 0, s->m->n * sizeof *s->each);
	for (size_t i = 0; i < s->n; i++)
		s->each[bins[i].stratum] += bins[i].count;
	for (size_t k = 0; k < s->m->n; k++) {
		const double weight = s->m->strata[k].weight[s->side], n = s->each[k];

		s->each[k] = n > 0 ? weight / n : 0;
		all += n > 0 ? weight : 0;
	}
	return all;
}

static void measure(const struct bin *bins, const struct side *s, double ret[TW_COMPARE_STATS])
{
	double all = weigh(bins, s), sum = 0, so_far = 0;
	int q = 0;

	memset(ret, 0, TW_COMPARE_STATS * sizeof *ret);
	for (size_t i = 0; all > 0 && i < s->n; i++) {
		const double here = bins[i].count * s->each[bins[i].stratum];

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

static bool fill(struct side *s, const struct tw_stratum_values *of, struct tw_arena *a)
{
	size_t most = 0;

	for (size_t at = 0; at < s->m->compared; at++)
		most += of[at].of[s->side].n
		                ? of[at].of[s->side].last - of[at].of[s->side].first + 1
		                : 0;
	s->real = tw_arena_alloc(a, most + 1, sizeof *s->real);
	s->drawn = tw_arena_alloc(a, most + 1, sizeof *s->drawn);
	s->each = tw_arena_alloc(a, s->m->n + 1, sizeof *s->each);
	if (!s->real || !s->drawn || !s->each)
		return false;
	for (uint32_t i = 0; i < TW_BUCKETS; i++) {
		const size_t first = s->n;

		for (size_t k = 0; k < s->m->n; k++) {
			const struct tw_stratum *stratum = &s->m->strata[k];
			const struct tw_sketch *sketch = &of[stratum->at].of[s->side];

			if (!(stratum->weight[s->side] > 0) || !sketch->counts[i])
				continue;
			s->real[s->n] = (struct bin){
			        s->n > first ? s->real[first].value : clamped(i, sketch), k,
			        (double)sketch->counts[i]};
			s->drawn[s->n] = s->real[s->n];
			s->n++;
		}
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

static enum tw_status resample(
        struct side sides[TW_SIDES], struct samples all[TW_COMPARE_STATS], struct tw_err *err)
{
	uint64_t seed = UINT64_C(0x9E3779B97F4A7C15);
	double one[TW_SIDES][TW_COMPARE_STATS];

	for (int i = 0; i < TW_COMPARE_RESAMPLES; i++) {
		if (tw_work_is_overdue())
			return tw_fail_overdue(err);
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
	return TW_OK;
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

enum tw_status tw_fleet_compare_stats(const struct tw_mix *m, const struct tw_stratum_values *s,
        struct tw_arena *a, struct tw_compared_stat ret[TW_COMPARE_STATS], struct tw_err *err)
{
	struct samples *all = tw_arena_alloc(a, TW_COMPARE_STATS, sizeof *all);
	struct side sides[TW_SIDES] = {{.m = m, .side = TW_SIDE_A}, {.m = m, .side = TW_SIDE_B}};
	double real[TW_SIDES][TW_COMPARE_STATS];
	uint64_t n[TW_SIDES] = {0};
	enum tw_status st;

	for (int side = 0; side < TW_SIDES; side++) {
		if (!all || !fill(&sides[side], s, a))
			return tw_rollup_fail_too_large(err);
		measure(sides[side].real, &sides[side], real[side]);
		for (size_t k = 0; k < m->n; k++)
			n[side] +=
			        m->strata[k].weight[side] > 0 ? s[m->strata[k].at].of[side].n : 0;
	}
	st = resample(sides, all, err);
	if (st != TW_OK)
		return st;
	memset(ret, 0, TW_COMPARE_STATS * sizeof *ret);
	for (int k = 0; k < TW_COMPARE_STATS; k++) {
		ret[k].of[TW_SIDE_A] = real[TW_SIDE_A][k];
		ret[k].of[TW_SIDE_B] = real[TW_SIDE_B][k];
		conclude(&ret[k], &all[k], n, k);
	}
	return TW_OK;
}

enum tw_status tw_fleet_mix_lengths(const struct tw_mix *m, struct tw_arena *a,
        struct tw_stratum_values **ret, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(a, 1, sizeof *h);
	struct tw_stratum_values *s = tw_arena_zalloc(a, m->compared + 1, sizeof *s);
	enum tw_status st = TW_OK;

	if (!h || !s)
		return tw_rollup_fail_too_large(err);
	for (size_t k = 0; st == TW_OK && k < TW_SIDES * m->n; k++) {
		const struct tw_stratum *stratum = &m->strata[k / TW_SIDES];
		const struct tw_fleet_cells *cells = &stratum->of[k % TW_SIDES];
		const struct tw_fleet_group g = {"", "", cells->traces, cells->list, cells->n};
		struct tw_fleet_lengths unused;

		if (stratum->left_out)
			continue;
		st = tw_fleet_lengths(&g, h, &unused, err);
		if (st == TW_OK)
			s[stratum->at].of[k % TW_SIDES] = h->lengths;
	}
	*ret = s;
	return st;
}

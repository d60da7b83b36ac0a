/*
 * fleet_compare.c - means of methods over strata, and which of their changes are significant.
 */
#include <math.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/fleet/fleet_compare.h"
#include "server/stats/rollup.h"

const char *const tw_compare_stat_names[TW_COMPARE_STATS + 1] = {
        "p50", "p75", "p95", "p99", "mean", NULL};

/* --- significance --- */

/* The probability of a difference of this many standard errors by chance: a t statistic as a z of
 * the same probability (Wallace's approximation). */
static double probability(double errors, double freedom)
{
	const double v = freedom;

	if (v < 1)
		return 1;
	return erfc((8 * v + 1) / (8 * v + 3) * sqrt(v * log1p(errors * errors / v)) / M_SQRT2);
}

double tw_compare_margin(const struct tw_compared_mean *mean)
{
	const double v = mean->freedom;
	double z;

	if (v < 1)
		return INFINITY;
	z = 1.959964 * (8 * v + 3) / (8 * v + 1);
	return mean->error * sqrt(v * expm1(z * z / v));
}

static double change_of(const struct tw_compared_mean *m)
{
	return m->of[TW_SIDE_B] - m->of[TW_SIDE_A];
}

/* The change in standard errors. */
static double errors_of(const struct tw_compared_mean *m)
{
	return m->error > 0 ? fabs(change_of(m)) / m->error : change_of(m) != 0 ? INFINITY : 0;
}

static double probability_of(const struct tw_compared_mean *m)
{
	if (m->error > 0)
		return probability(errors_of(m), m->freedom);
	return change_of(m) != 0 && m->freedom >= 1 ? 0 : 1;
}

/* --- a mean over strata --- */

/* The variance of so few values is unreliable, so a side of a stratum with fewer traces that have
 * the method gets the variance of both sides together. */
enum { FEW = 5 };

static double mean_of(const struct tw_stratum_sums *s)
{
	return s->n > 0 ? s->sum / s->n : 0;
}

/* 0 for one trace, and for rounding errors of equal values. */
static double variance_of(const struct tw_stratum_sums *s)
{
	const double mean = mean_of(s);
	const double beyond = s->squares - s->n * mean * mean;

	return s->n > 1 && beyond > 1e-12 * s->squares ? beyond / (s->n - 1) : 0;
}

void tw_compared_add(struct tw_compared_sum *x, const struct tw_stratum *s,
        const struct tw_stratum_sums of[TW_SIDES])
{
	const struct tw_stratum_sums both = {of[TW_SIDE_A].n + of[TW_SIDE_B].n,
	        of[TW_SIDE_A].sum + of[TW_SIDE_B].sum,
	        of[TW_SIDE_A].squares + of[TW_SIDE_B].squares};

	for (int side = 0; side < TW_SIDES; side++) {
		const struct tw_stratum_sums *spread = of[side].in < FEW ? &both : &of[side];
		const double weight = s->weight[side];
		double variance;

		if (of[side].n < 1)
			continue;
		variance = weight * weight * variance_of(spread) / of[side].n;
		x->to.of[side] += weight * mean_of(&of[side]);
		x->to.error += variance;
		if (spread->n > 1)
			x->per_freedom += variance * variance / (spread->n - 1);
	}
}

/* The degrees of freedom are by Satterthwaite. */
void tw_compared_end(struct tw_compared_sum *x, const uint64_t traces[TW_SIDES])
{
	const double variance = x->to.error;
	const uint64_t a = traces[TW_SIDE_A], b = traces[TW_SIDE_B];
	const double least = (double)(a < b ? a : b) - 1;

	x->to.error = sqrt(variance);
	if (least < 1)
		x->to.freedom = 0;
	else
		x->to.freedom = x->per_freedom > 0 ? variance * variance / x->per_freedom : least;
}

/* --- methods --- */

TW_ORDER_BY(same_name, struct tw_compared_entry, TW_RISING(name), TW_RISING(naming->descriptor))

TW_ORDER_BY(by_name, struct tw_compared_entry, same_name(a, b), TW_RISING(stratum), TW_RISING(side))

static enum tw_status list_entries(const struct tw_mix *m, const struct tw_stratum_rollup *r,
        struct tw_arena *a, struct tw_compared_entry **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_compared_entry *list;
	size_t all = 0, n = 0;

	for (size_t k = 0; k < m->n; k++)
		all += (size_t)r[k].of[TW_SIDE_A].n + r[k].of[TW_SIDE_B].n;
	list = tw_arena_alloc(a, all + 1, sizeof *list);
	if (!list)
		return tw_rollup_fail_too_large(err);
	for (size_t k = 0; k < TW_SIDES * m->n; k++) {
		const size_t stratum = k / TW_SIDES;
		const int side = (int)(k % TW_SIDES);
		const struct tw_rollup *of = &r[stratum].of[side];

		for (uint32_t i = 0; !m->strata[stratum].left_out && i < of->n; i++) {
			const struct tw_rollup_naming *naming = &r[stratum].names[side][i];
			struct tw_str name = tw_fleet_name(naming, a);

			if (!name.ptr)
				return tw_rollup_fail_too_large(err);
			list[n++] = (struct tw_compared_entry){
			        naming, name, &of->methods[i], stratum, side};
		}
	}
	TW_SORT(list, n, by_name);
	*ret = list;
	*ret_n = n;
	return TW_OK;
}

enum tw_status tw_compared_values(const struct tw_mix *mix, const struct tw_compared_method *m,
        struct tw_stratum_values *s, struct tw_err *err)
{
	struct tw_rollup_worst worst = {0};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < m->n_entries; i++) {
		const struct tw_compared_entry *e = &m->entries[i];

		st = tw_rollup_sum(e->method, TW_ROLLUP_WALL,
		        &s[mix->strata[e->stratum].at].of[e->side], &worst, err);
	}
	return st;
}

/* Sum of squares of the values. */
static double squares(const struct tw_sketch *s)
{
	double sum = 0;

	for (uint32_t i = s->first; s->n && i <= s->last; i++) {
		double v = (double)tw_bucket_ns(i);

		sum += (double)s->counts[i] * v * v;
	}
	return sum;
}

struct scenario { /* of compared strata */
	double weight[TW_SIDES];
	uint64_t traces[TW_SIDES];
};

enum mean { SELF, TOTAL, CALLS, SHARE, MEANS };

struct merging { /* methods of one name */
	const struct tw_mix *m;
	const struct scenario *scenario; /* one per stratum: that of the stratum */
	bool mixed;                      /* there are several */
	struct tw_sketch *s;             /* scratch space */
	struct tw_compared_sum means[MEANS];
	struct tw_compared_sum part; /* self of the current scenario */
	size_t n_parts;
	double part_p; /* of the least probable scenario */
};

static size_t stratum_end(const struct tw_compared_entry *e, size_t i, size_t n)
{
	const size_t first = i;

	while (i < n && e[i].stratum == e[first].stratum)
		i++;
	return i;
}

/* Traces without the method count as 0. */
static enum tw_status sum_metric(struct merging *x, const struct tw_compared_entry *e, size_t n,
        enum tw_rollup_metric metric, struct tw_stratum_sums ret[TW_SIDES],
        uint64_t ret_traces[TW_SIDES], struct tw_err *err)
{
	const struct tw_stratum *s = &x->m->strata[e[0].stratum];
	struct tw_rollup_worst worst = {0};

	for (int side = 0; side < TW_SIDES; side++) {
		tw_sketch_clear(x->s);
		for (size_t i = 0; i < n; i++) {
			enum tw_status st = e[i].side == side ? tw_rollup_sum(e[i].method, metric,
			                                                x->s, &worst, err)
			                                      : TW_OK;

			if (st != TW_OK)
				return st;
		}
		ret[side] = (struct tw_stratum_sums){(double)s->of[side].traces, (double)x->s->sum,
		        squares(x->s), (double)x->s->n};
		ret_traces[side] = x->s->n;
	}
	return TW_OK;
}

static void add_share(
        struct tw_compared_sum *x, const struct tw_stratum *s, const uint64_t in[TW_SIDES])
{
	for (int side = 0; side < TW_SIDES; side++) {
		const double n = (double)s->of[side].traces, weight = s->weight[side];
		const double share = n > 0 ? fmin(1, (double)in[side] / n) : 0;
		const double smooth = (share * n + 1) / (n + 2); /* add-one smoothing */
		const double variance = n > 0 ? weight * weight * smooth * (1 - smooth) / n : 0;

		x->to.of[side] += weight * share;
		x->to.error += variance;
		x->per_freedom += variance * variance / fmax(n - 1, 1);
	}
}

static enum tw_status add_entries(
        struct merging *x, const struct tw_compared_entry *e, size_t n, struct tw_err *err)
{
	static const enum tw_rollup_metric metrics[] = {
	        [SELF] = TW_ROLLUP_SELF, [TOTAL] = TW_ROLLUP_WALL, [CALLS] = TW_ROLLUP_CALLS};
	const struct tw_stratum *s = &x->m->strata[e[0].stratum];
	uint64_t traces[TW_SIDES] = {0};

	for (int k = SELF; k <= CALLS; k++) {
		struct tw_stratum_sums sums[TW_SIDES];
		enum tw_status st = sum_metric(x, e, n, metrics[k], sums, traces, err);

		if (st != TW_OK)
			return st;
		tw_compared_add(&x->means[k], s, sums);
		if (k == SELF)
			tw_compared_add(&x->part, s, sums);
	}
	add_share(&x->means[SHARE], s, traces);
	return TW_OK;
}

/* Remembers the scenario if its change is the least probable one so far. */
static void end_part(struct merging *x, size_t stratum, struct tw_compared_method *to)
{
	const struct scenario *s = &x->scenario[stratum];
	double p;

	tw_compared_end(&x->part, s->traces);
	p = probability_of(&x->part.to);
	if (x->n_parts++ == 0 || p < x->part_p) {
		x->part_p = p;
		to->scenario = x->m->strata[stratum].scenario;
		to->in = x->part.to;
		to->in.error /= s->weight[TW_SIDE_A];
		for (int side = 0; side < TW_SIDES; side++)
			to->in.of[side] /= s->weight[side];
	}
	x->part = (struct tw_compared_sum){0};
}

/* A change in one scenario may be certain where that of all traces is not, so each is tested too,
 * and p is that of the least probable of these tests (Bonferroni). */
static void conclude(struct merging *x, struct tw_compared_method *to)
{
	struct tw_compared_mean *const means[MEANS] = {
	        &to->self, &to->total, &to->calls, &to->share};

	for (int k = 0; k < MEANS; k++) {
		tw_compared_end(&x->means[k], x->m->traces);
		*means[k] = x->means[k].to;
	}
	to->p = probability_of(&to->self);
	if (!x->mixed || errors_of(&to->in) < errors_of(&to->self) * (1 - 1e-9))
		to->scenario = NULL;
	if (x->mixed && x->n_parts > 1)
		to->p = fmin(1, (double)(x->n_parts + 1) * fmin(to->p, x->part_p));
}

static enum tw_status compare_method(
        struct merging *x, struct tw_compared_method *to, struct tw_err *err)
{
	const struct tw_compared_entry *e = to->entries;
	const struct tw_stratum *strata = x->m->strata;

	memset(x->means, 0, sizeof x->means);
	x->part = (struct tw_compared_sum){0};
	x->n_parts = 0;
	for (size_t i = 0; i < to->n_entries;) {
		const size_t end = stratum_end(e, i, to->n_entries);
		enum tw_status st = add_entries(x, &e[i], end - i, err);

		if (st != TW_OK)
			return st;
		if (x->mixed &&
		        (end == to->n_entries || strcmp(strata[e[i].stratum].scenario,
		                                         strata[e[end].stratum].scenario) != 0))
			end_part(x, e[i].stratum, to);
		i = end;
	}
	conclude(x, to);
	return TW_OK;
}

/* Sums of the scenarios; whether there are several, with equal weights on both sides. */
static bool sum_scenarios(const struct tw_mix *m, struct scenario *ret)
{
	size_t first = 0, n = 0;

	for (size_t i = 0; i < m->n && m->strata[i].scenario; i++) {
		const struct tw_stratum *s = &m->strata[i];
		const bool is_first = i == 0 || strcmp(m->strata[first].scenario, s->scenario) != 0;

		first = is_first ? i : first;
		for (int side = 0; side < TW_SIDES; side++) {
			ret[first].weight[side] += s->weight[side];
			ret[first].traces[side] += s->left_out ? 0 : s->of[side].traces;
		}
		for (size_t k = first; k < i; k++)
			ret[k + 1] = ret[first];
	}
	for (size_t i = 0; i < m->n && m->strata[i].scenario; i++)
		n += ret[i].weight[TW_SIDE_A] > 0 &&
		     (i == 0 || strcmp(m->strata[i - 1].scenario, m->strata[i].scenario) != 0);
	return m->corrected && n > 1;
}

TW_ORDER_BY(by_p, struct tw_compared_method, TW_RISING(p))

static int by_change(const void *pa, const void *pb)
{
	const struct tw_compared_method *a = pa;
	const struct tw_compared_method *b = pb;
	double x = fabs(change_of(&a->self)), y = fabs(change_of(&b->self));

	if (x != y)
		return x > y ? -1 : 1;
	return tw_str_cmp(a->name, b->name);
}

/* Thousands of methods are tested together, so significance is decided with a false discovery rate
 * of 1 in 20 (Benjamini and Hochberg). */
static void mark_significant(const struct tw_mix *m, struct tw_compared_method *list, size_t n)
{
	size_t sure = 0;

	TW_SORT(list, n, by_p);
	for (size_t i = 0; i < n; i++)
		if (list[i].p <= 0.05 * (double)(i + 1) / (double)n)
			sure = i + 1;
	for (size_t i = 0; i < sure; i++)
		list[i].sure = m->traces[TW_SIDE_A] >= TW_COMPARE_ENOUGH &&
		               m->traces[TW_SIDE_B] >= TW_COMPARE_ENOUGH;
	TW_SORT(list, n, by_change);
}

enum tw_status tw_fleet_compare_methods(const struct tw_mix *m, const struct tw_stratum_rollup *r,
        struct tw_arena *a, struct tw_compared_method **ret, size_t *ret_n, struct tw_err *err)
{
	struct scenario *scenarios = tw_arena_zalloc(a, m->n + 1, sizeof *scenarios);
	struct merging x = {.m = m, .s = tw_arena_zalloc(a, 1, sizeof *x.s)};
	struct tw_compared_entry *entries = NULL;
	struct tw_compared_method *list;
	size_t n_entries = 0, n_names = 0, n = 0;
	enum tw_status st = list_entries(m, r, a, &entries, &n_entries, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; i < n_entries; i++)
		n_names += i == 0 || same_name(&entries[i - 1], &entries[i]) != 0;
	list = tw_arena_zalloc(a, n_names + 1, sizeof *list);
	if (!x.s || !list || !scenarios)
		return tw_rollup_fail_too_large(err);
	x.scenario = scenarios;
	x.mixed = sum_scenarios(m, scenarios);
	for (size_t i = 0; i < n_entries; i++) {
		if (i == 0 || same_name(&entries[i - 1], &entries[i]) != 0)
			list[n++] = (struct tw_compared_method){.naming = entries[i].naming,
			        .name = entries[i].name,
			        .entries = &entries[i]};
		list[n - 1].n_entries++;
	}
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_work_is_overdue() ? tw_fail_overdue(err)
		                          : compare_method(&x, &list[i], err);
	if (st != TW_OK)
		return st;
	mark_significant(m, list, n);
	*ret = list;
	*ret_n = n;
	return TW_OK;
}

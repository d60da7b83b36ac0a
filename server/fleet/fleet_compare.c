#include "server/fleet/fleet_compare.h"
#include "server/stats/rollup.h"

#include <math.h>
#include <string.h>

#include "decoder/base/order.h"

const char *const tw_mix_names[TW_MIX_CLASSES] = {"low", "mid", "high", "unknown", ""};
const char *const tw_compare_stat_names[TW_COMPARE_STATS + 1] = {
        "p50", "p75", "p95", "p99", "mean", NULL};

/* --- device classes --- */

static int class_of(const struct tw_rollup_cell *c)
{
	int i = 0;

	while (i < TW_MIX_CLASSES - 1 && strcmp(tw_mix_names[i], c->dims.device_class) != 0)
		i++;
	return i;
}

static bool sort_cells(const struct tw_fleet_cells *side, const char *scenario, struct tw_arena *a,
        struct tw_fleet_cells of[TW_MIX_CLASSES])
{
	for (int i = 0; i < TW_MIX_CLASSES; i++) {
		of[i] = (struct tw_fleet_cells){
		        tw_arena_alloc(a, side->n + 1, sizeof(const struct tw_rollup_cell *)), 0,
		        0};
		if (!of[i].list)
			return false;
	}
	for (size_t i = 0; i < side->n; i++) {
		const struct tw_rollup_cell *c = side->list[i];
		struct tw_fleet_cells *to = &of[class_of(c)];

		if (scenario && strcmp(scenario, c->dims.scenario) != 0)
			continue;
		to->list[to->n++] = c;
		to->traces += c->traces;
	}
	return true;
}

/* Returns whether the sides have a device class in common. Without one, no weights are applied. */
static bool have_common(const struct tw_mix *m)
{
	bool any = false;

	for (int i = 0; i < TW_MIX_CLASSES; i++)
		any = any || (m->of[TW_SIDE_A][i].traces && m->of[TW_SIDE_B][i].traces);
	return any;
}

/* Returns whether any trace of either side has the class low, mid or high. */
static bool have_known(const struct tw_mix *m)
{
	bool any = false;

	for (int i = 0; i < TW_MIX_KNOWN; i++)
		any = any || m->of[TW_SIDE_A][i].traces || m->of[TW_SIDE_B][i].traces;
	return any;
}

/* With a single common class, weighting corrects nothing. */
static const char *note_of(const struct tw_mix *m)
{
	if (!m->all[TW_SIDE_A] || !m->all[TW_SIDE_B])
		return "";
	if (!have_known(m))
		return "No trace reports the class of its device (ram_mb or device_class), so "
		       "differences in the device mix could not be corrected.";
	return m->corrected
	               ? ""
	               : "The sides have no class of devices in common, so another mix of devices "
	                 "could not be corrected for.";
}

static void weigh(struct tw_mix *m)
{
	for (int i = 0; i < TW_MIX_CLASSES; i++) {
		bool a = m->of[TW_SIDE_A][i].traces > 0, b = m->of[TW_SIDE_B][i].traces > 0;

		m->left_out[i] = m->corrected && a != b;
		for (int side = 0; side < TW_SIDES; side++) {
			m->all[side] += m->of[side][i].traces;
			m->traces[side] += m->left_out[i] ? 0 : m->of[side][i].traces;
		}
	}
	for (int side = 0; side < TW_SIDES; side++)
		for (int i = 0; i < TW_MIX_CLASSES; i++) {
			int like = m->corrected ? TW_SIDE_A : side;

			if (!m->left_out[i] && m->traces[like])
				m->weight[side][i] =
				        (double)m->of[like][i].traces / (double)m->traces[like];
		}
}

enum tw_status tw_fleet_mix(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        bool correct, struct tw_arena *a, struct tw_mix *ret, struct tw_err *err)
{
	*ret = (struct tw_mix){.note = ""};
	for (int side = 0; side < TW_SIDES; side++)
		if (!sort_cells(&sides[side], scenario, a, ret->of[side]))
			return tw_rollup_fail_too_large(err);
	ret->corrected = correct && have_common(ret);
	weigh(ret);
	if (correct)
		ret->note = note_of(ret);
	return TW_OK;
}

/* --- significance --- */

/* Converts a t statistic to a z of the same probability (Wallace's approximation). */
static double freedom(const struct tw_mix *m)
{
	uint64_t a = m->traces[TW_SIDE_A], b = m->traces[TW_SIDE_B];
	uint64_t least = a < b ? a : b;

	return least > 1 ? (double)(least - 1) : 0;
}

/* The probability of a difference of this many standard errors by chance. */
static double probability(const struct tw_mix *m, double errors)
{
	double v = freedom(m);

	if (v < 1)
		return 1;
	return erfc((8 * v + 1) / (8 * v + 3) * sqrt(v * log1p(errors * errors / v)) / M_SQRT2);
}

double tw_compare_margin(const struct tw_mix *m, double error)
{
	double v = freedom(m), z;

	if (v < 1)
		return INFINITY;
	z = 1.959964 * (8 * v + 3) / (8 * v + 1);
	return error * sqrt(v * expm1(z * z / v));
}

double tw_compare_share_margin(const struct tw_mix *m, const double share[TW_SIDES])
{
	double variance = 0;

	for (int side = 0; side < TW_SIDES; side++) {
		double n = (double)m->traces[side];
		double s = (share[side] * n + 1) / (n + 2); /* add-one smoothing for few traces */

		if (m->traces[side] < TW_COMPARE_ENOUGH)
			return NAN;
		variance += s * (1 - s) / n;
	}
	return tw_compare_margin(m, sqrt(variance));
}

/* --- methods --- */

struct entry { /* a method of one side's class */
	const struct tw_rollup_naming *naming;
	struct tw_str name;
	const struct tw_rollup_method *method;
	int side, class;
};

TW_ORDER_BY(by_name, struct entry, TW_RISING(name), TW_RISING(naming->descriptor))

static enum tw_status list_entries(const struct tw_mix *m, const struct tw_fleet_rollups *r,
        struct tw_arena *a, struct entry **ret, size_t *ret_n, struct tw_err *err)
{
	struct entry *list;
	size_t all = 0, n = 0;

	for (int k = 0; k < TW_SIDES * TW_MIX_CLASSES; k++)
		all += r->of[k / TW_MIX_CLASSES][k % TW_MIX_CLASSES].n;
	list = tw_arena_alloc(a, all + 1, sizeof *list);
	if (!list)
		return tw_rollup_fail_too_large(err);
	for (int k = 0; k < TW_SIDES * TW_MIX_CLASSES; k++) {
		int side = k / TW_MIX_CLASSES, class = k % TW_MIX_CLASSES;
		const struct tw_rollup *of = &r->of[side][class];

		for (uint32_t i = 0; !m->left_out[class] && i < of->n; i++) {
			const struct tw_rollup_naming *naming = &r->names[side][class][i];
			struct tw_str name = tw_fleet_name(naming, a);

			if (!name.ptr)
				return tw_rollup_fail_too_large(err);
			list[n++] = (struct entry){naming, name, &of->methods[i], side, class};
		}
	}
	TW_SORT(list, n, by_name);
	*ret = list;
	*ret_n = n;
	return TW_OK;
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

struct adding { /* methods of one name being merged */
	const struct tw_mix *m;
	struct tw_sketch *s; /* scratch space */
	struct tw_compared_method *to;
};

/* The mean over all traces of the class; traces without the method count as 0. */
static enum tw_status add_metric(struct adding *x, const struct entry *e,
        enum tw_rollup_metric metric, struct tw_compared_mean *to, struct tw_err *err)
{
	struct tw_rollup_worst worst = {0};
	double weight = x->m->weight[e->side][e->class];
	double n = (double)x->m->of[e->side][e->class].traces, mean, spread;
	enum tw_status st;

	tw_sketch_clear(x->s);
	st = tw_rollup_sum(e->method, metric, x->s, &worst, err);
	if (st != TW_OK || n < 1)
		return st;
	mean = (double)x->s->sum / n;
	spread = squares(x->s) / n - mean * mean;
	to->of[e->side] += weight * mean;
	if (n > 1 && spread > 0)
		to->error += weight * weight * spread / (n - 1);
	if (metric == TW_ROLLUP_CALLS)
		x->to->share[e->side] += weight * fmin(1, (double)x->s->n / n);
	return TW_OK;
}

static enum tw_status add_entry(struct adding *x, const struct entry *e, struct tw_err *err)
{
	enum tw_status st = add_metric(x, e, TW_ROLLUP_SELF, &x->to->self, err);

	x->to->in[e->side][e->class] = e->method;
	if (st == TW_OK)
		st = add_metric(x, e, TW_ROLLUP_WALL, &x->to->total, err);
	if (st == TW_OK)
		st = add_metric(x, e, TW_ROLLUP_CALLS, &x->to->calls, err);
	return st;
}

static double change_of(const struct tw_compared_mean *m)
{
	return m->of[TW_SIDE_B] - m->of[TW_SIDE_A];
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

	for (size_t i = 0; i < n; i++) {
		struct tw_compared_mean *const means[] = {
		        &list[i].self, &list[i].total, &list[i].calls};

		for (int k = 0; k < 3; k++)
			means[k]->error = sqrt(means[k]->error);
		list[i].p = list[i].self.error > 0
		                    ? probability(m,
		                              fabs(change_of(&list[i].self)) / list[i].self.error)
		                    : (change_of(&list[i].self) != 0 && freedom(m) >= 1 ? 0 : 1);
	}
	TW_SORT(list, n, by_p);
	for (size_t i = 0; i < n; i++)
		if (list[i].p <= 0.05 * (double)(i + 1) / (double)n)
			sure = i + 1;
	for (size_t i = 0; i < sure; i++)
		list[i].sure = m->traces[TW_SIDE_A] >= TW_COMPARE_ENOUGH &&
		               m->traces[TW_SIDE_B] >= TW_COMPARE_ENOUGH;
	TW_SORT(list, n, by_change);
}

enum tw_status tw_fleet_compare_methods(const struct tw_mix *m, const struct tw_fleet_rollups *r,
        struct tw_arena *a, struct tw_compared_method **ret, size_t *ret_n, struct tw_err *err)
{
	struct adding x = {m, tw_arena_zalloc(a, 1, sizeof *x.s), NULL};
	struct entry *entries = NULL;
	struct tw_compared_method *list;
	size_t n_entries = 0, n = 0;
	enum tw_status st = list_entries(m, r, a, &entries, &n_entries, err);

	if (st != TW_OK)
		return st;
	list = tw_arena_zalloc(a, n_entries + 1, sizeof *list);
	if (!x.s || !list)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; st == TW_OK && i < n_entries; i++) {
		if (i == 0 || by_name(&entries[i - 1], &entries[i]) != 0)
			list[n++] = (struct tw_compared_method){
			        .naming = entries[i].naming, .name = entries[i].name};
		x.to = &list[n - 1];
		st = add_entry(&x, &entries[i], err);
	}
	if (st != TW_OK)
		return st;
	mark_significant(m, list, n);
	*ret = list;
	*ret_n = n;
	return TW_OK;
}

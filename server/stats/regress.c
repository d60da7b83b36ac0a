/*
 * regress.c - tests a series for changes, in two ways.
 *
 * By version: both versions' days are points relative to common levels.  By day: points are
 * relative to each version's own levels, so that a day on which many users moved to a slower
 * version is not a slower day.
 */
#include "server/stats/regress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"

const char *const tw_regress_kind_names[TW_REGRESS_KINDS + 1] = {"slower", "new", NULL};

enum { STRATA = TW_REGRESS_VERSIONS * TW_REGRESS_CLASSES };

struct tw_regress_scratch {
	struct tw_sketch levels[STRATA];
	struct tw_change_point points[2][TW_REGRESS_DAYS];
	struct tw_change_point days[TW_CHANGE_POINTS]; /* of all versions, one track each */
};

struct tw_regress_scratch *tw_regress_scratch_new(void)
{
	return tw_mem_zalloc(1, sizeof(struct tw_regress_scratch));
}

struct tw_regress_scratch *tw_regress_scratch_free(struct tw_regress_scratch *f)
{
	tw_mem_free(f);
	return NULL;
}

/* --- points --- */

struct choice { /* selects the parts of a series that make points, and the levels they are compared
	         * with */
	const struct tw_regress_series *s;
	unsigned percentile;
	uint64_t versions; /* a bit each */
	bool by_version;   /* each version has its own levels */
	struct tw_change_level levels[STRATA];
};

static size_t stratum(const struct choice *c, const struct tw_regress_part *p)
{
	return (c->by_version ? (size_t)p->version * TW_REGRESS_CLASSES : 0) + p->cls;
}

static bool is_chosen(const struct choice *c, const struct tw_regress_part *p)
{
	return c->versions >> p->version & 1;
}

static void make_levels(struct tw_regress_scratch *f, struct choice *c)
{
	const size_t n = c->by_version ? STRATA : TW_REGRESS_CLASSES;

	for (size_t i = 0; i < n; i++)
		tw_sketch_clear(&f->levels[i]);
	for (size_t i = 0; i < c->s->n_parts; i++)
		if (is_chosen(c, &c->s->parts[i]))
			tw_sketch_add_all(
			        &f->levels[stratum(c, &c->s->parts[i])], c->s->parts[i].of);
	for (size_t i = 0; i < n; i++)
		c->levels[i] = tw_change_level(&f->levels[i], c->percentile);
}

/* Points for the days of one version. */
static size_t make_points(
        const struct choice *c, uint32_t version, struct tw_change_point ret[TW_REGRESS_DAYS])
{
	const struct tw_regress_series *s = c->s;
	size_t n = 0;

	for (size_t i = 0; i < s->n_parts && n < TW_REGRESS_DAYS;) {
		const struct tw_sketch *days[STRATA] = {0};
		const int64_t day = s->parts[i].day;

		for (; i < s->n_parts && s->parts[i].day == day; i++)
			if (s->parts[i].version == version)
				days[stratum(c, &s->parts[i])] = s->parts[i].of;
		ret[n].day = day;
		ret[n].track = version;
		n += tw_change_point(days, c->levels, STRATA, c->percentile, &ret[n]);
	}
	return n;
}

/* The common reference of both sides: the mean of the classes' levels, weighted by frequency. */
static double middle_of(const struct tw_regress_scratch *f, const struct choice *c)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < STRATA; i++) {
		if (!c->levels[i].known)
			continue;
		sum += (double)f->levels[i].n * c->levels[i].at;
		n += (double)f->levels[i].n;
	}
	return n > 0 ? sum / n : 0;
}

static double mean_at(const struct tw_change_point *p, size_t n)
{
	double sum = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (double)p[i].n * p[i].at;
		all += (double)p[i].n;
	}
	return all > 0 ? sum / all : 0;
}

/* --- results --- */

static const char *worst_of(
        const struct tw_regress_series *s, uint64_t versions, int64_t from, int64_t to)
{
	const char *worst = NULL;
	int64_t most = -1;

	for (size_t i = 0; i < s->n_parts; i++) {
		const struct tw_regress_part *p = &s->parts[i];

		if (!p->worst || !(versions >> p->version & 1) || p->day < from || p->day >= to ||
		        p->of->max <= most)
			continue;
		most = p->of->max;
		worst = p->worst;
	}
	return worst;
}

enum tw_status tw_regress_add(
        struct tw_regress_list *l, const struct tw_regress_found *one, struct tw_err *err)
{
	if (!TW_GROW(l->arena, l->of, l->n, l->cap))
		return tw_oom(err);
	l->of[l->n++] = *one;
	return TW_OK;
}

static struct tw_regress_found found_at(const struct choice *c, const struct tw_change_found *shift)
{
	const struct tw_regress_series *s = c->s;

	return (struct tw_regress_found){.app = s->app,
	        .scenario = s->scenario,
	        .method = s->method,
	        .descriptor = s->descriptor,
	        .base = "",
	        .head = "",
	        .percentile = c->percentile,
	        .shift = *shift,
	        .fixed_in = ""};
}

/* Sets the levels before and after, with `before` relative to the middle; false: too small to
 * matter. */
static bool set_times(struct tw_regress_found *r, double middle, double before, int64_t least_ns)
{
	const double most = 4e18; /* larger than any duration, without overflow */
	const double ns = fmin(exp(middle + before), most);

	r->before_ns = (int64_t)llround(ns);
	r->after_ns = (int64_t)llround(fmin(ns * (1 + r->shift.change), most));
	return r->after_ns - r->before_ns >= least_ns;
}

/* --- by version --- */

struct pair {
	uint32_t base, head;
};

/* Uses the spread of traces within a version: across both versions it would grow with their
 * difference. */
static void use_spreads_of(struct tw_regress_scratch *f, struct choice *c, uint32_t version)
{
	struct choice own = {
	        .s = c->s, .percentile = c->percentile, .versions = UINT64_C(1) << version};

	make_levels(f, &own);
	for (size_t i = 0; i < TW_REGRESS_CLASSES; i++)
		if (own.levels[i].known)
			c->levels[i].spread = own.levels[i].spread;
}

struct paired {
	size_t n_base, n_head; /* points */
	double middle;         /* both levels, as a logarithm */
	struct tw_change_found shift;
};

static bool hold_against(struct tw_regress_scratch *f, struct choice *c, struct pair of,
        const struct tw_change_rules *rules, struct paired *ret)
{
	c->versions = UINT64_C(1) << of.base | UINT64_C(1) << of.head;
	make_levels(f, c);
	ret->middle = middle_of(f, c);
	use_spreads_of(f, c, of.base);
	ret->n_base = make_points(c, of.base, f->points[0]);
	use_spreads_of(f, c, of.head);
	ret->n_head = make_points(c, of.head, f->points[1]);
	return tw_change_between(
	        f->points[0], ret->n_base, f->points[1], ret->n_head, rules, &ret->shift);
}

static bool compare(struct tw_regress_scratch *f, struct choice *c, struct pair of,
        const struct tw_regress_rules *rules, struct tw_regress_found *ret)
{
	struct paired p;

	if (!hold_against(f, c, of, &rules->shift, &p) || p.shift.change <= 0)
		return false;
	*ret = found_at(c, &p.shift);
	ret->base = c->s->versions[of.base];
	ret->head = c->s->versions[of.head];
	ret->day = f->points[1][0].day;
	ret->before_trace = worst_of(c->s, UINT64_C(1) << of.base, 0, INT64_MAX);
	ret->after_trace = worst_of(c->s, UINT64_C(1) << of.head, 0, INT64_MAX);
	return set_times(ret, p.middle, mean_at(f->points[0], p.n_base), c->s->least_ns);
}

/* Estimated distance of a version from the base: logarithms. */
struct level {
	double at, var; /* var: of the estimate from the head to it */
};

/* From the version of `from` to another one; false: not enough data. */
static bool step_to(struct tw_regress_scratch *f, struct choice *c, struct pair of,
        const struct tw_regress_rules *rules, const struct level *from, struct level *ret)
{
	struct tw_change_rules any = rules->shift;
	struct paired p;

	any.min_change = any.certainty = 0;
	if (!hold_against(f, c, of, &any, &p))
		return false;
	ret->at = from->at + log1p(p.shift.change);
	ret->var = from->var + p.shift.error * p.shift.error;
	return true;
}

/* Returns whether the remaining change is below the reporting threshold and below half. Half,
 * because a change just above the threshold would otherwise count as fixed once a tenth of it is
 * undone. */
static bool is_little(double left, double all, const struct tw_change_rules *rules)
{
	return left <= fmin(all / 2, log1p(rules->min_change));
}

/* Returns whether even the upper bound is that small. Otherwise any version with few traces, as
 * slow as the one before, would count as the fix. */
static bool is_gone(const struct level *left, double all, const struct tw_change_rules *rules)
{
	const double most = left->at + TW_REGRESS_FIXED_ERRORS * sqrt(left->var);

	return is_little(left->at, all, rules) && most <= fmax(all / 2, log1p(rules->min_change));
}

/* The first later version without the change: compared with the head directly, or through the last
 * version that could be tested, whichever is more certain. */
static const char *fixed_in(struct tw_regress_scratch *f, struct choice *c, struct pair of,
        const struct tw_regress_rules *rules, double change)
{
	const struct level head = {log1p(change), 0};
	struct level last = head;
	uint32_t last_of = of.head;

	for (uint32_t v = of.head + 1; v < c->s->n_versions; v++) {
		const struct pair direct = {of.head, v}, by_last = {last_of, v};
		struct level a, b;
		const bool any = step_to(f, c, by_last, rules, &last, &a);

		if (last_of != of.head && step_to(f, c, direct, rules, &head, &b) &&
		        (!any || b.var < a.var))
			a = b;
		else if (!any)
			continue;
		last = a;
		last_of = v;
		if (is_gone(&last, head.at, &rules->shift))
			return c->s->versions[v];
	}
	return "";
}

static uint64_t traces_of(const struct tw_regress_series *s, uint32_t version)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_parts; i++)
		if (s->parts[i].version == version)
			n += s->parts[i].of->n;
	return n;
}

static int64_t first_day_of(const struct tw_regress_series *s, const char *version)
{
	for (size_t i = 0; i < s->n_parts; i++)
		if (strcmp(s->versions[s->parts[i].version], version) == 0)
			return s->parts[i].day;
	return 0;
}

static enum tw_status find_by_version(struct tw_regress_scratch *f, struct choice *c,
        const struct tw_regress_rules *rules, struct tw_regress_list *io, struct tw_err *err)
{
	struct pair of = {0, 0};
	bool any = false;
	enum tw_status st = TW_OK;

	for (uint32_t v = 0; st == TW_OK && v < c->s->n_versions && v < TW_REGRESS_VERSIONS; v++) {
		struct tw_regress_found one;

		if (traces_of(c->s, v) < rules->shift.min_traces)
			continue;
		of = (struct pair){of.head, v};
		if (any && compare(f, c, of, rules, &one)) {
			one.fixed_in = fixed_in(f, c, of, rules, one.shift.change);
			one.fixed_from = first_day_of(c->s, one.fixed_in);
			st = tw_regress_add(io, &one, err);
		}
		any = true;
	}
	return st;
}

/* --- by day --- */

/* The first later step that undoes the change; each step is significant by itself. */
static int64_t fixed_day(const struct tw_change_found *shifts, size_t n, size_t at,
        const struct tw_change_rules *rules)
{
	const double all = log1p(shifts[at].change);
	double left = all;

	for (size_t i = at + 1; i < n; i++) {
		left += log1p(shifts[i].change);
		if (is_little(left, all, rules))
			return shifts[i].day;
	}
	return 0;
}

TW_ORDER_BY(by_day, struct tw_change_point, TW_RISING(day), TW_RISING(track))

static size_t make_days(struct tw_regress_scratch *f, struct choice *c)
{
	size_t n = 0;

	c->versions = UINT64_MAX;
	c->by_version = true;
	make_levels(f, c);
	for (uint32_t v = 0; v < c->s->n_versions && v < TW_REGRESS_VERSIONS; v++) {
		const size_t more = make_points(c, v, f->points[0]);

		memcpy(f->days + n, f->points[0], more * sizeof *f->days);
		n += more;
	}
	TW_SORT(f->days, n, by_day);
	return n;
}

/* The mean level of the days in a range, relative to the levels. */
static double level_between(const struct tw_change_point *p, size_t n, int64_t from, int64_t to)
{
	size_t a = 0, b = n;

	while (a < n && p[a].day < from)
		a++;
	while (b > a && p[b - 1].day >= to)
		b--;
	return mean_at(p + a, b - a);
}

static enum tw_status find_by_day(struct tw_regress_scratch *f, struct choice *c,
        const struct tw_regress_rules *rules, struct tw_regress_list *io, struct tw_err *err)
{
	struct tw_change_found shifts[TW_CHANGES_MAX];
	const size_t n_days = make_days(f, c);
	const double middle = middle_of(f, c);
	const size_t n = tw_change_search(f->days, n_days, &rules->shift, shifts);
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const int64_t from = i ? shifts[i - 1].day : 0, day = shifts[i].day;
		struct tw_regress_found one = found_at(c, &shifts[i]);

		if (shifts[i].change <= 0 ||
		        !set_times(&one, middle, level_between(f->days, n_days, from, day),
		                c->s->least_ns))
			continue;
		one.day = day;
		one.fixed_day = fixed_day(shifts, n, i, &rules->shift);
		one.before_trace = worst_of(c->s, UINT64_MAX, from, day);
		one.after_trace = worst_of(c->s, UINT64_MAX, day, INT64_MAX);
		st = tw_regress_add(io, &one, err);
	}
	return st;
}

/* --- combined --- */

static bool is_same(const struct tw_regress_found *a, const struct tw_regress_found *b)
{
	return strcmp(a->base, b->base) == 0 && strcmp(a->head, b->head) == 0 &&
	       (a->head[0] || llabs((long long)(a->day - b->day)) <= 3);
}

/* Drops changes of the tail that the median has too. */
static void drop_duplicates(struct tw_regress_list *l, size_t median, size_t tail)
{
	size_t kept = tail;

	for (size_t i = tail; i < l->n; i++) {
		bool duplicate = false;

		for (size_t k = median; k < tail; k++)
			duplicate = duplicate || is_same(&l->of[k], &l->of[i]);
		if (!duplicate)
			l->of[kept++] = l->of[i];
	}
	l->n = kept;
}

static enum tw_status find_both(struct tw_regress_scratch *f, const struct tw_regress_series *s,
        unsigned percentile, const struct tw_regress_rules *rules, struct tw_regress_list *io,
        struct tw_err *err)
{
	struct choice c = {.s = s, .percentile = percentile};
	enum tw_status st = find_by_version(f, &c, rules, io, err);

	return st == TW_OK ? find_by_day(f, &c, rules, io, err) : st;
}

enum tw_status tw_regress_find(struct tw_regress_scratch *f, const struct tw_regress_series *s,
        const struct tw_regress_rules *rules, struct tw_regress_list *io, struct tw_err *err)
{
	const size_t median = io->n;
	enum tw_status st = find_both(f, s, 50, rules, io, err);
	const size_t tail = io->n;

	if (st == TW_OK)
		st = find_both(f, s, 95, rules, io, err);
	if (st == TW_OK)
		drop_duplicates(io, median, tail);
	return st;
}

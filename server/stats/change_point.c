/*
 * change_point.c - the model: a day's point is its side's level, plus the sampling error of its
 * traces (known), plus a random effect of the day (estimated by the method of moments from all
 * points' distances to their side's mean).  With few days the latter cannot be estimated, so a
 * prior counts as much as guess_days of them.
 *
 * Change points are searched by binary segmentation: the best split of a range, then each half by
 * itself; the result is tested again between its neighbours, as a split found first may be
 * corrected by later ones.
 */
#include "server/stats/change_point.h"

#include <math.h>
#include <string.h>

/* A typical difference between days of one app: weekends, a slow backend. */
static const double guessed_day = 0.03;
static const double guess_days = 4;
/* Variance by the width of a sketch's buckets. */
static const double bucket_var = TW_SKETCH_ERROR * TW_SKETCH_ERROR / 12;
static const double least_spread = 0.05; /* traces without any variation are too few */

/* --- points --- */

static double log_of(const struct tw_sketch *s, unsigned percent)
{
	int64_t v = tw_sketch_quantile(s, percent);

	return log(v > 0 ? (double)v : 1);
}

/* From the density of numbers around the quantile. */
struct tw_change_level tw_change_level(const struct tw_sketch *all, unsigned percent)
{
	const unsigned low = percent > 90 ? percent - 5 : percent / 2;
	const unsigned high = percent > 90 ? 99 : percent + (100 - percent) / 2;
	const double share = (double)(high - low) / 100;
	const double p = (double)percent / 100;
	struct tw_change_level l = {0};
	double width;

	if (all->n == 0)
		return l;
	width = log_of(all, high) - log_of(all, low);
	if (width < least_spread)
		width = least_spread;
	l.at = log_of(all, percent);
	l.spread = p * (1 - p) * (width / share) * (width / share);
	l.known = true;
	return l;
}

/* The number at which the rank is neither the first nor the last. */
static uint64_t fewest(unsigned percent)
{
	unsigned aside = percent > 50 ? 100 - percent : percent;

	return aside >= 20 ? 5 : 100 / (aside ? aside : 1);
}

bool tw_change_point(const struct tw_sketch *const *days, const struct tw_change_level *levels,
        size_t n, unsigned percent, struct tw_change_point *ret)
{
	double sum = 0, var = 0;
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++) {
		const struct tw_sketch *of = days[i];
		double k;

		if (!of || of->n == 0 || !levels[i].known)
			continue;
		k = (double)of->n;
		sum += k * (log_of(of, percent) - levels[i].at);
		var += k * levels[i].spread;
		all += of->n;
	}
	if (all < fewest(percent))
		return false;
	ret->n = all;
	ret->at = sum / (double)all;
	ret->var = var / ((double)all * (double)all) + bucket_var;
	return true;
}

/* --- groups of points --- */

struct group {
	/* number of points; sums of weights, squared weights, weighted values and their squares */
	double n, w, w2, y, y2;
	uint64_t traces;
};

static void weigh(struct group *g, const struct tw_change_point *p, double day_var)
{
	const double w = 1 / (p->var + day_var);

	g->n += 1;
	g->w += w;
	g->w2 += w * w;
	g->y += w * p->at;
	g->y2 += w * p->at * p->at;
	g->traces += p->n;
}

static double mean_of(const struct group *g)
{
	return g->y / g->w;
}

struct moments {       /* of points about their group's mean */
	double beyond; /* variance beyond the sampling error */
	double weight, days;
};

static void add_moments(const struct group *g, struct moments *m)
{
	if (g->n < 2)
		return;
	m->beyond += g->y2 - g->y * g->y / g->w - (g->n - 1);
	m->weight += g->w - g->w2 / g->w;
	m->days += g->n - 1;
}

/* The variance of a day's effect. */
static double day_var(const struct moments *m)
{
	const double guess = guessed_day * guessed_day;
	const double learnt = m->weight > 0 && m->beyond > 0 ? m->beyond / m->weight : 0;

	return (guess_days * guess + m->days * learnt) / (guess_days + m->days);
}

static void set_change(double by, double var, struct tw_change_found *ret)
{
	const double error = sqrt(var);

	ret->error = error;
	ret->score = by / error;
	ret->change = expm1(by);
	ret->low = expm1(by - TW_CHANGE_INTERVAL * error);
	ret->high = expm1(by + TW_CHANGE_INTERVAL * error);
}

static bool is_one(const struct tw_change_found *s, const struct tw_change_rules *rules)
{
	return fabs(s->score) >= rules->certainty &&
	       fabs(log1p(s->change)) >= log1p(rules->min_change) &&
	       s->n_before >= rules->min_traces && s->n_after >= rules->min_traces;
}

static size_t least_side(const struct tw_change_rules *rules)
{
	return rules->min_days ? rules->min_days : 1;
}

/* --- before and after a day --- */

struct day_range {
	const struct tw_change_point *at, *end;
};

struct split {
	struct group of[TW_CHANGE_TRACKS][2];
};

static void divide(struct day_range s, int64_t day, double day_noise, struct split *ret)
{
	memset(ret, 0, sizeof *ret);
	for (const struct tw_change_point *p = s.at; p < s.end; p++)
		weigh(&ret->of[p->track % TW_CHANGE_TRACKS][p->day >= day], p, day_noise);
}

static double noise_of(const struct split *s)
{
	struct moments m = {0};

	for (size_t i = 0; i < TW_CHANGE_TRACKS; i++) {
		add_moments(&s->of[i][0], &m);
		add_moments(&s->of[i][1], &m);
	}
	return day_var(&m);
}

/* Combines the tracks that are on both sides, weighted by precision. False: none is on both. */
static bool combine(const struct split *s, size_t least, struct tw_change_found *ret)
{
	double by = 0, weight = 0;

	ret->n_before = ret->n_after = 0;
	for (size_t i = 0; i < TW_CHANGE_TRACKS; i++) {
		const struct group *a = &s->of[i][0], *b = &s->of[i][1];
		double w;

		if (a->n < (double)least || b->n < (double)least)
			continue;
		w = 1 / (1 / a->w + 1 / b->w);
		weight += w;
		by += w * (mean_of(b) - mean_of(a));
		ret->n_before += a->traces;
		ret->n_after += b->traces;
	}
	if (weight > 0)
		set_change(by / weight, 1 / weight, ret);
	return weight > 0;
}

static bool test_day(struct day_range s, int64_t day, const struct tw_change_rules *rules,
        struct tw_change_found *ret)
{
	struct split split;
	double noise;

	divide(s, day, 0, &split);
	noise = noise_of(&split);
	divide(s, day, noise, &split);
	ret->day = day;
	return combine(&split, least_side(rules), ret) && is_one(ret, rules);
}

/* --- two versions --- */

/* Differences on the days that both versions have. */
static double pair_up(struct day_range a, struct day_range b, double day_noise, struct group *ret,
        struct tw_change_found *sums)
{
	struct moments m = {0};

	*ret = (struct group){0};
	sums->n_before = sums->n_after = 0;
	while (a.at < a.end && b.at < b.end) {
		const struct tw_change_point both = {
		        b.at->day, 0, 0, b.at->at - a.at->at, b.at->var + a.at->var};

		if (a.at->day == b.at->day) {
			weigh(ret, &both, day_noise);
			sums->n_before += a.at->n;
			sums->n_after += b.at->n;
		}
		if (a.at->day < b.at->day)
			a.at++;
		else
			b.at++;
	}
	add_moments(ret, &m);
	return day_var(&m);
}

/* Compares the days up to a week before and after the start of the later version. */
static bool compare_around_start(struct day_range a, struct day_range b,
        const struct tw_change_rules *rules, struct tw_change_found *ret)
{
	const int64_t begins = b.at->day;
	struct split split = {0};
	double noise = 0;

	while (a.at < a.end && a.at->day < begins - 7)
		a.at++;
	for (int pass = 0; pass < 2; pass++) {
		split = (struct split){0};
		for (const struct tw_change_point *p = a.at; p < a.end; p++)
			weigh(&split.of[0][0], p, noise);
		for (const struct tw_change_point *p = b.at; p < b.end && p->day < begins + 7; p++)
			weigh(&split.of[0][1], p, noise);
		noise = noise_of(&split);
	}
	return combine(&split, least_side(rules), ret);
}

bool tw_change_between(const struct tw_change_point *before, size_t n_before,
        const struct tw_change_point *after, size_t n_after, const struct tw_change_rules *rules,
        struct tw_change_found *ret)
{
	const struct day_range a = {before, before + n_before}, b = {after, after + n_after};
	struct group pairs;
	double noise;

	if (n_before == 0 || n_after == 0)
		return false;
	ret->day = b.at->day;
	noise = pair_up(a, b, 0, &pairs, ret);
	if (pairs.n < (double)least_side(rules))
		return compare_around_start(a, b, rules, ret) && is_one(ret, rules);
	(void)pair_up(a, b, noise, &pairs, ret);
	set_change(mean_of(&pairs), 1 / pairs.w, ret);
	return is_one(ret, rules);
}

/* --- a series --- */

static struct day_range between(struct day_range s, int64_t from, int64_t to)
{
	while (s.at < s.end && s.at->day < from)
		s.at++;
	while (s.at < s.end && s.end[-1].day >= to)
		s.end--;
	return s;
}

/* Tests with all days, and with nearby days: further away there may be another change. */
static bool is_better(struct day_range s, int64_t day, const struct tw_change_rules *rules,
        struct tw_change_found *io, bool found)
{
	static const int64_t near[] = {INT32_MAX, 14, 7};

	for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
		struct tw_change_found one;

		if (!test_day(between(s, day - near[i], day + near[i]), day, rules, &one) ||
		        (found && fabs(one.score) <= fabs(io->score)))
			continue;
		*io = one;
		found = true;
	}
	return found;
}

static bool best_split(
        struct day_range s, const struct tw_change_rules *rules, struct tw_change_found *ret)
{
	int64_t day = s.at < s.end ? s.at->day : 0;
	bool found = false;

	for (const struct tw_change_point *p = s.at; p < s.end; p++) {
		if (p->day == day)
			continue;
		day = p->day;
		found = is_better(s, day, rules, ret, found);
	}
	return found;
}

static void insert(struct tw_change_found *list, size_t n, const struct tw_change_found *one)
{
	size_t i = n;

	for (; i > 0 && list[i - 1].day > one->day; i--)
		list[i] = list[i - 1];
	list[i] = *one;
}

enum { NEAR_DAYS = 3 };

/* Between the neighbouring changes, a nearby day may fit better than the first result. */
static bool refine_day(struct day_range s, int64_t day, const struct tw_change_rules *rules,
        struct tw_change_found *ret)
{
	bool found = false;

	for (int64_t d = day - NEAR_DAYS; d <= day + NEAR_DAYS; d++) {
		struct tw_change_found one;

		if (!test_day(s, d, rules, &one) || (found && fabs(one.score) <= fabs(ret->score)))
			continue;
		*ret = one;
		found = true;
	}
	return found;
}

/* Tests each change between its neighbours, and drops those that fail. */
static size_t retest(struct day_range s, const struct tw_change_rules *rules,
        struct tw_change_found *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const int64_t from = kept ? list[kept - 1].day : INT64_MIN;
		const int64_t to = i + 1 < n ? list[i + 1].day : INT64_MAX;
		struct tw_change_found one;

		if (refine_day(between(s, from, to), list[i].day, rules, &one))
			list[kept++] = one;
	}
	return kept;
}

size_t tw_change_search(const struct tw_change_point *points, size_t n,
        const struct tw_change_rules *rules, struct tw_change_found ret[TW_CHANGES_MAX])
{
	const struct day_range all = {points, points + n};
	struct day_range todo[TW_CHANGES_MAX + 1] = {all};
	size_t n_todo = 1, found = 0;

	while (n_todo && found < TW_CHANGES_MAX) {
		const struct day_range s = todo[--n_todo];
		struct tw_change_found one;

		if (!best_split(s, rules, &one))
			continue;
		insert(ret, found++, &one);
		todo[n_todo++] = between(s, one.day, INT64_MAX);
		todo[n_todo++] = between(s, INT64_MIN, one.day);
	}
	return retest(all, rules, ret, found);
}

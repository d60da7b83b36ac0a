/*
 * bench_regress.c - the rate of false regressions, and the delay of real ones.
 *
 * usage: bench_regress [SERIES]     (400)
 *
 * Simulated series (fixtures/shift_sim.h) of six weeks, examined each morning as by a server, with
 * its own thresholds.  False alarms: findings in series in which nothing was changed.  Delay: days
 * from the change, or from its version's first day, to the first finding that names it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/shift_sim.h"

enum { DAYS = 42, FIRST_DETECTION = 8, WINDOW = 28, CHANGED = 2 };

struct bench {
	struct tw_regress_scratch *scratch;
	struct sim_made *made;
	struct tw_arena *arena;
};

struct reported {
	unsigned series, found, wrong;
	unsigned delays[DAYS + 1];
};

/* The findings on the morning after `day`. */
static void look(struct bench *b, unsigned day, struct tw_regress_list *ret)
{
	struct tw_regress_series s = b->made->series;
	size_t from = 0, to = s.n_parts;
	const int64_t first = 20000 + (int64_t)day - WINDOW + 1;

	while (to > 0 && s.parts[to - 1].day > 20000 + (int64_t)day)
		to--;
	while (from < to && s.parts[from].day < first)
		from++;
	s.parts += from;
	s.n_parts = to - from;
	tw_arena_reset(b->arena);
	*ret = (struct tw_regress_list){b->arena, NULL, 0, 0};
	if (tw_regress_find(b->scratch, &s, &tw_regress_defaults, ret, NULL) != TW_OK)
		exit(1);
}

static bool names_it(const struct sim_series *s, const struct tw_regress_found *r)
{
	if (s->by_version > 0)
		return strcmp(r->head, "1.2") == 0;
	return s->by_day > 0 && r->head[0] == '\0' && llabs(r->day - 20000 - s->day) <= 3;
}

static void run_one(struct bench *b, const struct sim_series *s, struct reported *t)
{
	const unsigned changed = s->by_version > 0 ? s->version * SIM_VERSION_DAYS : s->day;
	bool found = false, wrong = false;

	sim_series_make(s, b->made);
	for (unsigned day = FIRST_DETECTION; day < s->days; day++) {
		struct tw_regress_list list;

		look(b, day, &list);
		for (size_t i = 0; i < list.n; i++) {
			if (!names_it(s, &list.of[i])) {
				wrong = true;
				continue;
			}
			if (!found)
				t->delays[day + 1 - changed]++;
			found = true;
		}
	}
	t->series++;
	t->found += found;
	t->wrong += wrong;
}

static unsigned delay_at(const struct reported *t, unsigned percent)
{
	unsigned seen = 0;

	for (unsigned d = 0; d <= DAYS; d++) {
		seen += t->delays[d];
		if (t->found && seen * 100 >= t->found * percent)
			return d;
	}
	return 0;
}

static void run(struct bench *b, struct sim_series s, unsigned n, const char *what)
{
	struct reported t = {0};

	for (unsigned i = 0; i < n; i++) {
		s.seed = i + 1;
		run_one(b, &s, &t);
	}
	(void)printf("  %-34s %4u a day: found in %5.1f %%, after %u days (p50) and %u (p90); "
	             "another change reported in %.2f %%\n",
	        what, s.traces_a_day, 100.0 * t.found / t.series, delay_at(&t, 50),
	        delay_at(&t, 90), 100.0 * t.wrong / t.series);
}

/* --- methods that are new --- */

struct method { /* its share of a version's traces, and its duration */
	double had, has, ns;
};

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return *state >> 33;
}

/* Of each part of the lengths those traces that have the method; 4e8 ns is a trace of a high
 * device. A day may have it rarer or more often, for all versions alike. */
static void make_method(
        const struct sim_made *of, const struct method *m, uint64_t seed, struct sim_made *ret)
{
	uint64_t state = seed * 7919 + 1;
	double of_day = 1;
	int64_t day = 0;

	ret->series = of->series;
	ret->series.method = "m";
	ret->series.parts = ret->parts;
	ret->series.n_parts = 0;
	memset(ret->sketches, 0, sizeof ret->sketches);
	for (size_t i = 0; i < of->series.n_parts; i++) {
		const struct tw_regress_part *p = &of->series.parts[i];
		struct tw_sketch *s = &ret->sketches[i];
		const double share = p->version >= CHANGED ? m->has : m->had;

		if (p->day != day)
			of_day = 0.7 + 0.6 * (double)(next(&state) % 1000) / 1000;
		day = p->day;
		for (uint64_t k = 0; k < p->of->n; k++)
			if ((double)(next(&state) % 100000) < 1e5 * share * of_day)
				tw_sketch_add(
				        s, (int64_t)(m->ns *
				                     (0.5 + (double)(next(&state) % 1000) / 1000)));
		if (!s->n)
			continue;
		ret->parts[ret->series.n_parts] = *p;
		ret->parts[ret->series.n_parts++].of = s;
	}
}

static size_t leave_days(const struct tw_regress_part *all, size_t n, int64_t first, int64_t last,
        struct tw_regress_part *ret)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].day >= first && all[i].day <= last)
			ret[kept++] = all[i];
	return kept;
}

/* The new methods found on the morning after `day`. */
static size_t detect_new(struct bench *b, const struct sim_made *method, unsigned day)
{
	static struct tw_regress_total totals[SIM_PARTS_MAX];
	static struct tw_regress_part parts[SIM_PARTS_MAX];
	const int64_t last = 20000 + (int64_t)day, first = last - WINDOW + 1;
	struct tw_regress_totals of = {totals, 0, (int64_t)4e8, {0}};
	struct tw_regress_series s = method->series;
	struct tw_regress_list list;

	for (size_t i = 0; i < b->made->series.n_parts; i++) {
		const struct tw_regress_part *p = &b->made->series.parts[i];

		if (p->day >= first && p->day <= last)
			totals[of.n++] =
			        (struct tw_regress_total){p->day, p->version, p->cls, p->of->n};
	}
	s.n_parts = leave_days(s.parts, s.n_parts, first, last, parts);
	s.parts = parts;
	tw_arena_reset(b->arena);
	list = (struct tw_regress_list){b->arena, NULL, 0, 0};
	if (tw_regress_find_new(&s, &of, &tw_regress_defaults, &list, NULL) != TW_OK)
		exit(1);
	return list.n;
}

static void run_new(
        struct bench *b, unsigned traces, unsigned n, const struct method *m, const char *what)
{
	static struct sim_made method;
	struct sim_series s = {
	        .days = DAYS, .traces_a_day = traces, .spread = 0.4, .day_noise = 0.03};
	const unsigned from = CHANGED * SIM_VERSION_DAYS;
	struct reported t = {0};

	for (unsigned i = 0; i < n; i++) {
		bool found = false;

		s.seed = i + 1;
		sim_series_make(&s, b->made);
		make_method(b->made, m, s.seed, &method);
		for (unsigned day = FIRST_DETECTION; day < s.days && !found; day++) {
			found = detect_new(b, &method, day) > 0;
			if (found && day >= from)
				t.delays[day + 1 - from]++;
		}
		t.series++;
		t.found += found;
	}
	(void)printf("  %-34s %4u a day: reported in %6.2f %%, after %u days (p50) and %u (p90)\n",
	        what, traces, 100.0 * t.found / t.series, delay_at(&t, 50), delay_at(&t, 90));
}

static void run_all_new(struct bench *b, unsigned traces, unsigned n)
{
	static const struct method rare = {0.02, 0.02, 4e8}, some = {0.2, 0.2, 4e7},
	                           all = {0.94, 0.94, 4e7}, small = {0, 0.94, 1e6},
	                           often = {0, 0.94, 4e7}, half = {0, 0.5, 4e7},
	                           seldom = {0, 0.1, 4e8};

	run_new(b, traces, n, &rare, "an old method, in 2 % of traces");
	run_new(b, traces, n, &some, "an old method, in 20 %");
	run_new(b, traces, n, &all, "an old method, in 94 %");
	run_new(b, traces, n, &small, "a new one of 0.25 % of the time");
	run_new(b, traces, n, &often, "a new one, 10 % of it, in 94 %");
	run_new(b, traces, n, &half, "a new one, 10 % of it, in 50 %");
	run_new(b, traces, n, &seldom, "a new one, all of it, in 10 %");
}

int main(int argc, char **argv)
{
	const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 400;
	const unsigned sizes[] = {20, 100, 500};
	struct bench b = {tw_regress_scratch_new(), calloc(1, sizeof *b.made),
	        tw_arena_new((size_t)16 << 20)};

	if (!b.scratch || !b.made || !b.arena)
		return 1;
	(void)printf("%u series of %u days each, spread 0.4, days 0.03\n", n, DAYS);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const struct sim_series plain = {
		        .days = DAYS, .traces_a_day = sizes[i], .spread = 0.4, .day_noise = 0.03};
		struct sim_series s = plain;

		run(&b, s, n, "nothing changed");
		s.by_version = 0.2;
		s.version = CHANGED;
		run(&b, s, n, "a version 20 % slower");
		s.by_version = 0.4;
		run(&b, s, n, "a version 40 % slower");
		s = plain;
		s.by_day = 0.2;
		s.day = 21;
		run(&b, s, n, "20 % slower from a day on");
	}
	(void)printf("methods that a version has and none before it\n");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		run_all_new(&b, sizes[i], n);
	b.scratch = tw_regress_scratch_free(b.scratch);
	free(b.made);
	tw_arena_free(b.arena);
	return 0;
}

/*
 * bench_regress.c - how often changes are told that are none, and how soon those that are.
 *
 * usage: bench_regress [SERIES]     (400)
 *
 * Simulated series (shift_sim.h) of six weeks, looked at each morning as a server would, with its
 * own thresholds.  False alarms: findings in series in which nothing was changed.  Delay: days from
 * the change, or from the day its version came, to the first finding that names it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shift_sim.h"

enum { DAYS = 42, FIRST_LOOK = 8, WINDOW = 28, CHANGED = 2 };

struct bench {
	struct tw_regress_finder *finder;
	struct sim_made *made;
	struct tw_arena *arena;
};

struct told {
	unsigned series, found, wrong;
	unsigned delays[DAYS + 1];
};

/* What is found on the morning after `day`. */
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
	if (tw_regress_find(b->finder, &s, &tw_regress_defaults, ret, NULL) != TW_OK)
		exit(1);
}

static bool names_it(const struct sim_series *s, const struct tw_regress_found *r)
{
	if (s->by_version > 0)
		return strcmp(r->head, "1.2") == 0;
	return s->by_day > 0 && r->head[0] == '\0' && llabs(r->day - 20000 - s->day) <= 3;
}

static void run_one(struct bench *b, const struct sim_series *s, struct told *t)
{
	const unsigned changed = s->by_version > 0 ? s->version * SIM_VERSION_DAYS : s->day;
	bool found = false, wrong = false;

	sim_series_make(s, b->made);
	for (unsigned day = FIRST_LOOK; day < s->days; day++) {
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

static unsigned delay_at(const struct told *t, unsigned percent)
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
	struct told t = {0};

	for (unsigned i = 0; i < n; i++) {
		s.seed = i + 1;
		run_one(b, &s, &t);
	}
	(void)printf("  %-34s %4u a day: found in %5.1f %%, after %u days (p50) and %u (p90); "
	             "something else told in %.2f %%\n",
	        what, s.traces_a_day, 100.0 * t.found / t.series, delay_at(&t, 50),
	        delay_at(&t, 90), 100.0 * t.wrong / t.series);
}

int main(int argc, char **argv)
{
	const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 400;
	const unsigned sizes[] = {20, 100, 500};
	struct bench b = {
	        tw_regress_finder_new(), calloc(1, sizeof *b.made), tw_arena_new((size_t)16 << 20)};

	if (!b.finder || !b.made || !b.arena)
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
	b.finder = tw_regress_finder_free(b.finder);
	free(b.made);
	tw_arena_free(b.arena);
	return 0;
}

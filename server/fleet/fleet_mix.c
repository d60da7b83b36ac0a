/*
 * fleet_mix.c - divides the cells of two sides into strata, and weights B's by A's mix.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/fleet/fleet_compare.h"
#include "server/stats/rollup.h"

/* Classes as they are listed; others are the last. */
static const char *const classes[] = {"low", "mid", "high", "unknown"};
enum { KNOWN = 3, CLASSES = sizeof classes / sizeof *classes };

static int class_of(const struct tw_rollup_cell *c)
{
	int i = 0;

	while (i < CLASSES && strcmp(classes[i], c->dims.device_class) != 0)
		i++;
	return i;
}

struct assigned { /* a cell and its stratum */
	const char *scenario;
	int class, side;
	const struct tw_rollup_cell *cell;
};

TW_ORDER_BY(same_stratum, struct assigned, TW_RISING(scenario), TW_RISING(class))

TW_ORDER_BY(by_stratum, struct assigned, same_stratum(a, b), TW_RISING(side),
        TW_ORDER((uintptr_t)a->cell, (uintptr_t)b->cell))

/* by: TW_DIM_SCENARIO, TW_DIM_CLASS; cells that differ only by others are in one stratum. */
static size_t sort_into_strata(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        unsigned by, struct assigned *ret)
{
	size_t n = 0;

	for (int side = 0; side < TW_SIDES; side++)
		for (size_t i = 0; i < sides[side].n; i++) {
			const struct tw_rollup_cell *c = sides[side].list[i];

			if (scenario && strcmp(scenario, c->dims.scenario) != 0)
				continue;
			ret[n++] = (struct assigned){by & TW_DIM_SCENARIO ? c->dims.scenario : "",
			        by & TW_DIM_CLASS ? class_of(c) : 0, side, c};
		}
	TW_SORT(ret, n, by_stratum);
	return n;
}

static bool make_strata(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        unsigned by, struct tw_arena *a, struct tw_mix *m)
{
	const size_t most = sides[TW_SIDE_A].n + sides[TW_SIDE_B].n;
	struct assigned *assigned = tw_arena_alloc(a, most + 1, sizeof *assigned);
	const struct tw_rollup_cell **cells =
	        tw_arena_alloc(a, most + 1, sizeof(const struct tw_rollup_cell *));
	const size_t n = assigned ? sort_into_strata(sides, scenario, by, assigned) : 0;

	m->strata = tw_arena_zalloc(a, n + 1, sizeof *m->strata);
	m->n = 0;
	if (!assigned || !cells || !m->strata)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct tw_rollup_cell *c = assigned[i].cell;
		struct tw_fleet_cells *to;

		if (i == 0 || same_stratum(&assigned[i - 1], &assigned[i]) != 0)
			m->strata[m->n++] = (struct tw_stratum){
			        .scenario = by & TW_DIM_SCENARIO ? c->dims.scenario : NULL,
			        .device_class = by & TW_DIM_CLASS ? c->dims.device_class : NULL};
		to = &m->strata[m->n - 1].of[assigned[i].side];
		cells[i] = c;
		if (to->n++ == 0)
			to->list = &cells[i];
		to->traces += c->traces;
	}
	return true;
}

static uint64_t common_of(const struct tw_stratum *s)
{
	const uint64_t a = s->of[TW_SIDE_A].traces, b = s->of[TW_SIDE_B].traces;

	return a < b ? a : b;
}

static bool have_common(const struct tw_mix *m)
{
	bool any = false;

	for (size_t i = 0; i < m->n; i++)
		any = any || common_of(&m->strata[i]) > 0;
	return any;
}

struct ranked {
	struct tw_stratum *stratum;
	uint64_t common;
};

TW_ORDER_BY(by_common, struct ranked, TW_FALLING(common),
        TW_ORDER((uintptr_t)a->stratum, (uintptr_t)b->stratum))

static bool leave_out(struct tw_mix *m, struct tw_arena *a)
{
	struct ranked *all = tw_arena_alloc(a, m->n + 1, sizeof *all);

	if (!all)
		return false;
	for (size_t i = 0; i < m->n; i++)
		all[i] = (struct ranked){&m->strata[i], common_of(&m->strata[i])};
	TW_SORT(all, m->n, by_common);
	for (size_t i = 0; i < m->n; i++)
		all[i].stratum->left_out = all[i].common == 0 || i >= TW_STRATA_MAX;
	return true;
}

static void weigh(struct tw_mix *m)
{
	for (size_t i = 0; i < m->n; i++) {
		m->strata[i].at = m->compared;
		m->compared += !m->strata[i].left_out;
	}
	for (int side = 0; side < TW_SIDES; side++)
		for (size_t i = 0; i < m->n; i++) {
			const struct tw_stratum *s = &m->strata[i];

			m->all[side] += s->of[side].traces;
			m->traces[side] += s->left_out ? 0 : s->of[side].traces;
		}
	for (int side = 0; side < TW_SIDES; side++)
		for (size_t i = 0; i < m->n; i++) {
			struct tw_stratum *s = &m->strata[i];
			const int like = m->corrected ? TW_SIDE_A : side;

			if (!s->left_out && m->traces[like])
				s->weight[side] =
				        (double)s->of[like].traces / (double)m->traces[like];
		}
}

/* Whether a trace of either side has the class low, mid or high. */
static bool have_known(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario)
{
	bool any = false;

	for (int side = 0; side < TW_SIDES; side++)
		for (size_t i = 0; i < sides[side].n; i++) {
			const struct tw_rollup_cell *c = sides[side].list[i];

			any = any ||
			      (class_of(c) < KNOWN &&
			              (!scenario || strcmp(scenario, c->dims.scenario) == 0));
		}
	return any;
}

static const char *uncorrected(const struct tw_mix *m, unsigned by, bool known)
{
	if (!m->all[TW_SIDE_A] || !m->all[TW_SIDE_B])
		return "";
	if (!known && by != TW_DIM_CLASS)
		return "No trace reports the class of its device (ram_mb or device_class), so "
		       "differences in the device mix could not be corrected.";
	if (!m->corrected)
		return "The sides have neither a scenario nor a device class in common, so "
		       "differences in their mix could not be corrected.";
	if (by == TW_DIM_SCENARIO)
		return "The sides have no device class in common, so differences in the device mix "
		       "could not be corrected.";
	return by == TW_DIM_CLASS ? "The sides have no scenario in common, so differences between "
	                            "scenarios could not be corrected."
	                          : "";
}

/* Whether a stratum of both sides is left out, because TW_STRATA_MAX others are larger. */
static bool is_capped(const struct tw_mix *m)
{
	bool any = false;

	for (size_t i = 0; i < m->n; i++)
		any = any || (m->strata[i].left_out && common_of(&m->strata[i]) > 0);
	return any;
}

static const char *note_of(const struct tw_mix *m, unsigned by, bool known, struct tw_arena *a)
{
	const char *why = uncorrected(m, by, known);
	const uint64_t out[TW_SIDES] = {
	        m->all[TW_SIDE_A] - m->traces[TW_SIDE_A], m->all[TW_SIDE_B] - m->traces[TW_SIDE_B]};
	const char *limit = "";

	if (!out[TW_SIDE_A] && !out[TW_SIDE_B])
		return why;
	if (is_capped(m))
		limit = tw_arena_printf(
		        a, ", or not among the %d with the most traces on both", TW_STRATA_MAX);
	if (!limit)
		return NULL;
	return tw_arena_printf(a,
	        "%s%s%llu traces of A and %llu of B are excluded: their %s are not on both "
	        "sides%s.",
	        why, why[0] ? " " : "", (unsigned long long)out[TW_SIDE_A],
	        (unsigned long long)out[TW_SIDE_B],
	        by == TW_DIM_SCENARIO ? "scenarios"
	        : by == TW_DIM_CLASS  ? "device classes"
	                              : "scenarios and device classes",
	        limit);
}

enum tw_status tw_fleet_mix(const struct tw_fleet_cells sides[TW_SIDES], const char *scenario,
        bool correct, struct tw_arena *a, struct tw_mix *ret, struct tw_err *err)
{
	/* The last is what an uncorrected comparison lists. */
	static const unsigned order[] = {
	        TW_DIM_SCENARIO | TW_DIM_CLASS, TW_DIM_SCENARIO, TW_DIM_CLASS};
	enum { LAST = sizeof order / sizeof *order - 1 };
	size_t i = correct ? 0 : LAST;

	*ret = (struct tw_mix){.note = ""};
	if (!make_strata(sides, scenario, order[i], a, ret))
		return tw_rollup_fail_too_large(err);
	while (i < LAST && !have_common(ret))
		if (!make_strata(sides, scenario, order[++i], a, ret))
			return tw_rollup_fail_too_large(err);
	ret->corrected = correct && have_common(ret);
	if (ret->corrected && !leave_out(ret, a))
		return tw_rollup_fail_too_large(err);
	weigh(ret);
	if (correct)
		ret->note = note_of(ret, order[i], have_known(sides, scenario), a);
	return ret->note ? TW_OK : tw_rollup_fail_too_large(err);
}

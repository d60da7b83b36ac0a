#include "shift_sim.h"

#include <math.h>
#include <string.h>

static const char *const names[TW_REGRESS_VERSIONS] = {
        "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11"};

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static double even(uint64_t *state) /* in (0, 1) */
{
	return ((double)(next(state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
	return sqrt(-2 * log(even(state))) * cos(2 * 3.14159265358979 * even(state));
}

static bool is_slower(const struct sim_series *s, unsigned version)
{
	return s->by_version > 0 && version >= s->version;
}

static double change_of(const struct sim_series *s, unsigned version)
{
	return s->fixed_in_version && version >= s->fixed_in_version ? s->left * s->by_version
	                                                             : s->by_version;
}

/* The version of a trace of that day: the newest is adopted over ten days. */
static unsigned version_of(unsigned day, uint64_t *state)
{
	const unsigned newest = day / SIM_VERSION_DAYS;
	const double taken = fmin(1, (double)(day % SIM_VERSION_DAYS + 1) / 10);

	return newest > 0 && even(state) > taken ? newest - 1 : newest;
}

/* New versions come to good devices first. */
static unsigned class_of(unsigned day, unsigned version, uint64_t *state)
{
	const bool early = version == day / SIM_VERSION_DAYS && day % SIM_VERSION_DAYS < 4;
	const double x = even(state);

	if (x < (early ? 0.15 : 0.3))
		return 0;
	return x < (early ? 0.5 : 0.75) ? 1 : 2;
}

static double level_of(const struct sim_series *s, unsigned day, unsigned version, unsigned cls)
{
	static const double classes[SIM_CLASSES] = {2.5, 1.5, 1};
	double level = 4e8 * classes[cls];

	if (is_slower(s, version))
		level *= 1 + change_of(s, version);
	if (s->by_day > 0 && day >= s->day)
		level *= 1 + s->by_day;
	return level;
}

static void make_day(const struct sim_series *s, unsigned day, struct tw_sketch *of)
{
	uint64_t state = s->seed * 1000003 + day;
	const double of_day = exp(s->day_noise * normal(&state));

	for (unsigned i = 0; i < s->traces_a_day; i++) {
		const unsigned version = version_of(day, &state);
		const unsigned cls = class_of(day, version, &state);
		const double ns =
		        level_of(s, day, version, cls) * of_day * exp(s->spread * normal(&state));

		tw_sketch_add(
		        &of[(day / SIM_VERSION_DAYS - version) * SIM_CLASSES + cls], (int64_t)ns);
	}
}

void sim_series_make(const struct sim_series *s, struct sim_made *ret)
{
	struct tw_regress_series *r = &ret->series;

	memcpy(ret->versions, names, sizeof names);
	*r = (struct tw_regress_series){"app", "cold_start", "", "", ret->versions,
	        (s->days + SIM_VERSION_DAYS - 1) / SIM_VERSION_DAYS, ret->parts, 0, 0};
	memset(ret->sketches, 0, sizeof ret->sketches);
	for (unsigned day = 0; day < s->days; day++) {
		struct tw_sketch *of = &ret->sketches[(size_t)day * 2 * SIM_CLASSES];
		const unsigned newest = day / SIM_VERSION_DAYS;

		make_day(s, day, of);
		for (unsigned older = newest > 0 ? 2 : 1; older-- > 0;)
			for (unsigned c = 0; c < SIM_CLASSES; c++)
				if (of[older * SIM_CLASSES + c].n)
					ret->parts[r->n_parts++] = (struct tw_regress_part){
					        20000 + day, newest - older, c,
					        &of[older * SIM_CLASSES + c],
					        "01AAAAAAAAAAAAAAAAAAAAAAAA"};
	}
}

/*
 * shift_sim.h - a simulated series whose truth is known: days, versions and classes of devices.
 *
 * Lengths are log-normal about a level that differs by class (a low device is 2.5 times as slow as
 * a high one), times what the day does, times what was changed on purpose.  A new version comes
 * every two weeks and takes over within ten days; the mix of classes drifts with it, for new
 * versions reach good devices first.  The same seed gives the same series.
 */
#ifndef SHIFT_SIM_H
#define SHIFT_SIM_H

#include "server/stats/regress.h"

enum { SIM_CLASSES = 3, SIM_VERSION_DAYS = 14, SIM_PARTS_MAX = TW_REGRESS_DAYS * 3 * SIM_CLASSES };

struct sim_series {
	uint64_t seed;
	unsigned days, traces_a_day;
	double spread, day_noise;           /* of the logarithm */
	double by_version;                  /* 0.2: from version `version` on a fifth slower */
	unsigned version, fixed_in_version; /* 0: never */
	double left;                        /* of the change from then on: 0.5 is half of it */
	double by_day;                      /* from day `day` on */
	unsigned day;
};

struct sim_made { /* 15 KB a part */
	struct tw_regress_series series;
	struct tw_regress_part parts[SIM_PARTS_MAX];
	const char *versions[TW_REGRESS_VERSIONS];
	struct tw_sketch sketches[SIM_PARTS_MAX];
};
void sim_series_make(const struct sim_series *s, struct sim_made *ret);

#endif

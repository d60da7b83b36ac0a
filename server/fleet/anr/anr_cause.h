/*
 * anr_cause.h - why an app did not respond, as a group of reports has it in common.
 *
 * Out of a document "anr" in the names of its build (anr_names.h).  The key is a hash of the kind
 * of cause and of the names that it is told by, without what changes from build to build
 * (anr_frame.h): deadlock  the ring: class of each monitor, where it is wanted and where it was
 * taken lock      classes of the monitors on the way, and where the last holder took its own path
 * the heaviest path of the app in the time that nothing moved, from calls or samples io        the
 * app's path to a file, a database or the network binder    interface and method of the other
 * process, and who calls it no_cpu    who had the processors gc, sleep, wait, run   the app's first
 * frame; idle, unknown   nothing more is known Knows neither HTTP nor SQL.  Thread: any.
 */
#ifndef TW_ANR_CAUSE_H
#define TW_ANR_CAUSE_H

#include "decoder/base/arena.h"
#include "server/catalogue/anr/catalogue_hang.h"
#include "server/fleet/anr/anr_rules.h"
#include "server/query/detect/frame_rules.h"

struct tw_anr_blame { /* borrowed */
	const struct tw_anr_rules *rules;
	const struct tw_frame_rules *app; /* whose frames are the app's */
	/* {"frames":[names, the deepest first],"ns","window_ns","by":"calls"}: what main did while
	 * nothing moved, where calls tell it; NULL: they do not. */
	const json_t *path;
};

/* TW_NOMEM. */
enum tw_status tw_anr_cause_of(const json_t *doc, const struct tw_anr_blame *by, struct tw_arena *a,
        struct tw_anr_cause *ret, struct tw_err *err) TW_MUST_USE;

#endif

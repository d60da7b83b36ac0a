/*
 * anr_cause.h - the cause of an ANR, equal for all reports of a group.
 *
 * Computed from a document "anr" in the names of its build (anr_names.h).  The key is a hash of the
 * kind of cause and of the names that identify it, without the parts that change from build to
 * build (anr_frame.h):
 *   deadlock          the cycle: class of each monitor, where it is wanted and where it was taken
 *   lock              classes of the monitors on the way, and where the last holder took its own
 *   path              the heaviest path of the app while nothing moved, from calls or samples
 *   io                the app's path to a file, a database or the network
 *   binder            interface and method of the other process, and the caller
 *   no_cpu            the process that used the processors
 *   gc, sleep, wait, run   the app's first frame
 *   idle, unknown     nothing more is known
 * Independent of HTTP and SQL.  Thread: any.
 */
#ifndef TW_ANR_CAUSE_H
#define TW_ANR_CAUSE_H

#include "decoder/base/arena.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/fleet/anr/anr_rules.h"
#include "server/query/detect/frame_rules.h"

struct tw_anr_blame { /* borrowed */
	const struct tw_anr_rules *rules;
	const struct tw_frame_rules *app; /* decides which frames are the app's */
	/* {"frames":[names, the deepest first],"ns","window_ns","by":"calls"}: the main thread's
	 * path while nothing moved, if known from calls; otherwise NULL. */
	const json_t *path;
};

/* TW_NOMEM. */
enum tw_status tw_anr_cause_of(const json_t *doc, const struct tw_anr_blame *by, struct tw_arena *a,
        struct tw_anr_cause *ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * detecting.h - one trace looked through by a project's detectors: its names, findings, frames,
 * start.
 */
#ifndef TW_DETECTING_H
#define TW_DETECTING_H

#include "server/base/text/json_write.h"
#include "server/query/detect/detect_frames.h"
#include "server/query/detect/detect_rules.h"
#include "server/query/detect/detect_start.h"
#include "server/query/detect/frame_rules.h"
#include "server/query/view.h"

/* What names were judged to be, of traces that were looked through before: most of a small trace's
 * cost is its names, which its build's other traces have too. */
enum { TW_DETECT_MEMO = 1 << 16 };
struct tw_detect_checked {
	uint64_t key; /* of the name and the rules; 0: none */
	uint64_t rules;
	uint8_t mark, is_app;
};
struct tw_detect_memo {
	uint64_t number; /* of the rules, and of whose frames are the app's */
	struct tw_detect_checked names[TW_DETECT_MEMO];
};

struct tw_detecting { /* one trace, looked through by one set of rules */
	struct tw_view v;
	struct tw_arena *arena, *scratch; /* scratch: of one cause */
	struct tw_deadline deadline;
	struct tw_detect_rules *rules;
	const struct tw_frame_rules *app;
	struct tw_detect_memo *memo; /* NULL: each name is judged */
	int64_t rules_version;       /* -1: rules that are tried */
	int64_t keep;
	const struct tw_thread_info *threads;
	uint32_t n_threads;
	const struct tw_thread_info *main; /* NULL: the trace does not say */
	char *name;                        /* TW_NAME_BYTES */
	uint64_t *by_method, *by_thread;
	uint8_t *marks, *is_app;
	uint32_t unnamed; /* methods that only a mapping could name */
	struct tw_detected found;
	struct tw_frames frames;
	struct tw_start start;
	struct tw_finding *list; /* what was kept of all rules, by begin */
	size_t n;
	unsigned cut; /* TW_CUT_ */
	struct tw_buf out;
	struct tw_json j; /* into out */
};

/* Names, rules and marks of all methods; then the findings, frames and phases.  Of v it needs the
 * file, the names and the methods; arena, deadline, rules, app and keep are the caller's to fill.
 */
enum tw_status tw_detecting_run(struct tw_detecting *d, struct tw_err *err) TW_MUST_USE;
/* Writes all of it into d->j (api_detect_json.c). */
enum tw_status tw_detecting_put(struct tw_detecting *d, struct tw_err *err) TW_MUST_USE;

#endif

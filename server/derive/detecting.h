/*
 * detecting.h - runs a project's detectors on one trace: names, findings, frames and app start.
 * Thread: of a struct tw_detecting, one at a time.
 */
#ifndef TW_DETECTING_H
#define TW_DETECTING_H

#include "server/base/text/json_write.h"
#include "server/query/detect/detect_rules.h"
#include "server/query/detect/frame_rules.h"
#include "server/query/detect/query_detect.h"
#include "server/query/view.h"

/* Classifications of names from earlier traces: most of a small trace's cost is its names, most of
 * which occur in all traces of its build. */
enum { TW_DETECT_MEMO = 1 << 16 };
struct tw_detect_checked {
	uint64_t key; /* hash of the name and the rules; 0: free */
	uint64_t rules;
	uint8_t role, is_app;
};
struct tw_detect_memo {
	uint64_t number; /* identifies the rules and the app's frame patterns */
	struct tw_detect_checked names[TW_DETECT_MEMO];
};

struct tw_detecting { /* one trace, with one set of rules */
	struct tw_view v;
	struct tw_arena *arena, *scratch; /* scratch: for one cause */
	struct tw_deadline deadline;
	struct tw_detect_rules *rules;
	const struct tw_frame_rules *app;
	struct tw_detect_memo *memo; /* NULL: every name is classified again */
	int64_t rules_version;       /* -1: rules under test */
	int64_t keep;
	const struct tw_thread_info *threads;
	uint32_t n_threads;
	const struct tw_thread_info *main; /* NULL: not known */
	char *name;                        /* TW_NAME_BYTES */
	uint64_t *by_method, *by_thread;
	uint8_t *roles, *is_app;
	uint32_t unnamed; /* methods that can be named only by a mapping */
	struct tw_detected found;
	struct tw_frames frames;
	struct tw_start start;
	struct tw_finding *list; /* findings stored, of all rules, by begin */
	size_t n;
	unsigned cut; /* TW_CUT_ */
	struct tw_buf out;
	struct tw_json j; /* into out */
};

/* Classifies the names of all methods, then computes findings, frames and phases.  In v it needs
 * the file, the names and the methods; the caller fills in arena, deadline, rules, app and keep. */
enum tw_status tw_detecting_run(struct tw_detecting *d, struct tw_err *err) TW_MUST_USE;
/* Writes the results into d->j (api_detect_json.c). */
enum tw_status tw_detecting_put(struct tw_detecting *d, struct tw_err *err) TW_MUST_USE;

#endif

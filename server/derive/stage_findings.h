/*
 * found_fold.h - detectors look at ready traces, one after the other, and what they find is kept.
 *
 * What the background job of the server does and `tracewell rollup` does, in one
 * place; any number of processes may do it at once.  Thread: one at a time.
 */
#ifndef TW_STAGE_FINDINGS_H
#define TW_STAGE_FINDINGS_H

#include "server/catalogue/fleet/catalogue_found.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/query/detect/detect_rules.h"

struct tw_finder;

/* NULL: no memory. */
struct tw_finder *tw_finder_new(const struct tw_folder_parts *parts);
struct tw_finder *tw_finder_free(struct tw_finder *f);
/* One trace of the next project that has any, around; *ret_more: there may be others. */
enum tw_status tw_finder_look(struct tw_finder *f, bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* What it has done since it was made; any thread may ask. */
struct tw_finder_counts {
	uint64_t looked, unreadable, spent_us;
};
struct tw_finder_counts tw_finder_counts(const struct tw_finder *f);

struct tw_found_rules {                    /* of a project, as they hold now */
	struct tw_detect_rules *detectors; /* owned */
	json_t *doc;                       /* owned: their texts are in it */
	int64_t number;                    /* of them and of whose frames are the app's; above 0 */
	int64_t version; /* of the detectors; 0: those that come with the server */
};
/* tw_found_rules_done is owed on success. */
enum tw_status tw_found_rules_open(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_found_rules *ret, struct tw_err *err) TW_MUST_USE;
void tw_found_rules_done(struct tw_found_rules *r);

#endif

/*
 * stage_findings.h - the rules by which detectors look at a project's traces.  Thread: any.
 */
#ifndef TW_STAGE_FINDINGS_H
#define TW_STAGE_FINDINGS_H

#include "server/catalogue/fleet/catalogue_found.h"
#include "server/query/detect/detect_rules.h"

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

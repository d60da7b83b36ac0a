/*
 * stage_findings.h - the rules by which detectors inspect a project's traces.  Thread: any.
 */
#ifndef TW_STAGE_FINDINGS_H
#define TW_STAGE_FINDINGS_H

#include "server/catalogue/fleet/catalogue_found.h"
#include "server/query/detect/detect_rules.h"

struct tw_found_rules {                    /* current rules of a project */
	struct tw_detect_rules *detectors; /* owned */
	json_t *doc;                       /* owned: contains their texts */
	int64_t number;  /* identifies them and the app's frame patterns; above 0 */
	int64_t version; /* of the detectors; 0: the built-in ones */
};
/* On success, free with tw_found_rules_done. */
enum tw_status tw_found_rules_open(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_found_rules *ret, struct tw_err *err) TW_MUST_USE;
void tw_found_rules_done(struct tw_found_rules *r);

#endif

#include "server/derive/settings.h"

#include <string.h>

#include "server/catalogue/access/capture.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/derive/retention.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/anr/anr_rules.h"
#include "server/fleet/regress/regress_detect.h"
#include "server/notify/digest.h"
#include "server/notify/ticket.h"
#include "server/query/detect/detect_rules.h"
#include "server/query/detect/frame_rules.h"
#include "server/source/source_rules.h"

static const struct tw_setting *const settings[] = {
        &tw_anr_setting,
        &tw_capture_setting,
        &tw_detect_setting,
        &tw_digest_setting,
        &tw_frame_setting,
        &tw_regress_setting,
        &tw_retention_setting,
        &tw_rollup_setting,
        &tw_source_setting,
        &tw_tracker_setting,
};

enum tw_status tw_setting_text_check(const char *key, const char *text, struct tw_err *err)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		json_t *doc = NULL;
		enum tw_status st;

		if (strcmp(settings[i]->key, key) != 0)
			continue;
		st = tw_setting_parse(text, settings[i]->check, &doc, err);
		json_decref(doc);
		return st;
	}
	return TW_OK;
}

#include "server/derive/jobs_hang.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/derive/leader.h"
#include "server/derive/stage_anr.h"

enum { LOOK_AGAIN_S = 60, KEEP_DAYS = 400 };

static enum tw_status some(struct tw_app *app, bool *ret_more, struct tw_err *err)
{
	int64_t today = tw_unix_ms() / TW_DAY_MS;
	bool looked = false, keyed = false, expired = false;
	struct tw_err why;
	enum tw_status st = tw_hanger_look(app->hanger, &looked, err);

	if (st == TW_OK)
		st = tw_hanger_key(app->hanger, &keyed, err);
	if (tw_catalogue_hang_expire(app->catalogue, today - KEEP_DAYS, &expired, &why) != TW_OK)
		tw_log_err(TW_LOG_WARN, "anr_groups_kept", "what is too old", &why);
	*ret_more = looked || keyed || expired;
	return st;
}

static void look_at_all(struct tw_periodic *p, void *arg)
{
	struct tw_app *app = arg;
	bool more = true;
	struct tw_err err;

	while (more && !tw_periodic_stopping(p) && tw_leads(app->leader)) {
		if (some(app, &more, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "anr_groups_late", "looking at traces", &err);
			break; /* it is tried again later */
		}
	}
}

enum tw_status tw_hang_job_start(struct tw_app *app, struct tw_periodic **ret, struct tw_err *err)
{
	const struct tw_folder_parts parts = {app->catalogue, app->blobs, app->symbols};

	app->hanger = tw_hanger_new(&parts);
	if (!app->hanger)
		return tw_oom(err);
	return tw_periodic_start(&(struct tw_periodic_task){"anrs", look_at_all,
	                                 tw_leader_look_s(app->leader, LOOK_AGAIN_S) * 1000},
	        app, ret, err);
}

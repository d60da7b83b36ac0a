/* catalogue_outbox_log.c - the delivery log of a hook, and redelivery. */
#include "server/catalogue/notify/catalogue_hook.h"

#include "server/base/age_clock.h"
#include "server/catalogue/catalogue_internal.h"

#define LOGGED_FIELD(member) TW_FIELD(struct tw_logged, member, "", NULL)
static const struct tw_fields logged_fields =
        TW_FIELDS_OF(LOGGED_FIELD(id), LOGGED_FIELD(created_ms), LOGGED_FIELD(due_ms),
                LOGGED_FIELD(attempts), LOGGED_FIELD(event_id), LOGGED_FIELD(body),
                LOGGED_FIELD(event), LOGGED_FIELD(state), LOGGED_FIELD(length));

#define TRY(member) TW_FIELD(struct tw_try, member, #member, #member)
const struct tw_fields tw_try_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_try, delivery_id, "delivery_id", NULL), TRY(n), TRY(at_ms),
                TRY(took_ms), TRY(http), TRY(error));

static enum tw_status read_tries(
        struct tw_catalogue *c, struct tw_logged *of, struct tw_arena *a, struct tw_err *err)
{
	of->n_log = 0;
	return tw_cat_list(c,
	        TW_CAT_LIST(a, TW_TRIES_REPORTED, &tw_try_fields, &of->log, &of->n_log),
	        err, /* primary key */
	        "SELECT {columns} FROM outbox_attempt WHERE delivery_id=? AND n>? ORDER BY n LIMIT "
	        "?",
	        "iii", of->id, of->attempts - TW_TRIES_REPORTED, (int64_t)TW_TRIES_REPORTED);
}

/* Of the hook and the project; lists truncate bodies. */
#define LOGGED(body)                                                                               \
	"SELECT delivery_id, created_ms, CASE WHEN event=6 THEN due_ms ELSE max(due_ms,"           \
	"coalesce((SELECT hold_ms FROM webhook WHERE project_id=?1 AND hook_id=?2),0)) END,"       \
	" attempts, event_id, " body                                                               \
	", event, state, length(body) FROM outbox WHERE project_id=?1"                             \
	" AND hook_id=?2"
#define BODY_CUT "substr(body,1,2048)" /* TW_LOGGED_BODY */

enum tw_status tw_catalogue_deliveries(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t before, uint32_t limit, struct tw_arena *a,
        struct tw_logged **ret, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st = tw_cat_list(c, TW_CAT_LIST(a, limit, &logged_fields, ret, ret_n),
	        err, /* outbox_by_hook */
	        LOGGED(BODY_CUT) " AND delivery_id<?3 ORDER BY delivery_id DESC LIMIT ?4", "ttii",
	        project_id, hook_id, before ? before : INT64_MAX, (int64_t)limit);

	for (size_t i = 0; st == TW_OK && i < *ret_n; i++)
		st = read_tries(c, &(*ret)[i], a, err);
	return st;
}

enum tw_status tw_catalogue_logged(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_arena *a, struct tw_logged *ret,
        struct tw_err *err)
{
	enum tw_status st = tw_cat_list(c,
	        TW_CAT_ONE(a, &logged_fields, ret, "this webhook has no such delivery"),
	        err, /* primary key */
	        LOGGED("body") " AND delivery_id=?3", "tti", project_id, hook_id, delivery_id);

	return st == TW_OK ? read_tries(c, ret, a, err) : st;
}

/* Whether it could be sent; otherwise fails with the reason. */
static enum tw_status check_redelivery(struct tw_db *db, const char *project_id,
        const char *hook_id, int64_t delivery_id, int64_t *ret_event, struct tw_err *err)
{
	int64_t event = -1, paused = 0;
	enum tw_status st = tw_cat_get_int(db, &event, err, /* primary key */
	        "SELECT event FROM outbox WHERE delivery_id=?3 AND project_id=?1 AND hook_id=?2",
	        "tti", project_id, hook_id, delivery_id);

	if (st == TW_OK && event < 0)
		st = tw_fail(err, TW_NOT_FOUND, "this webhook has no such delivery");
	if (st == TW_OK && event == TW_HOOK_TEST)
		st = tw_cat_no_test(db, project_id, hook_id, err);
	else if (st == TW_OK)
		st = tw_cat_get_int(db, &paused, err, /* primary key */
		        "SELECT paused_ms<>0 FROM webhook WHERE project_id=? AND hook_id=?", "tt",
		        project_id, hook_id);
	if (st == TW_OK && paused)
		st = tw_fail(err, TW_CONFLICT, "this webhook is paused: resume it first");
	*ret_event = event;
	return st;
}

/* A redelivery by a person also lifts the hook's hold. */
static enum tw_status queue_redelivery(struct tw_db *db, const char *project_id,
        const char *hook_id, int64_t delivery_id, int64_t event, struct tw_err *err)
{
	const int64_t now = tw_wait_ms();
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE outbox SET state=0, due_ms=?2, until_ms=?3, attempts_left=?4 WHERE"
	        " delivery_id=?1",
	        "iiii", delivery_id, now, now + TW_HOOK_GIVE_UP_DAYS * TW_DAY_MS,
	        event == TW_HOOK_TEST ? INT64_C(1) : (int64_t)TW_HOOK_ATTEMPTS_MAX);

	if (st == TW_OK && event != TW_HOOK_TEST)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE webhook SET hold_ms=0 WHERE project_id=? AND hook_id=?", "tt",
		        project_id, hook_id);
	return st;
}

enum tw_status tw_catalogue_redeliver(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char number[TW_NUMBER_BYTES];
	int64_t event = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st == TW_OK)
		st = check_redelivery(w, project_id, hook_id, delivery_id, &event, err);
	if (st == TW_OK)
		st = queue_redelivery(w, project_id, hook_id, delivery_id, event, err);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"webhook.redeliver", project_id, hook_id,
	                .facts = {{"delivery", tw_cat_number(delivery_id, number)}}},
	        err);
}

/*
 * stage_alerts.c - evaluates each project's alert rules every ten minutes.
 */
#include "server/derive/stages.h"

#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/derive/pipeline.h"
#include "server/notify/digest.h"

enum { EVERY_MS = 600 * 1000 };

static enum tw_status figures_of(struct tw_fleet_store *fleet, struct tw_alert_evaluation *task,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_alert_figure **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_alert *known = NULL;
	enum tw_status st = TW_OK;

	if (*task->rule->id)
		st = tw_catalogue_alerts_of(fleet->catalogue, task->project_id, task->rule->id, a,
		        &known, &task->n_known, err);
	task->known = known;
	return st == TW_OK ? tw_alert_figures(fleet, task, deadline, a, ret, ret_n, err) : st;
}

enum tw_status tw_alerts_try(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alert_rule *rule, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_alert_figure **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_alert_evaluation task = {project_id, rule, NULL, 0, tw_unix_ms()};

	return figures_of(fleet, &task, deadline, a, ret, ret_n, err);
}

static enum tw_status evaluate_rule(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alert_rule *rule, const struct tw_deadline *deadline,
        const struct tw_alert_mails *mails, const struct tw_alerts_listener *listener,
        struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(TW_ALERTS_ARENA_MAX);
	struct tw_alert_evaluation task = {project_id, rule, NULL, 0, tw_unix_ms()};
	struct tw_alert_figure *figures = NULL;
	size_t n = 0;
	enum tw_status st =
	        a ? figures_of(fleet, &task, deadline, a, &figures, &n, err) : tw_oom(err);

	tw_crash_point("alert_figures");
	if (st == TW_OK)
		st = tw_catalogue_alerts_put(fleet->catalogue, &task, figures, n, mails, err);
	tw_crash_point("alert_stored");
	if (st == TW_OK && listener)
		listener->evaluated(listener->arg, rule, figures, n);
	tw_arena_free(a);
	return st;
}

static enum tw_status evaluate_rules(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alert_rule *rules, size_t n, const struct tw_alert_mails *mails,
        const struct tw_alerts_how *how, bool *ret_partial, struct tw_err *err)
{
	enum tw_status first = TW_OK;

	for (size_t i = 0; i < n; i++) {
		const struct tw_alert_rule *rule = &rules[(how->first % n + i) % n];
		struct tw_err why;
		enum tw_status st;

		if (tw_deadline_passed(how->deadline)) {
			*ret_partial = true;
			return first;
		}
		st = evaluate_rule(
		        fleet, project_id, rule, how->deadline, mails, how->listener, &why);
		if (st == TW_DEADLINE)
			*ret_partial = true;
		else if (st != TW_OK && first == TW_OK) {
			first = st;
			tw_err_copy(err, &why);
		}
	}
	return first;
}

enum tw_status tw_alerts_evaluate(struct tw_fleet_store *fleet, const char *project_id,
        const struct tw_alerts_how *how, bool *ret_partial, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new((size_t)4 << 20);
	struct tw_digest_rules to = {.n_mail = 0};
	struct tw_alert_rule *rules = NULL;
	json_t *doc = NULL;
	int64_t changed_ms;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_alert_rules(fleet->catalogue, project_id, a, &rules, &n, err)
	          : tw_oom(err);

	*ret_partial = false;
	if (st == TW_OK && n && how->sends_mail)
		st = tw_digest_rules_of(fleet->catalogue, project_id, &doc, &to, &changed_ms, err);
	if (st == TW_OK)
		st = evaluate_rules(fleet, project_id, rules, n,
		        &(struct tw_alert_mails){to.mail, to.n_mail}, how, ret_partial, err);
	json_decref(doc);
	tw_arena_free(a);
	return st;
}

static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	const struct tw_derive_parts *parts = state;
	struct tw_turn_limit limit;
	const struct tw_deadline deadline = tw_turn_deadline(turn, &limit);
	const struct tw_alerts_how how = {(size_t)tw_monotonic_ms(), &deadline, NULL,
	        parts->sends_mail}; /* starts with a random rule */
	bool partial;

	*ret_more = false;
	return tw_alerts_evaluate(parts->fleet, turn->project_id, &how, &partial, err);
}

/* Rollups change all the time, so changes do not wake this stage. */
const struct tw_stage tw_stage_alerts = {
        .name = "alerts", .every_ms = EVERY_MS, .all = "alert_rule", .run = run};

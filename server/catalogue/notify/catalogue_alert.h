/*
 * catalogue_alert.h - alert rules of a project, and the alerts that their figures raised.
 *
 * A rule sets a threshold for a figure of each app and version, or of each ANR group.  A figure
 * above the threshold is an alert, with the same states as a regression.  The alert ends once the
 * figure is a tenth below the threshold.  If it returns within a day, an event follows only if the
 * figure is still above the threshold after that day and no user has handled the alert; a figure
 * near its threshold is thus not reported repeatedly. The event is queued in the transaction that
 * stores the change. Thread: any.
 */
#ifndef TW_CATALOGUE_ALERT_H
#define TW_CATALOGUE_ALERT_H

#include <jansson.h>

#include "server/base/ulid.h"
#include "server/catalogue/fleet/catalogue_regression.h"

enum tw_alert_kind { /* alert_kinds.def */
#define ALERT_KIND(id, unit, quantile) TW_ALERT_##id,
#include "server/catalogue/notify/alert_kinds.def"
#undef ALERT_KIND
	TW_ALERT_KINDS
};
extern const char *const tw_alert_kind_names[TW_ALERT_KINDS + 1]; /* ended by NULL */
extern const char *const tw_alert_units[TW_ALERT_KINDS];
bool tw_alert_is_quantile(enum tw_alert_kind k);
bool tw_alert_is_of_method(enum tw_alert_kind k);

enum { TW_ALERT_RULES_MAX = 50, TW_ALERT_MICRO = 1000000, TW_ALERT_ID_BYTES = 33 };

struct tw_alert_rule {
	const char *id, *name, *app, *scenario, *version_name, *author; /* "": any */
	const char *method; /* of a rule for a method; "": the rule is for traces or ANRs */
	enum tw_alert_kind kind;
	unsigned percentile, days;
	int64_t threshold;   /* TW_ALERT_MICRO per unit */
	uint32_t min_traces; /* or reports, of a figure */
	bool mail;
	int64_t created_ms, changed_ms;
};
extern const struct tw_fields tw_alert_rule_fields; /* the threshold is added by the API */
enum tw_status tw_catalogue_alert_rules(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_alert_rule **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_alert_rule_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_alert_rule *ret,
        struct tw_err *err) TW_MUST_USE;
/* TW_CONFLICT if there are TW_ALERT_RULES_MAX. */
enum tw_status tw_catalogue_alert_rule_add(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *r, char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* Name, percentile, threshold, min_traces, days and mail. */
enum tw_status tw_catalogue_alert_rule_change(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *r, struct tw_err *err) TW_MUST_USE;
/* With its alerts. */
enum tw_status tw_catalogue_alert_rule_delete(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_err *err) TW_MUST_USE;

struct tw_alert_figure {
	const char *app, *subject; /* a version, or the key of an ANR group */
	const char *title;         /* of the group */
	const char *trace_id;      /* evidence; "" */
	int64_t value;             /* TW_ALERT_MICRO per unit */
	uint64_t traces;
	bool is_over; /* by the known alerts; tw_catalogue_alerts_put updates it */
};

struct tw_alert {
	const char *id;
	struct tw_alert_rule rule; /* without times and author */
	struct tw_alert_figure of;
	struct tw_triage triage;
	int64_t first_ms, last_ms;
};
/* TW_NOT_FOUND. */
enum tw_status tw_catalogue_alert_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_alert *ret, struct tw_err *err) TW_MUST_USE;
/* As tw_catalogue_inbox_regressions and its counts. */
enum tw_status tw_catalogue_inbox_alerts(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_arena *a, struct tw_alert **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_inbox_count_alerts(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret,
        struct tw_err *err) TW_MUST_USE;
enum { TW_ALERTS_OF_RULE_MAX = 10000 };
/* Of one rule: first those that are above their thresholds. */
enum tw_status tw_catalogue_alerts_of(struct tw_catalogue *c, const char *project_id,
        const char *rule_id, struct tw_arena *a, struct tw_alert **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Whether a figure is above its threshold; `was`: the result of the previous evaluation. */
bool tw_alert_is_over(bool was, int64_t value, int64_t threshold);
struct tw_alert_mails {
	const char *const *to;
	size_t n;
};
struct tw_alert_evaluation { /* one evaluation of a rule */
	const char *project_id;
	const struct tw_alert_rule *rule;
	const struct tw_alert *known; /* tw_catalogue_alerts_of, read before the figures are made */
	size_t n_known;
	int64_t now_ms;
};
/* Stores all current figures of a rule: raises, returns and ends alerts.  An alert without a figure
 * has no traces or reports any longer, and ends. */
enum tw_status tw_catalogue_alerts_put(struct tw_catalogue *c, const struct tw_alert_evaluation *l,
        struct tw_alert_figure *figures, size_t n, const struct tw_alert_mails *mails,
        struct tw_err *err) TW_MUST_USE;

enum tw_triage_kind { TW_TRIAGE_REGRESSION, TW_TRIAGE_ANR, TW_TRIAGE_ALERT };
struct tw_triage_item {
	enum tw_triage_kind kind;
	const char *id; /* of the regression or alert, key of the group of ANRs */
	struct tw_triage what;
};
/* One transaction: all items change, or none.  TW_NOT_FOUND: one of them does not exist. */
enum tw_status tw_catalogue_triage(struct tw_catalogue *c, const char *project_id,
        const struct tw_triage_item *items, size_t n, struct tw_err *err) TW_MUST_USE;
/* The figure with its rule, in the form used by webhooks, mail and inbox; NULL: out of memory. */
json_t *tw_alert_json(
        const char *id, const struct tw_alert_rule *rule, const struct tw_alert_figure *of);

/* --- reports of ANR groups --- */

struct tw_anr_spike { /* a group that was known before the last 24 hours */
	const char *key, *title, *trace_id;
	int64_t recent, before; /* reports of the last 24 hours; of the days before */
	int64_t first_ms;       /* of the latter */
};
enum { TW_ANR_SPIKES_MAX = 1000 };
/* Groups with an active alert of the rule first, then by falling number of reports. */
enum tw_status tw_catalogue_anr_spikes(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *of, int64_t now_ms, struct tw_arena *a,
        struct tw_anr_spike **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * catalogue_outbox_log.c - what was told to a hook, try by try, and telling it once more.
 */
#include "catalogue_hook.h"

#include <inttypes.h>

#include "catalogue_internal.h"

static bool read_logged(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_logged *r = ret_row;

	*r = (struct tw_logged){.id = tw_cat_int(q, 0),
	        .created_ms = tw_cat_int(q, 1),
	        .due_ms = tw_cat_int(q, 2),
	        .tries = tw_cat_int(q, 3),
	        .event_id = tw_cat_text(q, 4, a),
	        .body = tw_cat_text(q, 5, a),
	        .event = (enum tw_hook_event)tw_cat_int(q, 6),
	        .state = (enum tw_outbox_state)tw_cat_int(q, 7)};
	return r->event_id && r->body;
}

static bool read_try(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_try *r = ret_row;

	*r = (struct tw_try){tw_cat_int(q, 0), tw_cat_int(q, 1), tw_cat_int(q, 2), tw_cat_int(q, 3),
	        tw_cat_int(q, 4), tw_cat_text(q, 5, a)};
	return r->error != NULL;
}

static enum tw_status read_tries(
        struct tw_catalogue *c, struct tw_logged *of, struct tw_arena *a, struct tw_err *err)
{
	struct tw_cat_list l = {a, TW_TRIES_TOLD, sizeof(struct tw_try), read_try, NULL, 0};
	enum tw_status st = tw_cat_list(c, &l, err, /* primary key */
	        "SELECT delivery_id, n, at_ms, took_ms, http, error FROM outbox_try WHERE"
	        " delivery_id=? AND n>? ORDER BY n LIMIT ?",
	        "iii", of->id, of->tries - TW_TRIES_TOLD, (int64_t)TW_TRIES_TOLD);

	of->log = l.rows;
	of->n_log = st == TW_OK ? l.n : 0;
	return st;
}

enum tw_status tw_catalogue_deliveries(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t before, uint32_t limit, struct tw_arena *a,
        struct tw_logged **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list l = {a, limit, sizeof **ret, read_logged, NULL, 0};
	enum tw_status st = tw_cat_list(c, &l, err, /* outbox_by_hook */
	        "SELECT delivery_id, created_ms, due_ms, tries, event_id, body, event, state FROM"
	        " outbox WHERE project_id=?1 AND hook_id=?2 AND delivery_id<?3"
	        " ORDER BY delivery_id DESC LIMIT ?4",
	        "ttii", project_id, hook_id, before ? before : INT64_MAX, (int64_t)limit);
	struct tw_logged *rows = l.rows;

	for (size_t i = 0; st == TW_OK && i < l.n; i++)
		st = read_tries(c, &rows[i], a, err);
	if (st == TW_OK) {
		*ret = rows;
		*ret_n = l.n;
	}
	return st;
}

enum tw_status tw_catalogue_redeliver(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, int64_t delivery_id, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	char number[TW_NUMBER_BYTES];
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err, /* primary key */
	        "UPDATE outbox SET state=0, due_ms=?4, until_ms=?5, tries_left=?6 WHERE"
	        " delivery_id=?3 AND project_id=?1 AND hook_id=?2",
	        "ttiiii", project_id, hook_id, delivery_id, now,
	        now + TW_HOOK_GIVE_UP_DAYS * TW_DAY_MS, (int64_t)TW_HOOK_TRIES);
	if (st == TW_OK && !changed)
		st = tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such delivery to this webhook");
	return tw_cat_end_audited(c, st,
	        &(struct tw_change){"webhook.redeliver", project_id, hook_id,
	                .facts = {{"delivery", tw_cat_number(delivery_id, number)}}},
	        err);
}

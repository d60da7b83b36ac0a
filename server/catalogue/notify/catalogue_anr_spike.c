/*
 * catalogue_anr_spike.c - reports of known ANR groups in the last 24 hours and in the days before.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_alert.h"

static bool read_spike(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_spike *r = ret_row;

	*r = (struct tw_anr_spike){tw_cat_text(q, 0, a), tw_cat_text(q, 1, a), tw_cat_text(q, 2, a),
	        tw_cat_int(q, 3), tw_cat_int(q, 4), tw_cat_int(q, 5)};
	return r->key && r->title && r->trace_id;
}

enum tw_status tw_catalogue_anr_spikes(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *of, int64_t now_ms, struct tw_arena *a,
        struct tw_anr_spike **ret, size_t *ret_n, struct tw_err *err)
{
	const int64_t since_ms = now_ms - TW_DAY_MS;
	const int64_t from_ms = since_ms - of->days * TW_DAY_MS;
	struct tw_cat_list l = {a, TW_ANR_SPIKES_MAX, sizeof **ret, read_spike, NULL, 0};
	enum tw_status st = tw_cat_list(c, &l, err, /* hang_anr_of_day, primary key */
	        "SELECT g.key, CASE WHEN a.name<>'' THEN a.name ELSE a.title END, g.trace_id,"
	        " g.recent, g.earlier, g.first_ms FROM (SELECT h.key AS key,"
	        " sum(CASE WHEN h.created_ms>=?3 THEN 1 ELSE 0 END) AS recent,"
	        " sum(CASE WHEN h.created_ms<?3 THEN 1 ELSE 0 END) AS earlier,"
	        " min(h.created_ms) AS first_ms,"
	        " max(CASE WHEN h.created_ms>=?3 THEN h.trace_id ELSE '' END) AS trace_id"
	        " FROM hang h WHERE h.project_id=?1 AND h.anr=1 AND h.day>=?4 AND"
	        " h.created_ms>=?2 AND h.key<>'' AND (?5='' OR h.app=?5) AND"
	        " (?6='' OR h.scenario=?6) AND (?7='' OR h.version_name=?7) GROUP BY h.key) g"
	        " CROSS JOIN anr a WHERE g.recent>0 AND g.earlier>0 AND a.project_id=?1 AND"
	        " a.trace_id=g.trace_id ORDER BY CASE WHEN g.key IN (SELECT subject FROM alert "
	        "WHERE"
	        " project_id=?1 AND rule_id=?8 AND is_over=1) THEN 0 ELSE 1 END, g.recent DESC,"
	        " g.key LIMIT ?9",
	        "tiiitttti", project_id, from_ms, since_ms, from_ms / TW_DAY_MS, of->app,
	        of->scenario, of->version_name, of->id, (int64_t)TW_ANR_SPIKES_MAX);

	if (st == TW_OK) {
		*ret = l.rows;
		*ret_n = l.n;
	}
	return st;
}

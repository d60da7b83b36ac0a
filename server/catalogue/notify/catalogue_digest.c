/* catalogue_digest.c - contents of digests, and those already made. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/text/json.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_digest.h"
#include "server/catalogue/notify/catalogue_hook.h"

enum { ID_BYTES = 64, KEPT_DAYS = 400 };

enum tw_status tw_catalogue_digest_ingest(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, struct tw_digest_ingest *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	*ret = (struct tw_digest_ingest){0};
	if (st != TW_OK)
		return st;
	st = tw_cat_get_int(db, &ret->accepted, err, /* trace_by_created */
	        "SELECT count(*) FROM trace WHERE project_id=? AND created_ms>=? AND created_ms<?",
	        "tii", project_id, of.since_ms, of.until_ms);
	if (st == TW_OK)
		st = tw_cat_get_int(db, &ret->failed, err, /* trace_by_created */
		        "SELECT count(*) FROM trace WHERE project_id=? AND created_ms>=? AND"
		        " created_ms<? AND state=3",
		        "tii", project_id, of.since_ms, of.until_ms);
	if (st == TW_OK)
		st = tw_cat_get_int(db, &ret->expired, err, /* audit_by_age */
		        "SELECT count(*) FROM audit INDEXED BY audit_by_age WHERE at_ms>=?2 AND"
		        " at_ms<?3 AND project_id=?1 AND action='trace.delete' AND "
		        "by_kind='server'",
		        "tii", project_id, of.since_ms, of.until_ms);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_digest_regressions(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, int event, struct tw_arena *a, const char *const **ret,
        size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c,
	        TW_CAT_LIST(a, TW_DIGEST_REGRESSIONS_MAX, &tw_text_fields, ret, ret_n),
	        err, /* regression_history_by_time */
	        "SELECT regression_id FROM regression_history INDEXED BY"
	        " regression_history_by_time WHERE project_id=?1 AND at_ms>=?2 AND at_ms<?3 AND"
	        " event=?4 GROUP BY regression_id ORDER BY max(at_ms) DESC LIMIT ?5",
	        "tiiii", project_id, of.since_ms, of.until_ms, (int64_t)event,
	        (int64_t)TW_DIGEST_REGRESSIONS_MAX);
}

static const struct tw_fields anr_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_digest_anr, key, "", NULL),
                TW_FIELD(struct tw_digest_anr, name, "", NULL),
                TW_FIELD(struct tw_digest_anr, title, "", NULL),
                TW_FIELD(struct tw_digest_anr, verdict, "", NULL),
                TW_FIELD(struct tw_digest_anr, count, "", NULL),
                TW_FIELD(struct tw_digest_anr, total, "", NULL));

/* By arrival, as trace ids are: devices upload reports days after the digest of their day. */
enum tw_status tw_catalogue_digest_anrs(struct tw_catalogue *c, const char *project_id,
        struct tw_digest_period of, struct tw_arena *a, struct tw_digest_anr **ret, size_t *ret_n,
        struct tw_err *err)
{
	char since[TW_ID_BYTES], until[TW_ID_BYTES];

	tw_ulid_first(of.since_ms, since);
	tw_ulid_first(of.until_ms, until);
	return tw_cat_list(c, TW_CAT_LIST(a, TW_DIGEST_ANRS_MAX, &anr_fields, ret, ret_n),
	        err, /* primary key, anr_trace_of_key */
	        "WITH g AS MATERIALIZED (SELECT key, count(*) AS n, max(trace_id) AS newest FROM"
	        " anr_trace WHERE project_id=?1 AND anr=1 AND trace_id>=?2 AND trace_id<?3 AND"
	        " key<>'' GROUP BY key) SELECT g.key, a.name, a.title, a.verdict, g.n, count(*)"
	        " OVER () FROM g CROSS JOIN anr a ON a.project_id=?1 AND a.trace_id=g.newest"
	        " WHERE NOT EXISTS(SELECT 1 FROM anr_trace p INDEXED BY anr_trace_of_key WHERE"
	        " p.project_id=?1 AND p.anr=1 AND p.key=g.key AND p.trace_id<?2) ORDER BY g.n"
	        " DESC, g.key LIMIT ?4",
	        "ttti", project_id, since, until, (int64_t)TW_DIGEST_ANRS_MAX);
}

enum tw_status tw_catalogue_digest_last(struct tw_catalogue *c, const char *project_id,
        int64_t before_ms, int64_t *ret, struct tw_err *err)
{
	*ret = 0;
	return tw_cat_read_int(c, ret, err, /* primary key */
	        "SELECT coalesce(max(until_ms),0) FROM digest_made WHERE project_id=? AND"
	        " until_ms<?",
	        "ti", project_id, before_ms);
}

static int64_t day_of(int64_t ms)
{
	return ms - ms % TW_DAY_MS;
}

static const struct tw_fields project_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_digest_project, id, "", NULL),
                TW_FIELD(struct tw_digest_project, name, "", NULL),
                TW_FIELD(struct tw_digest_project, rules, "", NULL),
                TW_FIELD(struct tw_digest_project, changed_ms, "", NULL),
                TW_FIELD(struct tw_digest_project, until_ms, "", NULL));

enum tw_status tw_catalogue_digest_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_digest_project **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, UINT32_MAX, &project_fields, ret, ret_n),
	        err, /* primary keys */
	        "SELECT project.project_id, name, s.value, s.updated_ms, coalesce((SELECT"
	        " max(until_ms) FROM digest_made d WHERE d.project_id=project.project_id),0) FROM"
	        " project JOIN project_setting s ON s.project_id=project.project_id AND s.key=?"
	        " WHERE deleted_ms=0 ORDER BY project.project_id",
	        "t", TW_SETTING_DIGEST);
}

bool tw_catalogue_digest_made(const struct tw_digest_project *p, int64_t until_ms)
{
	return p->until_ms > 0 && p->until_ms >= day_of(until_ms);
}

/* One delivery per address: recipients do not see each other, and a slow one delays none. */
static enum tw_status queue_mails_of(struct tw_db *db, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err)
{
	json_t *all = json_loads(facts, 0, NULL);
	enum tw_status st = all ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < to->n_mail; i++) {
		char id[ID_BYTES];
		char *text;

		(void)snprintf(id, sizeof id, "digest.%" PRId64 ".%zu", of->period.until_ms, i + 1);
		(void)json_object_set_new(all, "to", json_string(to->mail[i]));
		text = tw_json_dumps(all, JSON_COMPACT);
		st = text ? tw_cat_notify_mail(db, of->project_id,
		                    &(struct tw_notice){TW_HOOK_DIGEST, id, text}, err)
		          : tw_oom(err);
		free(text);
	}
	json_decref(all);
	return st;
}

static enum tw_status queue_digest(struct tw_db *db, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err)
{
	char id[ID_BYTES];
	const struct tw_notice what = {TW_HOOK_DIGEST, id, facts};
	enum tw_status st = TW_OK;

	(void)snprintf(id, sizeof id, "digest.%" PRId64, of->period.until_ms);
	if (to->webhook)
		st = tw_cat_notify(db, of->project_id, &what, err);
	return st == TW_OK ? queue_mails_of(db, of, facts, to, err) : st;
}

enum tw_status tw_catalogue_digest_notify(struct tw_catalogue *c, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st == TW_OK)
		st = queue_digest(w, of, facts, to, err);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"digest.send", of->project_id, "digest"}, err);
}

enum tw_status tw_catalogue_digest_claim(struct tw_catalogue *c, const struct tw_digest_of *of,
        const char *facts, const struct tw_digest_rules *to, struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t now = tw_unix_ms();
	int mine = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, &mine, err, /* primary key */
		        "INSERT INTO digest_made(project_id,until_ms,since_ms,made_ms)"
		        " SELECT ?1,?2,?3,?4 WHERE NOT EXISTS(SELECT 1 FROM digest_made"
		        " WHERE project_id=?1 AND until_ms>=?5)",
		        "tiiii", of->project_id, of->period.until_ms, of->period.since_ms, now,
		        day_of(of->period.until_ms));
	if (st == TW_OK && mine)
		st = queue_digest(w, of, facts, to, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "DELETE FROM digest_made WHERE project_id=? AND until_ms<?", "ti",
		        of->project_id, now - KEPT_DAYS * TW_DAY_MS);
	return tw_cat_end(c, w, st, err);
}

#include "server/catalogue/access/catalogue_capture.h"

#include <string.h>

#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/capture.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { ROWS_MAX = (TW_CAPTURE_RULES_MAX + 1) * TW_CAPTURE_DAYS, FORGOTTEN_AT_ONCE = 2000 };

static const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

/* The sender: the id of the installation, otherwise of the device. */
static int64_t device_of(const struct tw_trace_meta *m)
{
	const char *name = text_or_empty(m->device_id);
	uint64_t bits;

	if (!*name)
		name = text_or_empty(m->device);
	if (!*name)
		return 0;
	bits = tw_secret_bits(name);
	return (int64_t)(bits >> 1) + 1;
}

/* Invalid rules have no names. */
static bool has_rule(const char *text, const char *name)
{
	json_t *doc = json_loads(text, 0, NULL), *rule;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(doc, "rules"), i, rule)
	{
		found = found || strcmp(tw_json_text(rule, "name"), name) == 0;
	}
	json_decref(doc);
	return found;
}

static enum tw_status is_rule(
        struct tw_db *db, const char *project_id, const char *name, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st;

	*ret = false;
	if (!*name)
		return TW_OK;
	st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT value FROM project_setting WHERE project_id=? AND key=?", "tt", project_id,
	        TW_SETTING_CAPTURE);
	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) && has_rule(tw_cat_str(&q, 0), name);
	return tw_cat_close(&q, err);
}

enum tw_status tw_cat_capture_count(struct tw_db *db, const char *project_id, const char *trace_id,
        const struct tw_trace_meta *m, int64_t now_ms, struct tw_err *err)
{
	const int64_t day = now_ms / TW_DAY_MS;
	const int64_t device = device_of(m);
	bool known;
	int new_devices = 0;
	enum tw_status st = is_rule(db, project_id, m->capture, &known, err);
	const char *rule = known ? m->capture : "";

	if (st == TW_OK && device)
		st = tw_cat_exec(db, &new_devices, err,
		        "INSERT INTO capture_device(day,project_id,rule,device)"
		        " VALUES(?,?,?,?) ON CONFLICT DO NOTHING",
		        "itti", day, project_id, rule, device);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        TW_EITHER("INSERT INTO capture_day(project_id,rule,day,traces,devices)"
		                  " VALUES(?1,?2,?3,?5<>'',?4) ON CONFLICT(project_id,rule,day) DO"
		                  " UPDATE SET traces=capture_day.traces+1,"
		                  " devices=capture_day.devices+?4",
		                "INSERT INTO count_delta(project_id,counter,name,day,trace_id,"
		                "traces,devices) VALUES(?1,1,?2,?3,?5,1,?4)"),
		        "ttiit", project_id, rule, day, (int64_t)new_devices, trace_id);
	return st;
}

static const struct tw_fields count_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_capture_count, rule, "", NULL),
                TW_FIELD(struct tw_capture_count, day, "", NULL),
                TW_FIELD(struct tw_capture_count, traces, "", NULL),
                TW_FIELD(struct tw_capture_count, devices, "", NULL));

enum tw_status tw_catalogue_capture_counts(struct tw_catalogue *c, const char *project_id,
        int64_t first_day, struct tw_arena *a, struct tw_capture_count **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, ROWS_MAX, &count_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT rule, day, sum(traces), sum(devices) FROM (SELECT rule, day, traces,"
	        " devices FROM capture_day WHERE project_id=?1 AND day>=?2 UNION ALL SELECT"
	        " name, day, traces, devices FROM count_delta WHERE project_id=?1 AND counter=1"
	        " AND day>=?2) of_both GROUP BY rule, day ORDER BY rule, day LIMIT ?3",
	        "tii", project_id, first_day, (int64_t)ROWS_MAX);
}

static enum tw_status forget_some(
        struct tw_catalogue *c, int64_t before_day, int *ret_n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin_one(c, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, ret_n, err, /* primary key */
	        "DELETE FROM capture_device WHERE " TW_CAT_SOME(
	                "day,project_id,rule,device", "capture_device WHERE day<? LIMIT ?"),
	        "ii", before_day, (int64_t)FORGOTTEN_AT_ONCE);
	return tw_cat_end(c, w, st, err);
}

/* In batches, so that uploads are accepted in between: a day may have a million devices. */
enum tw_status tw_catalogue_capture_forget(
        struct tw_catalogue *c, int64_t before_day, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (int n = FORGOTTEN_AT_ONCE; st == TW_OK && n == FORGOTTEN_AT_ONCE;)
		st = forget_some(c, before_day, &n, err);
	return st;
}

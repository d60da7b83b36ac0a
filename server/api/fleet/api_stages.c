/* The number of a project's traces that wait for each stage of derived data, and the reasons. */
#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/base/app.h"
#include "server/derive/pipeline.h"

static json_t *raised_by(unsigned bits)
{
	static const char *const words[] = {"decoder", "mapping", "rules", "rollup"};
	json_t *list = json_array();

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (bits & 1U << i)
			(void)json_array_append_new(list, json_string(words[i]));
	return list;
}

static json_t *stage_json(const struct tw_stage *s, const struct tw_stage_waiting *w)
{
	json_t *postponed = json_array();

	for (size_t i = 0; i < w->n_why; i++)
		(void)json_array_append_new(
		        postponed, json_pack("{s:s, s:I}", "reason", w->why[i].reason, "traces",
		                           (json_int_t)w->why[i].traces));
	return json_pack("{s:s, s:o, s:I, s:I, s:o}", "stage", s->name, "depends",
	        raised_by(s->depends), "waiting", (json_int_t)w->traces, "oldest_ms",
	        (json_int_t)w->oldest_ms, "postponed", postponed);
}

enum tw_status tw_fleet_get_stages(struct tw_req *r, struct tw_err *err)
{
	json_t *list = json_array();
	struct tw_stage_waiting w;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && tw_stages[i]; i++) {
		if (!tw_stages[i]->marks)
			continue;
		st = tw_catalogue_stage_waiting(tw_req_app(r)->catalogue, tw_stages[i]->marks,
		        tw_req_caller(r)->project_id, &w, err);
		if (st == TW_OK)
			(void)json_array_append_new(list, stage_json(tw_stages[i], &w));
	}
	if (st == TW_OK)
		return tw_req_reply_json(r, 200, json_pack("{s:o}", "stages", list), err);
	json_decref(list);
	return st;
}

/* Who changed what, for admins: of a project, or with everywhere=1 of the whole server. */
#include <string.h>

#include "server/api/api.h"
#include "server/base/app.h"
#include "server/base/audit.h"

enum { MAX_PAGE = 500, PAGE = 100 };

static json_t *entry_json(const struct tw_audit_entry *e)
{
	json_t *facts = json_loads(e->facts, 0, NULL);

	return json_pack("{sI sI ss s{ss ss ss} ss ss ss ss so}", "id", (json_int_t)e->id, "at_ms",
	        (json_int_t)e->at_ms, "project", e->project_id, "by", "kind", e->by.kind, "id",
	        e->by.id, "name", e->by.name, "address", e->by.address, "request", e->by.request_id,
	        "action", e->action, "target", e->target, "facts", facts ? facts : json_object());
}

static const char *word(const struct tw_req *r, const char *name)
{
	const char *text = tw_req_query(r, name);

	return text ? text : "";
}

static enum tw_status whose(const struct tw_req *r, const char **ret_project_id, struct tw_err *err)
{
	bool everywhere = false;
	enum tw_status st = tw_req_query_bool(r, "everywhere", false, &everywhere, err);

	if (st == TW_OK && everywhere && tw_req_caller(r)->scope != TW_SCOPE_SERVER)
		st = tw_fail(err, TW_DENIED,
		        "only an admin of the server sees changes everywhere; leave everywhere out "
		        "for those of the project");
	*ret_project_id = everywhere ? NULL : tw_req_caller(r)->project_id;
	return st;
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	struct tw_audit_query of = {
	        .action = word(r, "action"), .by = word(r, "by"), .target = word(r, "target")};
	struct tw_audit_entry *rows = NULL;
	int64_t limit = PAGE;
	json_t *entries;
	size_t n = 0;
	enum tw_status st = whose(r, &of.project_id, err);

	if (st == TW_OK)
		st = tw_req_query_i64(r, "before", 0, 0, INT64_MAX, &of.before, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "limit", PAGE, 1, MAX_PAGE, &limit, err);
	of.limit = (uint32_t)limit;
	if (st == TW_OK)
		st = tw_catalogue_audit(
		        tw_req_app(r)->catalogue, &of, tw_req_arena(r), &rows, &n, err);
	if (st != TW_OK)
		return st;
	entries = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(entries, entry_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{so so}", "entries", entries, "before",
	                n == of.limit ? json_integer((json_int_t)rows[n - 1].id) : json_null()),
	        err);
}

const struct tw_route tw_routes_audit[] = {
        {.method = "GET",
                .path = "/api/v1/audit",
                .needs = TW_NEED_ADMIN,
                .end = list,
                .summary = "Who changed what, newest first"},
        {0},
};

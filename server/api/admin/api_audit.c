/* The audit log, for admins: of a project, or of the whole server with everywhere=1. */

#include "server/api/api.h"
#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/catalogue_row.h"

enum { MAX_PAGE = 500, PAGE = 100 };

static const struct tw_param audit_params[] = {
        TW_PARAM_FLAG("everywhere", false,
                "Entries of all projects and of the server itself; scope: server."),
        TW_PARAM_TEXT("action", 0,
                "Only this action, such as key.create; key means all actions on keys."),
        TW_PARAM_TEXT("actor", 0, "Name or id of the person or key."),
        TW_PARAM_TEXT("target", 0, "Id or name of the changed object."),
        TW_PARAM_OPTIONAL_NUMBER("cursor", 0, INT64_MAX, "`next_cursor` of the previous page."),
        TW_PARAM_NUMBER("limit", PAGE, 1, MAX_PAGE, "Entries of a page."),
        {0},
};

static enum tw_status project_of(
        const struct tw_req *r, const char **ret_project_id, struct tw_err *err)
{
	const bool everywhere = tw_req_flag(r, "everywhere");

	*ret_project_id = everywhere ? NULL : tw_api_project(r);
	if (everywhere && tw_req_caller(r)->scope != TW_SCOPE_SERVER)
		return tw_fail(err, TW_DENIED,
		        "only a server admin can list changes of all projects; omit everywhere to "
		        "list those of the project");
	return TW_OK;
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	struct tw_audit_query of = {.action = tw_req_text_or_empty(r, "action"),
	        .by = tw_req_text_or_empty(r, "actor"),
	        .target = tw_req_text_or_empty(r, "target"),
	        .before = tw_req_number_or(r, "cursor", 0),
	        .limit = (uint32_t)tw_req_number(r, "limit")};
	struct tw_audit_entry *rows = NULL;
	size_t n = 0;
	enum tw_status st = project_of(r, &of.project_id, err);

	if (st == TW_OK)
		st = tw_catalogue_audit(tw_api_catalogue(r), &of, tw_req_arena(r), &rows, &n, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{so so}", "entries",
	                tw_rows_json(&tw_audit_fields, rows, n, sizeof *rows), "next_cursor",
	                n == of.limit ? json_integer((json_int_t)rows[n - 1].id) : json_null()),
	        err);
}

const struct tw_route tw_routes_audit[] = {
        TW_ROUTE("GET", "/api/v1/audit", TW_NEED_ADMIN, "Audit log, newest first",
                .params = TW_PARAMS(audit_params), .end = list),
        {0},
};

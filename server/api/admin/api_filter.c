/* Named trace filters, saved by people of a project. */
#include <string.h>

#include "server/api/api.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/traces/catalogue_list.h"

static enum tw_status list_filters(struct tw_req *r, struct tw_err *err)
{
	struct tw_filter_row *rows;
	size_t n;
	enum tw_status st = tw_catalogue_filters(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack(
	                "{so}", "filters", tw_rows_json(&tw_filter_fields, rows, n, sizeof *rows)),
	        err);
}

/* The name is a path segment; a blank one would be invisible. */
static enum tw_status read_name(struct tw_req *r, const char **ret, struct tw_err *err)
{
	const char *name = tw_req_path(r, "name");
	enum tw_status st = tw_check_text("the name", name, err);

	if (st != TW_OK)
		return st;
	if (strlen(name) > TW_FILTER_NAME_BYTES || strspn(name, " ") == strlen(name))
		return tw_fail(err, TW_BAD_REQUEST, "the name must have 1 to %d bytes",
		        TW_FILTER_NAME_BYTES);
	*ret = name;
	return TW_OK;
}

static enum tw_status set_filter(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_filter_row row = {.author = ""};
	enum tw_status st = read_name(r, &row.name, err);

	if (st == TW_OK)
		st = tw_member_text(body, "query", TW_FILTER_QUERY_BYTES, false, &row.query, err);
	if (st == TW_OK) {
		row.author = tw_api_author(r);
		st = tw_catalogue_filter_set(tw_api_catalogue(r), tw_api_project(r), &row, err);
	}
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status delete_filter(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_filter_delete(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_path(r, "name"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

const struct tw_route tw_routes_filter[] = {
        TW_ROUTE("GET", "/api/v1/filters", TW_NEED_READ, "Saved filters of the list of traces",
                .end = list_filters),
        TW_ROUTE("PUT", "/api/v1/filters/{name}", TW_NEED_WRITE,
                "Saves a filter of the list of traces", .json = set_filter),
        TW_ROUTE("DELETE", "/api/v1/filters/{name}", TW_NEED_WRITE, "Deletes a saved filter",
                .end = delete_filter),
        {0},
};

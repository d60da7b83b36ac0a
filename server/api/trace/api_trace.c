/* Traces of a project: list, facets, one trace, deletion. */

#include "server/api/api.h"
#include "server/api/trace/view_open.h"
#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/delete.h"
#include "server/derive/retention.h"

static const char *const sorts[] = {"created", "duration", "slices", "bytes", NULL};

/* one per kind of filters.def */
#define PARAM_TEXT(name, about)   TW_PARAM_TEXT(name, 0, about)
#define PARAM_PART(name, about)   TW_PARAM_TEXT(name, 0, about)
#define PARAM_TAG(name, about)    TW_PARAM_TEXT(name, 0, about)
#define PARAM_NUMBER(name, about) TW_PARAM_OPTIONAL_NUMBER(name, 0, INT64_MAX, about)
#define PARAM_STATE(name, about)  TW_PARAM_OPTIONAL_ENUM(name, tw_trace_state_names, about)
#define PARAM_FLAG(name, about)   TW_PARAM_FLAG(name, false, about)
#define PARAM_LABEL(name_, about_)                                                                 \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_TEXT, .repeated = true, .about = (about_)     \
	}

static const struct tw_param filter_params[] = {
#define COLUMN(name)                   TW_PARAM_TEXT(#name, 0, ""),
#define FILTER(name, kind, about, sql) PARAM_##kind(#name, about),
#include "server/catalogue/traces/filters.def"
#undef COLUMN
#undef FILTER
        {0},
};

static const struct tw_param page_params[] = {
        TW_PARAM_ENUM("sort", sorts, ""),
        TW_PARAM_ENUM("order", tw_orders, ""),
        TW_PARAM_NUMBER("limit", 50, 1, 500, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static enum tw_status add_condition(
        void *arg, const char *name, const char *value, struct tw_err *err)
{
	return tw_trace_filter_add(arg, name, value, err);
}

static enum tw_status parse_filter(
        const struct tw_req *r, struct tw_trace_filter *ret, struct tw_err *err)
{
	struct tw_trace_filter f = {.cursor = tw_req_text_or_empty(r, "cursor"),
	        .limit = (uint32_t)tw_req_number(r, "limit"),
	        .sort = (enum tw_trace_sort)tw_req_enum(r, "sort"),
	        .ascending = tw_req_enum(r, "order") == 1};
	enum tw_status st = tw_req_each_query(r, add_condition, &f, err);

	if (st == TW_OK)
		*ret = f;
	return st;
}

static json_t *time_or_null(int64_t ms)
{
	return ms ? json_integer((json_int_t)ms) : json_null();
}

/* A trace with the times at which retention deletes it, or a part of it; null: never. */
static json_t *trace_json(const struct tw_trace_row *row, const struct tw_retention *rules)
{
	const struct tw_ends ends = tw_retention_ends(rules, row);
	json_t *json = tw_api_trace(row);

	(void)json_object_set_new(json, "expires_ms", time_or_null(ends.trace_ms));
	(void)json_object_set_new(json, "upload_expires_ms", time_or_null(ends.upload_ms));
	(void)json_object_set_new(json, "decoded_expires_ms", time_or_null(ends.decoded_ms));
	return json;
}

static enum tw_status rules_of(struct tw_req *r, struct tw_retention *ret, struct tw_err *err)
{
	return tw_retention_of(tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), ret, err);
}

static enum tw_status list_traces(struct tw_req *r, struct tw_err *err)
{
	struct tw_trace_filter filter;
	struct tw_retention rules;
	struct tw_trace_row *rows;
	const char *cursor;
	uint64_t total;
	json_t *list;
	size_t n;
	enum tw_status st = parse_filter(r, &filter, err);

	if (st == TW_OK)
		st = tw_catalogue_traces(tw_api_catalogue(r), tw_api_project(r), &filter,
		        tw_req_arena(r), &rows, &n, &cursor, &total, err);
	if (st == TW_OK)
		st = rules_of(r, &rules, err);
	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, trace_json(&rows[i], &rules));
	return tw_req_reply_json(r, 200,
	        json_pack("{so sI sb so}", "traces", list, "total",
	                (json_int_t)(total > TW_TRACE_TOTAL_MAX ? TW_TRACE_TOTAL_MAX : total),
	                "total_is_capped", total > TW_TRACE_TOTAL_MAX, "next_cursor",
	                *cursor ? json_string(cursor) : json_null()),
	        err);
}

static const char *const facet_columns[] = {
#define COLUMN(name) #name,
#define FILTER(name, kind, about, sql)
#include "server/catalogue/traces/filters.def"
#undef COLUMN
#undef FILTER
        "state", "tag", "label", NULL};

static const struct tw_param facets_params[] = {
        {.name = "column",
                .kind = TW_PARAM_IS_ENUM,
                .required = true,
                .names = facet_columns,
                .about = ""},
        {0},
};

static enum tw_status facets(struct tw_req *r, struct tw_err *err)
{
	const char *column = tw_req_text(r, "column");
	struct tw_facet *rows;
	json_t *list;
	size_t n;
	enum tw_status st = tw_catalogue_facets(
	        tw_api_catalogue(r), tw_api_project(r), column, tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_pack("{ss sI}", "value", rows[i].value,
		                                          "count", (json_int_t)rows[i].count));
	return tw_req_reply_json(
	        r, 200, json_pack("{ss so}", "column", column, "values", list), err);
}

static enum tw_status one_trace(struct tw_req *r, struct tw_err *err)
{
	struct tw_retention rules;
	struct tw_trace_row row;
	const char *id;
	json_t *json;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_trace_get(
		        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);
	if (st == TW_OK)
		st = rules_of(r, &rules, err);
	if (st != TW_OK)
		return st;
	json = trace_json(&row, &rules);
	if (row.state == TW_TRACE_READY)
		st = tw_view_report(r, &row, json, err);
	if (st == TW_OK)
		return tw_req_reply_json(r, 200, json, err);
	json_decref(json);
	return st;
}

static enum tw_status delete_trace(struct tw_req *r, struct tw_err *err)
{
	const char *id;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = tw_delete_trace(&tw_api_of(r)->deleter, tw_api_project(r), id,
		        TW_DELETE_WITH_SUMS, tw_req_arena(r), err);
	if (st != TW_OK)
		return st;
	tw_log(TW_LOG_INFO, "trace_deleted", tw_log_text("trace", id),
	        tw_log_text("key", tw_req_caller(r)->key_id));
	return tw_req_reply_empty(r, 204, err);
}

const struct tw_route tw_routes_trace[] = {
        TW_ROUTE("GET", "/api/v1/traces", TW_NEED_READ, "Traces by filter, in pages",
                .params = TW_PARAMS(filter_params, page_params),
                .roles = TW_ROLE_INGEST | TW_ROLE_QUERY, .end = list_traces),
        TW_ROUTE("GET", "/api/v1/facets", TW_NEED_READ,
                "Values of a column with counts, for filter menus",
                .params = TW_PARAMS(facets_params), .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,
                .end = facets),
        TW_ROUTE("GET", "/api/v1/traces/{id}", TW_NEED_READ_OR_INGEST,
                "State, metadata, summary and report", .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,
                .end = one_trace),
        TW_ROUTE("DELETE", "/api/v1/traces/{id}", TW_NEED_WRITE, "Deletes a trace and its uploads",
                .roles = TW_ROLE_INGEST | TW_ROLE_QUERY, .end = delete_trace),
        {0},
};

/* Traces of a project: list, facets, one trace with its report, deletion. */

#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/trace/trace_query.h"
#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/delete.h"
#include "server/derive/retention.h"

static const char *const sorts[] = {"created", "duration", "slices", "bytes", NULL};

/* one per kind of filters.def */
#define PARAM_TEXT(name, about)   TW_PARAM_TEXT(name, 0, about)
#define PARAM_WORDS(name, about)  TW_PARAM_TEXT(name, 0, about)
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

/* --- report --- */

struct share {
	uint64_t ids, resolved, slices, resolved_slices;
};

static struct share count_names(
        const struct tw_view *v, const struct tw_method_info *methods, uint32_t n)
{
	struct share s = {0};
	struct tw_method_name name;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &methods[i];
		bool known =
		        !m->has_id || (v->names.map && tw_map_find(v->names.map, m->id, &name));

		s.ids++;
		s.slices += m->count;
		s.resolved += known;
		s.resolved_slices += known ? m->count : 0;
	}
	return s;
}

static json_t *warning(const struct tw_view *v, const struct share *s)
{
	const char *build = v->row.meta.build_id;

	if (s->resolved_slices * 2 >= s->slices)
		return json_null();
	if (!build[0])
		return json_string(
		        "Method names are missing: the upload named no build. Send traces with "
		        "build_id=... and upload the build's methodMapping.txt with PUT "
		        "/api/v1/builds/{build_id}/methods.");
	if (!v->names.map)
		return json_sprintf(
		        "Method names are missing: no mapping was uploaded for build %s. "
		        "Send its methodMapping.txt with PUT /api/v1/builds/%s/methods; "
		        "this trace will then show names without being sent again.",
		        build, build);
	return json_sprintf(
	        "Only %llu of %llu method ids are in the mapping of build %s: it is "
	        "probably the mapping of another build. Send the right methodMapping.txt "
	        "with PUT /api/v1/builds/%s/methods.",
	        (unsigned long long)s->resolved, (unsigned long long)s->ids, build, build);
}

static json_t *names_json(const struct tw_view *v, const struct tw_method_info *methods, uint32_t n)
{
	struct share s = count_names(v, methods, n);

	return json_pack("{sb sb ss sI sI sI sI so}", "mapping", v->names.map != NULL, "retrace",
	        v->names.retrace != NULL, "build_id", v->row.meta.build_id, "ids",
	        (json_int_t)s.ids, "resolved", (json_int_t)s.resolved, "slices",
	        (json_int_t)s.slices, "resolved_slices", (json_int_t)s.resolved_slices, "warning",
	        warning(v, &s));
}

static json_t *repairs_json(const struct tw_view *v)
{
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(v->file, &n);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_repair_info *info = tw_repair_info(r[i].what);

		(void)json_array_append_new(list,
		        json_pack("{ss ss sI so ss}", "name", info->name, "kind", info->kind_word,
		                "count", (json_int_t)r[i].count, "first_offset",
		                r[i].first_offset == TW_NO_OFFSET
		                        ? json_null()
		                        : json_integer((json_int_t)r[i].first_offset),
		                "meaning", info->meaning));
	}
	return list;
}

static bool keep_system(void *arg, struct tw_str kind, struct tw_str json)
{
	json_t **ret = arg;

	if (!tw_str_eq(kind, TW_STR("system")))
		return true;
	*ret = json_loadb(json.ptr, json.len, 0, NULL);
	return false;
}

/* The merge report of the device's system trace; null without one. */
static json_t *system_json(const struct tw_view *v)
{
	json_t *system = NULL;

	if (tw_trace_file_documents(v->file, keep_system, &system, NULL) != TW_OK || !system)
		return json_null();
	return system;
}

enum tw_status tw_view_report(
        struct tw_req *r, const struct tw_trace_row *row, json_t *json, struct tw_err *err)
{
	struct tw_view v = {.req = r, .row = *row};
	const struct tw_method_info *methods = NULL;
	const struct tw_trace_info *i;
	enum tw_status st = tw_view_open_row(r, &v, err);
	json_t *report;
	uint32_t n = 0;

	if (st != TW_OK)
		return st;
	st = tw_trace_file_methods(v.file, &methods, &n, err);
	if (st != TW_OK) {
		tw_view_close(&v);
		return st;
	}
	i = tw_trace_file_info(v.file);
	report = json_pack("{so so so}", "repairs", repairs_json(&v), "names",
	        names_json(&v, methods, n), "system", system_json(&v));
	if (!report || json_object_set_new(json, "report", report) != 0 ||
	        json_object_set_new(json, "start_ns", json_integer(i->start_ns)) != 0 ||
	        json_object_set_new(json, "end_ns", json_integer(i->end_ns)) != 0 ||
	        json_object_set_new(json, "mono_base_ns", json_integer(i->mono_base_ns)) != 0 ||
	        json_object_set_new(json, "boot_base_ns", json_integer(i->boot_base_ns)) != 0 ||
	        json_object_set_new(json, "has_cpu", json_boolean(i->has_cpu)) != 0)
		st = tw_oom(err);
	tw_view_close(&v);
	return st;
}

/* --- list, one trace --- */

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
	return tw_retention_of(tw_api_catalogue(r), tw_api_project(r), ret, err);
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

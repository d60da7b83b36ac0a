/*
 * route_table.c - prints the routes of the server as JSON, for schema/openapi.py.
 */
#include <jansson.h>
#include <stdio.h>

#include "server/api/api.h"
#include "server/http/http.h"

static const char *const needs[] = {[TW_NEED_PUBLIC] = "PUBLIC",
        [TW_NEED_INGEST] = "INGEST",
        [TW_NEED_READ_OR_INGEST] = "READ_OR_INGEST",
        [TW_NEED_READ] = "READ",
        [TW_NEED_WRITE] = "WRITE",
        [TW_NEED_ADMIN] = "ADMIN",
        [TW_NEED_SERVER] = "SERVER",
        [TW_NEED_USER] = "USER"};

static json_t *names_json(const char *const *names)
{
	json_t *list = json_array();

	for (; names && *names; names++)
		(void)json_array_append_new(list, json_string(*names));
	return list;
}

static json_t *param_json(const struct tw_param *p)
{
	static const char *const kinds[] = {[TW_PARAM_IS_TEXT] = "text",
	        [TW_PARAM_IS_NUMBER] = "number",
	        [TW_PARAM_IS_FLAG] = "flag",
	        [TW_PARAM_IS_ENUM] = "enum"};

	return json_pack("{ss ss sb sb sb sI sI sI so ss}", "name", p->name, "kind", kinds[p->kind],
	        "optional", p->optional, "required", p->required, "repeated", p->repeated,
	        "default", (json_int_t)p->dflt, "min", (json_int_t)p->min, "max",
	        (json_int_t)p->max, "names", names_json(p->names), "about", p->about);
}

static json_t *params_json(const struct tw_route *r)
{
	json_t *all = json_array();

	for (const struct tw_param *const *list = r->params; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++)
			(void)json_array_append_new(all, param_json(p));
	return all;
}

static json_t *route_json(const struct tw_route *r)
{
	return json_pack("{ss ss ss sb sb sb so ss}", "method", r->method, "path", r->path, "needs",
	        needs[r->needs], "knows_caller", r->knows_caller, "any_params", r->any_params,
	        "json", r->json != NULL, "params", params_json(r), "summary", r->summary);
}

int main(void)
{
	json_t *all = json_array();
	const struct tw_route *routes;
	int failed;
	size_t n;

	routes = tw_routes(&n);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, route_json(&routes[i]));
	failed = json_dumpf(all, stdout, JSON_INDENT(1));
	json_decref(all);
	return failed ? 1 : 0;
}

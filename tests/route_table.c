/*
 * route_table.c - prints the routes of the server as JSON, for schema/openapi.py.
 */
#include <jansson.h>
#include <stdio.h>

#include "server/api/routes.h"
#include "server/http/http.h"

static const char *const needs[] = {[TW_NEED_PUBLIC] = "PUBLIC",
        [TW_NEED_INGEST] = "INGEST",
        [TW_NEED_READ_OR_INGEST] = "READ_OR_INGEST",
        [TW_NEED_READ] = "READ",
        [TW_NEED_WRITE] = "WRITE",
        [TW_NEED_ADMIN] = "ADMIN",
        [TW_NEED_SERVER] = "SERVER",
        [TW_NEED_USER] = "USER"};

static json_t *route_json(const struct tw_route *r)
{
	return json_pack("{ss ss ss sb ss}", "method", r->method, "path", r->path, "needs",
	        needs[r->needs], "knows_caller", r->knows_caller, "summary", r->summary);
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

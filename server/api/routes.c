/* All routes in one list, tried in this order, each with what its caller must hold. */
#include "server/api/routes.h"

#include <assert.h>
#include <string.h>
#include <threads.h>

#include "server/base/role.h"
#include "server/http/http.h"
#include "server/http/parameters.h"

enum {
	SERVED_BY_INGEST = TW_ROLE_INGEST,
	SERVED_BY_QUERY = TW_ROLE_QUERY,
	SERVED_BY_EITHER = TW_ROLE_INGEST | TW_ROLE_QUERY,
	SERVED_BY_EVERY = TW_ROLE_ALL
};

#define AREA(name, roles) extern const struct tw_route tw_routes_##name[];
#define ROUTE(method, path, needs)
#include "server/api/routes.def"
#undef AREA
#undef ROUTE

static const struct area {
	const struct tw_route *routes;
	unsigned roles;
} areas[] = {
#define AREA(name, roles) {tw_routes_##name, SERVED_BY_##roles},
#define ROUTE(method, path, needs)
#include "server/api/routes.def"
#undef AREA
#undef ROUTE
};

static const struct line {
	const char *method, *path;
	enum tw_need needs;
} lines[] = {
#define AREA(name, roles)
#define ROUTE(method, path, needs) {method, path, TW_NEED_##needs},
#include "server/api/routes.def"
#undef AREA
#undef ROUTE
};

enum { N_LINES = sizeof lines / sizeof *lines };

static struct tw_route all[N_LINES];
static size_t n_all;
static once_flag joined = ONCE_FLAG_INIT;

static const char *const *parameters_of(const struct tw_route *r)
{
	for (const struct tw_parameters *p = tw_parameters; p->path; p++)
		if (strcmp(p->method, r->method) == 0 && strcmp(p->path, r->path) == 0)
			return p->names;
	return NULL;
}

/* Lines stand in the order of the areas' tables, so that one place tells both. */
static void add(const struct tw_route *r, unsigned roles)
{
	const struct line *line = &lines[n_all];

	assert(n_all < N_LINES && strcmp(r->method, line->method) == 0 &&
	        strcmp(r->path, line->path) == 0);
	all[n_all] = *r;
	all[n_all].roles = roles;
	all[n_all].parameters = parameters_of(r);
	all[n_all++].needs = line->needs;
}

static void join(void)
{
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		for (const struct tw_route *r = areas[i].routes; r->method; r++)
			add(r, areas[i].roles);
	assert(n_all == N_LINES);
}

const struct tw_route *tw_routes(size_t *ret_n)
{
	call_once(&joined, join);
	*ret_n = n_all;
	return all;
}

/* All routes in one list, tried in this order, each with what its caller must hold. */
#include <assert.h>
#include <string.h>
#include <threads.h>

#include "http.h"

#define AREA(name) extern const struct tw_route tw_routes_##name[];
#define ROUTE(method, path, needs)
#include "routes.def"
#undef AREA
#undef ROUTE

static const struct tw_route *const areas[] = {
#define AREA(name) tw_routes_##name,
#define ROUTE(method, path, needs)
#include "routes.def"
#undef AREA
#undef ROUTE
};

static const struct line {
	const char *method, *path;
	enum tw_need needs;
} lines[] = {
#define AREA(name)
#define ROUTE(method, path, needs) {method, path, TW_NEED_##needs},
#include "routes.def"
#undef AREA
#undef ROUTE
};

enum { N_LINES = sizeof lines / sizeof *lines };

static struct tw_route all[N_LINES];
static size_t n_all;
static once_flag joined = ONCE_FLAG_INIT;

/* Lines stand in the order of the areas' tables, so that one place tells both. */
static void add(const struct tw_route *r)
{
	const struct line *line = &lines[n_all];

	assert(n_all < N_LINES && strcmp(r->method, line->method) == 0 &&
	        strcmp(r->path, line->path) == 0);
	all[n_all] = *r;
	all[n_all++].needs = line->needs;
}

static void join(void)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) an array of pointers */
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		for (const struct tw_route *r = areas[i]; r->method; r++)
			add(r);
	assert(n_all == N_LINES);
}

const struct tw_route *tw_routes(size_t *ret_n)
{
	call_once(&joined, join);
	*ret_n = n_all;
	return all;
}

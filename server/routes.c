/* All routes in one list, tried in this order. */
#include <assert.h>
#include <threads.h>

#include "http.h"

#define AREA(name) extern const struct tw_route tw_routes_##name[];
#include "routes.def"
#undef AREA

static const struct tw_route *const areas[] = {
#define AREA(name) tw_routes_##name,
#include "routes.def"
#undef AREA
};

enum { MAX_ROUTES = 128 };
static struct tw_route all[MAX_ROUTES];
static size_t n_all;
static once_flag joined = ONCE_FLAG_INIT;

static void join(void)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) an array of pointers */
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		for (const struct tw_route *r = areas[i]; r->method; r++) {
			assert(n_all < MAX_ROUTES);
			all[n_all++] = *r;
		}
}

const struct tw_route *tw_routes(size_t *ret_n)
{
	call_once(&joined, join);
	*ret_n = n_all;
	return all;
}

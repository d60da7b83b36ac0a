/* All routes in one list, tried in this order. */

#include <assert.h>
#include <threads.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/api/trace/trace_query.h"
#include "server/base/role.h"
#include "server/http/http.h"

/* Order matters only if two templates match one path: the first wins. */
#define AREAS(AREA)                                                                                \
	AREA(ops)                                                                                  \
	AREA(reference)                                                                            \
	AREA(session)                                                                              \
	AREA(oidc)                                                                                 \
	AREA(user)                                                                                 \
	AREA(key)                                                                                  \
	AREA(audit)                                                                                \
	AREA(ingest)                                                                               \
	AREA(direct)                                                                               \
	AREA(resume)                                                                               \
	AREA(build)                                                                                \
	AREA(trace)                                                                                \
	AREA(setting)                                                                              \
	AREA(retention)                                                                            \
	AREA(quarantine)                                                                           \
	AREA(trace_edit)                                                                           \
	AREA(annotation)                                                                           \
	AREA(filter)                                                                               \
	AREA(view)                                                                                 \
	AREA(query)                                                                                \
	AREA(calls)                                                                                \
	AREA(flame)                                                                                \
	AREA(capture)                                                                              \
	AREA(frames)                                                                               \
	AREA(detect)                                                                               \
	AREA(source)                                                                               \
	AREA(note)                                                                                 \
	AREA(lane)                                                                                 \
	AREA(perfetto)                                                                             \
	AREA(compare)                                                                              \
	AREA(alert)                                                                                \
	AREA(regression)                                                                           \
	AREA(issue)                                                                                \
	AREA(ticket)                                                                               \
	AREA(hook)                                                                                 \
	AREA(digest)                                                                               \
	AREA(fleet)                                                                                \
	AREA(inbox)                                                                                \
	AREA(search)                                                                               \
	AREA(lock)                                                                                 \
	AREA(anr)                                                                                  \
	AREA(sql)                                                                                  \
	AREA(export)                                                                               \
	AREA(page)

#define DECLARE(area) extern const struct tw_route tw_routes_##area[];
AREAS(DECLARE)
#undef DECLARE

static const struct tw_route *const areas[] = {
#define ELEMENT(area) tw_routes_##area,
        AREAS(ELEMENT)
#undef ELEMENT
};

static struct tw_route all[200];
static size_t n_all;
static once_flag joined = ONCE_FLAG_INIT;

static void add(const struct tw_route *r)
{
	assert(n_all < sizeof all / sizeof *all && r->needs != TW_NEED_UNSTATED);
	all[n_all] = *r;
	if (!r->roles)
		all[n_all].roles = TW_ROLE_QUERY;
	if (r->json)
		tw_api_take_json(&all[n_all]);
	if (r->trace_query)
		all[n_all].end = tw_trace_query_handle;
	if (r->fleet_query)
		all[n_all].end = tw_fleet_handle;
	n_all++;
}

static void join(void)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) of pointers */
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		for (const struct tw_route *r = areas[i]; r->method; r++)
			add(r);
}

const struct tw_route *tw_routes(size_t *ret_n)
{
	call_once(&joined, join);
	*ret_n = n_all;
	return all;
}

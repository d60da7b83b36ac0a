/*
 * http_pools.c - the threads on which slow routes end, by what they wait for.
 *
 * Queries and mappings wait for processors, uploads for judges and the disk, some routes for other
 * servers or for children: each kind has its own, so that none holds up another.
 */
#include "blob.h"
#include "http_int.h"
#include "source_turn.h"

/* Arrivals of a store elsewhere wait for it. A few more for children than may wait for them, so
 * that who is one too many hears it at once.
 */
enum {
	ARRIVAL_THREADS = 8,
	ARRIVAL_THREADS_REMOTE = 32,
	OUTBOUND_THREADS = 4,
	CHILD_THREADS = TW_TURN_ASKERS + 4
};

enum tw_status tw_http_pools_start(struct tw_http *h, struct tw_err *err)
{
	const struct tw_app *app = h->app;
	enum tw_status st =
	        tw_pool_start(h->for_metrics ? 1 : app->config->query_threads, &h->pool, err);

	if (st == TW_OK && !h->for_metrics)
		st = tw_pool_start(app->blobs && tw_blobs_remote(app->blobs)
		                           ? ARRIVAL_THREADS_REMOTE
		                           : ARRIVAL_THREADS,
		        &h->arrivals, err);
	if (st == TW_OK && app->oidc && !h->for_metrics)
		st = tw_pool_start(OUTBOUND_THREADS, &h->outbound, err);
	if (st == TW_OK && app->config->repositories && *app->config->repositories &&
	        !h->for_metrics)
		st = tw_pool_start(CHILD_THREADS, &h->by_child, err);
	return st;
}

void tw_http_pools_end(struct tw_http *h)
{
	tw_pool_end(h->by_child);
	tw_pool_end(h->outbound);
	tw_pool_end(h->arrivals);
	tw_pool_end(h->pool);
}

void tw_http_pools_stop(struct tw_http *h)
{
	h->by_child = tw_pool_stop(h->by_child);
	h->outbound = tw_pool_stop(h->outbound);
	h->arrivals = tw_pool_stop(h->arrivals);
	h->pool = tw_pool_stop(h->pool);
}

struct tw_pool *tw_http_pool_of(const struct tw_req *r)
{
	if (r->route->outbound && r->http->outbound)
		return r->http->outbound;
	if (r->route->by_child && r->http->by_child)
		return r->http->by_child;
	return r->route->upload && !r->route->worked && r->http->arrivals ? r->http->arrivals
	                                                                  : r->http->pool;
}

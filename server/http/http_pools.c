/*
 * http_pools.c - threads for slow routes, by the resource they wait for.
 *
 * Callers are looked up in the catalogue, which may be an unresponsive remote database.  Queries
 * wait for processors, uploads for preflight and the disk, some routes for other servers or for
 * child processes: each kind has its own pool, so that none blocks another.  Within a pool,
 * projects are scheduled fairly (pool.h).
 */
#include "server/catalogue/catalogue.h"
#include "server/http/http_int.h"

/* With a remote store, arrivals wait for it.  The children's pool has a few more threads than
 * requests that may wait for children, so that excess requests are refused immediately. */
enum {
	CALLER_THREADS = 4,
	CALLER_THREADS_SHARED = 16,
	ARRIVAL_THREADS = 8,
	ARRIVAL_THREADS_REMOTE = 32,
	OUTBOUND_THREADS = 4,
	CHILD_THREADS = TW_CHILD_WAITERS + 4
};

_Static_assert((int)CHILD_THREADS > (int)TW_CHILD_WAITERS,
        "one asker too many gets a thread, and its refusal");

enum tw_status tw_http_pools_start(struct tw_http *h, struct tw_err *err)
{
	const struct tw_config *c = h->parts.config;
	enum tw_status st = tw_pool_start(h->for_metrics ? 1 : c->query_threads, &h->pool, err);

	if (st == TW_OK)
		st = tw_pool_start(h->parts.catalogue && tw_catalogue_is_shared(h->parts.catalogue)
		                           ? CALLER_THREADS_SHARED
		                           : CALLER_THREADS,
		        &h->callers, err);
	if (st == TW_OK && !h->for_metrics)
		st = tw_pool_start(c->storage.blobs[0] ? ARRIVAL_THREADS_REMOTE : ARRIVAL_THREADS,
		        &h->arrivals, err);
	if (st == TW_OK && *c->oidc.issuer && !h->for_metrics)
		st = tw_pool_start(OUTBOUND_THREADS, &h->outbound, err);
	if (st == TW_OK && c->repositories && *c->repositories && !h->for_metrics)
		st = tw_pool_start(CHILD_THREADS, &h->by_child, err);
	return st;
}

void tw_http_pools_end(struct tw_http *h)
{
	tw_pool_end(h->callers); /* first: its tasks are passed on to the others */
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
	h->callers = tw_pool_stop(h->callers);
}

const char *tw_http_owner_of(const struct tw_req *r)
{
	if (r->caller.project_id[0])
		return r->caller.project_id;
	return r->caller.user_id[0] ? r->caller.user_id : r->address;
}

struct tw_pool *tw_http_pool_of(const struct tw_req *r)
{
	if (r->route->outbound && r->http->outbound)
		return r->http->outbound;
	if (r->route->by_child && r->http->by_child)
		return r->http->by_child;
	return r->route->upload && r->http->arrivals ? r->http->arrivals : r->http->pool;
}

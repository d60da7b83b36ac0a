#include "server/derive/lease.h"

#include <stdatomic.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/catalogue.h"

enum {
	LEASE_MS = 15000,
	EARLY_MS = 2000, /* expires here before it expires in the catalogue */
	RENEW_S = 3,
	CHECK_S = 2
};
_Static_assert(
        2 * RENEW_S * 1000 < LEASE_MS - EARLY_MS, "the lease outlives one renewal that fails");

struct tw_lease {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	const char *node;
	struct tw_periodic *thread;
	_Atomic int64_t until_ms; /* monotonic */
};

/* Counts from before the request, as the lease begins later. */
static void renew(struct tw_periodic *p, void *arg)
{
	struct tw_lease *l = arg;
	const int64_t requested_ms = tw_monotonic_ms();
	const bool held = tw_lease_held(l), able = tw_blobs_ready(l->blobs, NULL) == TW_OK;
	bool mine = false;
	struct tw_err err;

	(void)p;
	if (!able && !held)
		return;
	if (tw_catalogue_take_lease(l->catalogue, "background", l->node, able ? LEASE_MS : 0, &mine,
	            &err) != TW_OK) {
		tw_log_err(TW_LOG_WARN, "lease_not_renewed", "background", &err);
		return; /* the remaining time stays valid */
	}
	mine = mine && able;
	atomic_store(&l->until_ms, mine ? requested_ms + LEASE_MS - EARLY_MS : 0);
	if (mine != held)
		tw_log(TW_LOG_INFO, mine ? "lease_acquired" : "lease_lost",
		        tw_log_text("lease", "background"));
}

enum tw_status tw_lease_start(struct tw_catalogue *c, struct tw_blobs *b, const char *node,
        struct tw_lease **ret, struct tw_err *err)
{
	struct tw_lease *l = tw_mem_zalloc(1, sizeof *l);
	enum tw_status st;

	if (!l)
		return tw_oom(err);
	l->catalogue = c;
	l->blobs = b;
	l->node = node;
	st = tw_periodic_start(
	        &(struct tw_periodic_task){"lease", renew, RENEW_S * 1000}, l, &l->thread, err);
	if (st == TW_OK)
		*ret = l;
	else
		tw_mem_free(l);
	return st;
}

struct tw_lease *tw_lease_stop(struct tw_lease *l)
{
	bool mine;
	struct tw_err err;

	if (!l)
		return NULL;
	l->thread = tw_periodic_stop(l->thread);
	if (tw_lease_held(l) && tw_catalogue_take_lease(l->catalogue, "background", l->node, 0,
	                                &mine, &err) != TW_OK) /* it has to expire by itself */
		tw_log_err(TW_LOG_WARN, "lease_not_released", "background", &err);
	tw_mem_free(l);
	return NULL;
}

bool tw_lease_held(const struct tw_lease *l)
{
	return !l || tw_monotonic_ms() < atomic_load(&l->until_ms);
}

unsigned tw_lease_interval_s(const struct tw_lease *l, unsigned single_s)
{
	return l ? CHECK_S : single_s;
}

#include "server/base/thread/fair.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "server/base/clock.h"

/* A first estimate should be low: decoders are usually faster.  Every decode has a fixed cost, for
 * the claim and the process.  Small traces determine that fixed cost, larger ones the cost per
 * byte, with full weight from FULL_BYTES on. */
enum {
	FIRST_NS_A_BYTE = 20,
	SLOWEST_NS_A_BYTE = 1000000,
	LEAST_US = 1000,
	MOST_US_A_DECODE = 100000,
	SMALL_BYTES = 16 << 10,
	FULL_BYTES = 1 << 20,
	SURPRISE = 8, /* a decode counts as at most this many times slower than estimated */
};
static const uint64_t most_us = UINT64_C(3600) * 1000 * 1000; /* the limit for one decode */

void tw_fair_init(struct tw_fair *f)
{
	*f = (struct tw_fair){.clock_ms = tw_monotonic_ms,
	        .us_per_decode = LEAST_US,
	        .ns_per_byte = FIRST_NS_A_BYTE};
	(void)pthread_mutex_init(&f->lock, NULL);
}

void tw_fair_done(struct tw_fair *f)
{
	(void)pthread_mutex_destroy(&f->lock);
}

static uint64_t within(uint64_t n, uint64_t least, uint64_t most)
{
	if (n < least)
		return least;
	return n > most ? most : n;
}

static uint64_t level_of(struct tw_fair *f, const char *project_id)
{
	const struct tw_fair_account *a =
	        TW_LOOKUP(f->accounts, f->n_accounts, project_id, project_id);

	return a && a->at_us > f->level_us ? a->at_us : f->level_us;
}

uint64_t tw_fair_level(struct tw_fair *f, const char *project_id, uint64_t *ret_level)
{
	uint64_t at;

	(void)pthread_mutex_lock(&f->lock);
	at = level_of(f, project_id);
	*ret_level = f->level_us;
	(void)pthread_mutex_unlock(&f->lock);
	return at;
}

/* An account at the level is the same as none, and is dropped. Accounts with running decodes are
 * not final yet. */
static void drop_settled(struct tw_fair *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n_accounts; i++)
		if (f->accounts[i].running || f->accounts[i].at_us > f->level_us)
			f->accounts[kept++] = f->accounts[i];
	f->n_accounts = kept;
}

static struct tw_fair_account *lowest(struct tw_fair *f)
{
	struct tw_fair_account *a = f->accounts;

	for (size_t i = 1; i < f->n_accounts; i++)
		if (f->accounts[i].at_us < a->at_us)
			a = &f->accounts[i];
	return a;
}

/* Evicts the lowest account if the table is full. */
static struct tw_fair_account *need_account(struct tw_fair *f, const char *project_id)
{
	struct tw_fair_account *a = TW_LOOKUP(f->accounts, f->n_accounts, project_id, project_id);

	if (a)
		return a;
	a = f->n_accounts < TW_FAIR_ACCOUNTS ? &f->accounts[f->n_accounts++] : lowest(f);
	*a = (struct tw_fair_account){.at_us = f->level_us};
	(void)snprintf(a->project_id, sizeof a->project_id, "%s", project_id);
	return a;
}

/* A few decodes determine the estimate: each moves it by an eighth, or less if it has few bytes, so
 * that no one can distort it with small uploads that take long. */
static void update_estimate(struct tw_fair *f, const struct tw_fair_run *r, uint64_t took_us)
{
	double weight = (double)(r->bytes < FULL_BYTES ? r->bytes : FULL_BYTES) / FULL_BYTES / 8;
	double ns;

	if (r->bytes < SMALL_BYTES) {
		f->us_per_decode =
		        within((7 * f->us_per_decode + took_us) / 8, LEAST_US, MOST_US_A_DECODE);
		return;
	}
	took_us = took_us > f->us_per_decode ? took_us - f->us_per_decode : 0;
	ns = (double)took_us * 1e3 / (double)r->bytes + 1; /* never 0 */
	if (ns > f->ns_per_byte * SURPRISE)
		ns = f->ns_per_byte * SURPRISE;
	f->ns_per_byte += (ns - f->ns_per_byte) * weight;
	if (f->ns_per_byte > SLOWEST_NS_A_BYTE)
		f->ns_per_byte = SLOWEST_NS_A_BYTE;
}

static void end(struct tw_fair *f, const char *trace_id)
{
	struct tw_fair_run *r = TW_LOOKUP(f->running, f->n_running, trace_id, trace_id);
	struct tw_fair_account *a = r ? need_account(f, r->project_id) : NULL;
	int64_t ms = r ? f->clock_ms() - r->begun_ms : 0;
	uint64_t took_us = within(ms > 0 ? (uint64_t)ms * 1000 : 0, LEAST_US, most_us);

	if (!r)
		return;
	a->running -= a->running > 0;
	a->at_us += took_us;
	a->at_us -= a->at_us > r->charged_us ? r->charged_us : a->at_us;
	update_estimate(f, r, took_us / r->n);
	*r = f->running[--f->n_running];
	drop_settled(f);
}

void tw_fair_end(struct tw_fair *f, const char *trace_id)
{
	(void)pthread_mutex_lock(&f->lock);
	end(f, trace_id);
	(void)pthread_mutex_unlock(&f->lock);
}

void tw_fair_idle(struct tw_fair *f)
{
	(void)pthread_mutex_lock(&f->lock);
	if (f->n_running == 0)
		f->n_accounts = 0;
	(void)pthread_mutex_unlock(&f->lock);
}

static uint64_t estimate(const struct tw_fair *f, uint64_t bytes)
{
	double us = (double)f->us_per_decode + (double)bytes * f->ns_per_byte / 1e3;

	return us < (double)most_us ? (uint64_t)us : most_us;
}

static void begin(struct tw_fair *f, const struct tw_fair_run *r)
{
	struct tw_fair_account *a;

	f->level_us = level_of(f, r->project_id);
	a = need_account(f, r->project_id);
	a->at_us = f->level_us + r->charged_us;
	if (f->n_running < TW_FAIR_RUNNING) {
		a->running++;
		f->running[f->n_running++] = *r;
	}
	drop_settled(f);
}

void tw_fair_begin(struct tw_fair *f, const char *project_id, const char *trace_id, uint64_t bytes)
{
	tw_fair_begin_group(f, project_id, trace_id, bytes, 1);
}

void tw_fair_begin_group(
        struct tw_fair *f, const char *project_id, const char *trace_id, uint64_t bytes, size_t n)
{
	struct tw_fair_run r = {.bytes = bytes, .n = n};

	(void)snprintf(r.project_id, sizeof r.project_id, "%s", project_id);
	(void)snprintf(r.trace_id, sizeof r.trace_id, "%s", trace_id);
	(void)pthread_mutex_lock(&f->lock);
	end(f, trace_id);
	r.charged_us = n * estimate(f, bytes);
	r.begun_ms = f->clock_ms();
	begin(f, &r);
	(void)pthread_mutex_unlock(&f->lock);
}

/*
 * quota.c - buckets, stored as the time when each will be empty.
 *
 * A bucket that drains with time needs only that number, and no work while it is unused.  Times are
 * calendar times, because they outlive the process.  If the clock is set back, all are moved
 * back by the same amount.
 */
#include "server/http/limit/quota.h"

#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/keyed_hash.h"
#include "server/base/metric.h"
#include "server/http/http_int.h"
#include "server/http/limit/quota_int.h"

enum {
	WAYS = TW_QUOTA_WAYS,
	/* A tus client sends HEAD before each new attempt: with space for one request only, that
	 * request would use it, and every piece would be refused. */
	RETRY_REQUESTS = 2
};

/* A smaller step back is not a clock change: threads read the clock before they take the lock. */
#define STEP_BACK_US INT64_C(1000000)

static const size_t sets_of[TW_QUOTA_WHO] = {TW_QUOTA_KEY_SETS, TW_QUOTA_DEVICE_SETS};

static const struct window {
	int64_t us;
	const char *unit, *span;
} windows[TW_QUOTA_WHAT] = {
        [TW_QUOTA_REQUESTS] = {60 * INT64_C(1000000), "requests", "a minute"},
        [TW_QUOTA_BYTES] = {86400 * INT64_C(1000000), "bytes", "a day"},
};
static const char *const names[TW_QUOTA_WHO][TW_QUOTA_WHAT] = {
        {"key-requests", "key-bytes"},
        {"device-requests", "device-bytes"},
};
static const char *const subjects[TW_QUOTA_WHO] = {"this key", "this device"};

struct tw_quota *tw_quota_new(const struct tw_quota_limits *limits)
{
	struct tw_quota *q = sodium_init() < 0 ? NULL : tw_mem_zalloc(1, sizeof *q);

	if (!q)
		return NULL;
	(void)pthread_mutex_init(&q->lock, NULL);
	randombytes_buf(q->secret, sizeof q->secret);
	q->limits = *limits;
	q->clock_ms = tw_unix_ms;
	for (enum tw_quota_who who = 0; who < TW_QUOTA_WHO; who++) {
		q->slots[who] = tw_mem_zalloc(sets_of[who] * WAYS, sizeof **q->slots);
		if (!q->slots[who])
			return tw_quota_free(q);
	}
	return q;
}

struct tw_quota *tw_quota_free(struct tw_quota *q)
{
	if (!q)
		return NULL;
	for (enum tw_quota_who who = 0; who < TW_QUOTA_WHO; who++)
		tw_mem_free(q->slots[who]);
	(void)pthread_mutex_destroy(&q->lock);
	tw_mem_free(q);
	return NULL;
}

static void lock_and_shift(struct tw_quota *q, int64_t now_us)
{
	int64_t back_us;

	(void)pthread_mutex_lock(&q->lock);
	back_us = q->last_us - now_us;
	if (back_us > STEP_BACK_US) { /* or this thread was delayed since it read the clock */
		now_us = q->clock_ms() * 1000;
		back_us = q->last_us - now_us;
	}
	for (int who = 0; back_us > STEP_BACK_US && who < TW_QUOTA_WHO; who++)
		for (size_t i = 0; i < sets_of[who] * WAYS; i++)
			for (int what = 0; what < TW_QUOTA_WHAT; what++)
				q->slots[who][i].empty_us[what] -= back_us;
	if (back_us > STEP_BACK_US || back_us < 0)
		q->last_us = now_us;
}

static uint64_t hash_of(const struct tw_quota *q, const char *id)
{
	return tw_keyed_hash(q->secret, id, strlen(id)) | 1; /* 0 marks an unused slot */
}

/* The fill level, as the time until it is empty. */
static int64_t level(const struct tw_quota_slot *s, enum tw_quota_what what, int64_t now_us)
{
	int64_t in = s->empty_us[what] - now_us;

	if (in < 0)
		return 0;
	return in < windows[what].us ? in : windows[what].us;
}

/* Of both buckets, as fractions of their windows. */
static double fullness(const struct tw_quota_slot *s, int64_t now_us)
{
	double most = 0;

	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++) {
		double share = (double)level(s, what, now_us) / (double)windows[what].us;

		most = share > most ? share : most;
	}
	return most;
}

/* The slot of that key, or the one to evict for it. */
static struct tw_quota_slot *slot_of(
        struct tw_quota *q, enum tw_quota_who who, uint64_t key, int64_t now_us)
{
	struct tw_quota_slot *set = q->slots[who] + (key >> 1) % sets_of[who] * WAYS;
	struct tw_quota_slot *least = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (fullness(&set[i], now_us) < fullness(least, now_us))
			least = &set[i];
	}
	return least;
}

struct tw_quota_slot *tw_quota_slot(
        struct tw_quota *q, enum tw_quota_who who, uint64_t key, int64_t now_us)
{
	struct tw_quota_slot *s = slot_of(q, who, key, now_us);

	if (s->key != key)
		*s = (struct tw_quota_slot){.key = key};
	return s;
}

/* The time equivalent of n; a full window at most. */
static int64_t weight(
        const struct tw_quota *q, enum tw_quota_who who, enum tw_quota_what what, uint64_t n)
{
	uint64_t most = q->limits.most[who][what];

	if (most == 0)
		return 0;
	return n >= most ? windows[what].us
	                 : (int64_t)((double)windows[what].us * (double)n / (double)most);
}

/* Microseconds until there is enough space. */
static int64_t wait_us_for(const struct tw_quota *q, const struct tw_quota_slot *s,
        enum tw_quota_who who, enum tw_quota_what what, uint64_t n, int64_t now_us)
{
	int64_t over = level(s, what, now_us) + weight(q, who, what, n) - windows[what].us;

	return q->limits.most[who][what] && over > 0 ? over : 0;
}

static void put(struct tw_quota *q, struct tw_quota_slot *s, enum tw_quota_who who,
        const uint64_t n[TW_QUOTA_WHAT], int64_t now_us)
{
	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++)
		s->empty_us[what] = now_us + level(s, what, now_us) + weight(q, who, what, n[what]);
}

static enum tw_status use_locked(struct tw_quota *q, enum tw_quota_who who, uint64_t key,
        const uint64_t n[TW_QUOTA_WHAT], bool take, int64_t now_us, unsigned *ret_wait_s,
        struct tw_err *err)
{
	struct tw_quota_slot *found = slot_of(q, who, key, now_us);
	struct tw_quota_slot s = {.key = key};
	int64_t wait_us = 0;
	enum tw_quota_what worst = TW_QUOTA_REQUESTS;

	if (found->key == key)
		s = *found;
	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++) {
		int64_t us = wait_us_for(q, &s, who, what, n[what], now_us);

		if (us > wait_us)
			worst = what;
		wait_us = us > wait_us ? us : wait_us;
	}
	if (wait_us) {
		q->refused[who][worst]++;
		if (worst == TW_QUOTA_REQUESTS)
			wait_us = wait_us_for(q, &s, who, worst, RETRY_REQUESTS, now_us);
		*ret_wait_s = (unsigned)((wait_us + 999999) / 1000000);
		return tw_fail(err, TW_RATE,
		        "%s has reached its limit of %" PRIu64 " %s %s; retry in %u s",
		        subjects[who], q->limits.most[who][worst], windows[worst].unit,
		        windows[worst].span, *ret_wait_s);
	}
	if (take) {
		put(q, &s, who, n, now_us);
		*found = s;
	}
	return TW_OK;
}

static enum tw_status use(struct tw_quota *q, enum tw_quota_who who, const char *id, uint64_t bytes,
        bool take, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	const uint64_t n[TW_QUOTA_WHAT] = {1, bytes};
	uint64_t key = hash_of(q, id);
	enum tw_status st;

	lock_and_shift(q, now_ms * 1000);
	st = use_locked(q, who, key, n, take, now_ms * 1000, ret_wait_s, err);
	(void)pthread_mutex_unlock(&q->lock);
	return st;
}

enum tw_status tw_quota_take(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	return use(q, who, id, bytes, true, now_ms, ret_wait_s, err);
}

enum tw_status tw_quota_check(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	return use(q, who, id, bytes, false, now_ms, ret_wait_s, err);
}

void tw_quota_adjust(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t more_bytes,
        int64_t now_ms)
{
	uint64_t key = hash_of(q, id);
	int64_t now_us = now_ms * 1000;
	struct tw_quota_slot *s;

	lock_and_shift(q, now_us);
	s = tw_quota_slot(q, who, key, now_us);
	if (more_bytes > 0)
		put(q, s, who, (const uint64_t[]){0, (uint64_t)more_bytes}, now_us);
	else
		s->empty_us[TW_QUOTA_BYTES] -=
		        weight(q, who, TW_QUOTA_BYTES, (uint64_t)-more_bytes);
	(void)pthread_mutex_unlock(&q->lock);
}

void tw_quota_remaining(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t now_ms,
        struct tw_quota_left ret[TW_QUOTA_WHAT])
{
	uint64_t key = hash_of(q, id);
	int64_t now_us = now_ms * 1000;
	struct tw_quota_slot s = {0};

	lock_and_shift(q, now_us);
	if (slot_of(q, who, key, now_us)->key == key)
		s = *slot_of(q, who, key, now_us);
	(void)pthread_mutex_unlock(&q->lock);
	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++) {
		int64_t in = level(&s, what, now_us);
		uint64_t limit = q->limits.most[who][what];
		double space = (double)(windows[what].us - in) / (double)windows[what].us;

		ret[what] = (struct tw_quota_left){
		        .name = names[who][what],
		        .limit = limit,
		        .left = (uint64_t)(space * (double)limit + 1e-6),
		        .window_s = (unsigned)(windows[what].us / 1000000),
		        .reset_s = (unsigned)((in + 999999) / 1000000),
		};
	}
}

static uint64_t in_use(const struct tw_quota *q, enum tw_quota_who who, int64_t now_us)
{
	uint64_t n = 0;

	for (size_t i = 0; i < sets_of[who] * WAYS; i++)
		n += q->slots[who][i].key && fullness(&q->slots[who][i], now_us) > 0;
	return n;
}

void tw_quota_metrics(struct tw_quota *q, int64_t now_ms, struct tw_buf *out)
{
	(void)pthread_mutex_lock(&q->lock);
	for (enum tw_quota_who who = 0; who < TW_QUOTA_WHO; who++)
		for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++)
			tw_buf_printf(out,
			        "tracewell_quota_refused_total{limit=\"%s\"} %" PRIu64 "\n",
			        names[who][what], q->refused[who][what]);
	tw_metric(
	        out, "tracewell_quota_tracked{of=\"key\"}", in_use(q, TW_QUOTA_KEY, now_ms * 1000));
	tw_metric(out, "tracewell_quota_tracked{of=\"device\"}",
	        in_use(q, TW_QUOTA_DEVICE, now_ms * 1000));
	(void)pthread_mutex_unlock(&q->lock);
}

/* --- of a request ---
 *
 * A key's quota is checked with the headers: a request with a Content-Length takes its bytes
 * immediately, so that parallel requests cannot take them twice, and the actual size is settled
 * at the end.  A device is known later, from the upload's own metadata, and is checked by the
 * route.
 */

enum { MAX_FIELD = 512, MAX_DEVICE = 1024 };

/* The fields of draft-ietf-httpapi-ratelimit-headers: lists of policies, and of remaining
 * quotas. */
static void add_headers(struct tw_req *r, enum tw_quota_who who, const char *id)
{
	struct tw_quota_left left[TW_QUOTA_WHAT];
	char policy[MAX_FIELD] = "";
	char now[MAX_FIELD] = "";
	size_t np = 0;
	size_t nn = 0;

	tw_quota_remaining(r->http->parts.quota, who, id, tw_unix_ms(), left);
	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++) {
		const struct tw_quota_left *l = &left[what];

		if (l->limit == 0)
			continue;
		np += (size_t)snprintf(policy + np, sizeof policy - np,
		        "%s\"%s\";q=%" PRIu64 ";w=%u%s", np ? ", " : "", l->name, l->limit,
		        l->window_s, what == TW_QUOTA_BYTES ? ";qu=\"content-bytes\"" : "");
		nn += (size_t)snprintf(now + nn, sizeof now - nn, "%s\"%s\";r=%" PRIu64 ";t=%u",
		        nn ? ", " : "", l->name, l->left, l->reset_s);
	}
	if (np == 0)
		return;
	tw_req_add_to_header(r, "RateLimit-Policy", policy);
	tw_req_add_to_header(r, "RateLimit", now);
}

static void set_retry_after(struct tw_req *r, unsigned wait_s)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", wait_s);
	tw_req_set_header(r, "Retry-After", text);
}

enum tw_status tw_req_take_quota(struct tw_req *r, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	uint64_t bytes = r->declared == UINT64_MAX ? 0 : r->declared;
	unsigned wait_s = 0;
	enum tw_status st;

	if (!q || !r->caller.key_id[0])
		return TW_OK;
	st = tw_quota_take(q, TW_QUOTA_KEY, r->caller.key_id, bytes, tw_unix_ms(), &wait_s, err);
	r->took_quota = st == TW_OK;
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	if (st != TW_OK || r->route->upload)
		add_headers(r, TW_QUOTA_KEY, r->caller.key_id);
	return st;
}

void tw_req_finalize_quota(struct tw_req *r)
{
	uint64_t taken = r->declared == UINT64_MAX ? 0 : r->declared;

	if (r->took_quota && r->got != taken)
		tw_quota_adjust(r->http->parts.quota, TW_QUOTA_KEY, r->caller.key_id,
		        (int64_t)r->got - (int64_t)taken, tw_unix_ms());
	r->took_quota = false;
}

/* False: there is no device, or no quota. */
static bool device_id(const struct tw_req *r, const char *device, char out[MAX_DEVICE])
{
	if (!r->http->parts.quota || !device || !device[0])
		return false;
	(void)snprintf(out, MAX_DEVICE, "%s/%s", r->caller.project_id, device);
	return true;
}

static enum tw_status use_device_quota(
        struct tw_req *r, const char *device, uint64_t bytes, bool take, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	char id[MAX_DEVICE];
	unsigned wait_s = 0;
	enum tw_status st;

	if (!device_id(r, device, id))
		return TW_OK;
	st = take ? tw_quota_take(q, TW_QUOTA_DEVICE, id, bytes, tw_unix_ms(), &wait_s, err)
	          : tw_quota_check(q, TW_QUOTA_DEVICE, id, bytes, tw_unix_ms(), &wait_s, err);
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	if (st != TW_OK || take)
		add_headers(r, TW_QUOTA_DEVICE, id);
	return st;
}

enum tw_status tw_req_check_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err)
{
	return use_device_quota(r, device, bytes, false, err);
}

enum tw_status tw_req_charge_key(struct tw_req *r, uint64_t bytes, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	unsigned wait_s = 0;
	enum tw_status st;

	if (!q || !r->caller.key_id[0])
		return TW_OK;
	st = tw_quota_take(q, TW_QUOTA_KEY, r->caller.key_id, bytes, tw_unix_ms(), &wait_s, err);
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	return st;
}

enum tw_status tw_req_charge_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err)
{
	return use_device_quota(r, device, bytes, true, err);
}

void tw_req_refund_device(struct tw_req *r, const char *device, uint64_t bytes)
{
	char id[MAX_DEVICE];

	if (device_id(r, device, id))
		tw_quota_adjust(
		        r->http->parts.quota, TW_QUOTA_DEVICE, id, -(int64_t)bytes, tw_unix_ms());
}

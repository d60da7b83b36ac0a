#include "server/http/limit/answer_memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/metric.h"

enum { BUCKETS = 256, KINDS = 3, KEY_BYTES = 128, SHORT_MS = 2000 };
static const int64_t step_bytes = 256 << 10;
static const int64_t trim_bytes = 32 << 20;
static const int64_t reserved_part = 16;    /* 1/16 each for streams that have begun and for small
                                             * responses */
static const int64_t small_bytes = 1 << 20; /* per response, outside all shares */
static const int64_t times_free[KINDS] = {1, 3, 3}; /* caller, address, project */
static const char *const kinds[KINDS] = {"c", "a", "p"};

struct tw_holder {
	struct tw_holder *next;
	int64_t granted;
	unsigned answers;
	char key[KEY_BYTES];
};

struct tw_answer_memory {
	pthread_mutex_t lock;
	int64_t max, taken;
	int64_t granted; /* with `taken` */
	int64_t small;   /* part of `granted` that is outside the shares */
	int64_t freed;   /* since memory was last returned to the system */
	int64_t refused_ms;
	uint64_t refused;
	struct tw_holder *buckets[BUCKETS];
};

struct tw_answer_memory *tw_answer_memory_new(uint64_t max, uint64_t taken)
{
	struct tw_answer_memory *m = tw_mem_zalloc(1, sizeof *m);

	if (!m)
		return NULL;
	(void)pthread_mutex_init(&m->lock, NULL);
	m->max = (int64_t)max;
	m->taken = m->granted = (int64_t)taken;
	m->refused_ms = INT64_MIN / 2;
	return m;
}

struct tw_answer_memory *tw_answer_memory_free(struct tw_answer_memory *m)
{
	if (!m)
		return NULL;
	(void)pthread_mutex_destroy(&m->lock);
	tw_mem_free(m);
	return NULL;
}

/* --- holders; call with the lock held --- */

static struct tw_holder **bucket_of(struct tw_answer_memory *m, const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 16777619u;
	return &m->buckets[hash % BUCKETS];
}

static struct tw_holder *enter(struct tw_answer_memory *m, const char *key)
{
	struct tw_holder **at = bucket_of(m, key);
	struct tw_holder *h = *at;

	while (h && strcmp(h->key, key) != 0)
		h = h->next;
	if (!h) {
		h = tw_mem_zalloc(1, sizeof *h);
		if (!h)
			return NULL;
		(void)snprintf(h->key, sizeof h->key, "%s", key);
		h->next = *at;
		*at = h;
	}
	h->answers++;
	return h;
}

static void leave(struct tw_answer_memory *m, struct tw_holder *h)
{
	struct tw_holder **at = bucket_of(m, h->key);

	if (--h->answers)
		return;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	tw_mem_free(h);
}

static void count_shared(struct tw_held *h, int64_t bytes)
{
	for (int k = 0; k < KINDS; k++)
		if (h->holders[k])
			h->holders[k]->granted += bytes;
}

static void add(struct tw_held *h, int64_t bytes)
{
	h->of->granted += bytes;
	(void)atomic_fetch_add(&h->account.granted, bytes);
}

static bool fits_shares(const struct tw_held *h, int64_t bytes)
{
	const struct tw_answer_memory *m = h->of;
	const int64_t reserved = m->max / reserved_part * (h->begun ? 1 : 2);
	const int64_t left = m->max - reserved - (m->granted - m->small) - bytes;

	if (left < 0)
		return false;
	for (int k = 0; k < KINDS && !h->begun; k++)
		if (h->holders[k] && (h->holders[k]->granted + bytes) / times_free[k] > left)
			return false;
	return true;
}

static bool fits_reserve(const struct tw_held *h, int64_t bytes)
{
	return atomic_load(&h->account.granted) + bytes <= small_bytes &&
	       h->of->small + bytes <= h->of->max / reserved_part;
}

/* The reserve is used only if the shares are used up. */
static bool grant(struct tw_held *h, int64_t bytes)
{
	if (fits_shares(h, bytes)) {
		count_shared(h, bytes);
	} else if (fits_reserve(h, bytes)) {
		h->small += bytes;
		h->of->small += bytes;
	} else {
		return false;
	}
	add(h, bytes);
	return true;
}

/* Returns memory of the reserve first. */
static void release_grant(struct tw_held *h, int64_t bytes)
{
	const int64_t small = bytes < h->small ? bytes : h->small;

	h->small -= small;
	h->of->small -= small;
	h->of->freed += bytes;
	count_shared(h, small - bytes);
	add(h, -bytes);
}

static bool is_alone(const struct tw_held *h)
{
	return h->of->granted - h->of->taken <= atomic_load(&h->account.granted) + step_bytes;
}

/* --- the account --- */

static bool more(struct tw_mem_account *account, int64_t used)
{
	struct tw_held *h = (struct tw_held *)(void *)account;
	struct tw_answer_memory *m = h->of;
	int64_t bytes;
	bool ok;
	bool trim;

	(void)pthread_mutex_lock(&m->lock);
	bytes = (used + step_bytes - 1) / step_bytes * step_bytes - atomic_load(&account->granted);
	ok = bytes <= 0 || grant(h, bytes);
	if (!ok) {
		h->too_much |= is_alone(h);
		m->refused += !atomic_load(&account->refused);
		m->refused_ms = tw_monotonic_ms();
	}
	/* freed memory still held by malloc counts, otherwise the server would grow past the
	 * limit */
	trim = ok && m->granted + m->freed > m->max;
	if (trim)
		m->freed = 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (trim)
		(void)malloc_trim(0);
	return ok;
}

static void enter_all(struct tw_held *h, const struct tw_holders *who)
{
	const char *const names[KINDS] = {who->caller, who->address, who->project};
	char key[KEY_BYTES];

	for (int k = 0; k < KINDS; k++) {
		(void)snprintf(key, sizeof key, "%s:%s", kinds[k], names[k]);
		h->holders[k] = names[k][0] ? enter(h->of, key) : NULL;
	}
}

static void leave_all(struct tw_held *h)
{
	for (int k = 0; k < KINDS; k++) {
		if (h->holders[k])
			leave(h->of, h->holders[k]);
		h->holders[k] = NULL;
	}
}

struct tw_held *tw_held_open(struct tw_answer_memory *m, const struct tw_holders *who)
{
	struct tw_held *h = tw_mem_zalloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->account.more = more;
	h->of = m;
	h->owners = 1;
	(void)pthread_mutex_lock(&m->lock);
	enter_all(h, who);
	(void)pthread_mutex_unlock(&m->lock);
	return h;
}

struct tw_held *tw_held_share(struct tw_held *h)
{
	if (!h)
		return NULL;
	(void)pthread_mutex_lock(&h->of->lock);
	h->owners++;
	(void)pthread_mutex_unlock(&h->of->lock);
	return h;
}

void tw_held_move(struct tw_held *h, const struct tw_holders *who)
{
	struct tw_mem_account *before = tw_mem_count_for(NULL);
	int64_t shared;

	(void)pthread_mutex_lock(&h->of->lock);
	shared = atomic_load(&h->account.granted) - h->small;
	count_shared(h, -shared);
	leave_all(h);
	enter_all(h, who);
	count_shared(h, shared);
	(void)pthread_mutex_unlock(&h->of->lock);
	(void)tw_mem_count_for(before);
}

void tw_held_finalize(struct tw_held *h)
{
	int64_t used = atomic_load(&h->account.used);

	if (used < 0)
		used = 0;
	(void)pthread_mutex_lock(&h->of->lock);
	if (used < atomic_load(&h->account.granted))
		release_grant(h, atomic_load(&h->account.granted) - used);
	(void)pthread_mutex_unlock(&h->of->lock);
}

struct tw_held *tw_held_close(struct tw_held *h)
{
	struct tw_answer_memory *m = h ? h->of : NULL;
	bool last;

	if (!h)
		return NULL;
	(void)pthread_mutex_lock(&m->lock);
	last = --h->owners == 0;
	if (last) {
		release_grant(h, atomic_load(&h->account.granted));
		leave_all(h);
	}
	(void)pthread_mutex_unlock(&m->lock);
	if (last)
		tw_mem_free(h);
	return NULL;
}

bool tw_answer_memory_is_short(struct tw_answer_memory *m)
{
	bool is_short;

	(void)pthread_mutex_lock(&m->lock);
	is_short = tw_monotonic_ms() - m->refused_ms < SHORT_MS;
	(void)pthread_mutex_unlock(&m->lock);
	return is_short;
}

void tw_answer_memory_tick(struct tw_answer_memory *m)
{
	bool trim;

	(void)pthread_mutex_lock(&m->lock);
	trim = m->freed >= trim_bytes;
	if (trim)
		m->freed = 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (trim)
		(void)malloc_trim(0);
}

void tw_answer_memory_metrics(struct tw_answer_memory *m, struct tw_buf *out)
{
	int64_t granted, max;
	uint64_t refused;

	(void)pthread_mutex_lock(&m->lock);
	granted = m->granted;
	max = m->max;
	refused = m->refused;
	(void)pthread_mutex_unlock(&m->lock);
	tw_metric(out, "tracewell_answer_memory_bytes", (uint64_t)granted);
	tw_metric(out, "tracewell_answer_memory_limit_bytes", (uint64_t)max);
	tw_metric(out, "tracewell_answer_memory_refused_total", refused);
}

#include "server/auth/auth_throttle.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/keyed_hash.h"

enum { SETS = 1024, WAYS = 4 };

/* A draining bucket is stored as the time when it will be empty. */
struct slot {
	uint64_t key;
	int64_t empty_at_ms;
};

struct table {
	struct slot slots[SETS][WAYS];
	int64_t cost_ms, most_ms; /* cost of an attempt; capacity */
};

struct tw_throttle {
	pthread_mutex_t lock;
	uint8_t secret[crypto_shorthash_KEYBYTES]; /* prevents clients from choosing names that
	                                            * share a set */
	struct table accounts, addresses;
	struct tw_throttle_sharing with; /* take NULL: not shared */
};

struct tw_throttle *tw_throttle_new(void)
{
	struct tw_throttle *t = sodium_init() < 0 ? NULL : tw_mem_zalloc(1, sizeof *t);

	if (!t)
		return NULL;
	(void)pthread_mutex_init(&t->lock, NULL);
	randombytes_buf(t->secret, sizeof t->secret);
	t->accounts.cost_ms = TW_THROTTLE_ACCOUNT_MS;
	t->accounts.most_ms = (int64_t)TW_THROTTLE_ACCOUNT_MS * TW_THROTTLE_ACCOUNT_TRIES;
	t->addresses.cost_ms = TW_THROTTLE_ADDRESS_MS;
	t->addresses.most_ms = (int64_t)TW_THROTTLE_ADDRESS_MS * TW_THROTTLE_ADDRESS_TRIES;
	return t;
}

void tw_throttle_share(struct tw_throttle *t, const struct tw_throttle_sharing *with)
{
	t->with = *with;
	memcpy(t->secret, with->secret, sizeof t->secret);
}

struct tw_throttle *tw_throttle_free(struct tw_throttle *t)
{
	if (!t)
		return NULL;
	(void)pthread_mutex_destroy(&t->lock);
	tw_mem_free(t);
	return NULL;
}

/* Keys of slots; 0 marks an unused one. */
static uint64_t key_of(const struct tw_throttle *t, const char *account)
{
	return tw_keyed_hash(t->secret, account, strlen(account)) | 1;
}

static uint64_t key_of_address(const struct tw_throttle *t, const char *address)
{
	return tw_keyed_hash_of_address(t->secret, address) | 1;
}

static struct slot *slot_of(struct table *t, uint64_t key)
{
	struct slot *set = t->slots[key >> 1 & (SETS - 1)];
	struct slot *least = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].empty_at_ms < least->empty_at_ms)
			least = &set[i];
	}
	return least;
}

/* Milliseconds until an attempt is allowed; 0: now. */
static int64_t wait_of(struct table *t, uint64_t key, int64_t now_ms)
{
	const struct slot *s = slot_of(t, key);
	int64_t in_it = s->key == key && s->empty_at_ms > now_ms ? s->empty_at_ms - now_ms : 0;
	int64_t over = in_it + t->cost_ms - t->most_ms;

	return over > 0 ? over : 0;
}

static void put(struct table *t, uint64_t key, int64_t now_ms)
{
	struct slot *s = slot_of(t, key);
	bool begins = s->key != key || s->empty_at_ms < now_ms;

	s->key = key;
	s->empty_at_ms = (begins ? now_ms : s->empty_at_ms) + t->cost_ms;
}

static void uncount(struct table *t, uint64_t key)
{
	struct slot *s = slot_of(t, key);

	if (s->key == key)
		s->empty_at_ms -= t->cost_ms;
}

struct keys { /* 0: not checked */
	uint64_t account_key, address_key;
};

static struct keys keys_of(const struct tw_throttle *t, const char *account, const char *address)
{
	return (struct keys){
	        account ? key_of(t, account) : 0, address ? key_of_address(t, address) : 0};
}

static int64_t longest_wait(struct tw_throttle *t, struct keys k, int64_t now_ms)
{
	int64_t account_ms = k.account_key ? wait_of(&t->accounts, k.account_key, now_ms) : 0;
	int64_t address_ms = k.address_key ? wait_of(&t->addresses, k.address_key, now_ms) : 0;

	return account_ms > address_ms ? account_ms : address_ms;
}

static enum tw_status fail_wait(int64_t wait_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	if (wait_ms == 0)
		return TW_OK;
	*ret_wait_s = (unsigned)((wait_ms + 999) / 1000);
	return tw_fail(err, TW_RATE, "too many failed sign-ins; try again in %u s", *ret_wait_s);
}

/* Distinguishes accounts and addresses with equal hashes. */
static struct tw_throttle_cost buckets_of(const struct tw_throttle *t, struct keys k)
{
	struct tw_throttle_cost cost = {.n = 0};

	if (k.account_key)
		cost.buckets[cost.n++] = (struct tw_throttle_bucket){
		        k.account_key | 1, t->accounts.cost_ms, t->accounts.most_ms};
	if (k.address_key)
		cost.buckets[cost.n++] = (struct tw_throttle_bucket){
		        k.address_key & ~UINT64_C(1), t->addresses.cost_ms, t->addresses.most_ms};
	return cost;
}

/* `take`: also counts the attempt unless the caller must wait. */
static enum tw_status check(struct tw_throttle *t, struct keys k, bool take, int64_t now_ms,
        unsigned *ret_wait_s, struct tw_err *err)
{
	int64_t wait_ms = 0;

	if (t->with.take) {
		const struct tw_throttle_cost cost = buckets_of(t, k);
		enum tw_status st = t->with.take(t->with.arg, &cost, take, &wait_ms, err);

		return st == TW_OK ? fail_wait(wait_ms, ret_wait_s, err) : st;
	}
	(void)pthread_mutex_lock(&t->lock);
	wait_ms = longest_wait(t, k, now_ms);
	if (take && wait_ms == 0) {
		if (k.account_key)
			put(&t->accounts, k.account_key, now_ms);
		if (k.address_key)
			put(&t->addresses, k.address_key, now_ms);
	}
	(void)pthread_mutex_unlock(&t->lock);
	return fail_wait(wait_ms, ret_wait_s, err);
}

enum tw_status tw_throttle_attempt(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	return check(t, keys_of(t, account, address), true, now_ms, ret_wait_s, err);
}

enum tw_status tw_throttle_check(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err)
{
	return check(t, keys_of(t, account, address), false, now_ms, ret_wait_s, err);
}

void tw_throttle_failed(
        struct tw_throttle *t, const char *account, const char *address, int64_t now_ms)
{
	unsigned wait_s;

	(void)check(t, keys_of(t, account, address), true, now_ms, &wait_s, NULL);
}

void tw_throttle_succeeded(struct tw_throttle *t, const char *account, const char *address)
{
	if (t->with.take) {
		const struct tw_throttle_cost cost = buckets_of(t, keys_of(t, account, address));

		t->with.give_back(t->with.arg, &cost);
		return;
	}
	(void)pthread_mutex_lock(&t->lock);
	uncount(&t->accounts, key_of(t, account));
	uncount(&t->addresses, key_of_address(t, address));
	(void)pthread_mutex_unlock(&t->lock);
}

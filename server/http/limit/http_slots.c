#include "server/http/http_int.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/keyed_hash.h"

enum { KEY_SHARE = 3, ADDRESS_SHARE = 7, COUNTERS = 1 << 14 };

struct tw_slots {
	pthread_mutex_t lock;
	unsigned limit;
	_Atomic unsigned taken;
	uint8_t secret[crypto_shorthash_KEYBYTES];
	/* by a hash of the caller: two may share a counter, but cannot choose to */
	unsigned counts[COUNTERS];
};

enum tw_status tw_slots_new(unsigned limit, struct tw_slots **ret, struct tw_err *err)
{
	struct tw_slots *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return tw_oom(err);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->limit = limit;
	randombytes_buf(s->secret, sizeof s->secret);
	*ret = s;
	return TW_OK;
}

struct tw_slots *tw_slots_free(struct tw_slots *s)
{
	if (s)
		(void)pthread_mutex_destroy(&s->lock);
	tw_mem_free(s);
	return NULL;
}

enum tw_status tw_slots_take(struct tw_slots *s, const char *key, const char *address,
        struct tw_slot *ret, struct tw_err *err)
{
	const struct tw_slot slot = {.held = true,
	        .counters = {tw_keyed_hash(s->secret, key, strlen(key)) % COUNTERS,
	                tw_keyed_hash_of_address(s->secret, address) % COUNTERS}};
	unsigned *by_key = &s->counts[slot.counters[0]];
	unsigned *by_address = &s->counts[slot.counters[1]];
	enum tw_status st = TW_OK;
	unsigned free;

	(void)pthread_mutex_lock(&s->lock);
	free = s->limit - atomic_load(&s->taken);
	if (free == 0)
		st = tw_fail(err, TW_BUSY, "%u uploads are in progress; retry later", s->limit);
	else if (*by_key >= KEY_SHARE * free)
		st = tw_fail(err, TW_BUSY,
		        "%u uploads of the same key are in progress; retry later", *by_key);
	else if (*by_address >= ADDRESS_SHARE * free)
		st = tw_fail(err, TW_BUSY,
		        "%u uploads from the same address are in progress; retry later",
		        *by_address);
	if (st == TW_OK) {
		(void)atomic_fetch_add(&s->taken, 1);
		++*by_key;
		++*by_address;
		*ret = slot;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return st;
}

void tw_slots_release(struct tw_slots *s, struct tw_slot *slot)
{
	if (!slot->held)
		return;
	(void)pthread_mutex_lock(&s->lock);
	(void)atomic_fetch_sub(&s->taken, 1);
	s->counts[slot->counters[0]]--;
	s->counts[slot->counters[1]]--;
	(void)pthread_mutex_unlock(&s->lock);
	*slot = (struct tw_slot){0};
}

bool tw_slots_scarce(const struct tw_slots *s)
{
	return atomic_load(&s->taken) * 2 > s->limit;
}

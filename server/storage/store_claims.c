#include "server/storage/blob_int.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/storage/blob_store.h"

struct claim {
	struct claim *next;
	unsigned holders, waiting;
	bool exclusive;
	int64_t until_ms; /* monotonic end of lingering */
	char key[TW_STORE_KEY];
};

struct tw_key_claims {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct claim *all; /* a few hundred at most: those of requests in progress */
};

struct tw_key_claims *tw_key_claims_new(void)
{
	struct tw_key_claims *c = tw_mem_zalloc(1, sizeof *c);

	if (c) {
		(void)pthread_mutex_init(&c->lock, NULL);
		(void)pthread_cond_init(&c->changed, NULL);
	}
	return c;
}

struct tw_key_claims *tw_key_claims_free(struct tw_key_claims *c)
{
	if (!c)
		return NULL;
	while (c->all) {
		struct claim *next = c->all->next;

		tw_mem_free(c->all);
		c->all = next;
	}
	(void)pthread_cond_destroy(&c->changed);
	(void)pthread_mutex_destroy(&c->lock);
	tw_mem_free(c);
	return NULL;
}

static bool is_idle(const struct claim *k, int64_t now)
{
	return !k->holders && !k->waiting && !k->exclusive && now >= k->until_ms;
}

/* The claim of that key, created if missing; removes expired ones.  NULL if out of memory. */
static struct claim *claim_of(struct tw_key_claims *c, const char *key)
{
	int64_t now = tw_monotonic_ms();
	struct claim *found = NULL;

	for (struct claim **at = &c->all; *at;) {
		struct claim *k = *at;

		if (strcmp(k->key, key) == 0) {
			found = k;
		} else if (is_idle(k, now)) {
			*at = k->next;
			tw_mem_free(k);
			continue;
		}
		at = &k->next;
	}
	if (found)
		return found;
	found = tw_mem_zalloc(1, sizeof *found);
	if (!found)
		return NULL;
	(void)snprintf(found->key, sizeof found->key, "%s", key);
	found->next = c->all;
	c->all = found;
	return found;
}

enum tw_status tw_claim(struct tw_key_claims *c, const char *key, struct tw_err *err)
{
	struct claim *k;

	(void)pthread_mutex_lock(&c->lock);
	k = claim_of(c, key);
	if (k) {
		k->waiting++;
		while (k->exclusive)
			(void)pthread_cond_wait(&c->changed, &c->lock);
		k->waiting--;
		k->holders++;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return k ? TW_OK : tw_oom(err);
}

void tw_claim_end(struct tw_key_claims *c, const char *key, int64_t linger_ms)
{
	struct claim *k;
	int64_t until = tw_monotonic_ms() + linger_ms;

	(void)pthread_mutex_lock(&c->lock);
	k = claim_of(c, key); /* it exists, as it is held */
	if (k && k->holders)
		k->holders--;
	if (k && linger_ms && until > k->until_ms)
		k->until_ms = until;
	(void)pthread_mutex_unlock(&c->lock);
}

bool tw_claim_exclusive(struct tw_key_claims *c, const char *key)
{
	struct claim *k;
	bool mine;

	(void)pthread_mutex_lock(&c->lock);
	k = claim_of(c, key);
	mine = k && is_idle(k, tw_monotonic_ms());
	if (mine)
		k->exclusive = true;
	(void)pthread_mutex_unlock(&c->lock);
	return mine;
}

void tw_claim_exclusive_end(struct tw_key_claims *c, const char *key)
{
	struct claim *k;

	(void)pthread_mutex_lock(&c->lock);
	k = claim_of(c, key);
	if (k)
		k->exclusive = false;
	(void)pthread_cond_broadcast(&c->changed);
	(void)pthread_mutex_unlock(&c->lock);
}

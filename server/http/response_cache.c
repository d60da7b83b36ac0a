#include "server/http/response_cache.h"

#include <pthread.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/metric.h"

/* A response may take an eighth of the cache at most. */
enum { SLOTS = 512, SHARE = 8 };

struct entry_of_cache {
	char *key; /* NULL: free */
	uint8_t *bytes;
	size_t len, weight;
	uint64_t used;
};

struct tw_response_cache {
	pthread_mutex_t lock;
	uint64_t max, weight;
	uint64_t now; /* counts uses */
	uint64_t hits;
	struct entry_of_cache entry_of_cache[SLOTS];
};

struct tw_response_cache *tw_response_cache_new(uint64_t max_bytes)
{
	struct tw_response_cache *a = tw_mem_zalloc(1, sizeof *a);

	if (!a)
		return NULL;
	(void)pthread_mutex_init(&a->lock, NULL);
	a->max = max_bytes;
	return a;
}

static void drop(struct tw_response_cache *a, struct entry_of_cache *k)
{
	a->weight -= k->weight;
	tw_mem_free(k->key);
	tw_mem_free(k->bytes);
	*k = (struct entry_of_cache){0};
}

struct tw_response_cache *tw_response_cache_free(struct tw_response_cache *a)
{
	if (!a)
		return NULL;
	for (size_t i = 0; i < SLOTS; i++)
		drop(a, &a->entry_of_cache[i]);
	(void)pthread_mutex_destroy(&a->lock);
	tw_mem_free(a);
	return NULL;
}

static struct entry_of_cache *find(struct tw_response_cache *a, const char *key)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (a->entry_of_cache[i].key && strcmp(a->entry_of_cache[i].key, key) == 0)
			return &a->entry_of_cache[i];
	return NULL;
}

bool tw_response_cache_get(struct tw_response_cache *a, const char *key, struct tw_buf *out)
{
	struct entry_of_cache *k;
	bool taken;

	(void)pthread_mutex_lock(&a->lock);
	k = find(a, key);
	taken = k && tw_buf_add(out, k->bytes, k->len) == TW_OK;
	if (taken) {
		k->used = ++a->now;
		a->hits++;
	}
	(void)pthread_mutex_unlock(&a->lock);
	return taken;
}

/* A free slot, or the least recently used one. */
static struct entry_of_cache *oldest(struct tw_response_cache *a)
{
	struct entry_of_cache *old = &a->entry_of_cache[0];

	for (size_t i = 0; i < SLOTS && old->key; i++)
		if (!a->entry_of_cache[i].key || a->entry_of_cache[i].used < old->used)
			old = &a->entry_of_cache[i];
	return old;
}

static struct entry_of_cache *oldest_kept(struct tw_response_cache *a)
{
	struct entry_of_cache *old = NULL;

	for (size_t i = 0; i < SLOTS; i++)
		if (a->entry_of_cache[i].key && (!old || a->entry_of_cache[i].used < old->used))
			old = &a->entry_of_cache[i];
	return old;
}

/* Takes ownership of the contents of `entry`. */
static void put(struct tw_response_cache *a, struct entry_of_cache *entry)
{
	struct entry_of_cache *k = find(a, entry->key);

	if (k)
		drop(a, k);
	while (a->weight + entry->weight > a->max)
		drop(a, oldest_kept(a));
	k = oldest(a);
	drop(a, k);
	*k = *entry;
	k->used = ++a->now;
	a->weight += k->weight;
}

void tw_response_cache_put(struct tw_response_cache *a, const char *key, struct tw_str bytes)
{
	size_t key_len = strlen(key) + 1;
	struct entry_of_cache entry = {.len = bytes.len, .weight = bytes.len + key_len};

	if (bytes.len == 0 || entry.weight > a->max / SHARE)
		return;
	entry.key = tw_mem_alloc(key_len, 1);
	entry.bytes = tw_mem_alloc(bytes.len, 1);
	if (!entry.key || !entry.bytes) {
		tw_mem_free(entry.key);
		tw_mem_free(entry.bytes);
		return;
	}
	memcpy(entry.key, key, key_len);
	memcpy(entry.bytes, bytes.ptr, bytes.len);
	(void)pthread_mutex_lock(&a->lock);
	put(a, &entry);
	(void)pthread_mutex_unlock(&a->lock);
}

void tw_response_cache_metrics(struct tw_response_cache *a, struct tw_buf *out)
{
	uint64_t hits, weight;

	(void)pthread_mutex_lock(&a->lock);
	hits = a->hits;
	weight = a->weight;
	(void)pthread_mutex_unlock(&a->lock);
	tw_metric(out, "tracewell_response_cache_hits_total", hits);
	tw_metric(out, "tracewell_response_cache_bytes", weight);
}

#include "server/ops/migrate_seen.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/file/sha256.h"

enum { NAME = 16, FEWEST = 1 << 10, MOST = 1 << 22 };

/* Uploaders choose contents: with a short hash they could produce two files that look the same. */
struct name {
	uint8_t bytes[NAME]; /* all zeros: none */
};

struct tw_migrate_seen {
	struct name *all;   /* an open-addressing table */
	size_t capacity, n; /* capacity: a power of two */
	bool full;          /* an entry was not added */
};

struct tw_migrate_seen *tw_migrate_seen_new(void)
{
	struct tw_migrate_seen *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->capacity = FEWEST;
	s->all = tw_mem_zalloc(s->capacity, sizeof *s->all);
	return s->all ? s : tw_migrate_seen_free(s);
}

struct tw_migrate_seen *tw_migrate_seen_free(struct tw_migrate_seen *s)
{
	if (s)
		tw_mem_free(s->all);
	tw_mem_free(s);
	return NULL;
}

static struct name name_of(const char *key, const char *sha256)
{
	char text[TW_STORE_KEY + TW_SHA256_HEX];
	uint8_t hash[32];
	struct name ret;

	(void)snprintf(text, sizeof text, "%s %s", key, sha256);
	tw_sha256_bytes(tw_str_of(text), hash);
	memcpy(ret.bytes, hash, sizeof ret.bytes);
	return ret;
}

static bool is_none(const struct name *k)
{
	static const struct name none;

	return memcmp(k, &none, sizeof none) == 0;
}

/* Its entry, or the free one where it belongs. */
static struct name *slot_of(struct name *all, size_t capacity, const struct name *k)
{
	size_t at;

	memcpy(&at, k->bytes, sizeof at);
	for (at &= capacity - 1; !is_none(&all[at]); at = (at + 1) & (capacity - 1))
		if (memcmp(&all[at], k, sizeof *k) == 0)
			break;
	return &all[at];
}

/* Returns false if the set is full. */
static bool grow(struct tw_migrate_seen *s)
{
	const size_t capacity = s->capacity * 2;
	struct name *all;

	if (s->n < s->capacity / 2)
		return true;
	all = s->n < MOST ? tw_mem_zalloc(capacity, sizeof *all) : NULL;
	if (!all)
		return false;
	for (size_t i = 0; i < s->capacity; i++)
		if (!is_none(&s->all[i]))
			*slot_of(all, capacity, &s->all[i]) = s->all[i];
	tw_mem_free(s->all);
	s->all = all;
	s->capacity = capacity;
	return true;
}

static void add(struct tw_migrate_seen *s, const char *key, const char *sha256)
{
	struct name k, *at;

	if (!grow(s)) {
		s->full = true;
		return;
	}
	k = name_of(key, sha256);
	at = slot_of(s->all, s->capacity, &k);
	s->n += is_none(at);
	*at = k;
}

static bool has(const struct tw_migrate_seen *s, const char *key, const char *sha256)
{
	const struct name k = name_of(key, sha256);

	return !is_none(slot_of(s->all, s->capacity, &k));
}

void tw_migrate_seen_add(struct tw_migrate_seen *s, const struct tw_migrate_file *f)
{
	if (f->sha256[0])
		add(s, f->key, f->sha256);
}

bool tw_migrate_seen_has(const struct tw_migrate_seen *s, const struct tw_migrate_file *f)
{
	return f->sha256[0] && has(s, f->key, f->sha256);
}

void tw_migrate_seen_add_key(struct tw_migrate_seen *s, const char *key)
{
	add(s, key, "");
}

bool tw_migrate_seen_may_have_key(const struct tw_migrate_seen *s, const char *key)
{
	return s->full || has(s, key, "");
}

#include "server/ops/migrate_seen.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/file/sha256.h"

enum { NAME = 16, FEWEST = 1 << 10, MOST = 1 << 22 };

/* Strangers choose contents, so a short sum would let them make two files look like one. */
struct name {
	uint8_t bytes[NAME]; /* all zeros: none */
};

struct tw_migrate_seen {
	struct name *all; /* open addressing */
	size_t room, n;   /* room: a power of two */
	bool full;        /* something was left out */
};

struct tw_migrate_seen *tw_migrate_seen_new(void)
{
	struct tw_migrate_seen *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->room = FEWEST;
	s->all = tw_mem_zalloc(s->room, sizeof *s->all);
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

/* Where it is, or belongs. */
static struct name *place_of(struct name *all, size_t room, const struct name *k)
{
	size_t at;

	memcpy(&at, k->bytes, sizeof at);
	for (at &= room - 1; !is_none(&all[at]); at = (at + 1) & (room - 1))
		if (memcmp(&all[at], k, sizeof *k) == 0)
			break;
	return &all[at];
}

/* False: it is full. */
static bool make_room(struct tw_migrate_seen *s)
{
	const size_t room = s->room * 2;
	struct name *all;

	if (s->n < s->room / 2)
		return true;
	all = s->n < MOST ? tw_mem_zalloc(room, sizeof *all) : NULL;
	if (!all)
		return false;
	for (size_t i = 0; i < s->room; i++)
		if (!is_none(&s->all[i]))
			*place_of(all, room, &s->all[i]) = s->all[i];
	tw_mem_free(s->all);
	s->all = all;
	s->room = room;
	return true;
}

static void add(struct tw_migrate_seen *s, const char *key, const char *sha256)
{
	struct name k, *at;

	if (!make_room(s)) {
		s->full = true;
		return;
	}
	k = name_of(key, sha256);
	at = place_of(s->all, s->room, &k);
	s->n += is_none(at);
	*at = k;
}

static bool has(const struct tw_migrate_seen *s, const char *key, const char *sha256)
{
	const struct name k = name_of(key, sha256);

	return !is_none(place_of(s->all, s->room, &k));
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

#include "decoder/formats/markers/markers.h"

#include <string.h>

#include "decoder/base/hash.h"

/* Ten times the length by chance: names and cookies chosen to collide must not make lookups
 * slow. */
enum {
	CHAINS = 1 << 14,
	NAME_SLOTS = 1 << 15,
	LONGEST_CHAIN = 128,
	LONGEST_RUN = 512,
	LONGEST_WALK = 1024 /* a span of a track may be open many times */
};

static uint32_t *chain_of(const struct tw_spans *s, const struct tw_span_key *k)
{
	uint64_t h = tw_hash_str(k->track.len ? k->track : k->name, s->salt);

	h = tw_hash_id(h ^ (uint64_t)k->cookie, s->salt ^ k->pid);
	return &s->chains[h & (CHAINS - 1)];
}

static bool matches(const struct tw_span_key *open, const struct tw_span_key *sought)
{
	if (open->pid != sought->pid || open->cookie != sought->cookie ||
	        !tw_str_eq(open->track, sought->track))
		return false;
	return (sought->track.len && !sought->by_name) || tw_str_eq(open->name, sought->name);
}

static bool prepare(struct tw_spans *s)
{
	if (s->list)
		return true;
	s->chains = tw_arena_zalloc(s->arena, CHAINS, sizeof *s->chains);
	s->names = tw_arena_zalloc(s->arena, NAME_SLOTS, sizeof *s->names);
	if (s->chains && s->names)
		s->list = tw_arena_alloc(s->arena, TW_SPANS_MAX, sizeof *s->list);
	return s->list != NULL;
}

/* Replaces *name by its stored copy. */
static enum tw_span_outcome keep(struct tw_spans *s, struct tw_str *name)
{
	uint32_t at = (uint32_t)tw_hash_str(*name, s->salt) & (NAME_SLOTS - 1);
	uint32_t run = 0;

	for (; s->names[at].ptr && run < LONGEST_RUN; run++) {
		if (tw_str_eq(s->names[at], *name)) {
			*name = s->names[at];
			return TW_SPAN_OK;
		}
		at = (at + 1) & (NAME_SLOTS - 1);
	}
	if (run == LONGEST_RUN || s->n_names >= NAME_SLOTS / 2 ||
	        name->len > TW_SPAN_NAMES_MAX_BYTES - s->name_bytes)
		return TW_SPAN_FULL;
	name->ptr = tw_arena_str(s->arena, *name);
	if (!name->ptr)
		return TW_SPAN_NO_MEMORY;
	s->names[at] = *name;
	s->n_names++;
	s->name_bytes += name->len;
	return TW_SPAN_OK;
}

static uint32_t take_slot(struct tw_spans *s)
{
	uint32_t at = s->free_list;

	if (at)
		s->free_list = s->list[at - 1].next;
	else if (s->used < TW_SPANS_MAX)
		at = ++s->used;
	return at;
}

/* 0: not open.  *ret_others: number of spans before it in its chain. */
static uint32_t find(const struct tw_spans *s, const struct tw_span_key *key, uint32_t *ret_others)
{
	uint32_t at = *chain_of(s, key);
	uint32_t others = 0;

	for (; at && others < LONGEST_WALK && !matches(&s->list[at - 1].key, key); others++)
		at = s->list[at - 1].next;
	*ret_others = others;
	return others < LONGEST_WALK ? at : 0;
}

enum tw_span_outcome tw_spans_begin(
        struct tw_spans *s, const struct tw_span_key *key, const struct tw_span *at)
{
	struct tw_span_key kept = *key;
	enum tw_span_outcome outcome;
	uint32_t *chain;
	uint32_t found;
	uint32_t others;

	if (!prepare(s))
		return TW_SPAN_NO_MEMORY;
	found = find(s, key, &others);
	if (found && !key->track.len)
		return TW_SPAN_OK;
	if (others >= LONGEST_CHAIN)
		return TW_SPAN_FULL;
	outcome = keep(s, &kept.name);
	if (outcome == TW_SPAN_OK)
		outcome = keep(s, &kept.track);
	if (outcome != TW_SPAN_OK)
		return outcome;
	found = take_slot(s);
	if (!found)
		return TW_SPAN_FULL;
	chain = chain_of(s, &kept);
	s->list[found - 1] = *at;
	s->list[found - 1].key = kept;
	s->list[found - 1].open = true;
	s->list[found - 1].next = *chain;
	*chain = found;
	return TW_SPAN_OK;
}

const struct tw_span *tw_spans_end(struct tw_spans *s, const struct tw_span_key *key)
{
	uint32_t others;
	uint32_t at = s->list ? find(s, key, &others) : 0;
	struct tw_span *span = at ? &s->list[at - 1] : NULL;
	uint32_t *link;

	if (!span)
		return NULL;
	link = chain_of(s, key);
	while (*link != at)
		link = &s->list[*link - 1].next;
	*link = span->next;
	span->next = s->free_list;
	span->open = false;
	s->free_list = at;
	return span;
}

const struct tw_span *tw_spans_next_open(const struct tw_spans *s, uint32_t *at)
{
	while (*at < s->used)
		if (s->list[(*at)++].open)
			return &s->list[*at - 1];
	return NULL;
}

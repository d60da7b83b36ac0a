#include "decoder/formats/perfetto/perfetto_sequences.h"

#include <string.h>

#include "decoder/base/hash.h"

enum { MAX_SEQUENCES = 1 << 16, FIRST_SEQUENCES = 64 };

static uint32_t *slot_of(const struct tw_perfetto_sequences *s, uint32_t id)
{
	uint32_t mask = s->cap * 2 - 1;
	uint32_t at = (uint32_t)tw_hash_id(id, s->salt) & mask;

	while (s->slots[at] && s->list[s->slots[at] - 1].id != id)
		at = (at + 1) & mask;
	return &s->slots[at];
}

static bool widen(struct tw_perfetto_sequences *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : FIRST_SEQUENCES;
	struct tw_perfetto_sequence *list = tw_arena_alloc(s->arena, cap, sizeof *list);
	uint32_t *slots = tw_arena_zalloc(s->arena, cap, 2 * sizeof *slots);

	if (!list || !slots)
		return false;
	if (s->n)
		memcpy(list, s->list, s->n * sizeof *list);
	s->list = list;
	s->slots = slots;
	s->cap = cap;
	for (uint32_t i = 0; i < s->n; i++)
		*slot_of(s, list[i].id) = i + 1;
	return true;
}

struct tw_perfetto_sequence *tw_perfetto_sequences_get(struct tw_perfetto_sequences *s, uint32_t id)
{
	uint32_t *slot;

	if (id == 0)
		return &s->none;
	if (s->n == s->cap && s->n < MAX_SEQUENCES && !widen(s))
		return NULL;
	slot = slot_of(s, id);
	if (*slot)
		return &s->list[*slot - 1];
	if (s->n == MAX_SEQUENCES)
		return &s->none;
	s->list[s->n] = (struct tw_perfetto_sequence){.id = id, .scope = {.sequence = s->n + 1}};
	*slot = ++s->n;
	return &s->list[s->n - 1];
}

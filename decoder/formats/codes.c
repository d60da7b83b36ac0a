#include "decoder/formats/codes.h"

#include "decoder/base/hash.h"
#include "decoder/base/list.h"

enum { FIRST_CAP = 256 };

static uint32_t *slot_of(const struct tw_codes *c, struct tw_str interface, uint64_t code)
{
	uint32_t mask = c->cap * 2 - 1;
	uint64_t h = tw_hash_str(interface, c->salt);
	uint32_t at = (uint32_t)tw_hash_id(h ^ code, c->salt) & mask;

	while (c->slots[at]) {
		const struct tw_code *k = &c->list[c->slots[at] - 1];

		if (k->code == code && tw_str_eq(k->interface, interface))
			break;
		at = (at + 1) & mask;
	}
	return &c->slots[at];
}

/* Makes space for one more.  Outgrown tables stay in the arena: in total as much again. */
static bool widen(struct tw_codes *c, struct tw_arena *a)
{
	if (c->n < c->cap)
		return true;
	if (!TW_WIDEN_FROM(FIRST_CAP, a, c->list, c->n, c->cap, c->slots))
		return false;
	for (uint32_t i = 0; i < c->n; i++)
		*slot_of(c, c->list[i].interface, c->list[i].code) = i + 1;
	return true;
}

static bool keep(struct tw_arena *a, struct tw_str *s)
{
	s->ptr = tw_arena_str(a, *s);
	return s->ptr != NULL;
}

bool tw_codes_add(struct tw_codes *c, struct tw_arena *a, struct tw_str interface, uint64_t code,
        struct tw_str name)
{
	struct tw_code entry = {interface, name, code};
	uint32_t *slot;

	if (c->n >= TW_CODES_MAX)
		return true;
	if (!widen(c, a) || !keep(a, &entry.name))
		return false;
	slot = slot_of(c, interface, code);
	if (*slot) {
		c->list[*slot - 1].name = entry.name;
		return true;
	}
	if (!keep(a, &entry.interface))
		return false;
	c->list[c->n] = entry;
	*slot = ++c->n;
	return true;
}

struct tw_str tw_codes_name(const struct tw_codes *c, struct tw_str interface, uint64_t code)
{
	uint32_t at = c->n ? *slot_of(c, interface, code) : 0;

	return at ? c->list[at - 1].name : TW_STR("");
}

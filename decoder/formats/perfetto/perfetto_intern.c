#include "decoder/formats/perfetto/perfetto_intern.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"

enum { FIRST = 1024, MAX_NUMBERS = 8 << 20, MAX_TEXTS = 4 << 20, TEXT_SHARE = 8, KIND_BITS = 4 };

void tw_perfetto_intern_init(struct tw_perfetto_intern *t, struct tw_arena *a,
        const struct tw_limits *limits, struct tw_sink *sink)
{
	*t = (struct tw_perfetto_intern){.arena = a,
	        .sink = sink,
	        .max_bytes = limits->max_memory_bytes / TEXT_SHARE,
	        .max_name = limits->max_name_bytes,
	        .salt = limits->hash_salt};
}

/* --- texts --- */

static uint32_t *slot_of(const struct tw_perfetto_intern *t, struct tw_str s)
{
	uint32_t mask = t->cap_texts * 2 - 1;
	uint32_t at = (uint32_t)tw_hash_str(s, t->salt) & mask;

	while (t->slots[at] && !tw_str_eq(tw_perfetto_intern_str(t, t->slots[at]), s))
		at = (at + 1) & mask;
	return &t->slots[at];
}

static bool widen_texts(struct tw_perfetto_intern *t)
{
	if (!TW_WIDEN_FROM(FIRST, t->arena, t->texts, t->n_texts, t->cap_texts, t->slots))
		return false;
	for (uint32_t i = 1; i <= t->n_texts; i++)
		*slot_of(t, tw_perfetto_intern_str(t, i)) = i;
	return true;
}

bool tw_perfetto_intern_text(
        struct tw_perfetto_intern *t, struct tw_str text, uint64_t offset, uint32_t *ret)
{
	uint32_t *slot;
	char *copy;

	if (t->n_texts == t->cap_texts && !widen_texts(t))
		return false;
	if (text.len > t->max_name) {
		t->sink->ops->repair(t->sink, TW_REPAIR_name_cut, offset, 1);
		text.len = t->max_name;
	}
	slot = slot_of(t, text);
	*ret = *slot;
	if (*slot)
		return true;
	if (t->n_texts == MAX_TEXTS || t->bytes + text.len > t->max_bytes) {
		t->sink->ops->repair(t->sink, TW_REPAIR_note_limit, offset, 1);
		return true;
	}
	copy = tw_arena_str(t->arena, text);
	if (!copy)
		return false;
	t->bytes += text.len;
	t->texts[t->n_texts] = (struct tw_perfetto_text){copy, (uint32_t)text.len, 0};
	*ret = *slot = ++t->n_texts;
	return true;
}

struct tw_str tw_perfetto_intern_str(const struct tw_perfetto_intern *t, uint32_t number)
{
	if (number == 0)
		return TW_STR("");
	return (struct tw_str){t->texts[number - 1].ptr, t->texts[number - 1].len};
}

uint32_t tw_perfetto_intern_sym(struct tw_perfetto_intern *t, uint32_t number)
{
	struct tw_perfetto_text *x;

	if (number == 0)
		return 0;
	x = &t->texts[number - 1];
	if (!x->sym)
		x->sym = t->sink->ops->name(t->sink,
		        x->len ? tw_perfetto_intern_str(t, number) : TW_STR("[empty slice name]"));
	return x->sym;
}

/* --- numbers --- */

static uint32_t owner_of(struct tw_perfetto_scope scope, enum tw_perfetto_kind kind)
{
	return (scope.sequence << KIND_BITS | (uint32_t)kind) + 1;
}

static struct tw_perfetto_number *number_of(
        const struct tw_perfetto_intern *t, uint32_t owner, uint64_t iid)
{
	uint64_t h = tw_hash_id(iid ^ tw_hash_id(owner, t->salt), t->salt);
	uint32_t mask = t->cap_numbers - 1;
	uint32_t at = (uint32_t)h & mask;

	while (t->numbers[at].owner && (t->numbers[at].owner != owner || t->numbers[at].iid != iid))
		at = (at + 1) & mask;
	return &t->numbers[at];
}

/* Most lookups are of few numbers: their hash need not be computed, and they stay in the cache. */
static struct tw_perfetto_number *recent_of(
        struct tw_perfetto_intern *t, uint32_t owner, uint64_t iid)
{
	return &t->recent[(iid ^ owner) % TW_PERFETTO_RECENT];
}

static bool widen_numbers(struct tw_perfetto_intern *t)
{
	const struct tw_perfetto_number *old = t->numbers;
	uint32_t old_cap = t->cap_numbers;
	uint32_t cap = old_cap ? old_cap * 2 : FIRST;
	struct tw_perfetto_number *larger;

	if (t->n_numbers < old_cap / 2)
		return true;
	larger = tw_arena_zalloc(t->arena, cap, sizeof *larger);
	if (!larger)
		return false;
	t->numbers = larger;
	t->cap_numbers = cap;
	for (uint32_t i = 0; i < old_cap; i++)
		if (old[i].owner)
			*number_of(t, old[i].owner, old[i].iid) = old[i];
	return true;
}

bool tw_perfetto_intern_set(struct tw_perfetto_intern *t, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid, uint64_t value)
{
	uint32_t owner = owner_of(scope, kind);
	struct tw_perfetto_number *n;

	if (!widen_numbers(t))
		return false;
	n = number_of(t, owner, iid);
	if (!n->owner) {
		if (t->n_numbers == MAX_NUMBERS) {
			t->sink->ops->repair(t->sink, TW_REPAIR_note_limit, TW_NO_OFFSET, 1);
			return true;
		}
		t->n_numbers++;
	}
	*n = (struct tw_perfetto_number){iid, value, owner, scope.generation};
	*recent_of(t, owner, iid) = *n;
	return true;
}

bool tw_perfetto_intern_get(struct tw_perfetto_intern *t, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid, uint64_t *ret)
{
	uint32_t owner = owner_of(scope, kind);
	struct tw_perfetto_number *n = recent_of(t, owner, iid);

	if (t->cap_numbers == 0)
		return false;
	if (n->owner != owner || n->iid != iid)
		*n = *number_of(t, owner, iid);
	if (!n->owner || n->generation != scope.generation)
		return false;
	*ret = n->value;
	return true;
}

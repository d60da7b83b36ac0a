/*
 * anr_rollup.c - stored form: for each part, by rising mask and bit: mask, bit, owned, traces,
 * waits, timed, total, max, first, last (varints), worst and holder (length, bytes), for each set
 * its bound and number of hashes (bound 8 bytes, then a varint) and the hashes by size (8 bytes
 * each), the number of monitors and each of them (length, bytes).
 */
#include "server/stats/anr_rollup.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"

enum { SLOTS_FIRST = 8, LISTED_FIRST = 64, NUMBERS = 10 };

/* --- distinct counts --- */

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xBF58476D1CE4E5B9);
	x ^= x >> 27;
	x *= UINT64_C(0x94D049BB133111EB);
	x ^= x >> 31;
	return x ? x : 1;
}

static uint64_t hash_of(struct tw_str s)
{
	return mixed(tw_fnv64(TW_FNV64_BASIS, s));
}

uint64_t tw_distinct_hash(const char *text)
{
	return hash_of(tw_str_of(text));
}

uint64_t tw_distinct_mix(int64_t number)
{
	return number ? mixed((uint64_t)number + UINT64_C(0x9E3779B97F4A7C15)) : 0;
}

/* The hash's slot, or the one where it belongs; hashes are already random. */
static uint64_t *slot_of(const struct tw_distinct *d, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 32) & (d->cap - 1);

	while (d->slots[at] && d->slots[at] != hash)
		at = (at + 1) & (d->cap - 1);
	return &d->slots[at];
}

/* Makes space for `more` hashes. */
static bool grow_set(struct tw_arena *a, struct tw_distinct *d, uint64_t more)
{
	const struct tw_distinct old = *d;

	if (d->n + more <= (size_t)d->cap / 4 * 3)
		return true;
	d->cap = old.cap ? 2 * old.cap : SLOTS_FIRST;
	while (d->n + more > (size_t)d->cap / 4 * 3)
		d->cap *= 2;
	d->slots = tw_arena_zalloc(a, d->cap, sizeof *d->slots);
	if (!d->slots) {
		*d = old;
		return false;
	}
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.slots[i])
			*slot_of(d, old.slots[i]) = old.slots[i];
	return true;
}

/* Adds a hash (not 0); false: out of memory. */
static bool distinct_add(struct tw_arena *a, struct tw_distinct *d, uint64_t hash)
{
	uint64_t *slot;

	if (d->below && hash >= d->below)
		return true;
	if (!grow_set(a, d, 1))
		return false;
	slot = slot_of(d, hash);
	d->n += *slot == 0;
	*slot = hash;
	return true;
}

/* Larger hashes stay in place, but are no longer counted. */
static void lower(struct tw_distinct *d, uint64_t below)
{
	if (below && (!d->below || below < d->below))
		d->below = below;
}

static bool distinct_add_all(
        struct tw_arena *a, struct tw_distinct *d, const struct tw_distinct *other)
{
	bool fits = grow_set(a, d, other->n);

	lower(d, other->below);
	for (uint32_t i = 0; fits && i < other->cap; i++)
		if (other->slots[i])
			fits = distinct_add(a, d, other->slots[i]);
	return fits;
}

uint64_t tw_distinct_count(const struct tw_distinct *d)
{
	uint64_t n = 0;

	if (!d->below)
		return d->n;
	for (uint32_t i = 0; i < d->cap; i++)
		n += d->slots[i] && d->slots[i] < d->below;
	return (uint64_t)((double)n / (double)d->below * 18446744073709551616.0 + 0.5);
}

/* The hashes below the bound, by size; *ret_n of them.  NULL: out of memory. */
static uint64_t *bounded(struct tw_arena *a, struct tw_distinct *d, uint32_t *ret_n)
{
	uint64_t *sorted = tw_arena_alloc(a, (size_t)d->n + 1, sizeof *sorted);
	uint32_t n = 0;

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < d->cap; i++)
		if (d->slots[i] && (!d->below || d->slots[i] < d->below))
			sorted[n++] = d->slots[i];
	TW_SORT(sorted, n, tw_by_u64);
	if (n > TW_ANR_ROLLUP_DISTINCT) {
		n = TW_ANR_ROLLUP_DISTINCT;
		lower(d, sorted[n]);
	}
	*ret_n = n;
	return sorted;
}

/* --- adding --- */

static struct tw_anr_rollup_part *part_of(
        struct tw_arena *a, struct tw_anr_rollup *t, unsigned mask, unsigned bit)
{
	struct tw_anr_rollup_part **at = &t->parts;
	struct tw_anr_rollup_part *p;

	while (*at && ((*at)->mask < mask || ((*at)->mask == mask && (*at)->bit < bit)))
		at = &(*at)->next;
	if (*at && (*at)->mask == mask && (*at)->bit == bit)
		return *at;
	p = tw_arena_zalloc(a, 1, sizeof *p);
	if (!p)
		return NULL;
	p->mask = mask;
	p->bit = bit;
	p->sum.holder = "";
	p->next = *at;
	return *at = p;
}

/* A copy of the text, truncated to the stored size. */
static const char *kept_text(struct tw_arena *a, const char *text)
{
	struct tw_str s = tw_str_of(text);

	if (s.len > TW_ANR_ROLLUP_TEXT)
		s.len = TW_ANR_ROLLUP_TEXT;
	while (s.len && s.len < strlen(text) && ((uint8_t)text[s.len] & 0xC0) == 0x80)
		s.len--; /* at a character boundary */
	return s.len ? tw_arena_str(a, s) : "";
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static bool is_worse(const struct tw_anr_rollup_sum *a, const struct tw_anr_rollup_sum *b)
{
	int c = strcmp(a->worst, b->worst);

	if (!a->worst[0] || !b->worst[0])
		return a->worst[0] != '\0';
	if (a->max_ns != b->max_ns)
		return a->max_ns > b->max_ns;
	if (!a->max_ns && a->last_ms != b->last_ms)
		return a->last_ms > b->last_ms;
	return c ? c > 0 : strcmp(a->holder, b->holder) > 0;
}

/* Texts of `from` must stay valid as long. */
static void add_sum(struct tw_anr_rollup_sum *to, const struct tw_anr_rollup_sum *from)
{
	if (is_worse(from, to)) {
		memcpy(to->worst, from->worst, sizeof to->worst);
		to->holder = from->holder;
		to->max_ns = from->max_ns;
	}
	if (!to->first_ms || from->first_ms < to->first_ms)
		to->first_ms = from->first_ms;
	if (from->last_ms > to->last_ms)
		to->last_ms = from->last_ms;
	to->traces = sum_of(to->traces, from->traces);
	to->waits = sum_of(to->waits, from->waits);
	to->timed = sum_of(to->timed, from->timed);
	to->total_ns = tw_sum_ns(to->total_ns, from->total_ns);
}

/* The text must stay valid as long. */
static void add_monitor(struct tw_anr_rollup_part *p, const char *name)
{
	uint32_t at = 0;

	while (at < p->n_monitors && strcmp(p->monitors[at], name) < 0)
		at++;
	if (at == TW_ANR_ROLLUP_MONITORS ||
	        (at < p->n_monitors && strcmp(p->monitors[at], name) == 0))
		return;
	if (p->n_monitors < TW_ANR_ROLLUP_MONITORS)
		p->n_monitors++;
	memmove(&p->monitors[at + 1], &p->monitors[at],
	        (p->n_monitors - 1 - at) * sizeof p->monitors[0]);
	p->monitors[at] = name;
}

static bool has_monitor(const struct tw_anr_rollup_part *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_monitors; i++)
		if (strcmp(p->monitors[i], name) == 0)
			return true;
	return false;
}

bool tw_anr_rollup_add(
        struct tw_arena *a, struct tw_anr_rollup *t, const struct tw_anr_rollup_one *o)
{
	struct tw_anr_rollup_part *p = part_of(a, t, o->mask, o->bit);
	struct tw_anr_rollup_sum sum = o->sum;
	bool fits = p != NULL;

	if (fits && is_worse(&o->sum, &p->sum))
		sum.holder = kept_text(a, o->sum.holder);
	if (!fits || !sum.holder)
		return false;
	add_sum(&p->sum, &sum);
	p->owned = p->owned || o->owned;
	for (int i = 0; fits && i < TW_ANR_ROLLUP_SETS; i++)
		if (o->sets[i])
			fits = distinct_add(a, &p->sets[i], o->sets[i]);
	if (fits && o->monitor[0] && !has_monitor(p, o->monitor)) {
		const char *name = kept_text(a, o->monitor);

		fits = name != NULL;
		if (fits)
			add_monitor(p, name);
	}
	return fits;
}

/* --- bytes --- */

static void write_text(const char *text, struct tw_buf *out)
{
	const struct tw_str s = tw_str_of(text);

	(void)tw_buf_add_varint(out, s.len);
	(void)tw_buf_add_str(out, s);
}

static void write_set(struct tw_arena *a, struct tw_distinct *d, struct tw_buf *out)
{
	uint32_t n = 0;
	const uint64_t *sorted = bounded(a, d, &n);

	(void)tw_buf_add_u64le(out, d->below);
	(void)tw_buf_add_varint(out, n);
	for (uint32_t i = 0; i < n; i++)
		(void)tw_buf_add_u64le(out, sorted[i]);
	if (!sorted)
		out->status = TW_NOMEM;
}

static void write_part(struct tw_arena *a, struct tw_anr_rollup_part *p, struct tw_buf *out)
{
	const struct tw_anr_rollup_sum *s = &p->sum;
	const uint64_t numbers[NUMBERS] = {p->mask, p->bit, p->owned, s->traces, s->waits, s->timed,
	        (uint64_t)s->total_ns, (uint64_t)s->max_ns, (uint64_t)s->first_ms,
	        (uint64_t)s->last_ms};

	for (int i = 0; i < NUMBERS; i++)
		(void)tw_buf_add_varint(out, numbers[i]);
	write_text(s->worst, out);
	write_text(s->holder, out);
	for (int i = 0; i < TW_ANR_ROLLUP_SETS; i++)
		write_set(a, &p->sets[i], out);
	(void)tw_buf_add_varint(out, p->n_monitors);
	for (uint32_t i = 0; i < p->n_monitors; i++)
		write_text(p->monitors[i], out);
}

void tw_anr_rollup_write(struct tw_arena *a, struct tw_anr_rollup *t, struct tw_buf *out)
{
	for (struct tw_anr_rollup_part *p = t->parts; p; p = p->next)
		write_part(a, p, out);
}

struct reading {
	struct tw_arena *arena;
	const uint8_t *at, *end;
	bool full; /* out of memory; other failures are damage */
};

static const char *read_text(struct reading *r)
{
	const char *text = "";
	uint64_t len;

	if (!tw_get_varint(&r->at, r->end, &len) || len > TW_ANR_ROLLUP_TEXT ||
	        len > (uint64_t)(r->end - r->at))
		return NULL;
	if (len)
		text = tw_arena_str(r->arena, (struct tw_str){(const char *)r->at, len});
	r->full = r->full || !text;
	r->at += len;
	return text;
}

static bool read_set(struct reading *r, struct tw_distinct *d)
{
	uint64_t n;

	if (r->end - r->at < 8)
		return false;
	lower(d, tw_u64le(r->at));
	r->at += 8;
	if (!tw_get_varint(&r->at, r->end, &n) || n > TW_ANR_ROLLUP_DISTINCT ||
	        n > (uint64_t)(r->end - r->at) / 8)
		return false;
	if (!grow_set(r->arena, d, n)) {
		r->full = true;
		return false;
	}
	for (uint64_t i = 0; i < n; i++, r->at += 8) {
		const uint64_t hash = tw_u64le(r->at);

		if (!hash)
			return false;
		if (!distinct_add(r->arena, d, hash)) {
			r->full = true;
			return false;
		}
	}
	return true;
}

static bool read_monitors(struct reading *r, struct tw_anr_rollup_part *p)
{
	uint64_t n;

	if (!tw_get_varint(&r->at, r->end, &n) || n > TW_ANR_ROLLUP_MONITORS)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const char *name = read_text(r);

		if (!name)
			return false;
		add_monitor(p, name);
	}
	return true;
}

static bool read_sum(
        struct reading *r, const uint64_t numbers[NUMBERS], struct tw_anr_rollup_sum *s)
{
	const char *worst = read_text(r);

	*s = (struct tw_anr_rollup_sum){numbers[3], numbers[4], numbers[5], (int64_t)numbers[6],
	        (int64_t)numbers[7], (int64_t)numbers[8], (int64_t)numbers[9], "",
	        worst ? read_text(r) : NULL};
	if (!worst || !s->holder || strlen(worst) > TW_ANR_ROLLUP_ID)
		return false;
	memcpy(s->worst, worst, strlen(worst) + 1);
	return true;
}

static bool read_part(struct reading *r, struct tw_anr_rollup *t)
{
	uint64_t numbers[NUMBERS];
	struct tw_anr_rollup_part *p;
	struct tw_anr_rollup_sum sum;

	for (int i = 0; i < NUMBERS; i++)
		if (!tw_get_varint(&r->at, r->end, &numbers[i]) || numbers[i] > INT64_MAX)
			return false;
	if (numbers[0] >> TW_ANR_ROLLUP_KINDS || !(numbers[0] & numbers[1]) ||
	        !read_sum(r, numbers, &sum))
		return false;
	p = part_of(r->arena, t, (unsigned)numbers[0], (unsigned)numbers[1]);
	r->full = r->full || !p;
	if (!p)
		return false;
	add_sum(&p->sum, &sum);
	p->owned = p->owned || numbers[2];
	for (int i = 0; i < TW_ANR_ROLLUP_SETS; i++)
		if (!read_set(r, &p->sets[i]))
			return false;
	return read_monitors(r, p);
}

enum tw_status tw_anr_rollup_merge(
        struct tw_arena *a, struct tw_anr_rollup *t, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct reading r = {a, p, p + n, false};

	while (r.at < r.end)
		if (!read_part(&r, t))
			return r.full ? tw_anr_fail_too_large(err)
			              : tw_fail(err, TW_CORRUPT,
			                        "the sums of ANRs and locks are damaged");
	return TW_OK;
}

/* --- queries --- */

struct tw_anr_rollup_part *tw_anr_rollup_select(
        struct tw_arena *a, const struct tw_anr_rollup *t, unsigned kinds)
{
	struct tw_anr_rollup_part *all = tw_arena_zalloc(a, 1, sizeof *all);
	bool fits = all != NULL;

	if (!fits)
		return NULL;
	all->sum.holder = "";
	for (const struct tw_anr_rollup_part *p = t->parts; fits && p; p = p->next) {
		const unsigned both = p->mask & kinds;
		struct tw_anr_rollup_sum sum = p->sum;

		if (!(p->bit & kinds))
			continue;
		/* the traces are counted with another of the kinds */
		if ((both & (0U - both)) != p->bit)
			sum.traces = 0;
		add_sum(&all->sum, &sum);
		all->mask |= p->bit;
		all->owned = all->owned || p->owned;
		for (int i = 0; fits && i < TW_ANR_ROLLUP_SETS; i++)
			fits = distinct_add_all(a, &all->sets[i], &p->sets[i]);
		for (uint32_t i = 0; i < p->n_monitors; i++)
			add_monitor(all, p->monitors[i]);
	}
	return fits ? all : NULL;
}

uint64_t tw_anr_rollup_traces(const struct tw_anr_rollup *t, unsigned kinds)
{
	uint64_t n = 0;

	for (const struct tw_anr_rollup_part *p = t->parts; p; p = p->next) {
		const unsigned both = p->mask & kinds;

		if ((both & (0U - both)) == p->bit)
			n = sum_of(n, p->sum.traces);
	}
	return n;
}

/* --- by key --- */

static struct tw_anr_rollup **rollup_slot(const struct tw_anr_rollups *all, struct tw_str key)
{
	size_t at = (size_t)hash_of(key) & (all->n_slots - 1);

	while (all->slots[at] && !tw_str_eq(tw_str_of(all->slots[at]->key), key))
		at = (at + 1) & (all->n_slots - 1);
	return &all->slots[at];
}

static bool grow_list(struct tw_anr_rollups *all)
{
	const struct tw_anr_rollups old = *all;

	if (old.n < old.n_slots / 2)
		return true;
	all->n_slots = old.n_slots ? 2 * old.n_slots : LISTED_FIRST;
	all->slots = tw_arena_zalloc(all->arena, all->n_slots, sizeof(struct tw_anr_rollup *));
	all->list = tw_arena_alloc(all->arena, all->n_slots / 2, sizeof(struct tw_anr_rollup *));
	if (!all->slots || !all->list) {
		*all = old;
		return false;
	}
	for (size_t i = 0; i < old.n; i++) {
		all->list[i] = old.list[i];
		*rollup_slot(all, tw_str_of(old.list[i]->key)) = old.list[i];
	}
	return true;
}

struct tw_anr_rollup *tw_anr_rollups_at(struct tw_anr_rollups *all, struct tw_str key)
{
	struct tw_anr_rollup **at;
	struct tw_anr_rollup *t;

	if (!grow_list(all))
		return NULL;
	at = rollup_slot(all, key);
	if (*at)
		return *at;
	t = tw_arena_zalloc(all->arena, 1, sizeof *t);
	if (!t)
		return NULL;
	t->key = tw_arena_str(all->arena, key);
	if (!t->key)
		return NULL;
	all->list[all->n++] = t;
	return *at = t;
}

enum tw_status tw_anr_fail_too_large(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "the response is too large; narrow the filter or the time range");
}

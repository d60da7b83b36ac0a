/*
 * rollup.c - formats.
 * facts: n, then for each method its number (8 bytes) and as varints count, total, self, sum, CPU
 *        time + 1.
 * threads: for each kind of thread the length of its name (varint), the name, and its facts.
 * part:  for each method its number (8 bytes), the length of the rest (varint), the id of the worst
 *        trace, and the sketch; by rising numbers.
 */
#include "server/stats/rollup.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"

const char *const tw_rollup_metric_names[TW_ROLLUP_METRICS + 1] = {
        "wall", "self", "cpu", "waiting", "calls", "call", NULL};

enum { METHODS_FIRST = 512, FACT_NUMBERS = 5 };

/* --- facts --- */

int64_t tw_rollup_value(const struct tw_rollup_fact *f, enum tw_rollup_metric m)
{
	int64_t waiting = f->total_ns > f->cpu_ns ? f->total_ns - f->cpu_ns : 0;
	const int64_t values[TW_ROLLUP_METRICS] = {[TW_ROLLUP_WALL] = f->total_ns,
	        [TW_ROLLUP_SELF] = f->self_ns,
	        [TW_ROLLUP_CPU] = f->cpu_ns,
	        [TW_ROLLUP_WAITING] = f->cpu_ns < 0 ? -1 : waiting,
	        [TW_ROLLUP_CALLS] = f->count > INT64_MAX ? INT64_MAX : (int64_t)f->count,
	        [TW_ROLLUP_CALL] = f->count ? (int64_t)((uint64_t)f->sum_ns / f->count) : -1};

	return values[m];
}

TW_ORDER_BY(by_self, struct tw_rollup_fact, TW_FALLING(self_ns), TW_RISING(method))

TW_ORDER_BY(by_method, struct tw_rollup_fact, TW_RISING(method))

/* Their calls can be nested, so only self times can be added. */
static struct tw_rollup_fact rest_of(const struct tw_rollup_fact *facts, size_t n)
{
	struct tw_rollup_fact rest = {.method = TW_ROLLUP_OTHER, .cpu_ns = -1};

	for (size_t i = 0; i < n; i++) {
		rest.count += facts[i].count;
		rest.self_ns = tw_sketch_sum(rest.self_ns, facts[i].self_ns);
	}
	rest.total_ns = rest.sum_ns = rest.self_ns;
	return rest;
}

size_t tw_rollup_bound(struct tw_rollup_fact *facts, size_t n)
{
	if (n > TW_ROLLUP_METHODS_MAX) {
		TW_SORT(facts, n, by_self);
		facts[TW_ROLLUP_METHODS_MAX - 1] =
		        rest_of(facts + TW_ROLLUP_METHODS_MAX - 1, n - TW_ROLLUP_METHODS_MAX + 1);
		n = TW_ROLLUP_METHODS_MAX;
	}
	TW_SORT(facts, n, by_method);
	return n;
}

static uint64_t not_below_0(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

void tw_rollup_write_facts(const struct tw_rollup_fact *facts, size_t n, struct tw_buf *out)
{
	(void)tw_buf_add_varint(out, n);
	for (size_t i = 0; i < n; i++) {
		const struct tw_rollup_fact *f = &facts[i];
		const uint64_t numbers[FACT_NUMBERS] = {f->count, not_below_0(f->total_ns),
		        not_below_0(f->self_ns), not_below_0(f->sum_ns),
		        f->cpu_ns < 0 ? 0 : (uint64_t)tw_sum_ns(f->cpu_ns, 1)};

		(void)tw_buf_add_u64le(out, f->method);
		for (int k = 0; k < FACT_NUMBERS; k++)
			(void)tw_buf_add_varint(out, numbers[k]);
	}
}

static bool read_fact(const uint8_t **p, const uint8_t *end, struct tw_rollup_fact *ret)
{
	uint64_t numbers[FACT_NUMBERS];

	if (end - *p < 8)
		return false;
	ret->method = tw_u64le(*p);
	*p += 8;
	for (int k = 0; k < FACT_NUMBERS; k++)
		if (!tw_get_varint(p, end, &numbers[k]) || (k > 0 && numbers[k] > INT64_MAX))
			return false;
	ret->count = numbers[0];
	ret->total_ns = (int64_t)numbers[1];
	ret->self_ns = (int64_t)numbers[2];
	ret->sum_ns = (int64_t)numbers[3];
	ret->cpu_ns = (int64_t)numbers[4] - 1;
	return true;
}

bool tw_rollup_next_fact(
        const uint8_t **p, const uint8_t *end, uint64_t *n, struct tw_rollup_fact *ret)
{
	if (*n == UINT64_MAX && !tw_get_varint(p, end, n)) {
		*p = NULL;
		return false;
	}
	if (*n == 0)
		return false;
	--*n;
	*ret = (struct tw_rollup_fact){.method = 0};
	if (!read_fact(p, end, ret)) {
		*p = NULL;
		return false;
	}
	return true;
}

void tw_rollup_write_thread(
        struct tw_str name, const struct tw_rollup_fact *facts, size_t n, struct tw_buf *out)
{
	(void)tw_buf_add_varint(out, name.len);
	(void)tw_buf_add_str(out, name);
	tw_rollup_write_facts(facts, n, out);
}

bool tw_rollup_next_thread(const uint8_t **p, const uint8_t *end, struct tw_str *ret)
{
	uint64_t len;

	if (*p == end)
		return false;
	if (!tw_get_varint(p, end, &len) || len > (uint64_t)(end - *p)) {
		*p = NULL;
		return false;
	}
	*ret = (struct tw_str){(const char *)*p, len};
	*p += len;
	return true;
}

/* --- collecting --- */

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT,
	        "the rollups are damaged; `tracewell rollup --rebuild` makes them again");
}

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, "too many rollups for one response; narrow the filter");
}

static bool is_wanted(const struct tw_rollup *r, uint64_t id)
{
	return !r->only ||
	       (r->n_only && bsearch(&id, r->only, r->n_only, sizeof id, tw_by_u64) != NULL);
}

/* The id's slot, or the one where it belongs. */
static uint32_t slot_of(const struct tw_rollup *r, uint64_t id)
{
	uint32_t at = (uint32_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (2 * r->cap - 1);

	while (r->slots[at] && r->methods[r->slots[at] - 1].id != id)
		at = (at + 1) & (2 * r->cap - 1);
	return at;
}

/* Makes space for one more; old tables, each half as large, stay in the arena. */
static bool grow(struct tw_rollup *r)
{
	if (r->n < r->cap)
		return true;
	if (!TW_WIDEN_FROM(METHODS_FIRST, r->arena, r->methods, r->n, r->cap, r->slots))
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		r->slots[slot_of(r, r->methods[i].id)] = i + 1;
	return true;
}

static struct tw_rollup_method *method_of(struct tw_rollup *r, uint64_t id)
{
	uint32_t at;

	if (!grow(r))
		return NULL;
	at = slot_of(r, id);
	if (!r->slots[at]) {
		r->methods[r->n] = (struct tw_rollup_method){.id = id};
		r->slots[at] = ++r->n;
	}
	return &r->methods[r->slots[at] - 1];
}

static bool add_piece(struct tw_rollup *r, struct tw_rollup_method *of, enum tw_rollup_metric m,
        const struct tw_rollup_piece *piece)
{
	struct tw_rollup_piece *p = tw_arena_alloc(r->arena, 1, sizeof *p);

	if (!p)
		return false;
	*p = *piece;
	p->next = of->pieces[m];
	of->pieces[m] = p;
	return true;
}

static bool add_fact(struct tw_rollup *r, const char *trace_id, const struct tw_rollup_fact *f)
{
	struct tw_rollup_method *of = method_of(r, f->method);
	bool fits = of != NULL;

	for (unsigned m = 0; fits && m < TW_ROLLUP_METRICS; m++) {
		const struct tw_rollup_piece one = {
		        .value = tw_rollup_value(f, m), .worst = trace_id};

		if ((r->metrics >> m & 1) && one.value >= 0)
			fits = add_piece(r, of, m, &one);
	}
	return fits;
}

enum tw_status tw_rollup_add_facts(
        struct tw_rollup *r, const char *trace_id, const uint8_t *p, size_t n, struct tw_err *err)
{
	const uint8_t *end = p + n;
	struct tw_rollup_fact f;
	uint64_t facts;

	if (!tw_get_varint(&p, end, &facts))
		return damaged(err);
	for (uint64_t i = 0; i < facts; i++) {
		if (!read_fact(&p, end, &f))
			return damaged(err);
		if (is_wanted(r, f.method) && !add_fact(r, trace_id, &f))
			return no_memory(err);
	}
	return TW_OK;
}

enum tw_status tw_rollup_add_part(struct tw_rollup *r, enum tw_rollup_metric m, const uint8_t *p,
        size_t n, struct tw_err *err)
{
	const uint8_t *end = p + n;

	while (p < end) {
		struct tw_rollup_piece piece = {0};
		struct tw_rollup_method *of;
		uint64_t id, len;

		if (end - p < 8)
			return damaged(err);
		id = tw_u64le(p);
		p += 8;
		if (!tw_get_varint(&p, end, &len) || len < TW_ROLLUP_ID ||
		        len > (uint64_t)(end - p))
			return damaged(err);
		piece.worst = (const char *)p;
		piece.at = p + TW_ROLLUP_ID;
		piece.end = p += len;
		if (!is_wanted(r, id))
			continue;
		of = method_of(r, id);
		if (!of || !add_piece(r, of, m, &piece))
			return no_memory(err);
	}
	return TW_OK;
}

/* --- summing --- */

static void take_worst(struct tw_rollup_worst *w, const char *id, int64_t value)
{
	if (w->trace_id && (value < w->value || (value == w->value &&
	                                                memcmp(id, w->trace_id, TW_ROLLUP_ID) > 0)))
		return;
	*w = (struct tw_rollup_worst){value, id};
}

/* The sketch's maximum is the fourth number of its head, and that of its worst trace. */
static bool add_sketch(
        const struct tw_rollup_piece *p, struct tw_sketch *s, struct tw_rollup_worst *w)
{
	const uint8_t *at = p->at;
	const uint8_t *head = p->at;
	uint64_t max = 0;

	for (int i = 0; i < 4; i++) /* n, sum, min, max */
		if (!tw_get_varint(&head, p->end, &max))
			return false;
	if (!tw_sketch_merge(s, &at, p->end))
		return false;
	take_worst(w, p->worst, (int64_t)max);
	return true;
}

enum tw_status tw_rollup_sum(const struct tw_rollup_method *of, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_rollup_worst *w, struct tw_err *err)
{
	for (const struct tw_rollup_piece *p = of->pieces[m]; p; p = p->next) {
		if (!p->at) {
			tw_sketch_add(s, p->value);
			take_worst(w, p->worst, p->value);
		} else if (!add_sketch(p, s, w)) {
			return damaged(err);
		}
	}
	return TW_OK;
}

TW_ORDER_BY(methods_by_id, struct tw_rollup_method, TW_RISING(id))

static void sort_methods(struct tw_rollup *r)
{
	if (r->n == 0)
		return;
	TW_SORT(r->methods, r->n, methods_by_id);
	memset(r->slots, 0, 2 * r->cap * sizeof *r->slots);
	for (uint32_t i = 0; i < r->n; i++)
		r->slots[slot_of(r, r->methods[i].id)] = i + 1;
}

enum tw_status tw_rollup_write_part(struct tw_rollup *r, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_buf *out, struct tw_err *err)
{
	struct tw_buf one;
	enum tw_status st = TW_OK;

	sort_methods(r);
	tw_buf_init(&one, 1 << 20);
	for (uint32_t i = 0; st == TW_OK && i < r->n; i++) {
		struct tw_rollup_worst worst = {0};

		tw_sketch_clear(s);
		st = tw_rollup_sum(&r->methods[i], m, s, &worst, err);
		if (st != TW_OK || !worst.trace_id)
			continue;
		tw_buf_clear(&one);
		tw_sketch_write(s, &one);
		(void)tw_buf_add_u64le(out, r->methods[i].id);
		(void)tw_buf_add_varint(out, TW_ROLLUP_ID + one.len);
		(void)tw_buf_add(out, worst.trace_id, TW_ROLLUP_ID);
		(void)tw_buf_add(out, one.data, one.len);
	}
	tw_sketch_clear(s);
	if (st == TW_OK && (tw_buf_status(&one) != TW_OK || tw_buf_status(out) != TW_OK))
		st = tw_oom(err);
	tw_buf_done(&one);
	return st;
}

/* --- heads of cells ---
 *
 * Stored form: the sketch, then a trace id for each bucket in use.
 */

void tw_rollup_head_clear(struct tw_rollup_head *h)
{
	if (h->lengths.n)
		memset(h->ids[h->lengths.first], 0,
		        (size_t)(h->lengths.last - h->lengths.first + 1) * TW_ROLLUP_ID);
	tw_sketch_clear(&h->lengths);
}

static void keep(struct tw_rollup_head *h, uint32_t bucket, const char *id)
{
	char *there = h->ids[bucket];

	if (!there[0] || memcmp(id, there, TW_ROLLUP_ID) < 0)
		memcpy(there, id, TW_ROLLUP_ID);
}

void tw_rollup_head_add(struct tw_rollup_head *h, const char *trace_id, int64_t duration_ns)
{
	tw_sketch_add(&h->lengths, duration_ns);
	keep(h, tw_bucket_of(duration_ns), trace_id);
}

void tw_rollup_head_add_bucket(
        struct tw_rollup_head *h, const char *trace_id, const struct tw_sketch_bucket *b)
{
	if (b->n == 0 || b->bucket >= TW_BUCKETS)
		return;
	tw_sketch_add_bucket(&h->lengths, b);
	keep(h, b->bucket, trace_id);
}

void tw_rollup_head_write(const struct tw_rollup_head *h, struct tw_buf *out)
{
	const struct tw_sketch *s = &h->lengths;

	tw_sketch_write_pairs(s, out);
	for (uint32_t i = s->first; s->n && i <= s->last; i++)
		if (s->counts[i])
			(void)tw_buf_add(out, h->ids[i], TW_ROLLUP_ID);
}

/* Merges the ids of the buckets of a stored sketch that tw_sketch_merge has validated. */
static bool merge_ids(
        struct tw_rollup_head *h, const uint8_t *sketch, const uint8_t *ids, const uint8_t *end)
{
	uint64_t n_buckets = 0, bucket = 0, skipped;

	for (int i = 0; i < 5; i++) /* n, sum, min, max, buckets */
		if (!tw_get_varint(&sketch, ids, &n_buckets))
			return false;
	if (n_buckets > (uint64_t)(end - ids) / TW_ROLLUP_ID)
		return false;
	for (uint64_t i = 0; i < n_buckets; i++, ids += TW_ROLLUP_ID) {
		uint64_t step;

		if (!tw_get_varint(&sketch, end, &step) || !tw_get_varint(&sketch, end, &skipped))
			return false;
		bucket += step;
		if (bucket >= TW_BUCKETS || !ids[0])
			return false;
		keep(h, (uint32_t)bucket, (const char *)ids);
	}
	return true;
}

enum tw_status tw_rollup_head_merge(
        struct tw_rollup_head *h, const uint8_t *p, size_t n, struct tw_err *err)
{
	const uint8_t *ids = p;

	if (n == 0 || (tw_sketch_merge(&h->lengths, &ids, p + n) && merge_ids(h, p, ids, p + n)))
		return TW_OK;
	return tw_fail(err, TW_CORRUPT,
	        "the rollups are damaged; `tracewell rollup --rebuild` makes them again");
}

const char *tw_rollup_head_exemplar(const struct tw_rollup_head *h, int64_t duration_ns)
{
	const struct tw_sketch *s = &h->lengths;
	uint32_t at = tw_bucket_of(duration_ns);

	if (s->n == 0)
		return NULL;
	at = at < s->first ? s->first : at > s->last ? s->last : at;
	for (uint32_t i = at; i <= s->last; i++)
		if (s->counts[i])
			return h->ids[i];
	return h->ids[s->last];
}

enum tw_status tw_rollup_fail_too_large(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "too many rollups for one response; narrow the filter or the time range");
}

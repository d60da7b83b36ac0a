#include "server/fleet/found.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/lookup.h"
#include "decoder/base/sum.h"

/* --- encoding of one trace --- */

enum { PARTIAL = 1, FIGURES = 2 };

void tw_found_write(const struct tw_found *f, struct tw_buf *out)
{
	const bool figures = f->frames || f->initial_ns || f->full_ns;

	(void)tw_buf_add_varint(out, (f->partial ? PARTIAL : 0) | (figures ? FIGURES : 0));
	if (figures) {
		(void)tw_buf_add_varint(out, f->frames);
		(void)tw_buf_add_varint(out, f->slow_frames);
		(void)tw_buf_add_varint(out, f->frozen_frames);
		(void)tw_buf_add_varint(out, (uint64_t)f->initial_ns);
		(void)tw_buf_add_varint(out, (uint64_t)f->full_ns);
	}
	for (uint32_t i = 0; i < f->n; i++) {
		const struct tw_found_rule *r = &f->rules[i];

		(void)tw_buf_add_varint(out, r->id.len);
		(void)tw_buf_add_str(out, r->id);
		(void)tw_buf_add_varint(out, r->found);
		(void)tw_buf_add_varint(out, (uint64_t)r->ns);
		(void)tw_buf_add_varint(out, (uint64_t)r->main_ns);
		(void)tw_buf_add_varint(out, (uint64_t)r->max_ns);
		(void)tw_buf_add_varint(out, r->n);
		for (uint32_t k = 0; k < r->n; k++) {
			(void)tw_buf_add_u64le(out, r->callers[k].method);
			(void)tw_buf_add_varint(out, r->callers[k].found);
			(void)tw_buf_add_varint(out, (uint64_t)r->callers[k].ns);
			(void)tw_buf_add_varint(out, (uint64_t)r->callers[k].max_ns);
		}
	}
}

struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct bytes *b, uint64_t most)
{
	uint64_t v = 0;

	if (!b->bad && (!tw_get_varint(&b->p, b->end, &v) || v > most))
		b->bad = true;
	return b->bad ? 0 : v;
}

static int64_t take_ns(struct bytes *b)
{
	return (int64_t)take(b, INT64_MAX);
}

static void read_caller(struct bytes *b, struct tw_found_caller *c)
{
	if (b->bad || b->end - b->p < 8) {
		b->bad = true;
		return;
	}
	c->method = tw_u64le(b->p);
	b->p += 8;
	c->found = take(b, UINT64_MAX);
	c->ns = take_ns(b);
	c->max_ns = take_ns(b);
}

static void read_rule(struct bytes *b, struct tw_found_rule *r)
{
	r->id.len = (size_t)take(b, TW_DETECT_ID_BYTES);
	if (b->bad || (size_t)(b->end - b->p) < r->id.len) {
		b->bad = true;
		return;
	}
	r->id.ptr = (const char *)b->p;
	b->p += r->id.len;
	r->found = take(b, UINT64_MAX);
	r->ns = take_ns(b);
	r->main_ns = take_ns(b);
	r->max_ns = take_ns(b);
	r->n = (uint32_t)take(b, TW_FOUND_CALLERS);
	for (uint32_t k = 0; !b->bad && k < r->n; k++)
		read_caller(b, &r->callers[k]);
}

enum tw_status tw_found_read(const uint8_t *p, size_t n, struct tw_found *ret, struct tw_err *err)
{
	struct bytes b = {p, p + n, n == 0};
	uint64_t flags;

	ret->n = 0;
	flags = take(&b, PARTIAL | FIGURES);
	ret->partial = flags & PARTIAL;
	ret->frames = ret->slow_frames = ret->frozen_frames = 0;
	ret->initial_ns = ret->full_ns = 0;
	if (flags & FIGURES) {
		ret->frames = take(&b, UINT64_MAX);
		ret->slow_frames = take(&b, UINT64_MAX);
		ret->frozen_frames = take(&b, UINT64_MAX);
		ret->initial_ns = take_ns(&b);
		ret->full_ns = take_ns(&b);
	}
	while (!b.bad && b.p < b.end && ret->n < TW_DETECT_RULES_MAX)
		read_rule(&b, &ret->rules[ret->n++]);
	if (b.bad || b.p < b.end)
		return tw_fail(err, TW_CORRUPT, "the stored findings of a trace are damaged");
	return TW_OK;
}

/* --- sums over traces --- */

static void take_worst(struct tw_found_sum *s, const struct tw_found_exemplar *e)
{
	int at = TW_FOUND_EXEMPLARS;

	while (at > 0 && (!s->worst[at - 1].trace_id[0] || s->worst[at - 1].ns < e->ns))
		at--;
	if (at == TW_FOUND_EXEMPLARS)
		return;
	memmove(&s->worst[at + 1], &s->worst[at],
	        (size_t)(TW_FOUND_EXEMPLARS - 1 - at) * sizeof *s->worst);
	s->worst[at] = *e;
}

void tw_found_merge(struct tw_found_sum *to, const struct tw_found_sum *more)
{
	to->traces += more->traces;
	to->found += more->found;
	to->ns = tw_sum_ns(to->ns, more->ns);
	to->main_ns = tw_sum_ns(to->main_ns, more->main_ns);
	if (more->max_ns > to->max_ns)
		to->max_ns = more->max_ns;
	for (int i = 0; i < TW_FOUND_EXEMPLARS && more->worst[i].trace_id[0]; i++)
		take_worst(to, &more->worst[i]);
}

static struct tw_found_sum sum_of(const char *trace_id, uint64_t found, int64_t ns, int64_t max_ns)
{
	struct tw_found_sum s = {.traces = 1, .found = found, .ns = ns, .max_ns = max_ns};

	memcpy(s.worst[0].trace_id, trace_id, TW_ROLLUP_ID);
	s.worst[0].ns = ns;
	return s;
}

static uint32_t slot_of(const struct tw_found_sums *s, uint32_t rule, uint64_t method)
{
	uint32_t at = (uint32_t)((method ^ method >> 32) * 31 + rule) & (2 * s->cap - 1);

	while (s->slots[at]) {
		const struct tw_found_cause *c = &s->causes[s->slots[at] - 1];

		if (c->rule == rule && c->method == method)
			break;
		at = (at + 1) & (2 * s->cap - 1);
	}
	return at;
}

static bool grow(struct tw_found_sums *s)
{
	if (!TW_WIDEN_FROM(256, s->arena, s->causes, s->n, s->cap, s->slots))
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		s->slots[slot_of(s, s->causes[i].rule, s->causes[i].method)] = i + 1;
	return true;
}

/* NULL: the arena is full. */
static struct tw_found_cause *cause_of(struct tw_found_sums *s, uint32_t rule, uint64_t method)
{
	uint32_t at;

	if (s->n == s->cap && !grow(s))
		return NULL;
	at = slot_of(s, rule, method);
	if (!s->slots[at]) {
		s->causes[s->n] = (struct tw_found_cause){.method = method, .rule = rule};
		s->slots[at] = ++s->n;
	}
	return &s->causes[s->slots[at] - 1];
}

static bool add_rule(struct tw_found_sums *s, const char *trace_id, const struct tw_found_rule *r)
{
	struct tw_found_sum one = sum_of(trace_id, r->found, r->ns, r->max_ns);
	const struct tw_detect_rule *of = TW_LOOKUP(s->of->rules, s->of->n, id, r->id);
	const uint32_t rule = of ? (uint32_t)(of - s->of->rules) : 0;

	if (!of)
		return true;
	one.main_ns = r->main_ns;
	tw_found_merge(&s->rules[rule], &one);
	for (uint32_t k = 0; k < r->n; k++) {
		const struct tw_found_caller *c = &r->callers[k];
		struct tw_found_cause *to = cause_of(s, rule, c->method);

		one = sum_of(trace_id, c->found, c->ns, c->max_ns);
		if (!to)
			return false;
		tw_found_merge(&to->sum, &one);
	}
	return true;
}

enum tw_status tw_found_add(
        struct tw_found_sums *s, const char *trace_id, const struct tw_found *f, struct tw_err *err)
{
	s->traces++;
	s->partial += f->partial;
	for (uint32_t i = 0; i < f->n; i++)
		if (!add_rule(s, trace_id, &f->rules[i]))
			return tw_fail(err, TW_TOO_LARGE,
			        "too many findings for one response; narrow the filter or the time "
			        "range");
	return TW_OK;
}

#include "server/query/query.h"

#include "decoder/base/order.h"
#include "decoder/base/sum.h"

struct listing {
	const struct tw_calls_query *q;
	const struct tw_deadline *deadline;
	struct tw_calls *out;
	uint64_t *buckets; /* TW_BUCKETS */
	uint64_t tid;      /* of the current thread */
};

TW_ORDER_BY(by_time, struct tw_call, TW_RISING(start_ns),
        TW_ORDER((int64_t)a->tid, (int64_t)b->tid), TW_RISING(depth))
TW_ORDER_BY(by_length, struct tw_call, TW_FALLING(dur_ns), by_time(a, b))

static int in_order(
        const struct tw_calls_query *q, const struct tw_call *a, const struct tw_call *b)
{
	return q->by_time ? by_time(a, b) : by_length(a, b);
}

/* --- the first calls: a heap with the last one on top --- */

static void swap(struct tw_call *a, struct tw_call *b)
{
	struct tw_call c = *a;

	*a = *b;
	*b = c;
}

static void sink(const struct listing *l)
{
	struct tw_call *h = l->out->list;

	for (uint32_t i = 0;;) {
		uint32_t last = i;

		for (uint32_t c = 2 * i + 1; c <= 2 * i + 2; c++)
			if (c < l->out->n_list && in_order(l->q, &h[c], &h[last]) > 0)
				last = c;
		if (last == i)
			return;
		swap(&h[i], &h[last]);
		i = last;
	}
}

static void offer(const struct listing *l, const struct tw_call *c)
{
	struct tw_call *h = l->out->list;
	uint32_t i;

	if (l->q->limit == 0)
		return;
	if (l->out->n_list == l->q->limit) {
		if (in_order(l->q, c, &h[0]) >= 0)
			return;
		h[0] = *c;
		sink(l);
		return;
	}
	i = l->out->n_list++;
	h[i] = *c;
	for (; i && in_order(l->q, &h[i], &h[(i - 1) / 2]) > 0; i = (i - 1) / 2)
		swap(&h[i], &h[(i - 1) / 2]);
}

/* --- neighbours --- */

static void keep_last(struct tw_call *at, bool *has, const struct tw_call *c)
{
	if (!*has || by_time(c, at) > 0)
		*at = *c;
	*has = true;
}

static void keep_first(struct tw_call *at, bool *has, const struct tw_call *c)
{
	if (!*has || by_time(c, at) < 0)
		*at = *c;
	*has = true;
}

static void meet(const struct listing *l, const struct tw_call *c)
{
	struct tw_calls *r = l->out;
	int side = by_time(c, l->q->around);
	bool here = c->tid == l->q->around->tid;

	if (side < 0) {
		keep_last(&r->before, &r->has_before, c);
		if (here)
			keep_last(&r->before_here, &r->has_before_here, c);
	} else if (side > 0) {
		keep_first(&r->after, &r->has_after, c);
		if (here)
			keep_first(&r->after_here, &r->has_after_here, c);
	} else {
		r->at = *c;
		r->has_at = true;
	}
}

static void add(const struct listing *l, const struct tw_slice *s)
{
	const struct tw_call c = {.tid = l->tid,
	        .start_ns = s->start_ns,
	        .dur_ns = s->dur_ns,
	        .cpu_ns = s->cpu_ns,
	        .depth = s->depth,
	        .method = s->method};
	struct tw_calls *r = l->out;

	r->n++;
	r->sum_ns = tw_sum_ns(r->sum_ns, s->dur_ns); /* nested calls count too */
	if (s->dur_ns > r->longest_ns)
		r->longest_ns = s->dur_ns;
	l->buckets[tw_bucket_of(s->dur_ns)]++;
	if (s->dur_ns >= l->q->min_ns && s->dur_ns <= l->q->max_ns) {
		r->listable++;
		offer(l, &c);
	}
	if (l->q->around)
		meet(l, &c);
}

static bool add_slices(void *arg, const struct tw_slice *s, size_t n)
{
	struct listing *l = arg;

	for (size_t i = 0; i < n; i++)
		if (l->q->method == TW_NO_METHOD || s[i].method == l->q->method)
			add(l, &s[i]);
	l->out->partial = l->out->partial || tw_deadline_passed(l->deadline);
	return !l->out->partial;
}

static int64_t quantile(const struct listing *l, unsigned percent)
{
	const uint64_t n = l->out->n;
	uint64_t rank = n / 100 * percent + (n % 100 * percent + 99) / 100;
	uint64_t below = 0;
	uint32_t at = 0;

	while (at + 1 < TW_BUCKETS && (below += l->buckets[at]) < rank)
		at++;
	return tw_bucket_ns(at) < l->out->longest_ns ? tw_bucket_ns(at) : l->out->longest_ns;
}

int64_t tw_calls_bar_from(uint32_t bar)
{
	uint32_t bucket = bar * TW_CALLS_STEPS;
	uint32_t octave = bucket < 2 * TW_BUCKET_STEPS ? 0 : (bucket >> TW_BUCKET_STEPS_LOG2) - 1;

	return (int64_t)(bucket - (octave << TW_BUCKET_STEPS_LOG2)) << octave;
}

enum tw_status tw_query_calls(struct tw_trace_file *f, const struct tw_calls_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_calls *ret,
        struct tw_err *err)
{
	const int64_t from = q->sel->ranged ? q->sel->from_ns : 0;
	const int64_t to = q->sel->ranged ? q->sel->to_ns : INT64_MAX;
	struct listing l = {.q = q, .deadline = deadline, .out = ret};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	enum tw_status st = tw_selection_check(f, q->sel, err);

	*ret = (struct tw_calls){
	        .list = tw_arena_alloc(a, (size_t)q->limit + 1, sizeof *ret->list)};
	l.buckets = tw_arena_zalloc(a, TW_BUCKETS, sizeof *l.buckets);
	if (st == TW_OK && (!ret->list || !l.buckets))
		st = tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && !ret->partial && i < n; i++) {
		l.tid = t[i].tid;
		if (t[i].slices && tw_selection_has(q->sel, &t[i]))
			st = tw_query_slices(f, t[i].thread_id, from, to, add_slices, &l, err);
	}
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < TW_BUCKETS; i++)
		ret->bars[i / TW_CALLS_STEPS] += l.buckets[i];
	ret->p50_ns = ret->n ? quantile(&l, 50) : 0;
	ret->p95_ns = ret->n ? quantile(&l, 95) : 0;
	TW_SORT(ret->list, ret->n_list, q->by_time ? by_time : by_length);
	return TW_OK;
}

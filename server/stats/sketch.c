/*
 * sketch.c - stored form: n, sum, min, max, number of buckets, then for each its distance from the
 * previous one and its count; all varints.  n is the sum of the counts, and is verified when read.
 *
 * With many buckets, RUNS and the number of runs are written instead, then for each run its
 * distance from the end of the previous one, its length - 1, the number of bytes per count, and the
 * counts: then a bucket costs an addition instead of two varints, so that adding sketches of many
 * numbers takes no longer than adding those of few.
 */
#include "server/stats/sketch.h"

#include <string.h>

void tw_sketch_clear(struct tw_sketch *s)
{
	if (s->n)
		memset(s->counts + s->first, 0, (s->last - s->first + 1) * sizeof s->counts[0]);
	s->n = 0;
	s->sum = s->min = s->max = 0;
}

/* Call before s->n is raised. */
static void widen(struct tw_sketch *s, uint32_t bucket)
{
	if (s->n == 0 || bucket < s->first)
		s->first = bucket;
	if (s->n == 0 || bucket > s->last)
		s->last = bucket;
}

static void bound(struct tw_sketch *s, int64_t min, int64_t max)
{
	if (s->n == 0 || min < s->min)
		s->min = min;
	if (s->n == 0 || max > s->max)
		s->max = max;
}

void tw_sketch_add(struct tw_sketch *s, int64_t value)
{
	int64_t v = value > 0 ? value : 0;
	uint32_t bucket = tw_bucket_of(v);

	widen(s, bucket);
	bound(s, v, v);
	s->counts[bucket]++;
	s->sum = tw_sketch_sum(s->sum, v);
	s->n++;
}

void tw_sketch_add_bucket(struct tw_sketch *s, const struct tw_sketch_bucket *b)
{
	if (b->n == 0 || b->bucket >= TW_BUCKETS)
		return;
	widen(s, b->bucket);
	bound(s, b->min, b->max);
	s->counts[b->bucket] += b->n;
	s->sum = tw_sketch_sum(s->sum, b->sum);
	s->n += b->n;
}

void tw_sketch_add_all(struct tw_sketch *s, const struct tw_sketch *other)
{
	if (other->n == 0)
		return;
	widen(s, other->first);
	bound(s, other->min, other->max);
	s->n += other->n;
	widen(s, other->last);
	s->sum = tw_sketch_sum(s->sum, other->sum);
	for (uint32_t i = other->first; i <= other->last; i++)
		s->counts[i] += other->counts[i];
}

static uint32_t used(const struct tw_sketch *s)
{
	uint32_t n = 0;

	for (uint32_t i = s->first; s->n && i <= s->last; i++)
		n += s->counts[i] != 0;
	return n;
}

/* Number of buckets from which runs are used; a gap of GAP empty buckets is cheaper than another
 * run. */
enum { RUNS = 1 << 16, RUNS_FROM = 16, GAP = 8 };

static void write_head(const struct tw_sketch *s, uint64_t buckets, struct tw_buf *out)
{
	const uint64_t head[] = {s->n, (uint64_t)s->sum, (uint64_t)s->min, (uint64_t)s->max};

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		(void)tw_buf_add_varint(out, head[i]);
	(void)tw_buf_add_varint(out, buckets);
}

void tw_sketch_write_pairs(const struct tw_sketch *s, struct tw_buf *out)
{
	uint32_t before = 0;

	write_head(s, used(s), out);
	for (uint32_t i = s->first; s->n && i <= s->last; i++) {
		if (!s->counts[i])
			continue;
		(void)tw_buf_add_varint(out, i - before);
		(void)tw_buf_add_varint(out, s->counts[i]);
		before = i;
	}
}

struct run {
	uint32_t first, last;
	uint64_t most; /* largest count of its buckets */
};

/* The first run from bucket `at` on, which is at most the last bucket in use. */
static struct run run_after(const struct tw_sketch *s, uint32_t at)
{
	struct run r = {0};

	while (at < s->last && !s->counts[at])
		at++;
	r.first = r.last = at;
	for (; at <= s->last && at - r.last <= GAP; at++) {
		if (!s->counts[at])
			continue;
		r.last = at;
		r.most = s->counts[at] > r.most ? s->counts[at] : r.most;
	}
	return r;
}

static uint8_t width_of(uint64_t most)
{
	return most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 4 : 8;
}

static void write_run(
        const struct tw_sketch *s, const struct run *r, uint32_t end_before, struct tw_buf *out)
{
	const uint8_t width = width_of(r->most);

	(void)tw_buf_add_varint(out, r->first - end_before);
	(void)tw_buf_add_varint(out, r->last - r->first);
	(void)tw_buf_add(out, &width, 1);
	for (uint32_t i = r->first; i <= r->last; i++) {
		uint8_t bytes[8];

		for (uint8_t k = 0; k < 8; k++)
			bytes[k] = (uint8_t)(s->counts[i] >> (8 * k));
		(void)tw_buf_add(out, bytes, width);
	}
}

void tw_sketch_write(const struct tw_sketch *s, struct tw_buf *out)
{
	uint32_t runs = 0, end_before = 0;

	if (used(s) < RUNS_FROM) {
		tw_sketch_write_pairs(s, out);
		return;
	}
	for (uint32_t at = s->first; at <= s->last; runs++)
		at = run_after(s, at).last + 1;
	write_head(s, RUNS + runs, out);
	for (uint32_t at = s->first; at <= s->last;) {
		const struct run r = run_after(s, at);

		write_run(s, &r, end_before, out);
		end_before = at = r.last + 1;
	}
}

/* Adds the buckets of a stored sketch with n numbers. */
static bool merge_buckets(
        struct tw_sketch *s, uint64_t n_buckets, uint64_t n, const uint8_t **p, const uint8_t *end)
{
	uint64_t bucket = 0, left = n;

	for (uint64_t i = 0; i < n_buckets; i++) {
		uint64_t step, count;

		if (!tw_get_varint(p, end, &step) || !tw_get_varint(p, end, &count) ||
		        step >= TW_BUCKETS - bucket || count == 0 || count > left)
			return false;
		bucket += step;
		left -= count;
		widen(s, (uint32_t)bucket);
		s->counts[bucket] += count;
		s->n += count;
	}
	return left == 0;
}

/* Adds n counts; returns their sum, or UINT64_MAX if that exceeds the limit of a sketch. */
static uint64_t add_counts(uint64_t *counts, uint64_t n, unsigned width, const uint8_t *p)
{
	uint64_t sum = 0;

	if (width == 1) { /* the usual case, which the compiler vectorises */
		for (uint64_t i = 0; i < n; i++) {
			counts[i] += p[i];
			sum += p[i];
		}
		return sum;
	}
	for (uint64_t i = 0; i < n; i++, p += width) {
		uint64_t count = 0;

		for (unsigned k = 0; k < width; k++)
			count |= (uint64_t)p[k] << (8 * k);
		counts[i] += count;
		sum = count > UINT64_MAX - sum ? UINT64_MAX : sum + count;
	}
	return sum;
}

struct written_run {
	uint64_t first, n;
	unsigned width;
};

static bool read_run(
        struct written_run *r, uint64_t end_before, const uint8_t **p, const uint8_t *end)
{
	uint64_t step, more;

	if (!tw_get_varint(p, end, &step) || !tw_get_varint(p, end, &more) || *p >= end ||
	        step >= TW_BUCKETS - end_before || more >= TW_BUCKETS - end_before - step)
		return false;
	*r = (struct written_run){end_before + step, more + 1, *(*p)++};
	return (r->width == 1 || r->width == 2 || r->width == 4 || r->width == 8) &&
	       r->n <= (uint64_t)(end - *p) / r->width;
}

static bool counts_any(const uint8_t *p, unsigned width)
{
	for (unsigned k = 0; k < width; k++)
		if (p[k])
			return true;
	return false;
}

/* The first and last counts of a run are not 0; otherwise it is damaged. */
static bool is_tight(const struct written_run *r, const uint8_t *p)
{
	return counts_any(p, r->width) && counts_any(p + (r->n - 1) * r->width, r->width);
}

static bool merge_runs(
        struct tw_sketch *s, uint64_t runs, uint64_t n, const uint8_t **p, const uint8_t *end)
{
	uint64_t end_before = 0, left = n;

	for (uint64_t i = 0; i < runs; i++) {
		struct written_run r;
		uint64_t sum;

		if (left == 0 || end_before >= TW_BUCKETS || !read_run(&r, end_before, p, end) ||
		        !is_tight(&r, *p))
			return false;
		sum = add_counts(s->counts + r.first, r.n, r.width, *p);
		*p += r.n * r.width;
		end_before = r.first + r.n;
		widen(s, (uint32_t)r.first); /* before any failure, so that clearing the sketch */
		s->n += sum < left ? sum : left; /* resets all added buckets */
		widen(s, (uint32_t)end_before - 1);
		if (sum > left || sum == 0)
			return false;
		left -= sum;
	}
	return left == 0;
}

bool tw_sketch_merge(struct tw_sketch *s, const uint8_t **p, const uint8_t *end)
{
	uint64_t head[5];

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		if (!tw_get_varint(p, end, &head[i]))
			return false;
	if (head[0] == 0)
		return head[4] == 0;
	if (head[0] > UINT64_MAX - s->n || head[1] > INT64_MAX || head[2] > head[3] ||
	        head[3] > INT64_MAX)
		return false;
	bound(s, (int64_t)head[2], (int64_t)head[3]);
	s->sum = tw_sketch_sum(s->sum, (int64_t)head[1]);
	return head[4] < RUNS ? merge_buckets(s, head[4], head[0], p, end)
	                      : merge_runs(s, head[4] - RUNS, head[0], p, end);
}

static uint64_t rank_of(uint64_t n, unsigned percent)
{
	uint64_t rank = n / 100 * percent + (n % 100 * percent + 99) / 100;

	return rank ? rank : 1;
}

int64_t tw_sketch_rank(const struct tw_sketch *s, uint64_t rank)
{
	uint64_t seen = 0;
	uint32_t i = s->first;
	int64_t v;

	if (s->n == 0)
		return 0;
	for (seen = s->counts[i]; seen < rank && i < s->last; seen += s->counts[i])
		i++;
	v = tw_bucket_ns(i);
	return v < s->min ? s->min : v > s->max ? s->max : v;
}

int64_t tw_sketch_quantile(const struct tw_sketch *s, unsigned percent)
{
	return tw_sketch_rank(s, rank_of(s->n, percent));
}

int64_t tw_sketch_mean(const struct tw_sketch *s)
{
	return s->n ? (int64_t)((uint64_t)s->sum / s->n) : 0;
}

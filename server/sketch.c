/*
 * sketch.c - written form: n, sum, min, max, number of buckets, then for each its distance from
 * the one before and its count; all varints.  n is the sum of the counts, and read as a check.
 */
#include "sketch.h"

#include <string.h>

void tw_sketch_init(struct tw_sketch *s)
{
	memset(s, 0, sizeof *s);
}

void tw_sketch_clear(struct tw_sketch *s)
{
	if (s->n)
		memset(s->counts + s->first, 0, (s->last - s->first + 1) * sizeof s->counts[0]);
	s->n = 0;
	s->sum = s->min = s->max = 0;
}

/* Before s->n is raised. */
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

void tw_sketch_write(const struct tw_sketch *s, struct tw_buf *out)
{
	const uint64_t head[] = {
	        s->n, (uint64_t)s->sum, (uint64_t)s->min, (uint64_t)s->max, used(s)};
	uint32_t before = 0;

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		(void)tw_buf_add_varint(out, head[i]);
	for (uint32_t i = s->first; s->n && i <= s->last; i++) {
		if (!s->counts[i])
			continue;
		(void)tw_buf_add_varint(out, i - before);
		(void)tw_buf_add_varint(out, s->counts[i]);
		before = i;
	}
}

/* The buckets of one that counts n in all. */
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
	return merge_buckets(s, head[4], head[0], p, end);
}

static uint64_t rank_of(uint64_t n, unsigned percent)
{
	uint64_t rank = n / 100 * percent + (n % 100 * percent + 99) / 100;

	return rank ? rank : 1;
}

int64_t tw_sketch_quantile(const struct tw_sketch *s, unsigned percent)
{
	uint64_t rank = rank_of(s->n, percent);
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

int64_t tw_sketch_mean(const struct tw_sketch *s)
{
	return s->n ? (int64_t)((uint64_t)s->sum / s->n) : 0;
}

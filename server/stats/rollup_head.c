/* rollup_head.c - stored form: the sketch, then a trace id for each bucket in use. */
#include <string.h>

#include "server/stats/rollup.h"

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

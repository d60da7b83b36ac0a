/*
 * builder_calls.c - stores many calls of one track at once.
 *
 * The calls of a block are checked together: if all are sane, end in order and fit records, they
 * are stored without further checks.  The loops have no branches, so that newer processors handle
 * several calls per instruction.
 */
#include "decoder/base/newer_cpu.h"
#include "decoder/trace/builder_internal.h"

struct block {
	const int64_t *start_ns, *dur_ns;
	const uint32_t *syms;
	uint64_t n, offset;
	uint32_t record_bytes;
};

/* Numbers are combined by OR: a comparison then finds a bit that none of them may have. */
static inline bool are_plain(
        const struct tw_builder *b, const struct track *t, const struct block *c)
{
	const uint64_t base_ns = (uint64_t)t->records.base_ns;
	const uint64_t max_sym =
	        b->n_symbols < TW_RECORD_MAX_SYM ? b->n_symbols : TW_RECORD_MAX_SYM;
	uint64_t early =
	        (uint64_t)c->start_ns[0] + (uint64_t)c->dur_ns[0] - (uint64_t)t->last_end_ns;
	uint64_t starts = 0;
	uint64_t durations = 0;
	uint64_t negative = 0; /* if its highest bit is set */

	for (uint64_t i = 0; i < c->n; i++) {
		const uint64_t start = (uint64_t)c->start_ns[i];
		const uint64_t dur = (uint64_t)c->dur_ns[i];

		starts |= start - base_ns;
		durations |= dur | (dur + 1);
		negative |= start | ((uint64_t)c->syms[i] - 1) | (max_sym - c->syms[i]);
	}
	for (uint64_t i = 1; i < c->n; i++)
		early |= (uint64_t)c->start_ns[i] + (uint64_t)c->dur_ns[i] -
		         (uint64_t)c->start_ns[i - 1] - (uint64_t)c->dur_ns[i - 1];
	if (!t->unordered)
		negative |= early;
	return starts < TW_RECORD_SPAN && durations <= TW_RECORD_WIDE && negative >> 63 == 0;
}

static inline void store(struct tw_builder *b, struct track *t, const struct block *c)
{
	const struct records records = t->records;
	struct record *at = records.at + (t->n - t->n_spilled);
	int64_t first_ns = t->first_ns;
	int64_t end_ns = t->last_end_ns;

	for (uint64_t i = 0; i < c->n; i++) {
		const struct call call = {c->start_ns[i], c->dur_ns[i], c->syms[i]};

		at[i] = tw_record_of(
		        &records, &call, (uint32_t)c->offset + (uint32_t)i * c->record_bytes);
	}
	for (uint64_t i = 0; i < c->n; i++) {
		const int64_t call_end_ns = c->start_ns[i] + c->dur_ns[i];

		first_ns = c->start_ns[i] < first_ns ? c->start_ns[i] : first_ns;
		end_ns = call_end_ns > end_ns ? call_end_ns : end_ns;
	}
	for (uint64_t i = 0; i < c->n; i++)
		b->symbols[c->syms[i] - 1].count++;
	t->n += c->n;
	t->first_ns = first_ns;
	t->last_end_ns = end_ns;
	b->slices += c->n;
	if (end_ns > b->last_ns)
		b->last_ns = end_ns;
}

/* Whether the track takes calls like those before, which have no CPU time. */
static bool is_open(const struct track *t)
{
	return t->n > 0 && !t->records.cpu &&
	       t->records.base_ns <= TW_MAX_NS - (int64_t)TW_RECORD_SPAN;
}

TW_NEWER_CPU bool tw_builder_take_calls(
        struct tw_builder *b, struct track *t, const struct tw_call_batch *c, size_t from, size_t n)
{
	const uint64_t left_in_all = b->limits.max_slices - b->slices;
	const uint64_t left = left_in_all < t->cap - t->n ? left_in_all : t->cap - t->n;
	const struct block block = {.start_ns = c->start_ns + from,
	        .dur_ns = c->dur_ns + from,
	        .syms = c->syms + from,
	        .n = n,
	        .offset = c->offset + from * c->record_bytes,
	        .record_bytes = c->record_bytes};

	if (n > left || !is_open(t) || block.offset + n * block.record_bytes >= TW_OFFSET_UNKNOWN ||
	        !are_plain(b, t, &block))
		return false;
	store(b, t, &block);
	return true;
}

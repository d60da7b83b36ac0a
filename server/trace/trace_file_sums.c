/* trace_file_sums.c - sums of a block's notes: computed when it is written, and read back.  They
 * are stored as notes are, one per kind, thread and (of some kinds) text: `value` is the number of
 * notes, the duration their total. */

#include "decoder/base/hash.h"
#include "decoder/base/sum.h"
#include "server/trace/note_keys.h"
#include "server/trace/trace_file_internal.h"

/* Texts are compared by address, as the builder stores each once.  A text that is stored twice has
 * two sums, which readers add. */
static bool same(const struct tw_note_row *sum, const struct tw_note_key *k)
{
	return sum->kind == k->kind && sum->thread_id == k->thread_id &&
	       sum->text.len == k->text.len && (!k->text.len || sum->text.ptr == k->text.ptr);
}

static void add_note(struct tw_note_row *sum, const struct tw_note_row *note)
{
	sum->value++;
	sum->dur_ns = tw_sum_ns(sum->dur_ns, note->dur_ns > 0 ? note->dur_ns : 0);
}

enum tw_status tw_notes_sum(
        const struct tw_note_row *rows, size_t n, struct tw_note_row *ret, size_t *ret_n)
{
	uint32_t mask = 15;
	uint16_t *slots; /* number of the sum; 0 free */
	size_t n_sums = 0;

	while (mask < 2 * n)
		mask = mask * 2 + 1;
	slots = tw_mem_zalloc((size_t)mask + 1, sizeof *slots);
	if (!slots)
		return TW_NOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct tw_note_key k = tw_note_key_of_sum(&rows[i]);
		uint32_t at = (uint32_t)tw_hash_id((uint64_t)k.kind << 32 | k.thread_id,
		        k.text.len ? (uintptr_t)k.text.ptr : 0);

		for (at &= mask; slots[at] && !same(&ret[slots[at] - 1], &k);)
			at = (at + 1) & mask;
		if (!slots[at]) {
			ret[n_sums++] = (struct tw_note_row){
			        .kind = k.kind, .thread_id = k.thread_id, .text = k.text};
			slots[at] = (uint16_t)n_sums;
		}
		add_note(&ret[slots[at] - 1], &rows[i]);
	}
	tw_mem_free(slots);
	*ret_n = n_sums;
	return TW_OK;
}

/* --- reading --- */

struct sum_reader {
	tw_note_sum_fn sum;
	void *arg;
};

static bool pass_sums(void *arg, uint64_t first, const struct tw_notes *sums)
{
	const struct sum_reader *t = arg;

	(void)first;
	for (size_t i = 0; i < sums->n; i++) {
		const struct tw_note_row *r = &sums->rows[i];
		const struct tw_note_sum sum = {
		        r->kind, r->thread_id, r->text, (uint64_t)r->value, r->dur_ns};

		if (r->kind != TW_NOTE_COUNT && !t->sum(t->arg, &sum))
			return false;
	}
	return true;
}

enum tw_status tw_trace_file_note_sums(struct tw_trace_file *f, uint64_t first, uint64_t last,
        tw_note_sum_fn each, void *arg, struct tw_err *err)
{
	const struct tw_note_query q = {
	        .after = first - 1, .until = last, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
	struct sum_reader t = {.sum = each, .arg = arg};

	return tw_trace_file_each_block(f, TW_BLOCK_SUMS, &q, pass_sums, &t, err);
}

static bool count(void *arg, const struct tw_note_sum *sum)
{
	uint64_t *counts = arg;

	counts[sum->kind] += sum->notes;
	return true;
}

enum tw_status tw_trace_file_note_counts(
        struct tw_trace_file *f, uint64_t ret[TW_NOTE_COUNT], struct tw_err *err)
{
	for (int i = 0; i < TW_NOTE_COUNT; i++)
		ret[i] = 0;
	return tw_trace_file_note_sums(f, 1, 0, count, ret, err);
}

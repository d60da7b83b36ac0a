#include "server/fleet/fleet_search.h"
#include "server/stats/search_index.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"

struct tw_search_pack { /* traces and threads of one row of the search index */
	int64_t number;
	struct tw_index_head head;
	bool *wanted; /* threads that match the query */
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "the index of these traces does not fit into memory; narrow the filter or the "
	        "time");
}

TW_ORDER_BY(longest_first, struct tw_search_found, TW_FALLING(max_ns), TW_RISING(trace_id),
        TW_RISING(thread), TW_RISING(which))

void tw_search_sort(struct tw_search *s)
{
	TW_SORT(s->found, s->n, longest_first);
	if (s->n > TW_SEARCH_HITS_MAX)
		s->n = TW_SEARCH_HITS_MAX;
}

static void take(void *arg, const struct tw_index_hit *hit)
{
	struct tw_search *s = arg;
	const struct tw_index_head *head = &s->pack->head;
	const struct tw_index_thread *thread = &head->threads[hit->thread];
	struct tw_search_found *f = &s->found[s->n];
	size_t len =
	        thread->name.len < TW_INDEX_THREAD_BYTES ? thread->name.len : TW_INDEX_THREAD_BYTES;

	if (!s->pack->wanted[hit->thread])
		return;
	s->matches++;
	*f = (struct tw_search_found){.is_main = thread->is_main,
	        .cell = (uint32_t)s->cell,
	        .which = (uint32_t)hit->which,
	        .max_ns = hit->max_ns};
	memcpy(f->trace_id, head->ids + (size_t)hit->trace * TW_INDEX_ID, TW_INDEX_ID);
	memcpy(f->thread, thread->name.ptr, len);
	if (++s->n == 2 * (size_t)TW_SEARCH_HITS_MAX)
		tw_search_sort(s);
}

static bool is_wanted(const struct tw_search *s, const struct tw_index_thread *t)
{
	return !s->thread || tw_str_eq(t->name, tw_str_of(s->thread)) ||
	       (t->is_main && strcmp(s->thread, "main") == 0);
}

static enum tw_status read_pack(struct tw_search *s, const struct tw_index_row *row, bool one,
        struct tw_search_pack *ret, struct tw_str *ret_rest, struct tw_err *err)
{
	const char *copy = tw_arena_str(s->arena, row->data); /* heads outlive the row */
	enum tw_status st;

	if (!copy)
		return no_memory(err);
	ret->number = row->pack;
	st = tw_index_read_head(
	        (struct tw_str){copy, row->data.len}, one, s->arena, &ret->head, ret_rest, err);
	if (st != TW_OK)
		return st;
	ret->wanted = tw_arena_alloc(s->arena, (size_t)ret->head.n_threads + 1, sizeof(bool));
	if (!ret->wanted)
		return no_memory(err);
	for (uint32_t i = 0; i < ret->head.n_threads; i++)
		ret->wanted[i] = is_wanted(s, &ret->head.threads[i]);
	return TW_OK;
}

/* Binary search: heads were added by rising numbers. */
static const struct tw_search_pack *find_pack(const struct tw_search *s, int64_t number)
{
	size_t at;

	TW_BISECT(at, s->n_packs, s->packs[at].number < number);
	return at < s->n_packs && s->packs[at].number == number ? &s->packs[at] : NULL;
}

enum tw_status tw_search_row(
        void *arg, size_t cell, unsigned slot, const struct tw_index_row *row, struct tw_err *err)
{
	struct tw_search *s = arg;
	const struct tw_index_scan scan = {s->numbers, s->n_methods, s->over_ns, take, s};
	struct tw_str rest = row->data;
	enum tw_status st;

	if (cell + 1 != s->cell_next) {
		tw_arena_reset(s->arena);
		s->cell = cell;
		s->cell_next = cell + 1;
		s->packs = NULL;
		s->n_packs = 0;
		s->cap_packs = 0;
	}
	if (slot == TW_INDEX_HEAD) {
		if (!TW_GROW(s->arena, s->packs, s->n_packs, s->cap_packs))
			return no_memory(err);
		return read_pack(s, row, false, &s->packs[s->n_packs++], &rest, err);
	}
	if (slot == TW_INDEX_ONE) {
		struct tw_search_pack *one = tw_arena_alloc(s->arena, 1, sizeof *one);

		st = one ? read_pack(s, row, true, one, &rest, err) : no_memory(err);
		s->pack = one;
		return st == TW_OK ? tw_index_scan(&scan, rest, true, &one->head, err) : st;
	}
	s->pack = find_pack(s, row->pack);
	if (!s->pack)
		return tw_fail(err, TW_CORRUPT,
		        "the search index is damaged; rebuild it with `tracewell rollup "
		        "--rebuild`");
	return tw_index_scan(&scan, row->data, false, &s->pack->head, err);
}

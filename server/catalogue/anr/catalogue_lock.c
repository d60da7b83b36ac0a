/* catalogue_lock.c - lock waits over many traces. */
#include <string.h>
#include <time.h>

#include "decoder/base/order.h"
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/stats/anr_rollup.h"

/* Kinds of waits (catalogue_anr_rollup_feed.c). */
enum { OF_CALLS = 1 | 2, OF_REPORTS = 4 | 8, OF_MAIN = 2 | 8, OF_ALL = 15 };
enum { DAY_BYTES = 32 };
#define TOTAL_MAX INT64_C(9000000000000000000)

static unsigned kinds_of(const struct tw_lock_query *q)
{
	const unsigned threads = q->others ? OF_ALL : OF_MAIN;

	return threads & (q->dumps == 0 ? OF_ALL : q->dumps == 1 ? OF_CALLS : OF_REPORTS);
}

/* Separated by commas. */
static const char *monitors_of(const struct tw_anr_rollup_part *p, struct tw_arena *a)
{
	const char *all = p->n_monitors ? p->monitors[0] : "";

	for (uint32_t i = 1; all && i < p->n_monitors; i++)
		all = tw_arena_printf(a, "%s,%s", all, p->monitors[i]);
	return all;
}

/* Whether the longest wait of all is one of its trace's calls. */
static bool is_in_calls(
        const struct tw_anr_rollup *t, unsigned kinds, const struct tw_anr_rollup_sum *all)
{
	for (const struct tw_anr_rollup_part *p = t->parts; p; p = p->next)
		if ((p->bit & kinds & OF_CALLS) && p->sum.max_ns == all->max_ns &&
		        strcmp(p->sum.worst, all->worst) == 0)
			return true;
	return false;
}

/* *ret_any false: there were no such waits.  The caller sets the method or the row's dimension. */
static enum tw_status row_of(const struct tw_anr_rollup *t, unsigned kinds, struct tw_arena *a,
        struct tw_lock_row *ret, bool *ret_any, struct tw_err *err)
{
	const struct tw_anr_rollup_part *p = tw_anr_rollup_select(a, t, kinds);

	if (!p)
		return tw_anr_fail_too_large(err);
	*ret_any = p->mask != 0;
	*ret = (struct tw_lock_row){.owner = p->owned ? t->name : "",
	        .monitors = monitors_of(p, a),
	        .traces = p->sum.traces,
	        .anrs = tw_anr_rollup_traces(t, kinds & OF_REPORTS),
	        .versions = tw_distinct_count(&p->sets[TW_ANR_ROLLUP_VERSIONS]),
	        .waits = p->sum.waits,
	        .timed = p->sum.timed,
	        .total_ns = p->sum.total_ns < TOTAL_MAX ? p->sum.total_ns : TOTAL_MAX,
	        .max_ns = p->sum.max_ns,
	        .first_ms = p->sum.first_ms,
	        .last_ms = p->sum.last_ms,
	        .holder = p->sum.holder,
	        .worst = p->sum.worst,
	        .worst_in_calls = is_in_calls(t, kinds, &p->sum)};
	return ret->monitors ? TW_OK : tw_anr_fail_too_large(err);
}

/* --- ranking --- */

struct ranked {
	uint64_t rank;
	const char *name;
	struct tw_lock_row row;
};

static uint64_t rank_of(const struct tw_lock_row *r, const struct tw_lock_query *q)
{
	const uint64_t ranks[] = {[TW_LOCK_BY_TOTAL] = (uint64_t)r->total_ns,
	        [TW_LOCK_BY_MAX] = (uint64_t)r->max_ns,
	        [TW_LOCK_BY_TRACES] = r->traces,
	        [TW_LOCK_BY_WAITS] = r->waits};

	return ranks[q->sort];
}

TW_ORDER_BY(by_rank, struct ranked, TW_FALLING(rank), TW_FALLING(row.waits), TW_RISING(name))

static enum tw_status rank(const struct tw_anr_rollups *all, const struct tw_lock_query *q,
        struct ranked **ret, size_t *ret_n, struct tw_err *err)
{
	struct ranked *list = tw_arena_alloc(all->arena, all->n + 1, sizeof *list);
	enum tw_status st = TW_OK;
	size_t n = 0;

	if (!list)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; st == TW_OK && i < all->n; i++) {
		bool any = false;

		st = row_of(all->list[i], kinds_of(q), all->arena, &list[n].row, &any, err);
		list[n].name = all->list[i]->name;
		list[n].rank = rank_of(&list[n].row, q);
		n += any;
	}
	if (st == TW_OK && n)
		TW_SORT(list, n, by_rank);
	*ret = list;
	*ret_n = n < TW_LOCK_ROWS_MAX ? n : TW_LOCK_ROWS_MAX;
	return st;
}

enum tw_status tw_catalogue_locks(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_query *q, struct tw_arena *a, struct tw_lock_row **ret, size_t *ret_n,
        struct tw_err *err)
{
	const struct tw_anr_rollup_query query = {project_id, q->filter, TW_ANR_ROLLUP_LOCKS,
	        q->name[0] ? q->name : NULL, NULL, TW_ANR_ROLLUP_BY_NAME};
	struct tw_anr_rollups all = {.arena = a};
	struct ranked *list = NULL;
	enum tw_status st = tw_cat_anr_rollups_read(c, &query, &all, err);

	if (st == TW_OK)
		st = rank(&all, q, &list, ret_n, err);
	if (st != TW_OK)
		return st;
	*ret = tw_arena_alloc(a, *ret_n + 1, sizeof **ret);
	if (!*ret)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; list && i < *ret_n; i++)
		(*ret)[i] = list[i].row;
	return TW_OK;
}

/* --- by version or day --- */

static const char *day_text(int64_t day, struct tw_arena *a)
{
	const time_t s = (time_t)(day * (TW_DAY_MS / 1000));
	char *text = tw_arena_alloc(a, DAY_BYTES, 1);
	struct tm tm;

	if (text && (!gmtime_r(&s, &tm) || !strftime(text, DAY_BYTES, "%Y-%m-%d", &tm)))
		text[0] = '\0';
	return text;
}

TW_ORDER_BY(by_owner, struct tw_lock_row, TW_RISING(owner))

enum tw_status tw_catalogue_lock_series(struct tw_catalogue *c, const char *project_id,
        const struct tw_lock_query *q, bool by_day, struct tw_arena *a, struct tw_lock_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_anr_rollup_query query = {project_id, q->filter, TW_ANR_ROLLUP_LOCKS,
	        q->name, NULL, by_day ? TW_ANR_ROLLUP_BY_DAY : TW_ANR_ROLLUP_BY_VERSION};
	struct tw_anr_rollups all = {.arena = a};
	struct tw_lock_row *rows;
	enum tw_status st = tw_cat_anr_rollups_read(c, &query, &all, err);
	size_t n = 0;

	if (st != TW_OK)
		return st;
	rows = tw_arena_alloc(a, all.n + 1, sizeof *rows);
	if (!rows)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; st == TW_OK && i < all.n; i++) {
		const struct tw_anr_rollup *t = all.list[i];
		bool any = false;

		st = row_of(t, kinds_of(q), a, &rows[n], &any, err);
		rows[n].monitors = "";
		rows[n].owner = by_day ? day_text(t->day, a) : t->value;
		if (st == TW_OK && !rows[n].owner)
			st = tw_anr_fail_too_large(err);
		n += any;
	}
	if (st == TW_OK && n)
		TW_SORT(rows, n, by_owner);
	*ret = rows;
	*ret_n = n < TW_LOCK_ROWS_MAX ? n : TW_LOCK_ROWS_MAX;
	return st;
}

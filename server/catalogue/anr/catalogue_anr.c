/* catalogue_anr.c - groups of ANRs: counts, users, time range, example traces. */
#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/stats/anr_rollup.h"

enum { SLICES_MAX = 100, DAYS_MAX = 50000 };
#define SUMS_BYTES ((size_t)256 << 20)

/* Reports of a group, from a covering index, so that none of their rows is read. */
#define FROM_ONE                                                                                   \
	" FROM anr_trace h INDEXED BY anr_trace_of_key WHERE" TW_ANR_WHERE                         \
	" AND h.anr=1 AND h.key=?11"

/* Reports have only one kind (anr_rollup.h). */
static const struct tw_anr_rollup_part *sums_of(const struct tw_anr_rollup *t)
{
	static const struct tw_anr_rollup_part none = {.sum = {.holder = ""}};

	return t->parts ? t->parts : &none;
}

static int by_count(const void *pa, const void *pb)
{
	const struct tw_anr_rollup *a = *(struct tw_anr_rollup *const *)pa;
	const struct tw_anr_rollup *b = *(struct tw_anr_rollup *const *)pb;
	const uint64_t n = sums_of(a)->sum.traces, m = sums_of(b)->sum.traces;
	const int c = strcmp(a->name, b->name);

	return n != m ? (n < m ? 1 : -1) : c ? c : strcmp(a->value, b->value);
}

static int by_day(const void *pa, const void *pb)
{
	const struct tw_anr_rollup *a = *(struct tw_anr_rollup *const *)pa;
	const struct tw_anr_rollup *b = *(struct tw_anr_rollup *const *)pb;
	const int c = strcmp(a->name, b->name);

	return c ? c : a->day < b->day ? -1 : a->day > b->day;
}

static void sort(struct tw_anr_rollups *all, int (*how)(const void *pa, const void *pb))
{
	if (all->n)
		qsort(all->list, all->n, sizeof(struct tw_anr_rollup *), how);
}

/* --- groups --- */

static struct tw_anr_group group_of(const struct tw_anr_rollup *t)
{
	const struct tw_anr_rollup_part *p = sums_of(t);

	return (struct tw_anr_group){.key = t->name,
	        .count = p->sum.traces,
	        .users = tw_distinct_count(&p->sets[TW_ANR_ROLLUP_USERS]),
	        .versions = tw_distinct_count(&p->sets[TW_ANR_ROLLUP_VERSIONS]),
	        .devices = tw_distinct_count(&p->sets[TW_ANR_ROLLUP_DEVICES]),
	        .first_ms = p->sum.first_ms,
	        .last_ms = p->sum.last_ms,
	        .newest = p->sum.worst};
}

static enum tw_status read_groups(struct tw_catalogue *c, const struct tw_anr_rollup_query *query,
        struct tw_arena *a, struct tw_anr_group **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_anr_rollups all = {.arena = a};
	enum tw_status st = tw_cat_anr_rollups_read(c, query, &all, err);

	if (st != TW_OK)
		return st;
	sort(&all, by_count);
	*ret = tw_arena_alloc(a, all.n + 1, sizeof **ret);
	if (!*ret)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; i < all.n; i++)
		(*ret)[i] = group_of(all.list[i]);
	*ret_n = all.n;
	return TW_OK;
}

enum tw_status tw_catalogue_anr_groups(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, struct tw_arena *a, struct tw_anr_group **ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct tw_anr_rollup_query query = {
	        project_id, f, TW_ANR_ROLLUP_ANRS, NULL, NULL, TW_ANR_ROLLUP_BY_NAME};

	return read_groups(c, &query, a, ret, ret_n, err);
}

#define GROUP(member) TW_FIELD(struct tw_anr_group, member, "", NULL)
static const struct tw_fields name_fields = TW_FIELDS_OF(GROUP(newest), GROUP(kind), GROUP(name),
        GROUP(title), GROUP(verdict), GROUP(detail), GROUP(last_version));

TW_ORDER_BY(by_report, struct tw_anr_group *const, TW_ORDER((*a)->newest, (*b)->newest))

static void take_names(
        struct tw_anr_group *const *sorted, size_t n, const struct tw_anr_group *named)
{
	size_t at;

	TW_BISECT(at, n, strcmp(sorted[at]->newest, named->newest) < 0);
	for (; at < n && strcmp(sorted[at]->newest, named->newest) == 0; at++) {
		struct tw_anr_group *g = sorted[at];

		g->kind = named->kind;
		g->name = named->name;
		g->title = named->title;
		g->verdict = named->verdict;
		g->detail = named->detail;
		g->last_version = named->last_version;
	}
}

static enum tw_status read_names(struct tw_db *db, const char *project_id, const char *ids,
        struct tw_arena *a, struct tw_anr_group *const *sorted, size_t n, struct tw_err *err)
{
	struct tw_anr_group named;
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary keys */
	        "SELECT a.trace_id, a.kind, a.name, a.title, a.verdict, a.detail, h.version_name"
	        " FROM anr a CROSS JOIN anr_trace h WHERE a.project_id=?1 AND"
	        " a.trace_id" TW_CAT_AMONG_TEXTS("?2") " AND h.project_id=?1 AND"
	                                               " h.trace_id=a.trace_id",
	        "tt", project_id, ids);

	while (st == TW_OK && tw_cat_row(&q)) {
		if (tw_row_read(&q, 0, &name_fields, a, &named) < 0)
			st = tw_anr_fail_too_large(err);
		else
			take_names(sorted, n, &named);
	}
	return tw_cat_close_after(&q, st, err);
}

static size_t drop_unnamed(struct tw_anr_group *groups, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (groups[i].kind)
			groups[kept++] = groups[i];
	return kept;
}

enum tw_status tw_catalogue_anr_groups_name(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_anr_group *groups, size_t *io_n, struct tw_err *err)
{
	const size_t n = *io_n;
	struct tw_anr_group **sorted = tw_arena_alloc(a, n + 1, sizeof *sorted);
	const char **ids = tw_arena_alloc(a, n + 1, sizeof *ids);
	const char *list;
	struct tw_db *db;
	enum tw_status st;

	if (!sorted || !ids)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; i < n; i++) {
		groups[i].kind = NULL;
		sorted[i] = &groups[i];
		ids[i] = groups[i].newest;
	}
	TW_SORT(sorted, n, by_report);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	list = tw_cat_texts(db, ids, n, a);
	st = list ? read_names(db, project_id, list, a, sorted, n, err)
	          : tw_anr_fail_too_large(err);
	tw_cat_done(c, db);
	*io_n = drop_unnamed(groups, n);
	return st;
}

enum tw_status tw_catalogue_anr_group(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_group *ret, struct tw_err *err)
{
	const struct tw_anr_rollup_query query = {
	        project_id, f, TW_ANR_ROLLUP_ANRS, key, NULL, TW_ANR_ROLLUP_BY_NAME};
	struct tw_anr_group *groups = NULL;
	size_t n = 0;
	enum tw_status st = read_groups(c, &query, a, &groups, &n, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_groups_name(c, project_id, a, groups, &n, err);
	if (st == TW_OK && (n == 0 || !key[0]))
		st = tw_fail(err, TW_NOT_FOUND, "no such ANR group");
	if (st == TW_OK)
		*ret = groups[0];
	return st;
}

/* --- counts --- */

static enum tw_status count_pending(struct tw_catalogue *c, const char *project_id, int64_t rules,
        struct tw_anr_sums *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* anr_trace_by_rules */
	        "SELECT (SELECT count(*) FROM anr_trace WHERE project_id=?1 AND anr=1 AND"
	        " keyed<?2)+(SELECT count(*) FROM anr_trace WHERE project_id=?1 AND anr=1 AND"
	        " keyed>?2)",
	        "ti", project_id, rules);

	ret->pending = (uint64_t)n;
	return st;
}

enum tw_status tw_catalogue_anr_sums(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, int64_t rules, struct tw_anr_sums *ret,
        struct tw_err *err)
{
	const struct tw_anr_rollup_query query = {
	        project_id, f, TW_ANR_ROLLUP_ANRS, "", NULL, TW_ANR_ROLLUP_BY_NAME};
	struct tw_anr_rollups all = {.arena = tw_arena_new(SUMS_BYTES)};
	enum tw_status st = all.arena ? TW_OK : tw_oom(err);

	*ret = (struct tw_anr_sums){0};
	if (st == TW_OK) /* first: reports grouped later are then in the rollups */
		st = count_pending(c, project_id, rules, ret, err);
	if (st == TW_OK)
		st = tw_cat_anr_rollups_read(c, &query, &all, err);
	for (size_t i = 0; st == TW_OK && i < all.n; i++) {
		const struct tw_anr_rollup_part *p = sums_of(all.list[i]);

		ret->traces = p->sum.traces;
		ret->users = tw_distinct_count(&p->sets[TW_ANR_ROLLUP_USERS]);
	}
	tw_arena_free(all.arena);
	return st;
}

/* --- by day, version, device --- */

static enum tw_status take_slices(struct tw_anr_rollups *all, size_t limit,
        struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err)
{
	const size_t n = all->n < limit ? all->n : limit;
	struct tw_anr_slice *slices = tw_arena_alloc(all->arena, n + 1, sizeof *slices);

	if (!slices)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; i < n; i++) {
		const struct tw_anr_rollup *t = all->list[i];
		const struct tw_anr_rollup_part *p = sums_of(t);

		slices[i] = (struct tw_anr_slice){t->name, t->value, t->day, p->sum.traces,
		        tw_distinct_count(&p->sets[TW_ANR_ROLLUP_USERS])};
	}
	*ret = slices;
	*ret_n = n;
	return TW_OK;
}

#define SLICED(member) TW_FIELD(struct tw_anr_slice, member, "", NULL)
static const struct tw_fields slice_fields =
        TW_FIELDS_OF(SLICED(key), SLICED(value), SLICED(count), SLICED(users));

#define SLICE(value)                                                                               \
	"SELECT h.key, " value ", count(*) AS n, count(DISTINCT nullif(h.who,0))" FROM_ONE         \
	" GROUP BY h.key, " value " ORDER BY n DESC, 2 LIMIT ?12"

enum tw_status tw_catalogue_anr_slices(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, enum tw_anr_by by, struct tw_arena *a,
        struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err)
{
	static const char *const sql[] = {
	        [TW_ANR_BY_DEVICE] = SLICE("h.device"), [TW_ANR_BY_KIND] = SLICE("h.kind")};
	const struct tw_anr_rollup_query query = {project_id, f, TW_ANR_ROLLUP_ANRS, key, NULL,
	        by == TW_ANR_BY_OS ? TW_ANR_ROLLUP_BY_OS : TW_ANR_ROLLUP_BY_VERSION};
	struct tw_anr_rollups all = {.arena = a};
	enum tw_status st;

	if (by == TW_ANR_BY_DEVICE || by == TW_ANR_BY_KIND)
		/* By a dimension that rollups do not have. */
		return tw_cat_list(c, TW_CAT_LIST(a, SLICES_MAX, &slice_fields, ret, ret_n), err,
		        sql[by], TW_ANR_TYPES "ti", TW_ANR_ARGS(query.project_id, query.filter),
		        query.name, (int64_t)SLICES_MAX);
	st = tw_cat_anr_rollups_read(c, &query, &all, err);
	if (st != TW_OK)
		return st;
	sort(&all, by_count);
	return take_slices(&all, SLICES_MAX, ret, ret_n, err);
}

TW_ORDER_BY(by_text, const char *const, strcmp(*a, *b))

enum tw_status tw_catalogue_anr_days(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const struct tw_anr_group *groups, size_t n,
        struct tw_arena *a, struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err)
{
	const char **keys = tw_arena_alloc(a, n + 1, sizeof *keys);
	const struct tw_anr_keys of = {keys, n};
	const struct tw_anr_rollup_query query = {
	        project_id, f, TW_ANR_ROLLUP_ANRS, NULL, &of, TW_ANR_ROLLUP_BY_DAY};
	struct tw_anr_rollups all = {.arena = a};
	enum tw_status st;

	if (!keys)
		return tw_anr_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		keys[i] = groups[i].key;
	TW_SORT(keys, n, by_text);
	st = tw_cat_anr_rollups_read(c, &query, &all, err);
	if (st != TW_OK)
		return st;
	sort(&all, by_day);
	return take_slices(&all, DAYS_MAX, ret, ret_n, err);
}

#define EXEMPLAR(member) TW_FIELD(struct tw_anr_exemplar, member, "", NULL)
static const struct tw_fields exemplar_fields =
        TW_FIELDS_OF(EXEMPLAR(trace_id), EXEMPLAR(version_name), EXEMPLAR(device), EXEMPLAR(os),
                EXEMPLAR(verdict), EXEMPLAR(recorded_ms), EXEMPLAR(there));

/* The latest ones, day by day, stopping at the day that completes the list. */
#define EXEMPLARS(there)                                                                           \
	"SELECT exemplar.trace_id, exemplar.version_name, exemplar.device, exemplar.os, "          \
	"a.verdict, exemplar.recorded_ms, ?13"                                                     \
	" FROM (SELECT h.trace_id, h.version_name, h.device, h.os, h.recorded_ms" FROM_ONE         \
	" AND " there "EXISTS(SELECT 1 FROM trace t WHERE t.project_id=?1 AND"                     \
	" t.trace_id=h.trace_id) ORDER BY h.day DESC, h.trace_id DESC LIMIT ?12) exemplar CROSS "  \
	"JOIN"                                                                                     \
	" anr a WHERE a.project_id=?1 AND a.trace_id=exemplar.trace_id"

TW_ORDER_BY(by_time, struct tw_anr_exemplar, TW_FALLING(there), TW_FALLING(recorded_ms),
        TW_FALLING(trace_id))

enum tw_status tw_catalogue_anr_exemplars(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_exemplar **ret, size_t *ret_n, struct tw_err *err)
{
	static const char *const sql[] = {EXEMPLARS("NOT "), EXEMPLARS("")};
	struct tw_anr_exemplar *all = tw_arena_alloc(a, TW_ANR_EXEMPLARS, sizeof *all);
	enum tw_status st = TW_OK;
	size_t n = 0;

	if (!all)
		return tw_anr_fail_too_large(err);
	for (int there = 1; st == TW_OK && there >= 0 && n < TW_ANR_EXEMPLARS; there--) {
		struct tw_cat_list list = {.arena = a,
		        .limit = TW_ANR_EXEMPLARS - n,
		        .row_bytes = sizeof *all,
		        .fields = &exemplar_fields};

		st = tw_cat_list(c, &list, err, sql[there], /* anr_trace_of_key, primary keys */
		        TW_ANR_TYPES "tii", TW_ANR_ARGS(project_id, f), key,
		        (int64_t)(TW_ANR_EXEMPLARS - n), (int64_t)there);
		if (st == TW_OK && list.n)
			memcpy(all + n, list.rows, list.n * sizeof *all);
		n += st == TW_OK ? list.n : 0;
	}
	if (n)
		TW_SORT(all, n, by_time);
	*ret = all;
	*ret_n = n;
	return st;
}

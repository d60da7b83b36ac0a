/*
 * catalogue_anr.c - groups of ANRs: how many, whose, since when, and which traces show them.
 */
#include "catalogue_hang_int.h"

enum { SLICES_MAX = 100, DAYS_MAX = 50000 };

/* Reports that have a key, of all groups or of one (parameter 11): each from an index that has all
 * that is asked for, so that no row of theirs is read. */
#define FROM_ALL                                                                                   \
	" FROM hang h INDEXED BY hang_anr_of_day WHERE" TW_HANG_WHERE                              \
	" AND h.anr=1 AND h.key<>'' AND ?11=''"
#define FROM_ONE                                                                                   \
	" FROM hang h INDEXED BY hang_anr_of_key WHERE" TW_HANG_WHERE " AND h.anr=1 AND h.key=?11"

static bool read_group(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_group *r = ret_row;

	*r = (struct tw_anr_group){.key = tw_cat_text(q, 0, a),
	        .count = (uint64_t)tw_cat_int(q, 1),
	        .users = (uint64_t)tw_cat_int(q, 2),
	        .versions = (uint64_t)tw_cat_int(q, 3),
	        .devices = (uint64_t)tw_cat_int(q, 4),
	        .first_ms = tw_cat_int(q, 5),
	        .last_ms = tw_cat_int(q, 6),
	        .kind = tw_cat_text(q, 7, a),
	        .name = tw_cat_text(q, 8, a),
	        .title = tw_cat_text(q, 9, a),
	        .verdict = tw_cat_text(q, 10, a),
	        .detail = tw_cat_text(q, 11, a),
	        .last_version = tw_cat_text(q, 12, a)};
	return r->key && r->kind && r->name && r->title && r->verdict && r->detail &&
	       r->last_version;
}

#define GROUPS(from)                                                                               \
	"WITH g AS MATERIALIZED (SELECT h.key AS key, count(*) AS n, count(DISTINCT"               \
	" nullif(h.who,0)) AS users, count(DISTINCT h.version_name) AS versions,"                  \
	" count(DISTINCT nullif(h.device,'')) AS devices, min(h.created_ms) AS first,"             \
	" max(h.created_ms) AS last, max(h.trace_id) AS newest" from                               \
	" GROUP BY h.key ORDER BY n DESC, h.key LIMIT ?12)"                                        \
	" SELECT g.key, g.n, g.users, g.versions, g.devices, g.first, g.last, a.kind,"             \
	" a.name, a.title, a.verdict, a.detail, h.version_name FROM g CROSS JOIN anr a ON"         \
	" a.project_id=?1 AND a.trace_id=g.newest CROSS JOIN hang h ON h.project_id=?1 AND"        \
	" h.trace_id=g.newest ORDER BY g.n DESC, g.key"

enum tw_status tw_catalogue_anr_groups(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_group **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list list = {a, TW_ANR_GROUPS_MAX, sizeof **ret, read_group, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, key[0] ? GROUPS(FROM_ONE) : GROUPS(FROM_ALL),
	        TW_HANG_TYPES "ti", TW_HANG_ARGS(project_id, f), key, (int64_t)TW_ANR_GROUPS_MAX);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

static bool read_sums(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_sums *r = ret_row;

	(void)a;
	*r = (struct tw_anr_sums){(uint64_t)tw_cat_int(q, 0), (uint64_t)tw_cat_int(q, 1),
	        (uint64_t)tw_cat_int(q, 2), (uint64_t)tw_cat_int(q, 3)};
	return true;
}

enum tw_status tw_catalogue_anr_sums(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, int64_t rules, struct tw_anr_sums *ret,
        struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 16);
	struct tw_cat_list list = {a, 1, sizeof *ret, read_sums, NULL, 0};
	enum tw_status st =
	        a ? tw_cat_list(c, &list, err, /* hang_anr_of_day, hang_keyed */
	                    "SELECT count(*), count(DISTINCT h.key), count(DISTINCT"
	                    " nullif(h.who,0)), (SELECT count(*) FROM hang WHERE project_id=?1 AND"
	                    " anr=1 AND keyed<?12)+(SELECT count(*) FROM hang WHERE project_id=?1"
	                    " AND anr=1 AND keyed>?12)" FROM_ALL,
	                    TW_HANG_TYPES "ti", TW_HANG_ARGS(project_id, f), "", rules)
	          : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");

	if (st == TW_OK)
		*ret = list.n ? *(struct tw_anr_sums *)list.rows : (struct tw_anr_sums){0};
	tw_arena_free(a);
	return st;
}

/* --- over days, versions, devices --- */

static bool read_slice(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_slice *r = ret_row;

	*r = (struct tw_anr_slice){.key = tw_cat_text(q, 0, a),
	        .value = tw_cat_text(q, 1, a),
	        .day = tw_cat_int(q, 2),
	        .count = (uint64_t)tw_cat_int(q, 3),
	        .users = (uint64_t)tw_cat_int(q, 4)};
	return r->key && r->value;
}

#define SLICE(value)                                                                               \
	"SELECT h.key, " value ", 0, count(*) AS n, count(DISTINCT nullif(h.who,0))" FROM_ONE      \
	" GROUP BY " value " ORDER BY n DESC, 2 LIMIT ?12"
#define DAYS(from)                                                                                 \
	"SELECT h.key, '', h.day, count(*), count(DISTINCT nullif(h.who,0))" from                  \
	" GROUP BY h.key, h.day ORDER BY h.key, h.day LIMIT ?12"

enum tw_status tw_catalogue_anr_slices(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, enum tw_anr_by by, struct tw_arena *a,
        struct tw_anr_slice **ret, size_t *ret_n, struct tw_err *err)
{
	static const char *const sql[] = {[TW_ANR_BY_DAY] = DAYS(FROM_ONE),
	        [TW_ANR_BY_VERSION] = SLICE("h.version_name"),
	        [TW_ANR_BY_DEVICE] = SLICE("h.device"),
	        [TW_ANR_BY_OS] = SLICE("h.os"),
	        [TW_ANR_BY_KIND] = SLICE("h.kind")};
	const bool all = by == TW_ANR_BY_DAY && !key[0];
	const uint32_t limit = by == TW_ANR_BY_DAY ? DAYS_MAX : SLICES_MAX;
	struct tw_cat_list list = {a, limit, sizeof **ret, read_slice, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, all ? DAYS(FROM_ALL) : sql[by],
	        TW_HANG_TYPES "ti", TW_HANG_ARGS(project_id, f), key, (int64_t)limit);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

static bool read_exemplar(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_exemplar *r = ret_row;

	*r = (struct tw_anr_exemplar){.trace_id = tw_cat_text(q, 0, a),
	        .version_name = tw_cat_text(q, 1, a),
	        .device = tw_cat_text(q, 2, a),
	        .os = tw_cat_text(q, 3, a),
	        .verdict = tw_cat_text(q, 4, a),
	        .created_ms = tw_cat_int(q, 5),
	        .there = tw_cat_int(q, 6) != 0};
	return r->trace_id && r->version_name && r->device && r->os && r->verdict;
}

enum tw_status tw_catalogue_anr_exemplars(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, const char *key, struct tw_arena *a,
        struct tw_anr_exemplar **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list list = {a, TW_ANR_EXEMPLARS, sizeof **ret, read_exemplar, NULL, 0};
	enum tw_status st = tw_cat_list(c, &list, err, /* hang_anr_of_key, primary keys */
	        "SELECT exemplar.trace_id, exemplar.version_name, exemplar.device, exemplar.os, "
	        "a.verdict, exemplar.created_ms, "
	        "exemplar.there"
	        " FROM (SELECT h.trace_id, h.version_name, h.device, h.os, h.created_ms,"
	        " EXISTS(SELECT 1 FROM trace t WHERE t.project_id=?1 AND t.trace_id=h.trace_id) AS"
	        " there" FROM_ONE
	        " ORDER BY there DESC, h.trace_id DESC LIMIT ?12) exemplar CROSS JOIN"
	        " anr a ON a.project_id=?1 AND a.trace_id=exemplar.trace_id ORDER BY "
	        "exemplar.there DESC,"
	        " exemplar.trace_id DESC",
	        TW_HANG_TYPES "ti", TW_HANG_ARGS(project_id, f), key, (int64_t)TW_ANR_EXEMPLARS);

	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

/*
 * catalogue_anr_rollup_read.c - rollups of ANRs and locks for a query: complete days from stored
 * rollups, packed for many names, plus reports not counted yet.  A query by label reads only
 * reports.
 */
#include <inttypes.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/stats/anr_rollup.h"

enum { PACK_NAME_BYTES = 1 << 20 };

struct answer {
	const struct tw_anr_rollup_query *query;
	struct tw_anr_rollups *all;
	int64_t first_day, last_day; /* of the days that are not read from packs */
};

static bool is_by_dimension(const struct tw_anr_rollup_query *query)
{
	const struct tw_rollup_filter *f = query->filter;

	return query->by > TW_ANR_ROLLUP_BY_DAY || f->app[0] || f->version_name[0] ||
	       f->build_id[0] || f->scenario[0] || f->device_class[0] || f->os[0];
}

struct dims { /* the dimensions of a result row */
	const char *name, *version, *os;
	int64_t day;
};

static struct tw_anr_rollup *rollup_at(struct answer *to, const struct dims *p)
{
	const enum tw_anr_rollup_by by = to->query->by;
	const char *value = by == TW_ANR_ROLLUP_BY_VERSION ? p->version
	                    : by == TW_ANR_ROLLUP_BY_OS    ? p->os
	                                                   : "";
	struct tw_anr_rollup *t = NULL;
	struct tw_buf key;

	if (by == TW_ANR_ROLLUP_BY_NAME) {
		t = tw_anr_rollups_at(to->all, tw_str_of(p->name));
	} else {
		tw_buf_init(&key, 1 << 20);
		tw_buf_printf(&key, "%" PRId64 " %zu %s%s", by == TW_ANR_ROLLUP_BY_DAY ? p->day : 0,
		        strlen(p->name), p->name, value);
		if (tw_buf_status(&key) == TW_OK)
			t = tw_anr_rollups_at(to->all, tw_buf_str(&key));
		tw_buf_done(&key);
	}
	if (t && !t->name) {
		t->name = tw_arena_str(to->all->arena, tw_str_of(p->name));
		t->value = tw_arena_str(to->all->arena, tw_str_of(value));
		t->day = p->day;
	}
	return t && t->name && t->value ? t : NULL;
}

static bool is_requested(const struct tw_anr_rollup_query *query, const char *name)
{
	size_t at;

	if (query->name)
		return strcmp(query->name, name) == 0;
	if (!query->of)
		return name[0] != '\0';
	TW_BISECT(at, query->of->n, strcmp(query->of->sorted[at], name) < 0);
	return at < query->of->n && strcmp(query->of->sorted[at], name) == 0;
}

static bool take(void *arg, const struct tw_anr_rollup_report *of, const char *name,
        const struct tw_anr_rollup_one *one)
{
	struct answer *to = arg;
	const struct dims p = {name, of->version_name, of->os, of->day};
	struct tw_anr_rollup *t;

	if (!is_requested(to->query, name))
		return true;
	t = rollup_at(to, &p);
	return t && tw_anr_rollup_add(to->all->arena, t, one);
}

static bool is_by_name(const struct tw_anr_rollup_query *query)
{
	return query->by == TW_ANR_ROLLUP_BY_NAME;
}

/* --- packs (catalogue_anr_rollup.c) --- */

static bool take_str(const uint8_t **p, const uint8_t *end, struct tw_str *ret)
{
	uint64_t len;

	if (!tw_get_varint(p, end, &len) || len > (uint64_t)(end - *p))
		return false;
	*ret = (struct tw_str){(const char *)*p, len};
	*p += len;
	return true;
}

static enum tw_status take_pack(
        struct answer *to, struct tw_str pack, int64_t day, struct tw_buf *name, struct tw_err *err)
{
	const uint8_t *p = (const uint8_t *)pack.ptr, *const end = p + pack.len;
	enum tw_status st = TW_OK;

	while (st == TW_OK && p < end) {
		struct dims of = {"", "", "", day};
		struct tw_str text, data;
		struct tw_anr_rollup *t;

		if (!take_str(&p, end, &text) || !take_str(&p, end, &data))
			return tw_fail(err, TW_CORRUPT, "the sums of ANRs and locks are damaged");
		tw_buf_clear(name);
		(void)tw_buf_add_str(name, text);
		(void)tw_buf_add_u8(name, 0);
		if (tw_buf_status(name) != TW_OK)
			return tw_anr_fail_too_large(err);
		of.name = (const char *)name->data;
		if (!is_requested(to->query, of.name))
			continue;
		t = rollup_at(to, &of);
		st = t ? tw_anr_rollup_merge(
		                 to->all->arena, t, (const uint8_t *)data.ptr, data.len, err)
		       : tw_anr_fail_too_large(err);
	}
	return st;
}

static enum tw_status take_packs(struct tw_db *db, struct answer *to, struct tw_err *err)
{
	const struct tw_anr_rollup_query *query = to->query;
	struct tw_buf name;
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary keys */
	        "SELECT d.day, coalesce(t.fine,0), t.data FROM anr_day d LEFT JOIN anr_rollup t ON"
	        " t.project_id=?1 AND t.what=?4 AND t.fine=2 AND t.day=d.day+0 AND"
	        " t.generation=d.generation WHERE d.project_id=?1 AND d.day BETWEEN ?2 AND ?3"
	        " ORDER BY d.day",
	        "tiii", query->project_id, to->first_day, to->last_day, (int64_t)query->what);

	to->first_day = INT64_MAX;
	to->last_day = INT64_MIN;
	tw_buf_init(&name, PACK_NAME_BYTES);
	while (st == TW_OK && tw_cat_row(&q)) {
		const int64_t day = tw_cat_int(&q, 0);

		if (tw_cat_int(&q, 1)) {
			st = take_pack(to, tw_cat_blob(&q, 2), day, &name, err);
			continue;
		}
		to->first_day = day < to->first_day ? day : to->first_day;
		to->last_day = day;
	}
	tw_buf_done(&name);
	return tw_cat_close_after(&q, st, err);
}

/* --- stored rollups --- */

static struct dims dims_of_row(const struct tw_cat_query *q, const struct answer *to)
{
	if (is_by_name(to->query))
		return (struct dims){tw_cat_str(q, 0), "", "", 0};
	return (struct dims){
	        tw_cat_str(q, 0), tw_cat_str(q, 3), tw_cat_str(q, 4), tw_cat_int(q, 2)};
}

static enum tw_status take_rows(struct tw_cat_query *q, struct answer *to, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_cat_row(q)) {
		const struct dims p = dims_of_row(q, to);
		const struct tw_str data = tw_cat_blob(q, 1);
		struct tw_anr_rollup *t = rollup_at(to, &p);

		st = t ? tw_anr_rollup_merge(
		                 to->all->arena, t, (const uint8_t *)data.ptr, data.len, err)
		       : tw_anr_fail_too_large(err);
	}
	return tw_cat_close_after(q, st, err);
}

#define NAMED       TW_EITHER("t.name=?12", "t.name_hash=" TW_ANR_ROLLUP_HASH("?12"))
#define HASH_OF_KEY TW_ANR_ROLLUP_HASH("k.key")
#define HASHES_OF_KEYS                                                                             \
	"t.name_hash=ANY(ARRAY(SELECT " HASH_OF_KEY                                                \
	" FROM unnest(CAST(?12 AS TEXT[])) AS k(key))) AND "
#define UNPACKED                                                                                   \
	" AND (?11<>0 OR NOT EXISTS(SELECT 1 FROM anr_rollup p WHERE p.project_id=?1 AND"          \
	" p.what=?10 AND p.fine=2 AND p.day=d.day AND p.generation=d.generation))"
#define AMONG TW_EITHER("", HASHES_OF_KEYS) "t.name" TW_CAT_AMONG_TEXTS("?12") UNPACKED
#define ALL   "t.name<>?12" UNPACKED
#define DIMS  ", t.day, t.version_name, t.os"
/* A plan for any values is made for few rows: it would fetch each row through the index. */
#define KEPT(dims, named)                                                                          \
	"SELECT " TW_DB_BY_VALUES "t.name, t.data" dims " FROM anr_day d CROSS JOIN anr_rollup"    \
	" t WHERE d.project_id=?1 AND d.day BETWEEN ?2 AND ?3 AND t.project_id=?1 AND t.what=?10"  \
	" AND t.fine=?11 AND t.day=d.day+0 AND " named " AND t.generation=d.generation"            \
	" AND (?4='' OR t.app=?4) AND (?5='' OR t.version_name=?5) AND (?6='' OR t.build_id=?6)"   \
	" AND (?7='' OR t.scenario=?7) AND (?8='' OR t.device_class=?8) AND (?9='' OR t.os=?9)"

static enum tw_status take_kept(struct tw_db *db, struct answer *to, struct tw_err *err)
{
	const struct tw_anr_rollup_query *query = to->query;
	const struct tw_rollup_filter *f = query->filter;
	/* a list of all names reads a row of each name and day, so without the unused columns */
	const char *sql = query->name         ? KEPT(DIMS, NAMED)
	                  : query->of         ? KEPT(DIMS, AMONG)
	                  : is_by_name(query) ? KEPT("", ALL)
	                                      : KEPT(DIMS, ALL);
	const char *name = query->name ? query->name : "";
	struct tw_cat_query q;
	enum tw_status st;

	if (query->of)
		name = tw_cat_texts(db, query->of->sorted, query->of->n, to->all->arena);
	if (!name)
		return tw_anr_fail_too_large(err);
	st = tw_cat_query(&q, db, err, sql, /* primary keys */
	        "tiittttttiit", query->project_id, to->first_day, to->last_day, f->app,
	        f->version_name, f->build_id, f->scenario, f->device_class, f->os,
	        (int64_t)query->what, (int64_t)is_by_dimension(query), name);
	return st == TW_OK ? take_rows(&q, to, err) : st;
}

/* --- reports --- */

/* Uncounted reports of each day that has any; with a label all reports.  "A day plus 0" makes
 * SQLite search one day instead of the whole range. */
#define UNCOUNTED                                                                                  \
	" FROM anr_day d" TW_CAT_JOIN_EACH("anr_trace h INDEXED BY anr_trace_by_rollup", "h",      \
	        "h.project_id=?1 AND h.day=d.day+0 AND h.rollup_generation<d.generation"),         \
	        " d.project_id=?1 AND d.day BETWEEN ?2 AND ?3 AND d.waiting=1" TW_ANR_FILTER
#define ANRS(from, where)                                                                          \
	"SELECT" TW_ANR_ROLLUP_COLUMNS ", h.key" from " WHERE" where " AND h.anr=1 AND h.key<>''"
#define LOCKS(from, where)                                                                         \
	"SELECT" TW_ANR_ROLLUP_LOCK_COLUMNS from " CROSS JOIN lock_wait l WHERE" where             \
	" AND l.project_id=?1 AND l.trace_id=h.trace_id ORDER BY h.day, h.trace_id"
#define SQL_OF(what, ...) what(__VA_ARGS__)

static enum tw_status take_anrs(struct tw_db *db, struct answer *to, struct tw_err *err)
{
	const struct tw_anr_rollup_query *query = to->query;
	struct tw_cat_query q;
	enum tw_status st =
	        tw_cat_query(&q, db, err, /* anr_trace_by_rollup, anr_trace_of_day_and_key */
	                query->filter->label[0]
	                        ? ANRS(" FROM anr_trace h INDEXED BY anr_trace_of_day_and_key",
	                                  TW_ANR_WHERE)
	                        : SQL_OF(ANRS, UNCOUNTED),
	                TW_ANR_TYPES, TW_ANR_ARGS(query->project_id, query->filter));

	return st == TW_OK ? tw_cat_feed_anrs(&q, take, to, err) : st;
}

static enum tw_status take_locks(struct tw_db *db, struct answer *to, struct tw_err *err)
{
	const struct tw_anr_rollup_query *query = to->query;
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db,
	        err, /* anr_trace_by_rollup, anr_trace_of_day, primary key */
	        query->filter->label[0]
	                ? LOCKS(" FROM anr_trace h INDEXED BY anr_trace_of_day", TW_ANR_WHERE)
	                : SQL_OF(LOCKS, UNCOUNTED),
	        TW_ANR_TYPES, TW_ANR_ARGS(query->project_id, query->filter));

	return st == TW_OK ? tw_cat_feed_locks(&q, take, to, err) : st;
}

static enum tw_status read_all(struct tw_db *db, struct answer *to, struct tw_err *err)
{
	const bool is_kept = !to->query->filter->label[0];
	enum tw_status st = TW_OK;

	if (is_kept && !to->query->name && !is_by_dimension(to->query))
		st = take_packs(db, to, err);
	if (st == TW_OK && is_kept && to->first_day <= to->last_day)
		st = take_kept(db, to, err);
	if (st != TW_OK)
		return st;
	return to->query->what == TW_ANR_ROLLUP_ANRS ? take_anrs(db, to, err)
	                                             : take_locks(db, to, err);
}

enum tw_status tw_cat_anr_rollups_read(struct tw_catalogue *c,
        const struct tw_anr_rollup_query *query, struct tw_anr_rollups *all, struct tw_err *err)
{
	struct answer to = {query, all, query->filter->first_day, query->filter->last_day};
	struct tw_db *db;
	/* a report must not be read twice, before and after it is added to the rollups */
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_all(db, &to, err);
	tw_cat_snapshot_done(c, db);
	return st;
}

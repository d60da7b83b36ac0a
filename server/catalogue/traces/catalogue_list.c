/*
 * catalogue_list.c - the list of traces: filters, order, pages, facets.
 *
 * A page ends with a cursor that holds the last row's sort value and id, so
 * that the next page begins right behind it however many rows came or went.
 */
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_row.h"

enum { WHERE_MAX = 2048, LIMIT_MAX = 500, FACETS_MAX = 200, FILTER_TAGS = 8, BINDS_MAX = 24 };

static const char *const sort_columns[] = {
        [TW_SORT_CREATED] = "created_ms",
        [TW_SORT_DURATION] = "duration_ns",
        [TW_SORT_SLICES] = "slices",
        [TW_SORT_BYTES] = "upload_bytes",
};

/* WHERE clauses and the values that they bind, in order. */
struct where {
	struct tw_buf sql;
	struct {
		const char *text; /* NULL: number */
		int64_t number;
	} binds[BINDS_MAX];
	int n;
};

static void and_text(struct where *w, const char *clause, const char *value)
{
	if (!value || !value[0])
		return;
	(void)tw_buf_printf(&w->sql, " AND %s", clause);
	w->binds[w->n++].text = value;
}

static void and_number(struct where *w, const char *clause, int64_t value)
{
	(void)tw_buf_printf(&w->sql, " AND %s", clause);
	w->binds[w->n].text = NULL;
	w->binds[w->n++].number = value;
}

/* %, _ and \ are ordinary characters of what is looked for. */
static char *like_pattern(struct tw_arena *a, const char *text)
{
	size_t len = strlen(text);
	char *p = tw_arena_alloc(a, len * 2 + 3, 1);
	size_t at = 0;

	if (!p)
		return NULL;
	p[at++] = '%';
	for (size_t i = 0; i < len; i++) {
		if (strchr("%_\\", text[i]))
			p[at++] = '\\';
		p[at++] = text[i];
	}
	p[at++] = '%';
	p[at] = '\0';
	return p;
}

static enum tw_status state_number(const char *word, int64_t *ret, struct tw_err *err)
{
	for (int s = TW_TRACE_QUEUED; s < TW_TRACE_STATES; s++)
		if (strcmp(word, tw_trace_state_word((enum tw_trace_state)s)) == 0) {
			*ret = s;
			return TW_OK;
		}
	return tw_fail(
	        err, TW_BAD_REQUEST, "state is one of queued, decoding, ready, failed, archived");
}

/* Those that have every one of the tags. */
static enum tw_status and_tags(
        struct where *w, const char *tags, struct tw_arena *a, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tags ? tags : "");

	for (int n = 0; rest.len; n++) {
		const char *tag = tw_arena_str(a, tw_str_split(&rest, ','));

		if (!tag)
			return tw_oom(err);
		if (n == FILTER_TAGS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "tag names more than %d tags", FILTER_TAGS);
		and_text(w,
		        "trace_id IN (SELECT trace_id FROM trace_tag t WHERE"
		        " t.project_id=trace.project_id AND t.tag=?)",
		        tag);
	}
	return TW_OK;
}

static enum tw_status build_where(
        struct where *w, const struct tw_trace_filter *f, struct tw_arena *a, struct tw_err *err)
{
	int64_t state = 0;
	enum tw_status st = TW_OK;
	char *pattern;

	and_text(w, "app=?", f->app);
	and_text(w, "version_name=?", f->version_name);
	and_text(w, "build_id=?", f->build_id);
	and_text(w, "device=?", f->device);
	and_text(w, "os=?", f->os);
	and_text(w, "scenario=?", f->scenario);
	and_text(w, "process=?", f->process);
	if (f->pinned)
		(void)tw_buf_printf(&w->sql, " AND pinned=1");
	if (st == TW_OK)
		st = and_tags(w, f->tag, a, err);
	if (f->state && f->state[0]) {
		st = state_number(f->state, &state, err);
		and_number(w, "state=?", state);
	}
	if (f->since_ms)
		and_number(w, "created_ms>=?", f->since_ms);
	if (f->until_ms)
		and_number(w, "created_ms<?", f->until_ms);
	if (st == TW_OK && f->text && f->text[0]) {
		pattern = like_pattern(a, f->text);
		if (!pattern)
			return tw_oom(err);
		and_text(w,
		        "title||char(10)||app||char(10)||version_name||char(10)||device||char(10)||"
		        "scenario"
		        "||char(10)||build_id||char(10)||process||char(10)||trace_id LIKE ? ESCAPE "
		        "'\\'",
		        pattern);
	}
	return st;
}

/* Cursor: "<sort value>.<trace id>". */
static enum tw_status read_cursor(const char *cursor, struct tw_arena *a, int64_t *ret_value,
        const char **ret_id, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(cursor);
	struct tw_str value = tw_str_split(&rest, '.');
	uint64_t number = 0;
	const char *id = tw_arena_str(a, rest);

	if (!id)
		return tw_oom(err);
	if (!tw_str_u64(value, INT64_MAX, &number) || !tw_ulid_valid(id))
		return tw_fail(err, TW_BAD_REQUEST, "cursor is not one that a list gave");
	*ret_value = (int64_t)number;
	*ret_id = id;
	return TW_OK;
}

static enum tw_status bind_where(struct tw_cat_query *q, struct tw_db *db, const char *sql,
        const char *project_id, const struct where *w, struct tw_err *err)
{
	enum tw_status st = tw_cat_query(q, db, err, sql, "t", project_id);

	for (int i = 0; st == TW_OK && i < w->n; i++) {
		if (w->binds[i].text)
			tw_cat_bind_text(q, i + 2, w->binds[i].text);
		else
			tw_cat_bind_int(q, i + 2, w->binds[i].number);
	}
	return st;
}

static enum tw_status count_all(struct tw_db *db, const char *project_id, const struct where *w,
        uint64_t *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	char sql[WHERE_MAX + 128];
	enum tw_status st;

	(void)snprintf(sql, sizeof sql, "SELECT count(*) FROM trace WHERE project_id=?%s",
	        w->sql.len ? (const char *)w->sql.data : "");
	st = bind_where(&q, db, sql, project_id, w, err);
	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (uint64_t)tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static int64_t sort_value(const struct tw_trace_row *r, enum tw_trace_sort sort)
{
	switch (sort) {
	case TW_SORT_DURATION:
		return r->summary.duration_ns;
	case TW_SORT_SLICES:
		return (int64_t)r->summary.slices;
	case TW_SORT_BYTES:
		return (int64_t)r->upload_bytes;
	case TW_SORT_CREATED:
	default:
		return r->created_ms;
	}
}

struct page {
	struct tw_trace_row *rows;
	size_t n, limit;
	const char *cursor;
};

static enum tw_status read_rows(
        struct tw_cat_query *q, struct tw_arena *a, struct page *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && p->n <= p->limit && tw_cat_row(q))
		st = tw_catalogue_read_row(q, a, &p->rows[p->n++]) ? TW_OK : tw_oom(err);
	return tw_cat_close_after(q, st, err);
}

static enum tw_status read_page(struct tw_db *db, const char *project_id,
        const struct tw_trace_filter *f, struct where *w, struct tw_arena *a, struct page *p,
        struct tw_err *err)
{
	const char *column = sort_columns[f->sort];
	const char *order = f->ascending ? "ASC" : "DESC";
	char sql[WHERE_MAX + 1024];
	struct tw_cat_query q;
	enum tw_status st;

	if (f->cursor && f->cursor[0]) {
		int64_t value = 0;
		const char *id = NULL;

		st = read_cursor(f->cursor, a, &value, &id, err);
		if (st != TW_OK)
			return st;
		(void)tw_buf_printf(
		        &w->sql, " AND (%s,trace_id)%s(?", column, f->ascending ? ">" : "<");
		w->binds[w->n].text = NULL;
		w->binds[w->n++].number = value;
		(void)tw_buf_printf(&w->sql, ",?)");
		w->binds[w->n++].text = id;
	}
	if (tw_buf_status(&w->sql) != TW_OK)
		return tw_oom(err);
	/* trace_by_created, _duration, _slices or _bytes: one per sort column */
	(void)snprintf(sql, sizeof sql,
	        "SELECT " TW_TRACE_COLUMNS " FROM trace WHERE project_id=?%s"
	        " ORDER BY %s %s, trace_id %s LIMIT %zu",
	        w->sql.len ? (const char *)w->sql.data : "", column, order, order, p->limit + 1);
	st = bind_where(&q, db, sql, project_id, w, err);
	return st == TW_OK ? read_rows(&q, a, p, err) : st;
}

static enum tw_status end_page(
        struct page *p, enum tw_trace_sort sort, struct tw_arena *a, struct tw_err *err)
{
	const struct tw_trace_row *last;

	p->cursor = "";
	if (p->n <= p->limit)
		return TW_OK;
	p->n = p->limit; /* the row past the page only told that there is one */
	last = &p->rows[p->n - 1];
	p->cursor = tw_arena_printf(a, "%lld.%s", (long long)sort_value(last, sort), last->id);
	return p->cursor ? TW_OK : tw_oom(err);
}

static enum tw_status list(struct tw_db *db, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct page *p, uint64_t *ret_total,
        struct tw_err *err)
{
	struct where w = {0};
	enum tw_status st;

	tw_buf_init(&w.sql, WHERE_MAX);
	st = build_where(&w, f, a, err);
	if (st == TW_OK)
		st = count_all(db, project_id, &w, ret_total, err);
	if (st == TW_OK)
		st = read_page(db, project_id, f, &w, a, p, err);
	tw_buf_done(&w.sql);
	return st == TW_OK ? end_page(p, f->sort, a, err) : st;
}

enum tw_status tw_catalogue_traces(struct tw_catalogue *c, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, const char **ret_cursor, uint64_t *ret_total, struct tw_err *err)
{
	struct page p = {.limit = f->limit && f->limit < LIMIT_MAX ? f->limit : LIMIT_MAX};
	struct tw_db *db;
	enum tw_status st;

	p.rows = tw_arena_alloc(a, p.limit + 1, sizeof *p.rows);
	if (!p.rows)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = list(db, project_id, f, a, &p, ret_total, err);
	tw_cat_done(c, db);
	if (st == TW_OK) {
		*ret = p.rows;
		*ret_n = p.n;
		*ret_cursor = p.cursor;
	}
	return st;
}

static const char *facet_sql(const char *column)
{
	static const struct {
		const char *column, *sql;
	} known[] = {
#define FACET(name)                                                                                \
	{#name, "SELECT " #name ", count(*) AS n FROM trace WHERE project_id=? GROUP BY 1"         \
	        " ORDER BY n DESC, 1 LIMIT 200"}
	        FACET(app),
	        FACET(version_name),
	        FACET(build_id),
	        FACET(device),
	        FACET(os),
	        FACET(scenario),
	        FACET(state),
	        FACET(process),
#undef FACET
	        {"tag", "SELECT tag, count(*) AS n FROM trace_tag WHERE project_id=? GROUP BY 1"
	                " ORDER BY n DESC, 1 LIMIT 200"},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].column, column) == 0)
			return known[i].sql;
	return NULL;
}

static enum tw_status read_facets(struct tw_cat_query *q, bool states, struct tw_arena *a,
        struct tw_facet *rows, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (st == TW_OK && n < FACETS_MAX && tw_cat_row(q)) {
		rows[n].value = states ? tw_trace_state_word((enum tw_trace_state)tw_cat_int(q, 0))
		                       : tw_cat_text(q, 0, a);
		rows[n].count = (uint64_t)tw_cat_int(q, 1);
		if (!rows[n++].value)
			st = tw_oom(err);
	}
	*ret_n = n;
	return tw_cat_close_after(q, st, err);
}

enum tw_status tw_catalogue_facets(struct tw_catalogue *c, const char *project_id,
        const char *column, struct tw_arena *a, struct tw_facet **ret, size_t *ret_n,
        struct tw_err *err)
{
	const char *sql = facet_sql(column);
	struct tw_facet *rows = tw_arena_alloc(a, FACETS_MAX, sizeof *rows);
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st;

	if (!sql)
		return tw_fail(err, TW_BAD_REQUEST, "no list of values for this column");
	if (!rows)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, sql, "t", project_id);
	if (st == TW_OK)
		st = read_facets(&q, strcmp(column, "state") == 0, a, rows, ret_n, err);
	tw_cat_done(c, db);
	*ret = rows;
	return st;
}

/*
 * catalogue_list.c - the list of traces: filters, order, pages, facets.
 */
#include "server/catalogue/traces/catalogue_list.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "server/base/text/json.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/page_cursor.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum {
	WHERE_MAX = 16384,
	LIMIT_MAX = 500,
	FACETS_MAX = 200,
	FILTER_TAGS = 8,
	FILTER_WORDS = 8,
	VALUES_MAX = 300, /* one less than in values_sql */
	BINDS_MAX = 144
};

static const char *const sort_columns[] = {
        [TW_SORT_CREATED] = "created_ms",
        [TW_SORT_DURATION] = "duration_ns",
        [TW_SORT_SLICES] = "slices",
        [TW_SORT_BYTES] = "upload_bytes",
};

static const char *const sorted_columns[] = {
        [TW_SORT_CREATED] = "+created_ms",
        [TW_SORT_DURATION] = "+duration_ns",
        [TW_SORT_SLICES] = "+slices",
        [TW_SORT_BYTES] = "+upload_bytes",
};

/* --- filters --- */

/* Version codes are texts; NULL where one is not a number. */
#define VERSION_CODE_NUMBER                                                                        \
	"CASE WHEN version_code<>'' AND trim(version_code,'0123456789')='' AND"                    \
	" length(version_code)<19 THEN CAST(version_code AS BIGINT) END"

/* LIKE in PostgreSQL, which estimates its matches from a sample of the column.  For strpos() it
 * assumes that every third row matches, and chooses a bad plan. */
#define PATTERN(text)  "('%'||regexp_replace(" text ",'([\\\\%_])','\\\\\\1','g')||'%')"
#define CONTAINS(text) " ~~ " PATTERN(text)

enum kind { TEXT, NUMBER, STATE, FLAG, WORDS, TAG, LABEL };

static const struct {
	const char *name;
	enum kind kind;
	const char *sql;
} filters[] = {
#define COLUMN(name)                   {#name, TEXT, #name "=?"},
#define FILTER(name, kind, about, sql) {#name, kind, sql},
#include "server/catalogue/traces/filters.def"
#undef COLUMN
#undef FILTER
};

enum tw_status tw_trace_filter_add(
        struct tw_trace_filter *f, const char *name, const char *value, struct tw_err *err)
{
	int by = 0, at = 0;

	while (by < TW_TRACE_BYS && strcmp(filters[by].name, name) != 0)
		by++;
	if (by == TW_TRACE_BYS)
		return TW_OK;
	while (f->of[at].value)
		at++;
	if (at == TW_TRACE_CONDITIONS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "more than %d filters", at);
	f->of[at].by = (enum tw_trace_by)by;
	f->of[at].value = value;
	return TW_OK;
}

/* WHERE clauses and the values that they bind, in order. */
struct where {
	struct tw_db *db;
	const char *project_id;
	struct tw_arena *arena;
	struct tw_buf sql;
	bool others; /* conditions other than on the time of recording */
	struct {
		const char *text; /* NULL: number */
		int64_t number;
	} binds[BINDS_MAX + 2]; /* the cursor's too */
	int n;
};

static enum tw_status too_many(const struct where *w, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST, "the filters name more than %d values", w->n);
}

/* `text` NULL: the number. */
static enum tw_status and_value(
        struct where *w, const char *clause, const char *text, int64_t number, struct tw_err *err)
{
	if (w->n == BINDS_MAX)
		return too_many(w, err);
	(void)tw_buf_printf(&w->sql, " AND %s", clause);
	w->binds[w->n].text = text;
	w->binds[w->n++].number = number;
	return TW_OK;
}

static enum tw_status bind_where(struct tw_cat_query *q, struct tw_db *db, const char *sql,
        const char *project_id, const struct where *w, struct tw_err *err)
{
	enum tw_status st = tw_cat_query_fields(q, db, &tw_trace_fields, err, sql, "t", project_id);

	for (int i = 0; st == TW_OK && i < w->n; i++) {
		if (w->binds[i].text)
			tw_cat_bind_text(q, i + 2, w->binds[i].text);
		else
			tw_cat_bind_int(q, i + 2, w->binds[i].number);
	}
	return st;
}

static enum tw_status and_number(
        struct where *w, const char *name, const char *sql, const char *value, struct tw_err *err)
{
	uint64_t number = 0;

	if (!tw_str_u64(tw_str_of(value), INT64_MAX, &number))
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a number from 0 to %lld, not %.60s",
		        name, (long long)INT64_MAX, value);
	return and_value(w, sql, NULL, (int64_t)number, err);
}

/* Few traces have other states than ready: these conditions find them without the others.
 * job.claimed is 1 if the trace is being decoded (TW_TRACE_DECODING), 0 if it is queued. */
#define WAITS "state=0 AND trace_id IN (SELECT trace_id FROM job WHERE project_id=?1 AND claimed=?)"
#define ENDED " AND state>2" /* trace_by_end */

static enum tw_status and_state(
        struct where *w, const char *sql, const char *word, struct tw_err *err)
{
	for (int s = TW_TRACE_QUEUED; s < TW_TRACE_STATES; s++)
		if (strcmp(word, tw_trace_state_name((enum tw_trace_state)s)) == 0) {
			if (s > TW_TRACE_READY)
				(void)tw_buf_printf(&w->sql, ENDED);
			return and_value(w, s < TW_TRACE_READY ? WAITS : sql, NULL, s, err);
		}
	return tw_fail(err, TW_BAD_REQUEST,
	        "state must be queued, decoding, ready, failed or archived, not %.60s", word);
}

static enum tw_status and_flag(
        struct where *w, const char *name, const char *sql, const char *value, struct tw_err *err)
{
	if (strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
		(void)tw_buf_printf(&w->sql, " AND %s", sql);
	else if (strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be 0 or 1, not %.60s", name, value);
	return TW_OK;
}

/* Traces that have all of the tags. */
static enum tw_status and_tags(
        struct where *w, const char *sql, const char *tags, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tags);
	enum tw_status st = TW_OK;

	for (int n = 0; st == TW_OK && rest.len; n++) {
		const char *tag = tw_arena_str(w->arena, tw_str_split(&rest, ','));

		if (!tag)
			return tw_oom(err);
		if (n == FILTER_TAGS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "tag names more than %d tags", FILTER_TAGS);
		st = and_value(w, sql, tag, 0, err);
	}
	return st;
}

/* --- words --- */

/* A word is first searched for in the distinct values of each column, which are few.  Its traces
 * are those with one of the values found, so a word that occurs in none reads no trace.  If it
 * occurs in more than VALUES_MAX values of a column, the column itself is compared.  A word that
 * all values of a column contain is in every trace (8). */
#define HAS_WORD(text, word)                                                                       \
	TW_EITHER("has_word(" word "," text ")", text " ~~* " PATTERN(word "::text"))
#define VALUES(place, value, from)                                                                 \
	"SELECT " place ", value FROM (SELECT " value " AS value FROM " from                       \
	" LIMIT 301) AS of_" place
#define OF_FIELD(place) "trace_value WHERE project_id=?1 AND field=" place " AND "
#define FIELD(place)                                                                               \
	VALUES(place, "value", OF_FIELD(place) HAS_WORD("value", "?2"))                            \
	" UNION ALL SELECT 8, '' WHERE NOT EXISTS (SELECT 1 FROM " OF_FIELD(                       \
	        place) "NOT " HAS_WORD("value", "?2") ") UNION ALL "
static const char values_sql[] = /* primary keys, trace_with_title */
        FIELD("0") FIELD("1") FIELD("2") FIELD("3") FIELD("4") FIELD("5") VALUES("6", "title",
                "trace WHERE project_id=?1 AND title<>'' AND " HAS_WORD(
                        "title", "?2")) " UNION ALL " VALUES("7", "trace_id",
                "trace WHERE project_id=?1 AND trace_id>=upper(?2) AND trace_id<upper(?2)||'~'");

/* Where a word may occur, numbered as in values_sql.  Without +, SQLite would read all matches by
 * the column's index and sort them for a page. */
#define PLACE(column) TW_EITHER("+", "") column TW_CAT_AMONG_TEXTS("?"), HAS_WORD(column, "?")
#define TITLED        "title<>'' AND title" TW_CAT_AMONG_TEXTS("?")
#define IDS_BY(index) "SELECT trace_id FROM trace INDEXED BY " index " WHERE project_id=?1 AND "
#define IDS           "SELECT trace_id FROM trace WHERE project_id=?1 AND trace_id"
static const struct {
	const char *among, *has; /* conditions: one of a list of values; the word */
	const char *ids;         /* of the traces with one of a list of values; NULL: no index */
} places[] = {{PLACE("app"), NULL}, {PLACE("version_name"), NULL},
        {PLACE("device"), IDS_BY("trace_by_device") "device" TW_CAT_AMONG_TEXTS("?")},
        {PLACE("scenario"), NULL},
        {PLACE("build_id"), IDS_BY("trace_by_build") "build_id" TW_CAT_AMONG_TEXTS("?")},
        {PLACE("process"), NULL},
        {TITLED, HAS_WORD("title", "?"), IDS_BY("trace_with_title") TITLED},
        {TW_EITHER("+", "") "trace_id" TW_CAT_AMONG_TEXTS("?"), "trace_id LIKE ?||'%'",
                IDS TW_CAT_AMONG_TEXTS("?")}};
enum { PLACES = sizeof places / sizeof *places, EVERY_TRACE = PLACES };

#define AMONG_IDS " AND +trace_id IN ("

struct values {
	const char **list;
	size_t n;
	uint32_t cap;
};

static enum tw_status read_values(const struct where *w, const char *word,
        struct values found[PLACES + 1], struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, w->db, err, values_sql, "tt", w->project_id, word);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && tw_cat_row(&q)) {
		struct values *v = &found[tw_cat_int(&q, 0)];

		if (!TW_GROW(w->arena, v->list, v->n, v->cap) ||
		        !(v->list[v->n] = tw_cat_text(&q, 1, w->arena)))
			st = tw_oom(err);
		else
			v->n++;
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status add_text(struct where *w, const char *before, const char *clause,
        const char *text, struct tw_err *err)
{
	if (w->n == BINDS_MAX)
		return too_many(w, err);
	(void)tw_buf_printf(&w->sql, "%s%s", before, clause);
	w->binds[w->n++].text = text;
	return text ? TW_OK : tw_oom(err);
}

static const char *list_of(const struct where *w, const struct values *v)
{
	return tw_cat_texts(w->db, v->list, v->n, w->arena);
}

static enum tw_status and_places(
        struct where *w, const struct values found[PLACES], const char *word, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	bool any = false;

	for (int i = 0; st == TW_OK && i < PLACES; i++) {
		const struct values *v = &found[i];
		const char *before = any ? " OR " : " AND (";

		if (v->n == 0)
			continue;
		any = true;
		st = v->n <= VALUES_MAX ? add_text(w, before, places[i].among, list_of(w, v), err)
		                        : add_text(w, before, places[i].has, word, err);
	}
	(void)tw_buf_printf(&w->sql, any ? ")" : " AND 1=0");
	return st;
}

static enum tw_status list_ids(
        struct where *w, const struct values found[PLACES], struct tw_err *err)
{
	const char *before = "";
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i < PLACES; i++) {
		if (found[i].n == 0)
			continue;
		st = add_text(w, before, places[i].ids, list_of(w, &found[i]), err);
		before = " UNION ALL ";
	}
	return st;
}

static enum tw_status count_ids(
        struct where *ids, const char *project_id, int64_t *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	const char *sql = tw_arena_printf(ids->arena, "SELECT count(*) FROM (%s LIMIT %d)",
	        (const char *)ids->sql.data, TW_TRACE_TOTAL_MAX + 1);
	enum tw_status st = sql ? bind_where(&q, ids->db, sql, project_id, ids, err) : tw_oom(err);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

/* Whether indexes find the traces of a word, and their number is at most TW_TRACE_TOTAL_MAX. SQLite
 * has no statistics: without their ids, it would read all traces of the project. */
static enum tw_status are_few(
        struct where *w, const struct values found[PLACES], bool *ret, struct tw_err *err)
{
	struct where ids = {.db = w->db, .arena = w->arena};
	int64_t n = TW_TRACE_TOTAL_MAX + 1;
	enum tw_status st;

	*ret = false;
	if (w->db->engine->is_shared)
		return TW_OK;
	for (int i = 0; i < PLACES; i++)
		if (found[i].n > VALUES_MAX || (found[i].n && !places[i].ids))
			return TW_OK;
	tw_buf_init(&ids.sql, WHERE_MAX);
	st = list_ids(&ids, found, err);
	if (st == TW_OK && ids.n)
		st = count_ids(&ids, w->project_id, &n, err);
	tw_buf_done(&ids.sql);
	*ret = n <= TW_TRACE_TOTAL_MAX;
	return st;
}

static enum tw_status and_word(struct where *w, const char *word, struct tw_err *err)
{
	struct values found[PLACES + 1] = {{NULL, 0, 0}};
	enum tw_status st = word ? read_values(w, word, found, err) : tw_oom(err);
	bool few = false;

	if (st != TW_OK || found[EVERY_TRACE].n)
		return st;
	st = are_few(w, found, &few, err);
	if (st != TW_OK || !few)
		return st == TW_OK ? and_places(w, found, word, err) : st;
	(void)tw_buf_printf(&w->sql, AMONG_IDS);
	st = list_ids(w, found, err);
	(void)tw_buf_printf(&w->sql, ")");
	return st;
}

/* Every word of the text occurs somewhere. */
static enum tw_status and_words(struct where *w, const char *text, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	enum tw_status st = TW_OK;

	for (int n = 0; st == TW_OK && rest.len;) {
		const struct tw_str word = tw_str_split(&rest, ' ');

		if (word.len && n++ == FILTER_WORDS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "q has more than %d words", FILTER_WORDS);
		if (word.len)
			st = and_word(w, tw_arena_str(w->arena, word), err);
	}
	return st;
}

/* --- labels --- */

/* Labels are stored as JSON without blanks.  Text that begins at a member, after { or a comma,
 * matches only there, as quotes within strings are escaped. */
static enum tw_status or_member(
        struct where *w, const char *sql, const char *key, const char *value, struct tw_err *err)
{
	static const char *const begins[] = {"{", ","};

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		const char *text = tw_arena_printf(w->arena, "%s%s:%s", begins[i], key, value);

		if (!text)
			return tw_oom(err);
		if (w->n == BINDS_MAX)
			return too_many(w, err);
		(void)tw_buf_printf(&w->sql, " OR %s", sql);
		w->binds[w->n].text = text;
		w->binds[w->n++].number = 0;
	}
	return TW_OK;
}

static const char *json_text(struct tw_arena *a, struct tw_str s)
{
	json_t *string = json_stringn(s.ptr, s.len);
	char *text = tw_json_dumps(string, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *copy = text ? tw_arena_str(a, tw_str_of(text)) : NULL;

	free(text); /* NOLINT: jansson's */
	json_decref(string);
	return copy;
}

/* Numbers and flags have no quotes, and are followed by another member or the end. */
static enum tw_status or_plain(
        struct where *w, const char *sql, const char *key, const char *value, struct tw_err *err)
{
	static const char ends[] = {',', '}'};
	const bool is_plain = strspn(value, "+-.0123456789Ee") == strlen(value) ||
	                      strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
	enum tw_status st = TW_OK;

	for (int i = 0; is_plain && st == TW_OK && i < 2; i++) {
		const char *text = tw_arena_printf(w->arena, "%s%c", value, ends[i]);

		st = text ? or_member(w, sql, key, text, err) : tw_oom(err);
	}
	return st;
}

static enum tw_status or_label(struct where *w, const char *sql, const char *label, const char *at,
        bool any_value, struct tw_err *err)
{
	const char *key = json_text(w->arena, (struct tw_str){label, (size_t)(at - label)});
	const char *text = json_text(w->arena, tw_str_of(at + 1));
	enum tw_status st;

	if (!key || !text)
		return tw_oom(err);
	st = or_member(w, sql, key, any_value ? "" : text, err);
	return st == TW_OK && !any_value && at[1] ? or_plain(w, sql, key, at + 1, err) : st;
}

/* Most traces lack the value, which one search shows instead of one for each form of the label. */
static enum tw_status and_value_occurs(struct where *w, const char *label, struct tw_err *err)
{
	const char *last = strrchr(label, '=') + 1;
	const char *quoted = json_text(w->arena, tw_str_of(last));
	const size_t len = quoted ? strlen(quoted) : 0;
	const char *text =
	        len ? tw_arena_str(w->arena, (struct tw_str){quoted + 1, len - 2}) : NULL;

	if (!text)
		return tw_oom(err);
	return *last ? and_value(w, TW_EITHER("has_word(?,labels)", "labels" CONTAINS("?")), text,
	                       0, err)
	             : TW_OK;
}

/* KEY=VALUE, where the value may contain =; KEY= matches traces without it. */
static enum tw_status and_label(
        struct where *w, const char *sql, const char *label, struct tw_err *err)
{
	const char *at = strchr(label, '=');
	enum tw_status st = TW_OK;

	if (!at || at == label || strchr(",:}", label[0]))
		return tw_fail(err, TW_BAD_REQUEST,
		        "label must be KEY=VALUE, with an empty VALUE for traces without it, not "
		        "%.60s",
		        label);
	if (at[1])
		st = and_value_occurs(w, label, err);
	(void)tw_buf_printf(&w->sql, " AND (%s(1=0", at[1] ? "" : "NOT ");
	if (st == TW_OK && !at[1])
		st = or_label(w, sql, label, at, true, err);
	(void)tw_buf_printf(&w->sql, ")");
	for (; st == TW_OK && at; at = strchr(at + 1, '='))
		st = or_label(w, sql, label, at, false, err);
	(void)tw_buf_printf(&w->sql, ")");
	return st;
}

static enum tw_status and_filter(
        struct where *w, enum tw_trace_by by, const char *value, struct tw_err *err)
{
	const char *name = filters[by].name;
	const char *sql = filters[by].sql;

	switch (filters[by].kind) {
	case NUMBER:
		return and_number(w, name, sql, value, err);
	case STATE:
		return and_state(w, sql, value, err);
	case FLAG:
		return and_flag(w, name, sql, value, err);
	case WORDS:
		return and_words(w, value, err);
	case TAG:
		return and_tags(w, sql, value, err);
	case LABEL:
		return and_label(w, sql, value, err);
	case TEXT:
	default:
		return and_value(w, sql, value, 0, err);
	}
}

static enum tw_status build_where(
        struct where *w, const struct tw_trace_filter *f, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i <= TW_TRACE_CONDITIONS_MAX && f->of[i].value; i++) {
		if (!f->of[i].value[0])
			continue;
		st = and_filter(w, f->of[i].by, f->of[i].value, err);
		w->others |=
		        f->of[i].by != TW_BY_recorded_since && f->of[i].by != TW_BY_recorded_until;
	}
	return st;
}

/* --- pages --- */

static void use_index(char *sql, const char *before, const char *column)
{
	while ((sql = strstr(sql, before)) && (sql = strstr(sql, column)))
		*sql = ' ';
}

/* A count has no order, so it may read a range of recordings by their index, and few traces by
 * their ids.  SQLite has no statistics: with other conditions, it would read all rows of a wide
 * range for these. */
static void use_indexes(const struct tw_db *db, const struct where *w, char *sql)
{
	use_index(sql, AMONG_IDS, "+trace_id");
	if (db->engine->is_shared || !w->others)
		use_index(sql, "", "+recorded_ms");
}

/* *ret_ids: if few match, their ids for TW_CAT_AMONG_TEXTS, so that the page is read without
 * another search; otherwise NULL. */
static enum tw_status count_all(struct tw_db *db, const char *project_id, const struct where *w,
        uint64_t *ret, const char **ret_ids, struct tw_err *err)
{
	struct tw_cat_query q;
	char sql[WHERE_MAX + 256];
	enum tw_status st;

	(void)snprintf(sql, sizeof sql,
	        "SELECT " TW_DB_BY_VALUES
	        "count(*)%s FROM (SELECT trace_id FROM trace WHERE project_id=?%s LIMIT"
	        " %d) AS of_list",
	        w->sql.len
	                ? "," TW_EITHER("json_group_array(trace_id)", "array_agg(trace_id)::text")
	                : "",
	        w->sql.len ? (const char *)w->sql.data : "", TW_TRACE_TOTAL_MAX + 1);
	use_indexes(db, w, sql);
	st = bind_where(&q, db, sql, project_id, w, err);
	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (uint64_t)tw_cat_int(&q, 0) : 0;
	if (w->sql.len && *ret > 0 && *ret <= LIMIT_MAX) {
		*ret_ids = tw_cat_text(&q, 1, w->arena);
		st = *ret_ids ? TW_OK : tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
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
		st = tw_cat_read_trace(q, a, &p->rows[p->n++]) ? TW_OK : tw_oom(err);
	return tw_cat_close_after(q, st, err);
}

static enum tw_status add_cursor(
        struct where *w, const struct tw_trace_filter *f, const char *column, struct tw_err *err)
{
	struct tw_page_cursor last = {0, ""};
	enum tw_status st = tw_page_cursor_read(f->cursor, &last, err);

	if (st != TW_OK)
		return st;
	(void)tw_buf_printf(&w->sql, " AND (%s,trace_id)%s(?,?)", column, f->ascending ? ">" : "<");
	w->binds[w->n].text = NULL;
	w->binds[w->n++].number = last.number;
	w->binds[w->n++].text = last.id;
	return TW_OK;
}

/* A column's index returns a page in order if the filter matches many rows.  If it matches few,
 * they are read by their ids and sorted.  + prevents the planner from reading all rows of the
 * project in order. */
static enum tw_status read_page(struct tw_db *db, const char *project_id,
        const struct tw_trace_filter *f, const char *ids, struct where *w, struct page *p,
        struct tw_err *err)
{
	const char *order = f->ascending ? "ASC" : "DESC";
	const char *column = ids ? sorted_columns[f->sort] : sort_columns[f->sort];
	char sql[WHERE_MAX + 1024];
	struct tw_cat_query q;
	enum tw_status st = TW_OK;

	if (ids) {
		tw_buf_clear(&w->sql);
		w->n = 0;
		st = and_value(w, "trace_id" TW_CAT_AMONG_TEXTS("?"), ids, 0, err);
	}
	if (st == TW_OK && f->cursor && f->cursor[0])
		st = add_cursor(w, f, column, err);
	if (st == TW_OK && tw_buf_status(&w->sql) != TW_OK)
		st = tw_oom(err);
	if (st != TW_OK)
		return st;
	/* trace_by_created, _duration, _slices or _bytes: one per sort column */
	(void)snprintf(sql, sizeof sql,
	        "SELECT " TW_DB_BY_VALUES TW_CAT_TRACE_COLUMNS " FROM trace WHERE project_id=?%s"
	        " ORDER BY %s %s, trace_id %s LIMIT %zu",
	        w->sql.len ? (const char *)w->sql.data : "", column, order, order, p->limit + 1);
	st = bind_where(&q, db, sql, project_id, w, err);
	return st == TW_OK ? read_rows(&q, w->arena, p, err) : st;
}

static enum tw_status end_page(
        struct page *p, enum tw_trace_sort sort, struct tw_arena *a, struct tw_err *err)
{
	const struct tw_trace_row *last;

	p->cursor = "";
	if (p->n <= p->limit)
		return TW_OK;
	p->n = p->limit; /* the extra row only shows that there is another page */
	last = &p->rows[p->n - 1];
	p->cursor = tw_page_cursor_text(a, sort_value(last, sort), last->id);
	return p->cursor ? TW_OK : tw_oom(err);
}

static enum tw_status list(struct tw_db *db, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct page *p, uint64_t *ret_total,
        struct tw_err *err)
{
	struct where w = {.db = db, .project_id = project_id, .arena = a};
	const char *ids = NULL;
	enum tw_status st;

	tw_buf_init(&w.sql, WHERE_MAX);
	st = build_where(&w, f, err);
	if (st == TW_OK && tw_buf_status(&w.sql) != TW_OK)
		st = tw_oom(err);
	if (st == TW_OK)
		st = count_all(db, project_id, &w, ret_total, &ids, err);
	if (st == TW_OK && *ret_total > 0)
		st = read_page(db, project_id, f, ids, &w, p, err);
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

/* --- facets --- */

/* Of the newest traces only: on a large project the columns of all rows take seconds to read, and
 * their labels longer. */
#define NEWEST        " ORDER BY created_ms DESC, trace_id DESC LIMIT "
#define MOST_FREQUENT " GROUP BY 1 ORDER BY n DESC, 1 LIMIT 200"
/* SQLite would sort the rows to group them, which takes longer than to read and count them.
 * PostgreSQL reads each row of its table. */
#define COLUMN_FACET                                                                               \
	"SELECT %s" TW_EITHER(", 1",                                                               \
	        ", count(*) AS n") " FROM (SELECT %s FROM trace WHERE"                             \
	                           " project_id=?" NEWEST TW_EITHER("%d",                          \
	                                   "20000") ") AS of_newest" TW_EITHER("", MOST_FREQUENT)
/* Counts failed, archived and waiting traces in indexes, without reading rows.  All others are
 * ready, except that traces created at the time of the last counted one may exceed the limit. */
#define NEWEST_STATES NEWEST TW_EITHER("50000", "20000")
#define OF_NEWEST     "project_id=?1 AND created_ms>=(SELECT ms FROM of_newest)"
#define OF_STATE(s)                                                                                \
	"SELECT " s " AS state, count(*) AS n FROM trace WHERE " OF_NEWEST ENDED " AND state=" s   \
	" UNION ALL "
#define OTHER_STATES                                                                               \
	OF_STATE("3")                                                                              \
	OF_STATE("4")                                                                              \
	"SELECT claimed, count(*) AS n FROM job JOIN trace USING (project_id, trace_id) "          \
	"WHERE " OF_NEWEST " AND state=0 GROUP BY claimed"
#define STATE_FACET                                                                                \
	"WITH of_newest AS (SELECT count(*) AS n, min(created_ms) AS ms FROM (SELECT created_ms"   \
	" FROM trace WHERE project_id=?1" NEWEST_STATES                                            \
	") AS of_times), of_others AS (" OTHER_STATES                                              \
	") SELECT state, n FROM (SELECT state, n FROM of_others UNION ALL SELECT 2,"               \
	" n-CAST((SELECT coalesce(sum(n),0) FROM of_others) AS BIGINT) FROM of_newest) AS of_all"  \
	" WHERE n>0"
#define TAG_FACET "SELECT tag, count(*) AS n FROM trace_tag WHERE project_id=?" MOST_FREQUENT

#define LABEL_FACET                                                                                \
	"SELECT e.key||'='||" TW_EITHER("CASE WHEN e.type IN ('true','false') THEN e.type"         \
	                                " ELSE e.value END",                                       \
	        "e.value") " AS label, count(*) AS n FROM (SELECT labels FROM trace WHERE"         \
	                   " project_id=? AND labels<>''" NEWEST                                   \
	                   "2000) AS of_newest, " TW_EITHER("json_each(of_newest.labels)",         \
	                           "jsonb_each_text(of_newest.labels::jsonb)") " e" MOST_FREQUENT

enum { FACET_SQL = sizeof LABEL_FACET + sizeof STATE_FACET };

/* Of trace_by_created: other columns are read from the table, in twice the time. */
static bool is_in_index(const char *column)
{
	static const char *const names[] = {
	        "app", "version_name", "device", "scenario", "build_id", "process"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(column, names[i]) == 0)
			return true;
	return false;
}

/* False: not a column whose values can be listed. */
static bool facet_sql(const char *column, char out[FACET_SQL])
{
	int i = 0;

	while (i < TW_TRACE_BYS && strcmp(filters[i].name, column) != 0)
		i++;
	if (i == TW_TRACE_BYS)
		return false;
	if (filters[i].kind == STATE)
		(void)snprintf(out, FACET_SQL, "%s", STATE_FACET);
	else if (filters[i].kind == TEXT)
		(void)snprintf(out, FACET_SQL, COLUMN_FACET, column, column,
		        is_in_index(column) ? 100000 : 50000);
	else if (filters[i].kind == TAG || filters[i].kind == LABEL)
		(void)snprintf(
		        out, FACET_SQL, "%s", filters[i].kind == TAG ? TAG_FACET : LABEL_FACET);
	else
		return false;
	return true;
}

enum { VALUE_SLOTS = 1 << 18 }; /* more than twice as many as traces are read */

TW_ORDER_BY(most_frequent_first, struct tw_facet, TW_FALLING(count), TW_RISING(value))

/* Adds to the count of a value; free slots have none.  Devices choose the values, so their hash is
 * salted. */
static bool count_value(
        struct tw_facet *slots, struct tw_str value, uint64_t salt, uint64_t n, struct tw_arena *a)
{
	size_t at = tw_hash_str(value, salt) % VALUE_SLOTS;

	while (slots[at].value && !tw_str_eq(tw_str_of(slots[at].value), value))
		at = (at + 1) % VALUE_SLOTS;
	if (!slots[at].value)
		slots[at].value = tw_arena_str(a, value);
	slots[at].count += n;
	return slots[at].value != NULL;
}

static enum tw_status read_facets(struct tw_cat_query *q, bool states, struct tw_arena *a,
        struct tw_facet *slots, size_t *ret_n, struct tw_err *err)
{
	const uint64_t salt = (uint64_t)tw_cat_random();
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (st == TW_OK && tw_cat_row(q)) {
		const char *value =
		        states ? tw_trace_state_name((enum tw_trace_state)tw_cat_int(q, 0))
		               : tw_cat_str(q, 0);

		if (!count_value(slots, tw_str_of(value), salt, (uint64_t)tw_cat_int(q, 1), a))
			st = tw_oom(err);
	}
	for (size_t i = 0; i < VALUE_SLOTS; i++)
		if (slots[i].value)
			slots[n++] = slots[i];
	TW_SORT(slots, n, most_frequent_first);
	*ret_n = n < FACETS_MAX ? n : FACETS_MAX;
	return tw_cat_close_after(q, st, err);
}

static enum tw_status count_facets(struct tw_catalogue *c, const char *project_id, const char *sql,
        bool states, struct tw_arena *a, struct tw_facet *slots, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, sql, "t", project_id);
	if (st == TW_OK)
		st = read_facets(&q, states, a, slots, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_facets(struct tw_catalogue *c, const char *project_id,
        const char *column, struct tw_arena *a, struct tw_facet **ret, size_t *ret_n,
        struct tw_err *err)
{
	char sql[FACET_SQL];
	struct tw_facet *slots;
	enum tw_status st;

	if (!facet_sql(column, sql))
		return tw_fail(err, TW_BAD_REQUEST, "no list of values for this column");
	*ret = tw_arena_alloc(a, FACETS_MAX, sizeof **ret);
	slots = *ret ? tw_mem_zalloc(VALUE_SLOTS, sizeof *slots) : NULL;
	if (!slots)
		return tw_oom(err);
	st = count_facets(c, project_id, sql, strcmp(column, "state") == 0, a, slots, ret_n, err);
	if (st == TW_OK)
		memcpy(*ret, slots, *ret_n * sizeof *slots);
	tw_mem_free(slots);
	return st;
}

/* --- saved filters --- */

#define ROW(member) TW_FIELD(struct tw_filter_row, member, #member, #member)
static const struct tw_field row_fields[] = {ROW(name), ROW(query), ROW(author), ROW(updated_ms)};
const struct tw_fields tw_filter_fields = TW_FIELDS(row_fields);

enum tw_status tw_catalogue_filters(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_filter_row **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_FILTERS_MAX, &tw_filter_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM saved_filter WHERE project_id=? ORDER BY name", "t",
	        project_id);
}

static enum tw_status check_space(
        struct tw_db *db, const char *project_id, const char *name, struct tw_err *err)
{
	int64_t others = 0;
	enum tw_status st = tw_cat_get_int(/* primary key */
	        db, &others, err,
	        "SELECT count(*) FROM saved_filter WHERE project_id=? AND name<>?", "tt",
	        project_id, name);

	if (st == TW_OK && others >= TW_FILTERS_MAX)
		st = tw_fail(err, TW_CONFLICT,
		        "a project can have at most %d filters; delete one first", TW_FILTERS_MAX);
	return st;
}

enum tw_status tw_catalogue_filter_set(struct tw_catalogue *c, const char *project_id,
        const struct tw_filter_row *row, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = check_space(w, project_id, row->name, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO saved_filter(project_id,name,query,author,updated_ms)"
		        " VALUES(?,?,?,?,?) ON CONFLICT(project_id,name) DO UPDATE SET"
		        " query=excluded.query, author=excluded.author,"
		        " updated_ms=excluded.updated_ms",
		        "tttti", project_id, row->name, row->query, row->author, tw_unix_ms());
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "filter.set", project_id, row->name, .facts = {{"query", row->query}}},
	        err);
}

enum tw_status tw_catalogue_filter_delete(
        struct tw_catalogue *c, const char *project_id, const char *name, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_ACCESS, "",
	                .missing = "no saved filter of that name",
	                .change = &(struct tw_change){"filter.delete", project_id, name}},
	        err, "DELETE FROM saved_filter WHERE project_id=? AND name=?", "tt", project_id,
	        name);
}

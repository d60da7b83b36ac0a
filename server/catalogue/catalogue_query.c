/* catalogue_query.c - statements: parameters, rows, results. */
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_row.h"

enum { LIST_FIRST = 1024 }; /* rows of a list before it grows */

void tw_db_close(struct tw_db *db)
{
	if (db)
		db->engine->close(db);
}

enum tw_status tw_db_run(struct tw_db *db, const char *sql, struct tw_err *err)
{
	return db->engine->run(db, sql, err);
}

int64_t tw_db_changed(const struct tw_db *db)
{
	return db->engine->changed(db);
}

void tw_stmt_drop(struct tw_stmt *s)
{
	if (s)
		s->db->engine->drop(s);
}

enum tw_status tw_cat_fail(struct tw_db *db, struct tw_err *err)
{
	return db->engine->fail(db, err);
}

void tw_cat_bind_text(struct tw_cat_query *q, int at, const char *text)
{
	q->db->engine->bind_text(q->stmt, at, text ? text : "");
}

void tw_cat_bind_int(struct tw_cat_query *q, int at, int64_t v)
{
	q->db->engine->bind_int(q->stmt, at, v);
}

static void bind_bytes(struct tw_cat_query *q, int at, struct tw_str bytes, bool stays)
{
	q->db->engine->bind_bytes(q->stmt, at, bytes, stays);
}

static void bind_array(struct tw_cat_query *q, int at, const struct tw_cat_array *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const void *const member = (const char *)a->first + i * a->step;
		struct tw_db_value v = {.type = a->type};

		if (a->type == 'i')
			v.number = *(const int64_t *)member;
		else
			v.bytes = tw_str_of(*(const char *const *)member);
		q->db->engine->append(q->stmt, at, &v);
	}
}

static void bind_all(struct tw_cat_query *q, const char *types, va_list ap)
{
	for (int at = 1; *types; types++, at++) {
		if (*types == 't')
			tw_cat_bind_text(q, at, va_arg(ap, const char *));
		else if (*types == 'i')
			tw_cat_bind_int(q, at, va_arg(ap, int64_t));
		else if (*types == 'b')
			bind_bytes(q, at, *va_arg(ap, const struct tw_str *), true);
		else if (*types == 'a')
			bind_array(q, at, va_arg(ap, const struct tw_cat_array *));
		else
			bind_bytes(q, at, (struct tw_str){va_arg(ap, const char *), 32}, false);
	}
}

static _Thread_local uint64_t statements;

uint64_t tw_cat_statements(void)
{
	return statements;
}

void tw_cat_count_statement(void)
{
	statements++;
}

enum { STATEMENT_MAX = 64 << 10 };

static enum tw_status prepare(
        struct tw_cat_query *q, const char *sql, size_t own, struct tw_err *err)
{
	struct tw_buf text;
	enum tw_status st;

	if (!q->fields)
		return q->db->engine->prepare(q->db, sql, &q->stmt, err);
	tw_buf_init(&text, STATEMENT_MAX);
	st = tw_row_statement(sql, q->fields, own, &text, err);
	if (st == TW_OK)
		st = q->db->engine->prepare(q->db, (const char *)text.data, &q->stmt, err);
	tw_buf_done(&text);
	return st;
}

/* Opens the statement on q's connection, in q->prepared if set. */
static enum tw_status open_query(
        struct tw_cat_query *q, const char *sql, const char *types, va_list ap, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	statements++;
	q->stmt = q->prepared ? *q->prepared : NULL;
	if (!q->stmt)
		st = prepare(q, sql, strlen(types), err);
	if (st != TW_OK) {
		q->stmt = NULL;
		q->unopened = st;
		return st;
	}
	if (q->prepared)
		*q->prepared = q->stmt;
	bind_all(q, types, ap);
	return TW_OK;
}

/* st = open_query(...) with the variable arguments of a function. */
#define OPEN_QUERY(q)                                                                              \
	do {                                                                                       \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, types);                                                               \
		st = open_query((q), sql, types, ap, err);                                         \
		va_end(ap);                                                                        \
	} while (0)

enum tw_status tw_cat_query(struct tw_cat_query *q, struct tw_db *db, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	enum tw_status st;

	*q = (struct tw_cat_query){.db = db};
	OPEN_QUERY(q);
	return st;
}

enum tw_status tw_cat_query_prepared(struct tw_cat_query *q, struct tw_db *db,
        struct tw_stmt **prepared, struct tw_err *err, const char *sql, const char *types, ...)
{
	enum tw_status st;

	*q = (struct tw_cat_query){.db = db, .prepared = prepared};
	OPEN_QUERY(q);
	return st;
}

enum tw_status tw_cat_query_fields(struct tw_cat_query *q, struct tw_db *db,
        const struct tw_fields *fields, struct tw_err *err, const char *sql, const char *types, ...)
{
	enum tw_status st;

	*q = (struct tw_cat_query){.db = db, .fields = fields};
	OPEN_QUERY(q);
	return st;
}

bool tw_cat_row(struct tw_cat_query *q)
{
	if (!q->stmt)
		return false;
	q->late = tw_work_is_overdue();
	q->step = q->late ? TW_STEP_FAILED : q->db->engine->step(q->stmt);
	return q->step == TW_STEP_ROW;
}

bool tw_cat_at_end(const struct tw_cat_query *q)
{
	return q->step == TW_STEP_END;
}

enum tw_status tw_cat_close(struct tw_cat_query *q, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!q->stmt)
		return q->unopened;
	if (q->db->engine->oom(q->stmt))
		st = tw_oom(err);
	else if (q->late)
		st = tw_fail_overdue(err);
	else if (q->step == TW_STEP_FAILED)
		st = tw_cat_fail(q->db, err);
	if (q->prepared)
		q->db->engine->reset(q->stmt);
	else
		tw_stmt_drop(q->stmt);
	q->stmt = NULL;
	return st;
}

enum tw_status tw_cat_close_after(struct tw_cat_query *q, enum tw_status st, struct tw_err *err)
{
	enum tw_status ended = tw_cat_close(q, st == TW_OK ? err : NULL);

	return st == TW_OK ? ended : st;
}

static enum tw_status first_row(
        struct tw_cat_query *q, struct tw_arena *a, void *row, bool *ret_found, struct tw_err *err)
{
	const bool found = tw_cat_row(q);
	const bool fits = !found || tw_row_read(q, 0, q->fields, a, row) >= 0;

	if (ret_found)
		*ret_found = found;
	return tw_cat_close_after(q, fits ? TW_OK : tw_oom(err), err);
}

enum tw_status tw_cat_get_row(struct tw_db *db, const struct tw_fields *fields, struct tw_arena *a,
        void *row, bool *ret_found, struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = db, .fields = fields};
	enum tw_status st;

	OPEN_QUERY(&q);
	return st == TW_OK ? first_row(&q, a, row, ret_found, err) : st;
}

enum tw_status tw_cat_read_row(struct tw_catalogue *c, const struct tw_fields *fields,
        struct tw_arena *a, void *row, bool *ret_found, struct tw_err *err, const char *sql,
        const char *types, ...)
{
	struct tw_cat_query q = {.fields = fields};
	enum tw_status st = tw_cat_reader(c, &q.db, err);

	if (st != TW_OK)
		return st;
	OPEN_QUERY(&q);
	if (st == TW_OK)
		st = first_row(&q, a, row, ret_found, err);
	tw_cat_done(c, q.db);
	return st;
}

static enum tw_status first_text(struct tw_cat_query *q, char *ret, size_t cap, struct tw_err *err)
{
	const char *text = tw_cat_row(q) ? tw_cat_str(q, 0) : NULL;

	(void)snprintf(ret, cap, "%s", text ? text : "");
	return tw_cat_close(q, err);
}

enum tw_status tw_cat_get_text(struct tw_db *db, char *ret, size_t cap, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = db};
	enum tw_status st;

	ret[0] = '\0';
	OPEN_QUERY(&q);
	return st == TW_OK ? first_text(&q, ret, cap, err) : st;
}

enum tw_status tw_cat_read_text(struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = NULL};
	enum tw_status st = tw_cat_reader(c, &q.db, err);

	ret[0] = '\0';
	if (st != TW_OK)
		return st;
	OPEN_QUERY(&q);
	if (st == TW_OK)
		st = first_text(&q, ret, cap, err);
	tw_cat_done(c, q.db);
	return st;
}

static enum tw_status first_int(struct tw_cat_query *q, int64_t *io, struct tw_err *err)
{
	if (tw_cat_row(q))
		*io = tw_cat_int(q, 0);
	return tw_cat_close(q, err);
}

enum tw_status tw_cat_get_int(
        struct tw_db *db, int64_t *io, struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = db};
	enum tw_status st;

	OPEN_QUERY(&q);
	return st == TW_OK ? first_int(&q, io, err) : st;
}

enum tw_status tw_cat_read_int(struct tw_catalogue *c, int64_t *io, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = NULL};
	enum tw_status st = tw_cat_reader(c, &q.db, err);

	if (st != TW_OK)
		return st;
	OPEN_QUERY(&q);
	if (st == TW_OK)
		st = first_int(&q, io, err);
	tw_cat_done(c, q.db);
	return st;
}

enum tw_status tw_cat_now(struct tw_db *db, int64_t *ret_ms, struct tw_err *err)
{
	*ret_ms = tw_wait_ms();
	return db->engine->has_clock
	               ? tw_cat_get_int(db, ret_ms, err, "SELECT " TW_CAT_DATABASE_MS, "")
	               : TW_OK;
}

static bool read_listed(const struct tw_cat_query *q, const struct tw_cat_list *l, void *row)
{
	memset(row, 0, l->row_bytes);
	if (l->read)
		return l->read(q, l->arena, row);
	return tw_row_read(q, 0, l->fields, l->arena, row) >= 0;
}

static enum tw_status read_list(struct tw_cat_query *q, struct tw_cat_list *l, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && l->n < l->limit && tw_cat_row(q))
		if (!tw_list_reserve(l->arena, &l->rows, l->n, l->n + (size_t)1, &l->cap,
		            l->row_bytes, LIST_FIRST) ||
		        !read_listed(q, l, (char *)l->rows + l->n++ * l->row_bytes))
			st = tw_oom(err);
	return tw_cat_close_after(q, st, err);
}

static enum tw_status store_list(const struct tw_cat_list *l, struct tw_err *err)
{
	if (l->n == 0 && l->missing)
		return tw_fail(err, TW_NOT_FOUND, "%s", l->missing);
	if (l->ret_n)
		memcpy(l->ret, &l->rows, sizeof l->rows);
	else if (l->ret && l->n)
		memcpy(l->ret, l->rows, l->row_bytes);
	if (l->ret_n)
		*l->ret_n = l->n;
	return TW_OK;
}

enum tw_status tw_cat_list(struct tw_catalogue *c, struct tw_cat_list *l, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.fields = l->fields};
	enum tw_status st;

	l->n = 0;
	l->cap = (uint32_t)(l->limit < LIST_FIRST ? l->limit : LIST_FIRST);
	l->rows = tw_arena_alloc(l->arena, l->cap, l->row_bytes);
	if (!l->rows)
		return tw_oom(err);
	st = tw_cat_reader(c, &q.db, err);
	if (st != TW_OK)
		return st;
	OPEN_QUERY(&q);
	if (st == TW_OK)
		st = read_list(&q, l, err);
	tw_cat_done(c, q.db);
	return st == TW_OK ? store_list(l, err) : st;
}

static enum tw_status run_to_end(struct tw_cat_query *q, struct tw_err *err)
{
	while (tw_cat_row(q))
		continue;
	return tw_cat_close(q, err);
}

/* Runs a statement that returns no rows. */
static enum tw_status exec_args(
        struct tw_db *db, const char *sql, const char *types, va_list ap, struct tw_err *err)
{
	struct tw_cat_query q = {.db = db};
	enum tw_status st = open_query(&q, sql, types, ap, err);

	return st == TW_OK ? run_to_end(&q, err) : st;
}

enum tw_status tw_cat_exec(struct tw_db *db, int *ret_changed, struct tw_err *err, const char *sql,
        const char *types, ...)
{
	enum tw_status st;
	va_list ap;

	va_start(ap, types);
	st = exec_args(db, sql, types, ap, err);
	va_end(ap);
	if (st == TW_OK && ret_changed)
		*ret_changed = (int)tw_db_changed(db);
	return st;
}

enum tw_status tw_cat_change(struct tw_db *db, const char *missing, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	enum tw_status st;
	va_list ap;

	va_start(ap, types);
	st = exec_args(db, sql, types, ap, err);
	va_end(ap);
	if (st == TW_OK && tw_db_changed(db) == 0)
		st = tw_fail(err, TW_NOT_FOUND, "%s", missing);
	return st;
}

enum tw_status tw_cat_run(struct tw_catalogue *c, const struct tw_cat_statement *how,
        struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, how->subject, how->id, &w, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	st = exec_args(w, sql, types, ap, err);
	va_end(ap);
	if (st == TW_OK && how->missing && tw_db_changed(w) == 0)
		st = tw_fail(err, TW_NOT_FOUND, "%s", how->missing);
	return how->change ? tw_cat_end_audited(c, w, st, how->change, err)
	                   : tw_cat_end(c, w, st, err);
}

enum tw_status tw_cat_exec_prepared(struct tw_db *db, struct tw_stmt **prepared, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = db, .prepared = prepared};
	enum tw_status st;

	OPEN_QUERY(&q);
	if (st != TW_OK)
		return st;
	return run_to_end(&q, err);
}

enum tw_status tw_cat_query_write(struct tw_cat_query *q, struct tw_db *db,
        const struct tw_cat_written *what, struct tw_err *err, const char *sql, const char *types,
        ...)
{
	enum tw_status st;

	*q = (struct tw_cat_query){.db = db, .prepared = what->prepared, .fields = what->fields};
	OPEN_QUERY(q);
	if (st == TW_OK)
		tw_row_bind(q, (int)strlen(types) + 1, what->fields, what->row);
	return st;
}

enum tw_status tw_cat_write(struct tw_db *db, const struct tw_cat_written *what, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q = {.db = db, .prepared = what->prepared, .fields = what->fields};
	enum tw_status st;

	OPEN_QUERY(&q);
	if (st != TW_OK)
		return st;
	tw_row_bind(&q, (int)strlen(types) + 1, what->fields, what->row);
	return run_to_end(&q, err);
}

TW_ORDER_BY(by_number, struct tw_cat_number, TW_RISING(number), TW_RISING(at))

enum { NUMBER_CHARS = 21 }; /* with a comma */

enum tw_status tw_cat_numbers(const struct tw_db *db, const int64_t *numbers, size_t n,
        struct tw_arena *a, struct tw_cat_numbers *ret, struct tw_err *err)
{
	const char *const brackets = db->engine->is_shared ? "{}" : "[]";
	const size_t cap = n * NUMBER_CHARS + 3;
	char *list = tw_arena_alloc(a, cap, 1);
	size_t len = 0;

	*ret = (struct tw_cat_numbers){list, n, tw_arena_alloc(a, n ? n : 1, sizeof *ret->sorted)};
	if (!list || !ret->sorted)
		return tw_fail(err, TW_TOO_LARGE, "no memory for a list of %zu numbers", n);
	list[len++] = brackets[0];
	for (size_t i = 0; i < n; i++) {
		len += (size_t)snprintf(
		        list + len, cap - len, "%s%lld", i ? "," : "", (long long)numbers[i]);
		ret->sorted[i] = (struct tw_cat_number){numbers[i], i};
	}
	list[len++] = brackets[1];
	list[len] = '\0';
	TW_SORT(ret->sorted, n, by_number);
	return TW_OK;
}

/* In a JSON array, or in an array of PostgreSQL, which takes control characters unchanged. */
static size_t put_quoted(char *out, const char *text, bool is_json)
{
	char *to = out;

	*to++ = '"';
	for (const char *c = text; *c; c++) {
		if (is_json && (unsigned char)*c < ' ') {
			to += snprintf(to, sizeof "\\u0000", "\\u%04x", *c);
			continue;
		}
		if (*c == '"' || *c == '\\')
			*to++ = '\\';
		*to++ = *c;
	}
	*to++ = '"';
	return (size_t)(to - out);
}

static size_t quoted_at_most(const char *text)
{
	size_t n = sizeof "\"\"";

	for (const char *c = text; *c; c++)
		n += (unsigned char)*c < ' '   ? sizeof "\\u0000" - 1
		     : *c == '"' || *c == '\\' ? 2
		                               : 1;
	return n;
}

const char *tw_cat_texts(
        const struct tw_db *db, const char *const *texts, size_t n, struct tw_arena *a)
{
	const bool is_json = !db->engine->is_shared;
	const char *const brackets = is_json ? "[]" : "{}";
	size_t cap = 3, len = 1;
	char *list;

	for (size_t i = 0; i < n; i++)
		cap += quoted_at_most(texts[i]) + 1;
	list = tw_arena_alloc(a, cap, 1);
	if (!list)
		return NULL;
	list[0] = brackets[0];
	for (size_t i = 0; i < n; i++) {
		if (i)
			list[len++] = ',';
		len += put_quoted(list + len, texts[i], is_json);
	}
	list[len++] = brackets[1];
	list[len] = '\0';
	return list;
}

size_t tw_cat_index_of(const struct tw_cat_numbers *of, int64_t number)
{
	size_t at;

	TW_BISECT(at, of->n, of->sorted[at].number < number);
	return at < of->n && of->sorted[at].number == number ? at : of->n;
}

int64_t tw_cat_random(void)
{
	int64_t n;

	randombytes_buf(&n, sizeof n);
	return n;
}

int64_t tw_cat_int(const struct tw_cat_query *q, int col)
{
	return q->db->engine->to_int(q->stmt, col);
}

const char *tw_cat_str(const struct tw_cat_query *q, int col)
{
	return q->db->engine->to_text(q->stmt, col);
}

struct tw_str tw_cat_blob(const struct tw_cat_query *q, int col)
{
	return q->db->engine->to_bytes(q->stmt, col);
}

const char *tw_cat_text(const struct tw_cat_query *q, int col, struct tw_arena *a)
{
	const char *p = tw_cat_str(q, col);

	return tw_arena_str(a, (struct tw_str){p ? p : "", p ? strlen(p) : 0});
}

/* --- rows as data --- */

static const struct tw_field text_field = {.column = "", .kind = TW_FIELD_TEXT};
const struct tw_fields tw_text_fields = {&text_field, 1};

/* NOLINTBEGIN(misc-no-recursion) groups of fields nest as deep as their tables */

static void *member(const struct tw_field *f, const void *row)
{
	return (char *)(uintptr_t)row + f->offset;
}

/* "" for a number without a name. */
static const char *word_of(const struct tw_field *f, int64_t number)
{
	int64_t i = 0;

	while (i < number && f->names[i])
		i++;
	return i == number && f->names[i] ? f->names[i] : "";
}

/* --- from a statement's row --- */

static bool read_one(const struct tw_cat_query *q, int at, const struct tw_field *f,
        struct tw_arena *a, void *to)
{
	const char *text;
	int64_t number;

	if (f->kind == TW_FIELD_TEXT) {
		text = tw_cat_text(q, at, a);
		memcpy(to, &text, sizeof text);
		return text != NULL;
	}
	if (f->kind == TW_FIELD_CHARS) {
		text = tw_cat_str(q, at);
		(void)snprintf(to, f->bytes, "%s", text ? text : "");
		return true;
	}
	number = tw_cat_int(q, at);
	if (f->names && !*word_of(f, number))
		return false;
	if (f->kind == TW_FIELD_BOOL)
		*(bool *)to = number != 0;
	else if (f->kind == TW_FIELD_DOUBLE)
		*(double *)to = (double)number / f->scale;
	else if (f->kind == TW_FIELD_INT64)
		*(int64_t *)to = number;
	else
		*(uint32_t *)to = (uint32_t)number;
	return true;
}

int tw_row_read(const struct tw_cat_query *q, int at, const struct tw_fields *fields,
        struct tw_arena *a, void *row)
{
	for (const struct tw_field *f = fields->of; at >= 0 && f < fields->of + fields->n; f++) {
		if (f->kind == TW_FIELD_GROUP)
			at = tw_row_read(q, at, f->group, a, member(f, row));
		else
			at = read_one(q, at, f, a, member(f, row)) ? at + 1 : -1;
	}
	return at;
}

/* --- to a statement --- */

static int64_t number_of(const struct tw_field *f, const void *at)
{
	if (f->kind == TW_FIELD_BOOL)
		return *(const bool *)at;
	if (f->kind == TW_FIELD_INT32)
		return *(const int32_t *)at;
	if (f->kind == TW_FIELD_UINT32)
		return *(const uint32_t *)at;
	if (f->kind == TW_FIELD_DOUBLE)
		return (int64_t)llround(*(const double *)at * f->scale);
	return *(const int64_t *)at;
}

static const char *text_of(const struct tw_field *f, const void *at)
{
	const char *text;

	if (f->kind == TW_FIELD_CHARS)
		return at;
	memcpy(&text, at, sizeof text);
	return text ? text : "";
}

static int bind_from(
        struct tw_cat_query *q, int at, const struct tw_fields *fields, const void *row)
{
	for (const struct tw_field *f = fields->of; f < fields->of + fields->n; f++) {
		const void *const value = member(f, row);

		if (f->kind == TW_FIELD_GROUP)
			at = bind_from(q, at, f->group, value);
		else if (f->kind == TW_FIELD_TEXT || f->kind == TW_FIELD_CHARS)
			tw_cat_bind_text(q, at++, text_of(f, value));
		else
			tw_cat_bind_int(q, at++, number_of(f, value));
	}
	return at;
}

void tw_row_bind(struct tw_cat_query *q, int at, const struct tw_fields *f, const void *row)
{
	(void)bind_from(q, at, f, row);
}

static const struct placeholder {
	const char *name;
	bool names, parameters;
} placeholders[] = {{"{columns}", true, false}, {"{values}", false, true}, {"{sets}", true, true}};

static size_t write_fields(
        struct tw_buf *out, const struct placeholder *p, const struct tw_fields *fields, size_t at)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct tw_field *const f = &fields->of[i];

		if (i)
			(void)tw_buf_add_u8(out, ',');
		if (f->kind == TW_FIELD_GROUP) {
			at = write_fields(out, p, f->group, at);
			continue;
		}
		at++;
		if (p->names)
			(void)tw_buf_add_str(out, tw_str_of(f->column));
		if (p->parameters)
			(void)tw_buf_printf(out, "%s?%zu", p->names ? "=" : "", at);
	}
	return at;
}

static const struct placeholder *placeholder_at(const char *sql)
{
	for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
		if (strncmp(sql, placeholders[i].name, strlen(placeholders[i].name)) == 0)
			return &placeholders[i];
	return NULL;
}

enum tw_status tw_row_statement(const char *sql, const struct tw_fields *f, size_t own,
        struct tw_buf *out, struct tw_err *err)
{
	while (*sql) {
		const size_t plain = strcspn(sql, "{");
		const struct placeholder *p = placeholder_at(sql + plain);

		(void)tw_buf_add(out, sql, plain + (sql[plain] && !p));
		sql += plain + (sql[plain] && !p);
		if (!p)
			continue;
		(void)write_fields(out, p, f, own);
		sql += strlen(p->name);
	}
	(void)tw_buf_add_u8(out, 0);
	return tw_buf_status(out) == TW_OK ? TW_OK : tw_oom(err);
}

/* --- to JSON --- */

static json_t *parsed(const char *text, bool is_list)
{
	json_t *value = *text ? json_loads(text, 0, NULL) : NULL;

	if (!value)
		value = is_list ? json_array() : json_object();
	return value;
}

static json_t *text_json(const struct tw_field *f, const char *text)
{
	if (f->shape == TW_SHAPE_OBJECT || f->shape == TW_SHAPE_LIST)
		return parsed(text, f->shape == TW_SHAPE_LIST);
	return f->shape == TW_SHAPE_OR_NULL && !*text ? json_null() : tw_json_string(text);
}

static json_t *value_json(const struct tw_field *f, const void *at)
{
	int64_t number;

	if (f->kind == TW_FIELD_GROUP)
		return tw_row_json(f->group, at);
	if (f->kind == TW_FIELD_TEXT || f->kind == TW_FIELD_CHARS)
		return text_json(f, text_of(f, at));
	if (f->kind == TW_FIELD_BOOL)
		return json_boolean(*(const bool *)at);
	if (f->kind == TW_FIELD_DOUBLE)
		return json_real(*(const double *)at);
	number = number_of(f, at);
	if (f->names)
		return json_string(word_of(f, number));
	if (f->shape == TW_SHAPE_OR_NULL && number < 0)
		return json_null();
	return json_integer((json_int_t)(f->shape == TW_SHAPE_DAY ? number * TW_DAY_MS : number));
}

json_t *tw_row_json(const struct tw_fields *fields, const void *row)
{
	json_t *o = json_object();

	for (const struct tw_field *f = fields->of; o && f < fields->of + fields->n; f++)
		if (f->json &&
		        json_object_set_new(o, f->json, value_json(f, member(f, row))) != 0) {
			json_decref(o);
			o = NULL;
		}
	return o;
}

json_t *tw_rows_json(const struct tw_fields *f, const void *rows, size_t n, size_t bytes)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < n; i++)
		if (json_array_append_new(list, tw_row_json(f, (const char *)rows + i * bytes)) !=
		        0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

/* NOLINTEND(misc-no-recursion) */

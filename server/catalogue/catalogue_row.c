#include "server/catalogue/catalogue_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/catalogue/catalogue_internal.h"

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
	return f->shape == TW_SHAPE_OR_NULL && !*text ? json_null() : json_string(text);
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

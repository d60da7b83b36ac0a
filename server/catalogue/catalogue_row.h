/*
 * catalogue_row.h - rows as data: the column, struct member and JSON name of each field.
 *
 * A row has a table of fields, next to its statements.  In a statement, {columns} is replaced by
 * the columns of all fields, {values} by one parameter each and {sets} by column=parameter, after
 * the statement's own parameters.  Reading and JSON follow the same table, so that a new column is
 * one line.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_ROW_H
#define TW_CATALOGUE_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_cat_query;
struct tw_buf;

enum tw_field_kind {
	TW_FIELD_TEXT,  /* const char *, in the arena, never NULL */
	TW_FIELD_CHARS, /* char[], truncated to its size */
	TW_FIELD_INT64, /* also uint64_t */
	TW_FIELD_INT32,
	TW_FIELD_UINT32, /* also an enum */
	TW_FIELD_BOOL,
	TW_FIELD_DOUBLE, /* stored as an integer, times `scale` */
	TW_FIELD_GROUP   /* a nested struct with its own fields; an object in JSON */
};

enum tw_field_shape { /* in JSON */
	TW_SHAPE_PLAIN,
	TW_SHAPE_OR_NULL, /* a negative number, or an empty text, is null */
	TW_SHAPE_DAY,     /* a number of days, as Unix milliseconds */
	TW_SHAPE_OBJECT,  /* text that is a JSON object; {} if empty */
	TW_SHAPE_LIST     /* text that is a JSON array; [] if empty */
};

struct tw_fields {
	const struct tw_field *of;
	size_t n;
};

struct tw_field {
	const char *column; /* or an expression, of which a row can be read but not written */
	const char *json;   /* NULL: not in JSON */
	enum tw_field_kind kind;
	size_t offset, bytes; /* of the member */
	enum tw_field_shape shape;
	const char *const *names; /* NULL, or the JSON text of each value, ended by NULL */
	double scale;
	const struct tw_fields *group;
};

#define TW_FIELD(T, member, column_, json_, ...)                                                     \
	{                                                                                            \
		.column = (column_), .json = (json_), .offset = offsetof(T, member),               \
		.bytes = sizeof ((T *)NULL)->member,                                              \
		.kind = _Generic(((T *)NULL)->member, const char *                                 \
		                 : TW_FIELD_TEXT, char *                                           \
		                 : TW_FIELD_CHARS, int64_t                                          \
		                 : TW_FIELD_INT64, uint64_t                                        \
		                 : TW_FIELD_INT64, uint32_t                                        \
		                 : TW_FIELD_UINT32, int                                            \
		                 : TW_FIELD_INT32, bool                                            \
		                 : TW_FIELD_BOOL, double                                           \
		                 : TW_FIELD_DOUBLE),                                               \
		__VA_ARGS__ \
	}
#define TW_FIELD_OF_GROUP(T, member, fields, json_)                                                \
	{                                                                                          \
		.json = (json_), .offset = offsetof(T, member), .kind = TW_FIELD_GROUP,            \
		.group = (fields)                                                                  \
	}
/* Of fields listed here. */
#define TW_FIELDS_OF(...)                                                                          \
	{                                                                                          \
		(const struct tw_field[]){__VA_ARGS__},                                            \
		        sizeof((const struct tw_field[]){__VA_ARGS__}) / sizeof(struct tw_field)   \
	}
#define TW_FIELDS(list)                                                                            \
	{                                                                                          \
		(list), sizeof(list) / sizeof *(list)                                              \
	}

/* Rows of one text each: const char *. */
extern const struct tw_fields tw_text_fields;

/* The row as an object; NULL: out of memory. */
json_t *tw_row_json(const struct tw_fields *f, const void *row);
/* n rows, `bytes` apart, as an array. */
json_t *tw_rows_json(const struct tw_fields *f, const void *rows, size_t n, size_t bytes);

/* --- for the catalogue's files --- */

/* Reads the fields from column `at` on; the number of the next column, or -1: out of memory. */
int tw_row_read(const struct tw_cat_query *q, int at, const struct tw_fields *f, struct tw_arena *a,
        void *row);
/* Binds the values of the fields from parameter `at` on. */
void tw_row_bind(struct tw_cat_query *q, int at, const struct tw_fields *f, const void *row);
/* The statement with its placeholders replaced; `own`: number of its own parameters. */
enum tw_status tw_row_statement(const char *sql, const struct tw_fields *f, size_t own,
        struct tw_buf *out, struct tw_err *err);

#endif

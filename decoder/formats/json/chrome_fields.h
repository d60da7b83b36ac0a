/*
 * chrome_fields.h - the members of a Chrome event that its kinds use.
 *
 * An event of the usual shape is read in one pass over its text, without a tree of values.  One
 * with an escape, an exponent, a number of more digits than a double holds, deep nesting or an
 * error is not plain: it is parsed into a tree, and the same members are taken from there.
 */
#ifndef TW_CHROME_FIELDS_H
#define TW_CHROME_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/str.h"

enum tw_chrome_field { /* by the length of their names */
	TW_CHROME_S,
	TW_CHROME_PH,
	TW_CHROME_TS,
	TW_CHROME_ID,
	TW_CHROME_CAT,
	TW_CHROME_DUR,
	TW_CHROME_TTS,
	TW_CHROME_PID,
	TW_CHROME_TID,
	TW_CHROME_NAME,
	TW_CHROME_TDUR,
	TW_CHROME_BIND_ID,
	TW_CHROME_FLOW_IN,
	TW_CHROME_FLOW_OUT,
	TW_CHROME_FIELDS
};

struct tw_chrome_value {
	enum tw_chrome_kind {
		TW_CHROME_ABSENT,
		TW_CHROME_INTEGER,
		TW_CHROME_REAL,
		TW_CHROME_TEXT,
		TW_CHROME_TRUE,
		TW_CHROME_OTHER
	} kind;
	uint32_t len; /* TEXT */
	union {
		int64_t integer;
		double real;
		const char *text; /* borrowed */
	};
};

struct tw_chrome_fields {
	struct tw_chrome_value of[TW_CHROME_FIELDS];
};

/* From the text of an object, which is UTF-8.  False: not plain. */
bool tw_chrome_fields_read(struct tw_str text, struct tw_chrome_fields *ret);
void tw_chrome_fields_of(const json_t *root, struct tw_chrome_fields *ret);
struct tw_chrome_value tw_chrome_value_of(const json_t *v);

/* Numbers and numbers in texts; truncates reals.  False: not a number, or out of range. */
bool tw_chrome_i64(const struct tw_chrome_value *v, int64_t *ret);

/* "" if it is not a text. */
static inline struct tw_str tw_chrome_text_of(const struct tw_chrome_value *v)
{
	return v->kind == TW_CHROME_TEXT ? (struct tw_str){v->text, v->len} : TW_STR("");
}

#endif

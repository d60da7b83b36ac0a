/*
 * http_param.h - the query parameters that a route declares: names, kinds, limits, defaults.
 *
 * Requests are checked against the declaration after their caller is known: a value of the wrong
 * kind, an unknown name or a missing required parameter is TW_BAD_REQUEST before `begin` and `end`.
 * Handlers therefore read values without errors.  A name that the route does not declare cannot be
 * read.  schema/openapi.py copies the declarations to schema/openapi.json.
 */
#ifndef TW_HTTP_PARAM_H
#define TW_HTTP_PARAM_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_req;

enum tw_param_kind { TW_PARAM_IS_TEXT, TW_PARAM_IS_NUMBER, TW_PARAM_IS_FLAG, TW_PARAM_IS_ENUM };

struct tw_param {
	const char *name; /* NULL ends a list */
	enum tw_param_kind kind;
	bool optional;    /* NUMBER, FLAG, ENUM: has no default, or one that no value equals */
	bool required;    /* TEXT: present and not empty */
	bool repeated;    /* may be given several times */
	int64_t dflt;     /* NUMBER, FLAG */
	int64_t min, max; /* NUMBER; TEXT: max bytes, 0: no limit of its own */
	const char *const *names; /* ENUM, ended by NULL; the default is the first */
	const char *about;        /* one description for schema/openapi.json; "": none */
};

/* Elements of a list of parameters, which ends with {0}. */
#define TW_PARAM_TEXT(name_, max_, about_)                                                         \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_TEXT, .max = (max_), .about = (about_)        \
	}
#define TW_PARAM_REQUIRED(name_, max_, about_)                                                     \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_TEXT, .required = true, .max = (max_),        \
		.about = (about_)                                                                  \
	}
#define TW_PARAM_NUMBER(name_, dflt_, min_, max_, about_)                                          \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_NUMBER, .dflt = (dflt_), .min = (min_),       \
		.max = (max_), .about = (about_)                                                   \
	}
#define TW_PARAM_OPTIONAL_NUMBER(name_, min_, max_, about_)                                        \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_NUMBER, .optional = true, .min = (min_),      \
		.max = (max_), .about = (about_)                                                   \
	}
#define TW_PARAM_FLAG(name_, dflt_, about_)                                                        \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_FLAG, .dflt = (dflt_), .about = (about_)      \
	}
#define TW_PARAM_ENUM(name_, names_, about_)                                                       \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_ENUM, .names = (names_), .about = (about_)    \
	}
#define TW_PARAM_OPTIONAL_ENUM(name_, names_, about_)                                              \
	{                                                                                          \
		.name = (name_), .kind = TW_PARAM_IS_ENUM, .optional = true, .names = (names_),    \
		.about = (about_)                                                                  \
	}

/* The parameters of a route: lists, one after the other. */
#define TW_PARAMS(...) ((const struct tw_param *const[]){__VA_ARGS__, NULL})

/* desc is the default. */
extern const char *const tw_orders[]; /* "desc", "asc" */

/* The text of the first value; NULL if it is absent or not declared. */
const char *tw_req_text(const struct tw_req *r, const char *name);
/* "" instead of NULL. */
const char *tw_req_text_or_empty(const struct tw_req *r, const char *name);
/* The value, or the declared default.  The parameter must be declared with this kind. */
int64_t tw_req_number(const struct tw_req *r, const char *name);
bool tw_req_flag(const struct tw_req *r, const char *name);
/* The index of the choice; -1 if the parameter is optional and absent. */
int tw_req_enum(const struct tw_req *r, const char *name);
/* Of an optional number: dflt if it is absent or not declared. */
int64_t tw_req_number_or(const struct tw_req *r, const char *name, int64_t dflt);

/* Which of `names` (ended by NULL) the text is; TW_BAD_REQUEST names the field and lists them. */
enum tw_status tw_enum_of_name(const char *name, const char *text, const char *const *names,
        unsigned *ret, struct tw_err *err) TW_MUST_USE;

#endif

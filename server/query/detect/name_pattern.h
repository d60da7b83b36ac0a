/*
 * name_pattern.h - a pattern of names: a prefix, a name with wildcards, or an expression.
 *
 *   android.database.sqlite    a prefix that ends where a package, class or method name ends
 *   *Dao_Impl.*                * matches any text; the whole name must match
 *   /^com\.app\.(Cart|Shop)/   an expression (match.h), found anywhere in a name, ignoring case
 * Except for expressions, matching time is bounded by the lengths alone.  Thread: one at a time for
 * expressions.
 */
#ifndef TW_NAME_PATTERN_H
#define TW_NAME_PATTERN_H

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/base/text/match.h"

enum { TW_NAME_PATTERN_BYTES = 200 };

struct tw_name_pattern {
	struct tw_str text;     /* borrowed */
	struct tw_match *match; /* of an expression, otherwise NULL */
	bool gaps;
};

/* TW_BAD_REQUEST: the message does not name the pattern's origin.  The caller frees with
 * tw_name_pattern_done. */
enum tw_status tw_name_pattern_init(
        struct tw_name_pattern *p, struct tw_str text, struct tw_err *err) TW_MUST_USE;
void tw_name_pattern_done(struct tw_name_pattern *p);
bool tw_name_pattern_is_expression(struct tw_str text);

/* TW_BAD_REQUEST: the expression is too costly for this name. */
enum tw_status tw_name_pattern_check(const struct tw_name_pattern *p, struct tw_str name,
        bool *ret_fits, struct tw_err *err) TW_MUST_USE;

/* Returns whether the whole name matches a text in which * stands for anything. */
bool tw_name_fits(struct tw_str name, struct tw_str gaps);

#endif

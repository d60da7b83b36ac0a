/*
 * name_pattern.h - what a rule says of names: a beginning, a name with gaps, or an expression.
 *
 *   android.database.sqlite    a beginning, which ends where a package, a class or a method does
 *   *Dao_Impl.*                * stands for any text; the whole name must fit
 *   /^com\.app\.(Cart|Shop)/   an expression (match.h), in a name, without regard to case
 * All but expressions are judged in time that is bounded by the lengths alone.  Thread: one at a
 * time, for expressions.
 */
#ifndef TW_NAME_PATTERN_H
#define TW_NAME_PATTERN_H

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/base/text/match.h"

enum { TW_NAME_PATTERN_BYTES = 200 };

struct tw_name_pattern {
	struct tw_str text;     /* borrowed */
	struct tw_match *match; /* of an expression */
	bool gaps;
};

/* TW_BAD_REQUEST in words, without what the pattern is of.  tw_name_pattern_done is owed. */
enum tw_status tw_name_pattern_init(
        struct tw_name_pattern *p, struct tw_str text, struct tw_err *err) TW_MUST_USE;
void tw_name_pattern_done(struct tw_name_pattern *p);
bool tw_name_pattern_is_expression(struct tw_str text);

/* TW_BAD_REQUEST: an expression that is too costly for this name. */
enum tw_status tw_name_pattern_judge(const struct tw_name_pattern *p, struct tw_str name,
        bool *ret_fits, struct tw_err *err) TW_MUST_USE;

/* Does the whole name fit a text in which * stands for anything? */
bool tw_name_fits(struct tw_str name, struct tw_str gaps);

#endif

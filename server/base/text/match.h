/*
 * match.h - matches names against a substring or a regular expression.
 *
 * Substrings ignore case (ASCII).  Regular expressions are PCRE2 with limits on steps and memory,
 * so that no expression can exhaust a query's time.
 * Thread: one at a time.
 */
#ifndef TW_MATCH_H
#define TW_MATCH_H

#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_match;

/* TW_BAD_REQUEST if the text is too long or not a valid expression, with the offset in it. */
enum tw_status tw_match_new(
        const char *text, bool regex, struct tw_match **ret, struct tw_err *err) TW_MUST_USE;
struct tw_match *tw_match_free(struct tw_match *m);
/* False also if matching exceeds the limits. */
bool tw_match_has(const struct tw_match *m, struct tw_str name);
/* Whether a method fits by its name or, if the text has a parenthesis, by its name with the
 * parameters and the type of its JVM descriptor: as in Java, with or without packages, or
 * unchanged. */
bool tw_match_has_method(const struct tw_match *m, struct tw_str name, struct tw_str descriptor);
/* Like tw_match_has, but TW_BAD_REQUEST if matching exceeds the limits. */
enum tw_status tw_match_check(const struct tw_match *m, struct tw_str name, bool *ret_has,
        struct tw_err *err) TW_MUST_USE;

#endif

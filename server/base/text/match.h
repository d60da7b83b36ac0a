/*
 * match.h - does a name contain this, or match this expression?
 *
 * Plain text is found without regard to case (ASCII).  Expressions are PCRE2
 * with limits on steps and memory, so that no expression takes a query's time.
 * Thread: one at a time.
 */
#ifndef TW_MATCH_H
#define TW_MATCH_H

#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_match;

/* TW_BAD_REQUEST when the text is too long or is no expression, with the offset in it. */
enum tw_status tw_match_new(
        const char *text, bool regex, struct tw_match **ret, struct tw_err *err) TW_MUST_USE;
struct tw_match *tw_match_free(struct tw_match *m);
/* One that is too costly to tell is said not to. */
bool tw_match_has(const struct tw_match *m, struct tw_str name);
/* TW_BAD_REQUEST then. */
enum tw_status tw_match_judge(const struct tw_match *m, struct tw_str name, bool *ret_has,
        struct tw_err *err) TW_MUST_USE;

#endif

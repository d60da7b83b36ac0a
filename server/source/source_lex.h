/*
 * source_lex.h - splits Java and Kotlin text into words and signs; comments and string literals are
 * skipped.
 *
 * Files may have any content; a byte that is not part of a token is a sign.  Time is linear.  Pure.
 * Thread: any.
 */
#ifndef TW_SOURCE_LEX_H
#define TW_SOURCE_LEX_H

#include "decoder/base/str.h"

enum tw_token_kind { TW_TOKEN_END, TW_TOKEN_WORD, TW_TOKEN_SIGN, TW_TOKEN_TEXT };

struct tw_token {
	enum tw_token_kind kind;
	struct tw_str word; /* of a word, without Kotlin's ` `; a string literal with its quotes */
	char sign;
	uint32_t line; /* from 1 */
	bool begins;   /* the first of its line */
	bool quoted;   /* a word in ` `, never a keyword */
};

struct tw_lexer {
	struct tw_str rest;
	uint32_t line;
	uint32_t previous; /* line of the previous token */
	bool kotlin;
};

void tw_lexer_begin(struct tw_lexer *l, struct tw_str text, bool kotlin);
struct tw_token tw_lexer_next(struct tw_lexer *l);

/* An unquoted word; one of several, ending with NULL; a sign. */
bool tw_token_is(const struct tw_token *t, const char *word);
bool tw_token_is_any(const struct tw_token *t, const char *const *words);
bool tw_token_is_sign(const struct tw_token *t, char sign);
/* "record Point(", where a declaration is possible. */
bool tw_token_begins_record(const struct tw_lexer *after, const struct tw_token *t);
/* A sign after which a Kotlin statement continues on the next line. */
bool tw_token_joins(const struct tw_token *t);

#endif

/*
 * source_lex.h - Java and Kotlin text as words and signs: comments and texts are stepped over.
 *
 * Anything may be in a file; what is no token is a sign of one byte.  Time is that of reading it
 * once.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_LEX_H
#define TW_SOURCE_LEX_H

#include "decoder/base/str.h"

enum tw_token_kind { TW_TOKEN_END, TW_TOKEN_WORD, TW_TOKEN_SIGN, TW_TOKEN_TEXT };

struct tw_token {
	enum tw_token_kind kind;
	struct tw_str word; /* of a word, without the ` ` of Kotlin; a text with its quotes */
	char sign;
	uint32_t line; /* from 1 */
	bool begins;   /* the first of its line */
	bool quoted;   /* a word in ` `, never a keyword */
};

struct tw_lexer {
	struct tw_str rest;
	uint32_t line;
	uint32_t told; /* line of the token before */
	bool kotlin;
};

void tw_lexer_begin(struct tw_lexer *l, struct tw_str text, bool kotlin);
struct tw_token tw_lexer_next(struct tw_lexer *l);

/* An unquoted word; one of these, ended by NULL; a sign. */
bool tw_token_is(const struct tw_token *t, const char *word);
bool tw_token_is_any(const struct tw_token *t, const char *const *words);
bool tw_token_is_sign(const struct tw_token *t, char sign);
/* "record Point(", where a declaration may stand. */
bool tw_token_begins_record(const struct tw_lexer *behind, const struct tw_token *t);
/* A sign behind which a line of Kotlin goes on in the next. */
bool tw_token_joins(const struct tw_token *t);

#endif

#include "server/source/source_lex.h"

enum { TEMPLATES_MAX = 32 };

void tw_lexer_begin(struct tw_lexer *l, struct tw_str text, bool kotlin)
{
	*l = (struct tw_lexer){text, 1, 0, kotlin};
}

static bool at(const struct tw_lexer *l, const char *what, size_t n)
{
	return l->rest.len >= n && memcmp(l->rest.ptr, what, n) == 0;
}

static void skip(struct tw_lexer *l, size_t n)
{
	for (size_t i = 0; i < n && i < l->rest.len; i++)
		l->line += l->rest.ptr[i] == '\n';
	l->rest = tw_str_from(l->rest, n < l->rest.len ? n : l->rest.len);
}

/* Kotlin's comments nest. */
static void skip_comment(struct tw_lexer *l)
{
	size_t depth = 0;

	do {
		if (at(l, "/*", 2) && (depth == 0 || l->kotlin)) {
			depth++;
			skip(l, 2);
		} else if (at(l, "*/", 2)) {
			depth--;
			skip(l, 2);
		} else {
			skip(l, 1);
		}
	} while (depth && l->rest.len);
}

/* An open string literal: plain ones end at the line's end, raw ones at three quotes. */
struct open_text {
	bool raw;
	unsigned braces; /* open braces of the current template */
};

static bool begins_text(const struct tw_lexer *l)
{
	return l->rest.len && (l->rest.ptr[0] == '"' || l->rest.ptr[0] == '\'');
}

static bool open_text(struct tw_lexer *l, struct open_text *ret)
{
	*ret = (struct open_text){.raw = at(l, "\"\"\"", 3)};
	skip(l, ret->raw ? 3 : 1);
	return true;
}

/* One step within a literal; true at its end. */
static bool step_text(struct tw_lexer *l, struct open_text *t, char quote)
{
	if (t->raw && at(l, "\"\"\"", 3)) {
		skip(l, 3);
		while (l->kotlin && at(l, "\"", 1)) /* quotes before the final three */
			skip(l, 1);
		return true;
	}
	if (l->kotlin && quote == '"' && at(l, "${", 2)) {
		t->braces = 1;
		skip(l, 2);
		return false;
	}
	if (!t->raw && at(l, "\n", 1)) /* not a string literal */
		return true;
	if (l->rest.ptr[0] == '\\' && !(t->raw && l->kotlin)) {
		skip(l, 2);
		return false;
	}
	if (!t->raw && l->rest.ptr[0] == quote) {
		skip(l, 1);
		return true;
	}
	skip(l, 1);
	return false;
}

static void step_template(struct tw_lexer *l, struct open_text *t)
{
	if (at(l, "/*", 2)) {
		skip_comment(l);
		return;
	}
	t->braces += l->rest.ptr[0] == '{';
	t->braces -= l->rest.ptr[0] == '}';
	skip(l, 1);
}

/* Templates contain literals with templates; beyond a depth that no code has, they are read as
 * plain text. */
static void skip_text(struct tw_lexer *l)
{
	struct open_text open[TEMPLATES_MAX];
	char quotes[TEMPLATES_MAX];
	size_t n = 0;

	do {
		struct open_text *t = n ? &open[n - 1] : NULL;

		if (!t || (t->braces && begins_text(l) && n < TEMPLATES_MAX)) {
			quotes[n] = l->rest.ptr[0];
			(void)open_text(l, &open[n++]);
		} else if (t->braces) {
			step_template(l, t);
		} else if (step_text(l, t, quotes[n - 1])) {
			n--;
		}
	} while (n && l->rest.len);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool is_in_word(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9');
}

/* Skips comments and blanks. */
static void skip_blanks(struct tw_lexer *l)
{
	while (l->rest.len) {
		char c = l->rest.ptr[0];

		if (c == ' ' || (c >= '\t' && c <= '\r'))
			skip(l, 1);
		else if (at(l, "//", 2) || (l->line == 1 && at(l, "#!", 2)))
			while (l->rest.len && l->rest.ptr[0] != '\n')
				skip(l, 1);
		else if (at(l, "/*", 2))
			skip_comment(l);
		else
			break;
	}
}

static bool in_ticks(struct tw_lexer *l, struct tw_str *ret)
{
	size_t n = 1;

	if (!l->kotlin || l->rest.ptr[0] != '`')
		return false;
	while (n < l->rest.len && l->rest.ptr[n] != '`' && l->rest.ptr[n] != '\n')
		n++;
	*ret = (struct tw_str){l->rest.ptr + 1, n - 1};
	return n < l->rest.len && l->rest.ptr[n] == '`';
}

struct tw_token tw_lexer_next(struct tw_lexer *l)
{
	struct tw_token t = {.kind = TW_TOKEN_END};
	size_t n = 0;

	skip_blanks(l);
	t.line = l->line;
	t.begins = l->line != l->previous;
	if (l->rest.len == 0)
		return t;
	t.sign = l->rest.ptr[0];
	while (n < l->rest.len && is_in_word(l->rest.ptr[n]))
		n++;
	if (n) {
		t.kind = TW_TOKEN_WORD;
		t.word = (struct tw_str){l->rest.ptr, n};
		skip(l, n);
	} else if (in_ticks(l, &t.word)) {
		t.kind = TW_TOKEN_WORD;
		t.quoted = true;
		skip(l, t.word.len + 2);
	} else if (begins_text(l)) {
		t.kind = TW_TOKEN_TEXT;
		t.word.ptr = l->rest.ptr;
		skip_text(l);
		t.word.len = (size_t)(l->rest.ptr - t.word.ptr);
	} else {
		t.kind = TW_TOKEN_SIGN;
		skip(l, 1);
	}
	l->previous = l->line;
	return t;
}

bool tw_token_is(const struct tw_token *t, const char *word)
{
	return t->kind == TW_TOKEN_WORD && !t->quoted && tw_str_eq(t->word, tw_str_of(word));
}

bool tw_token_is_any(const struct tw_token *t, const char *const *words)
{
	for (; *words; words++)
		if (tw_token_is(t, *words))
			return true;
	return false;
}

bool tw_token_is_sign(const struct tw_token *t, char sign)
{
	return t->kind == TW_TOKEN_SIGN && t->sign == sign;
}

bool tw_token_joins(const struct tw_token *t)
{
	return t->kind == TW_TOKEN_SIGN && strchr("=.,([{+-*/&|:<", t->sign) != NULL;
}

bool tw_token_begins_record(const struct tw_lexer *after, const struct tw_token *t)
{
	struct tw_lexer ahead = *after;

	return tw_token_is(t, "record") && tw_lexer_next(&ahead).kind == TW_TOKEN_WORD &&
	       tw_lexer_next(&ahead).kind == TW_TOKEN_SIGN;
}

#include "server/db/catalogue_postgres_dialect.h"

#include <ctype.h>
#include <string.h>

struct translation {
	const char *at;
	struct tw_buf *out;
	int values; /* the highest place; the next ? is one more */
};

static bool in_word(char c)
{
	return c == '_' || c == '$' || isalnum((unsigned char)c);
}

static void put(struct translation *t, const char *text)
{
	(void)tw_buf_add_str(t->out, tw_str_of(text));
}

static void copy(struct translation *t, size_t n)
{
	(void)tw_buf_add(t->out, t->at, n);
	t->at += n;
}

static bool begins(const char *at, const char *word)
{
	return strncmp(at, word, strlen(word)) == 0;
}

/* '...' or "..." with doubled quotes; a doubled quote begins another one. */
static void quoted(struct translation *t)
{
	const char *end = strchr(t->at + 1, t->at[0]);

	copy(t, end ? (size_t)(end - t->at) + 1 : strlen(t->at));
}

static void value(struct translation *t)
{
	int n = 0;

	for (t->at++; isdigit((unsigned char)*t->at) && n < 1000; t->at++)
		n = 10 * n + (*t->at - '0');
	if (n == 0)
		n = t->values + 1;
	if (n > t->values)
		t->values = n;
	(void)tw_buf_printf(t->out, "$%d", n);
}

/* Whether the call has several arguments. */
static bool has_comma(const char *at)
{
	char quote = '\0';

	for (int depth = 0; *at; at++) {
		if (*at == quote)
			quote = '\0';
		else if (!quote && (*at == '\'' || *at == '"'))
			quote = *at;
		else if (quote)
			continue;
		else if (*at == '(')
			depth++;
		else if (*at == ')' && depth-- == 0)
			return false;
		else if (*at == ',' && depth == 0)
			return true;
	}
	return false;
}

/* Skips INDEXED BY and its name. */
static const char *after_hint(const char *at)
{
	at += strlen("INDEXED BY");
	while (*at == ' ')
		at++;
	while (in_word(*at))
		at++;
	return at;
}

/* Whether the join has its own ON condition. */
static bool has_on(const char *at)
{
	static const char *const ends[] = {"WHERE ", "JOIN ", "GROUP BY ", "ORDER BY "};
	int depth = 0;

	for (; *at && depth >= 0; at++) {
		depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
		if (depth != 0 || *at != ' ')
			continue;
		if (begins(at, " ON "))
			return true;
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
			if (begins(at + 1, ends[i]))
				return false;
	}
	return false;
}

static void word(struct translation *t)
{
	size_t n = 0;

	if (begins(t->at, "INDEXED BY")) {
		t->at = after_hint(t->at);
	} else if (begins(t->at, "CROSS JOIN")) {
		t->at += strlen("CROSS JOIN");
		put(t, has_on(t->at) ? "JOIN" : "CROSS JOIN");
	} else if (begins(t->at, "LIKE ")) {
		put(t, "I");
		copy(t, strlen("LIKE"));
	} else if (begins(t->at, "x'")) {
		put(t, "'\\x");
		t->at += strlen("x'");
		copy(t, strcspn(t->at, "'"));
		put(t, "'::bytea");
		t->at += *t->at == '\'';
	} else if (begins(t->at, "char(")) {
		put(t, "chr");
		t->at += strlen("char");
	} else if ((begins(t->at, "max(") || begins(t->at, "min(")) && has_comma(t->at + 4)) {
		put(t, t->at[1] == 'a' ? "greatest" : "least");
		t->at += 3;
	} else {
		while (in_word(t->at[n]))
			n++;
		copy(t, n);
	}
}

/* TW_EITHER: skips SQLite's text up to the bar; PostgreSQL's is in a comment. */
static void either(struct translation *t)
{
	const char *bar = strstr(t->at, "/*|");

	t->at = bar ? bar + 3 : t->at + strlen(t->at);
}

static const char *begin_statement(const char *sql)
{
	if (strcmp(sql, "BEGIN") == 0)
		return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
	if (strcmp(sql, "BEGIN IMMEDIATE") == 0)
		return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
	return sql;
}

enum tw_status tw_postgres_sql(const char *sql, struct tw_buf *out, int *ret_values)
{
	struct translation t = {begin_statement(sql), out, 0};

	while (*t.at) {
		if (*t.at == '\'' || *t.at == '"')
			quoted(&t);
		else if (*t.at == '?')
			value(&t);
		else if (begins(t.at, "/*{*/"))
			either(&t);
		else if (begins(t.at, "}*/"))
			t.at += 3;
		else if (in_word(*t.at))
			word(&t);
		else
			copy(&t, 1);
	}
	(void)tw_buf_add_u8(out, 0);
	*ret_values = t.values;
	return tw_buf_status(out);
}

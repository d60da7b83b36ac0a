#include "server/source/source_name.h"

#include <string.h>

enum { ANNOTATION_TOKENS = 40, NAME_MOST = 200 };

/* "Foo" for a plain string literal; "" if it must be computed. */
static struct tw_str name_in(struct tw_str text)
{
	struct tw_str name = {text.ptr + 1, text.len < 2 ? 0 : text.len - 2};

	if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"' ||
	        name.len > NAME_MOST)
		return (struct tw_str){0};
	for (size_t i = 0; i < name.len; i++)
		if (strchr("\"\\${}\n", name.ptr[i]))
			return (struct tw_str){0};
	return name;
}

static bool keep(struct tw_jvm *j, struct tw_str name)
{
	if (j->of_file) {
		j->file = j->file.len ? j->file : name;
		return false;
	}
	for (size_t i = 0; i < TW_JVM_NAMES; i++) {
		if (j->names[i].len)
			continue;
		j->names[i] = name;
		return name.len > 0;
	}
	return false;
}

/* After an @: "file:", "get:", "kotlin.jvm.", "[". */
static void step_at(struct tw_jvm *j, const struct tw_token *t)
{
	if (tw_token_is(t, "JvmName"))
		j->state = TW_JVM_NAMED;
	else if (tw_token_is(t, "file"))
		j->of_file = true;
	else if (t->kind != TW_TOKEN_WORD && !tw_token_is_sign(t, ':') &&
	         !tw_token_is_sign(t, '.') && !tw_token_is_sign(t, '['))
		j->state = TW_JVM_NOTHING;
}

bool tw_jvm_step(struct tw_jvm *j, const struct tw_token *t)
{
	const bool named = j->state == TW_JVM_OPEN && t->kind == TW_TOKEN_TEXT;

	if (tw_token_is_sign(t, '@')) {
		j->state = TW_JVM_AT;
		j->of_file = false;
	} else if (j->state == TW_JVM_AT) {
		step_at(j, t);
	} else if (j->state == TW_JVM_NAMED) {
		j->state = tw_token_is_sign(t, '(') ? TW_JVM_OPEN : TW_JVM_NOTHING;
	} else if (!tw_token_is(t, "name") && !tw_token_is_sign(t, '=')) {
		j->state = TW_JVM_NOTHING;
	}
	if (tw_token_is_sign(t, '{') || tw_token_is_sign(t, '}') || tw_token_is_sign(t, ';'))
		memset(j->names, 0, sizeof j->names);
	return named && keep(j, name_in(t->word));
}

void tw_jvm_take(struct tw_jvm *j, struct tw_str to[TW_JVM_NAMES])
{
	for (size_t i = 0, k = 0; i < TW_JVM_NAMES; i++) {
		while (k < TW_JVM_NAMES && to[k].len)
			k++;
		if (k < TW_JVM_NAMES && j->names[i].len)
			to[k] = j->names[i];
		j->names[i] = (struct tw_str){0};
	}
}

/* The token after an annotation whose @ was just read. */
static struct tw_token after_annotation(struct tw_lexer *l)
{
	struct tw_token t = tw_lexer_next(l);
	size_t open = 0;

	for (int i = 0; i < ANNOTATION_TOKENS && t.kind != TW_TOKEN_END; i++) {
		struct tw_token next = tw_lexer_next(l);

		open += tw_token_is_sign(&t, '(');
		open -= open && tw_token_is_sign(&t, ')');
		if (!open && !tw_token_is_sign(&next, '.') && !tw_token_is_sign(&next, '(') &&
		        !tw_token_is_sign(&t, '.'))
			return next;
		t = next;
	}
	return (struct tw_token){.kind = TW_TOKEN_END};
}

bool tw_jvm_is_accessor(const struct tw_lexer *after, const struct tw_token *t)
{
	static const char *const accessors[] = {"get", "set", NULL};
	static const char *const modifiers[] = {"private", "protected", "internal", "inline", NULL};
	struct tw_lexer ahead = *after;
	struct tw_token next = *t;

	if (tw_token_is_sign(t, '@'))
		next = after_annotation(&ahead);
	if (tw_token_is_any(&next, modifiers))
		next = tw_lexer_next(&ahead);
	return tw_token_is_any(&next, accessors);
}

bool tw_jvm_names_annotation(bool was, const struct tw_token *prev, const struct tw_token *t)
{
	if (tw_token_is_sign(t, '@'))
		return true;
	if (!was)
		return false;
	if (t->kind == TW_TOKEN_WORD)
		return tw_token_is_sign(prev, '@') || tw_token_is_sign(prev, '.');
	return tw_token_is_sign(t, '.') || tw_token_is_sign(t, '(');
}

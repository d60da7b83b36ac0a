#include "server/auth/oidc/oidc_form.h"

#include <string.h>

static void escape(struct tw_buf *b, const char *text)
{
	static const char plain[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			(void)tw_buf_add(b, text, 1);
		else
			(void)tw_buf_printf(b, "%%%02X", (unsigned char)*text);
	}
}

/* The buffer may contain a secret. */
static const char *take(struct tw_buf *b, struct tw_arena *a)
{
	const char *text = NULL;

	if (tw_buf_status(b) == TW_OK)
		text = tw_arena_str(a, (struct tw_str){(const char *)b->data, b->len});
	if (b->data)
		explicit_bzero(b->data, b->cap);
	tw_buf_done(b);
	return text;
}

const char *tw_form_escaped(struct tw_arena *a, const char *value)
{
	struct tw_buf b;

	tw_buf_init(&b, TW_FORM_MAX_BYTES);
	escape(&b, value);
	return take(&b, a);
}

const char *tw_form_text(struct tw_arena *a, const char *before, const struct tw_form_pair *pairs)
{
	struct tw_buf b;
	const char *between = "";

	tw_buf_init(&b, TW_FORM_MAX_BYTES);
	(void)tw_buf_add_str(&b, tw_str_of(before));
	for (; pairs->name; pairs++) {
		if (!pairs->value)
			continue;
		(void)tw_buf_printf(&b, "%s%s=", between, pairs->name);
		escape(&b, pairs->value);
		between = "&";
	}
	return take(&b, a);
}

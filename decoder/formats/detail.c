#include "decoder/formats/detail.h"

#include <stdio.h>

enum { VALUE_BYTES = 1024 };

/* Adds a pair whose value is already JSON; keeps a byte for the closing brace. */
static void add(struct tw_detail *d, const char *key, const char *value)
{
	size_t space = sizeof d->text - d->len;
	int n = snprintf(d->text + d->len, space, "%c\"%s\":%s", d->len ? ',' : '{', key, value);

	if (n > 0 && (size_t)n + 1 < space)
		d->len += (size_t)n;
}

static size_t escape(char *out, char c)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char u = (unsigned char)c;

	if (u >= 0x20 && c != '"' && c != '\\') {
		*out = c;
		return 1;
	}
	out[0] = '\\';
	out[1] = c;
	if (u >= 0x20)
		return 2;
	out[1] = 'u';
	out[2] = out[3] = '0';
	out[4] = hex[u >> 4];
	out[5] = hex[u & 15];
	return 6;
}

void tw_detail_str(struct tw_detail *d, const char *key, struct tw_str value)
{
	char clean[VALUE_BYTES];
	char json[6 * VALUE_BYTES + 3];
	size_t n = tw_utf8_clean(clean, sizeof clean, value);
	size_t at = 1;

	if (value.len == 0)
		return;
	json[0] = '"';
	for (size_t i = 0; i < n; i++)
		at += escape(json + at, clean[i]);
	json[at++] = '"';
	json[at] = '\0';
	add(d, key, json);
}

void tw_detail_int(struct tw_detail *d, const char *key, int64_t value)
{
	char json[24];

	(void)snprintf(json, sizeof json, "%lld", (long long)value);
	add(d, key, json);
}

struct tw_str tw_detail_text(struct tw_detail *d)
{
	if (d->len == 0)
		return TW_STR("");
	d->text[d->len] = '}';
	return (struct tw_str){d->text, d->len + 1};
}

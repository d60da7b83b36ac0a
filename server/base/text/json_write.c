#include "server/base/text/json_write.h"

#include <math.h>
#include <string.h>

static void put(struct tw_json *j, const char *p, size_t n)
{
	(void)tw_buf_add(j->out, p, n);
}

static void begin_value(struct tw_json *j)
{
	if (j->comma)
		put(j, ",", 1);
	j->comma = true;
}

void tw_json_open(struct tw_json *j, char bracket)
{
	begin_value(j);
	put(j, &bracket, 1);
	j->comma = false;
}

void tw_json_close(struct tw_json *j, char bracket)
{
	put(j, &bracket, 1);
	j->comma = true;
}

void tw_json_key(struct tw_json *j, const char *key)
{
	put(j, &",\""[!j->comma], 1 + j->comma);
	put(j, key, strlen(key));
	put(j, "\":", 2);
	j->comma = false;
}

void tw_json_int(struct tw_json *j, int64_t v)
{
	char text[24];
	char *at = text + sizeof text;
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	begin_value(j);
	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (v < 0)
		*--at = '-';
	put(j, at, (size_t)(text + sizeof text - at));
}

void tw_json_bool(struct tw_json *j, bool v)
{
	begin_value(j);
	put(j, v ? "true" : "false", v ? 4 : 5);
}

void tw_json_null(struct tw_json *j)
{
	begin_value(j);
	put(j, "null", 4);
}

void tw_json_raw(struct tw_json *j, struct tw_str json)
{
	begin_value(j);
	put(j, json.ptr, json.len);
}

void tw_json_double(struct tw_json *j, double v)
{
	begin_value(j);
	if (isfinite(v))
		(void)tw_buf_printf(j->out, "%.6f", v);
	else
		put(j, "null", 4);
}

/* Number of bytes from p on that need no escape: nearly always all. */
static size_t plain_run(const char *p, size_t left)
{
	size_t n = 0;

	while (n < left) {
		unsigned char c = (unsigned char)p[n];
		size_t len = c < 0x80 ? 1 : tw_utf8_len(p + n, left - n);

		if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F || len == 0)
			break;
		n += len;
	}
	return n;
}

static void put_escaped(struct tw_json *j, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
	char pair[2] = {'\\', (char)c};

	if (c == '"' || c == '\\')
		put(j, pair, 2);
	else if (c >= 0x80) /* not UTF-8 */
		put(j, "\xEF\xBF\xBD", 3);
	else
		put(j, text, 6);
}

void tw_json_str(struct tw_json *j, struct tw_str s)
{
	size_t at = 0;

	begin_value(j);
	put(j, "\"", 1);
	while (at < s.len) {
		size_t run = plain_run(s.ptr + at, s.len - at);

		put(j, s.ptr + at, run);
		at += run;
		if (at < s.len)
			put_escaped(j, (unsigned char)s.ptr[at++]);
	}
	put(j, "\"", 1);
}

void tw_json_str_key(struct tw_json *j, struct tw_str key)
{
	tw_json_str(j, key);
	put(j, ":", 1);
	j->comma = false;
}

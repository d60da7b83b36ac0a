#include "server/notify/hook_mail.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 57, LINE_TEXT = 80, WORD_BYTES = 42 };

bool tw_mail_address(const char *address)
{
	const char *at = strchr(address, '@');

	return at && at != address && at[1] && !strchr(at + 1, '@') &&
	       strlen(address) <= TW_MAIL_ADDRESS_BYTES && tw_str_is_graphic(tw_str_of(address)) &&
	       !strpbrk(address, "<>()[],;:\\\"");
}

static void put(struct tw_buf *out, const char *s)
{
	(void)tw_buf_add_str(out, tw_str_of(s));
}

static void put_base64(struct tw_buf *out, const char *p, size_t n)
{
	char line[LINE_TEXT];

	(void)sodium_bin2base64(
	        line, sizeof line, (const unsigned char *)p, n, sodium_base64_VARIANT_ORIGINAL);
	put(out, line);
}

static void put_part(struct tw_buf *out, const char *boundary, const char *type, struct tw_str text)
{
	tw_buf_printf(out,
	        "--%s\r\nContent-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: "
	        "base64\r\n\r\n",
	        boundary, type);
	for (size_t at = 0; at < text.len; at += LINE_BYTES) {
		put_base64(out, text.ptr + at,
		        text.len - at < LINE_BYTES ? text.len - at : LINE_BYTES);
		put(out, "\r\n");
	}
}

/* Encoded words of RFC 2047, split between characters. */
static void put_subject(struct tw_buf *out, const char *text)
{
	size_t left = strlen(text);

	put(out, "Subject: ");
	while (left) {
		size_t n = left < WORD_BYTES ? left : WORD_BYTES;

		while (n < left && n > 1 && ((unsigned char)text[n] & 0xC0) == 0x80)
			n--;
		put(out, "=?utf-8?B?");
		put_base64(out, text, n);
		text += n;
		left -= n;
		put(out, left ? "?=\r\n " : "?=");
	}
	put(out, "\r\n");
}

static void put_date(struct tw_buf *out, int64_t at_ms)
{
	static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[][4] = {
	        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	const time_t s = (time_t)(at_ms / 1000);
	struct tm t;

	if (gmtime_r(&s, &t))
		tw_buf_printf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[t.tm_wday],
		        t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min,
		        t.tm_sec);
}

void tw_mail_write(const struct tw_mail_text *m, struct tw_buf *out)
{
	/* "=_" occurs in no line of base64 */
	static const char boundary[] = "=_tracewell_two_forms";
	const char *host = strchr(m->from, '@');

	tw_buf_printf(out, "From: tracewell <%s>\r\nTo: <%s>\r\n", m->from, m->to);
	put_subject(out, m->subject);
	put_date(out, m->at_ms);
	tw_buf_printf(out, "Message-ID: <%s%s>\r\n", m->id, host ? host : "@tracewell");
	tw_buf_printf(out,
	        "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
	        "Content-Type: multipart/alternative; boundary=\"%s\"\r\n\r\n",
	        boundary);
	put_part(out, boundary, "text/plain", m->text);
	put_part(out, boundary, "text/html", m->html);
	tw_buf_printf(out, "--%s--\r\n", boundary);
}

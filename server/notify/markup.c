#include "server/notify/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/base/text/figure.h"

enum { WORDS_BYTES = 512, NAME_BYTES = 300 };

static void put(struct tw_markup_out *p, const char *s)
{
	(void)tw_buf_add_str(p->out, tw_str_of(s));
}

static bool is_control(unsigned char c)
{
	return c < ' ' || c == 0x7f;
}

/* --- escaping --- */

static const char *entity(char c, bool quotes)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return quotes ? "&quot;" : NULL;
	case '\'':
		return quotes ? "&#39;" : NULL;
	default:
		return NULL;
	}
}

static void put_entities(struct tw_markup_out *p, char c, bool quotes)
{
	const char *e = entity(c, quotes);

	if (e)
		put(p, e);
	else
		(void)tw_buf_add_u8(p->out, (uint8_t)c);
}

static void put_char(struct tw_markup_out *p, char c)
{
	static const char *const special[] = {[TW_MARKUP_MARKDOWN] = "\\`*_[]<>#|~&@$",
	        [TW_MARKUP_JIRA] = "\\*_-+^~{}[]()!|#?@",
	        [TW_MARKUP_CARD] = "\\`*_[]()<>#~"};

	if (is_control((unsigned char)c))
		c = ' ';
	if (p->markup == TW_MARKUP_HTML || p->markup == TW_MARKUP_SLACK) {
		put_entities(p, c, p->markup == TW_MARKUP_HTML);
		return;
	}
	if (p->markup != TW_MARKUP_PLAIN && c && strchr(special[p->markup], c))
		(void)tw_buf_add_u8(p->out, '\\');
	(void)tw_buf_add_u8(p->out, (uint8_t)c);
}

void tw_markup_text(struct tw_markup_out *p, const char *text)
{
	for (; *text; text++)
		put_char(p, *text);
}

/* Truncates at a character boundary. */
static size_t cut_at(const char *name, size_t most)
{
	size_t n = strnlen(name, most + 1);

	if (n <= most)
		return n;
	for (n = most; n && ((unsigned char)name[n] & 0xC0) == 0x80;)
		n--;
	return n;
}

/* A code span of Markdown ends at backticks unless the fence is longer than any run of them. */
static size_t longest_run(const char *name, size_t n)
{
	size_t most = 0, run = 0;

	for (size_t i = 0; i < n; i++) {
		run = name[i] == '`' ? run + 1 : 0;
		most = run > most ? run : most;
	}
	return most;
}

static void put_markdown_code(struct tw_markup_out *p, const char *name, size_t n)
{
	const size_t fence = longest_run(name, n) + 1;
	const bool space = name[0] == '`' || name[n - 1] == '`';

	for (size_t i = 0; i < fence; i++)
		put(p, "`");
	put(p, space ? " " : "");
	for (size_t i = 0; i < n; i++)
		(void)tw_buf_add_u8(p->out,
		        is_control((unsigned char)name[i]) ? (uint8_t)' ' : (uint8_t)name[i]);
	put(p, space ? " " : "");
	for (size_t i = 0; i < fence; i++)
		put(p, "`");
}

static void put_slack_code(struct tw_markup_out *p, const char *name, size_t n)
{
	put(p, "`");
	for (size_t i = 0; i < n; i++)
		put_char(p, (char)(name[i] == '`' ? '\'' : name[i]));
	put(p, "`");
}

static void put_between(
        struct tw_markup_out *p, const char *begin, struct tw_str name, const char *end)
{
	put(p, begin);
	for (size_t i = 0; i < name.len; i++)
		put_char(p, name.ptr[i]);
	put(p, end);
}

void tw_markup_name(struct tw_markup_out *p, const char *name)
{
	const size_t n = cut_at(name, NAME_BYTES);
	const struct tw_str s = {name, n};

	if (n == 0)
		put(p, "unnamed");
	else if (p->markup == TW_MARKUP_MARKDOWN)
		put_markdown_code(p, name, n);
	else if (p->markup == TW_MARKUP_SLACK)
		put_slack_code(p, name, n);
	else if (p->markup == TW_MARKUP_JIRA)
		put_between(p, "{{", s, "}}");
	else if (p->markup == TW_MARKUP_HTML)
		put_between(p, "<code>", s, "</code>");
	else
		put_between(p, "", s, "");
	if (name[n])
		put(p, "…");
}

/* --- blocks --- */

void tw_markup_heading(struct tw_markup_out *p, const char *text)
{
	static const char *const before[] = {[TW_MARKUP_PLAIN] = "",
	        [TW_MARKUP_MARKDOWN] = "## ",
	        [TW_MARKUP_JIRA] = "h3. ",
	        [TW_MARKUP_HTML] = "<h2>",
	        [TW_MARKUP_SLACK] = "*",
	        [TW_MARKUP_CARD] = "**"};
	static const char *const after[] = {[TW_MARKUP_PLAIN] = "\n\n",
	        [TW_MARKUP_MARKDOWN] = "\n\n",
	        [TW_MARKUP_JIRA] = "\n\n",
	        [TW_MARKUP_HTML] = "</h2>\n",
	        [TW_MARKUP_SLACK] = "*\n",
	        [TW_MARKUP_CARD] = "**\n\n"};

	/* blocks end with an empty line, except in Slack */
	put(p, p->markup == TW_MARKUP_SLACK && p->out->len ? "\n" : "");
	put(p, before[p->markup]);
	tw_markup_text(p, text);
	put(p, after[p->markup]);
}

void tw_markup_begin(struct tw_markup_out *p)
{
	put(p, p->markup == TW_MARKUP_HTML ? "<p>" : "");
}

void tw_markup_end(struct tw_markup_out *p)
{
	static const char *const after[] = {[TW_MARKUP_PLAIN] = "\n\n",
	        [TW_MARKUP_MARKDOWN] = "\n\n",
	        [TW_MARKUP_JIRA] = "\n\n",
	        [TW_MARKUP_HTML] = "</p>\n",
	        [TW_MARKUP_SLACK] = "\n",
	        [TW_MARKUP_CARD] = "\n\n"};

	put(p, after[p->markup]);
}

void tw_markup_list(struct tw_markup_out *p, bool begin)
{
	if (p->markup == TW_MARKUP_HTML)
		put(p, begin ? "<ul>\n" : "</ul>\n");
	else if (!begin && p->markup != TW_MARKUP_SLACK)
		put(p, "\n");
}

void tw_markup_item(struct tw_markup_out *p)
{
	static const char *const before[] = {[TW_MARKUP_PLAIN] = "- ",
	        [TW_MARKUP_MARKDOWN] = "- ",
	        [TW_MARKUP_JIRA] = "* ",
	        [TW_MARKUP_HTML] = "<li>",
	        [TW_MARKUP_SLACK] = "• ",
	        [TW_MARKUP_CARD] = "- "};

	put(p, before[p->markup]);
}

void tw_markup_item_end(struct tw_markup_out *p)
{
	put(p, p->markup == TW_MARKUP_HTML ? "</li>\n" : "\n");
}

/* --- inline --- */

/* Escapes characters that would end the link in a validated URL. */
static void put_url(struct tw_markup_out *p, const char *url)
{
	for (; *url; url++)
		if (is_control((unsigned char)*url) || strchr(" <>\"'()[]{}|\\`^", *url))
			tw_buf_printf(p->out, "%%%02X", (unsigned)(unsigned char)*url);
		else if (p->markup == TW_MARKUP_HTML && *url == '&')
			put(p, "&amp;");
		else
			(void)tw_buf_add_u8(p->out, (uint8_t)*url);
}

void tw_markup_link(struct tw_markup_out *p, const char *text, const char *url)
{
	static const char *const parts[][3] = {[TW_MARKUP_PLAIN] = {"", ": ", ""},
	        [TW_MARKUP_MARKDOWN] = {"[", "](", ")"},
	        [TW_MARKUP_JIRA] = {"[", "|", "]"},
	        [TW_MARKUP_HTML] = {"<a href=\"", "\">", "</a>"},
	        [TW_MARKUP_SLACK] = {"<", "|", ">"},
	        [TW_MARKUP_CARD] = {"[", "](", ")"}};
	const char *const *of = parts[p->markup];
	const bool url_first = p->markup == TW_MARKUP_HTML || p->markup == TW_MARKUP_SLACK;

	if (!url) {
		tw_markup_text(p, text);
		return;
	}
	put(p, of[0]);
	if (url_first)
		put_url(p, url);
	else
		tw_markup_text(p, text);
	put(p, of[1]);
	if (url_first)
		tw_markup_text(p, text);
	else
		put_url(p, url);
	put(p, of[2]);
}

void tw_markup_printf(struct tw_markup_out *p, const char *fmt, ...)
{
	char text[WORDS_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	for (const char *c = text; *c; c++) {
		if (p->markup == TW_MARKUP_HTML || p->markup == TW_MARKUP_SLACK)
			put_entities(p, *c, false);
		else
			(void)tw_buf_add_u8(p->out, (uint8_t)*c);
	}
}

void tw_markup_phrase(struct tw_markup_out *p, const char *before, const char *name)
{
	if (!name[0])
		return;
	tw_markup_printf(p, "%s", before);
	tw_markup_name(p, name);
}

void tw_markup_count(struct tw_markup_out *p, int64_t n, const char *noun)
{
	tw_markup_printf(p, "%" PRId64 " %s%s", n, noun, n == 1 ? "" : "s");
}

void tw_markup_ns(struct tw_markup_out *p, int64_t ns)
{
	static const struct {
		double of;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	double v = (double)ns;
	size_t i = 0;

	while (i + 1 < sizeof units / sizeof *units && fabs(v) < units[i].of)
		i++;
	v /= units[i].of;
	/* as duration() of web/src/i18n/format.ts */
	tw_markup_printf(p, "%.*f %s",
	        units[i].of == 1 || fabs(v) >= 100 ? 0
	        : fabs(v) >= 10                    ? 1
	                                           : 2,
	        v, units[i].unit);
}

void tw_markup_percent(struct tw_markup_out *p, double share, bool sign)
{
	char text[TW_FIGURE_BYTES];

	tw_markup_printf(p, "%s", tw_percent_text(share, sign, text));
}

void tw_markup_query(struct tw_buf *out, const char *text, size_t n)
{
	static const char plain[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (size_t i = 0; i < n; i++)
		if (text[i] && strchr(plain, text[i]))
			(void)tw_buf_add_u8(out, (uint8_t)text[i]);
		else
			tw_buf_printf(out, "%%%02X", (unsigned)(unsigned char)text[i]);
}

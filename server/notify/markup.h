/*
 * markup.h - writes one text in several markups: plain, Markdown, Jira, HTML, Slack, Teams cards.
 *
 * All external data (names of methods, versions, scenarios) must be written with tw_markup_name or
 * tw_markup_text: it stays on its line and is escaped for the markup, so that it can neither format
 * anything nor mention anybody.  The buffer's sticky status shows at the end whether everything
 * fitted. Pure.  Thread: one at a time.
 */
#ifndef TW_MARKUP_H
#define TW_MARKUP_H

#include "decoder/base/buf.h"

enum tw_markup {
	TW_MARKUP_PLAIN,
	TW_MARKUP_MARKDOWN,
	TW_MARKUP_JIRA,
	TW_MARKUP_HTML,
	TW_MARKUP_SLACK,
	TW_MARKUP_CARD /* Teams: a subset of Markdown, without code and headings */
};

struct tw_markup_out {
	struct tw_buf *out;
	enum tw_markup markup;
};

void tw_markup_heading(struct tw_markup_out *p, const char *text);
/* Texts, names and links must be between begin and end of a paragraph or an item. */
void tw_markup_begin(struct tw_markup_out *p);
void tw_markup_end(struct tw_markup_out *p);
void tw_markup_list(struct tw_markup_out *p, bool begin); /* items must be in lists */
void tw_markup_item(struct tw_markup_out *p);
void tw_markup_item_end(struct tw_markup_out *p);

void tw_markup_text(struct tw_markup_out *p, const char *text);
void tw_markup_name(struct tw_markup_out *p,
        const char *name); /* as code where there is such; "" is "unnamed" */
/* `before` and the name; nothing for "". */
void tw_markup_phrase(struct tw_markup_out *p, const char *before, const char *name);
/* "1 trace", "2 traces": the noun takes an s. */
void tw_markup_count(struct tw_markup_out *p, int64_t n, const char *noun);
/* `url` is a URL of this server or validated: http or https; NULL: only the text. */
void tw_markup_link(struct tw_markup_out *p, const char *text, const char *url);
void tw_markup_printf(struct tw_markup_out *p, const char *fmt, ...) __attribute__((
        format(printf, 2, 3))); /* only our own texts and numbers, no external data */

/* "1.52 ms" */
void tw_markup_ns(struct tw_markup_out *p, int64_t ns);
/* "+18 %" */
void tw_markup_percent(struct tw_markup_out *p, double share, bool sign);

/* Appends text as one line, encoded as part of a URL's query. */
void tw_markup_query(struct tw_buf *out, const char *text, size_t n);

#endif

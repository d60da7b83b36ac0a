/*
 * prose.h - one text in several markups: plain, Markdown, Jira's, HTML, Slack's, that of cards in
 * Teams.
 *
 * What is said once is written in whichever form its reader takes.  All that comes from outside
 * (names of methods, versions, scenarios) is data: it goes through tw_prose_name or tw_prose_text,
 * stays on its line, and is escaped for the markup, so that it can neither format anything nor
 * mention anybody.  The buffer's sticky status tells at the end whether all fitted.
 * Pure.  Thread: one at a time.
 */
#ifndef TW_PROSE_H
#define TW_PROSE_H

#include "decoder/base/buf.h"

enum tw_markup {
	TW_MARKUP_PLAIN,
	TW_MARKUP_MARKDOWN,
	TW_MARKUP_JIRA,
	TW_MARKUP_HTML,
	TW_MARKUP_SLACK,
	TW_MARKUP_CARD /* Teams: some Markdown, without code and headings */
};

struct tw_prose {
	struct tw_buf *out;
	enum tw_markup markup;
};

void tw_prose_heading(struct tw_prose *p, const char *text);
/* Between begin and end of a paragraph or an item stand texts, names, links. */
void tw_prose_begin(struct tw_prose *p);
void tw_prose_end(struct tw_prose *p);
void tw_prose_list(struct tw_prose *p, bool begin); /* items stand in lists */
void tw_prose_item(struct tw_prose *p);
void tw_prose_item_end(struct tw_prose *p);

void tw_prose_text(struct tw_prose *p, const char *text);
void tw_prose_name(
        struct tw_prose *p, const char *name); /* as code where there is such; "" is "unnamed" */
/* `before` and the name; nothing for "". */
void tw_prose_phrase(struct tw_prose *p, const char *before, const char *name);
/* "1 trace", "2 traces": the noun takes an s. */
void tw_prose_count(struct tw_prose *p, int64_t n, const char *noun);
/* url is ours or was judged: http or https; NULL: the text alone. */
void tw_prose_link(struct tw_prose *p, const char *text, const char *url);
void tw_prose_printf(struct tw_prose *p, const char *fmt, ...)
        __attribute__((format(printf, 2, 3))); /* words and numbers of our own, nothing of others */

/* "1.52 ms" */
void tw_prose_ns(struct tw_prose *p, int64_t ns);
/* "+18 %" */
void tw_prose_percent(struct tw_prose *p, double share, bool sign);

/* text in one line as a part of an URL's query. */
void tw_prose_query(struct tw_buf *out, const char *text, size_t n);

#endif

#include "server/storage/s3/s3_xml.h"

#include <stdio.h>
#include <string.h>

enum { TAG_BYTES = 64 };

bool tw_xml_next(struct tw_str *text, const char *tag, struct tw_str *ret)
{
	char open[TAG_BYTES], close[TAG_BYTES];
	size_t at, end;

	(void)snprintf(open, sizeof open, "<%.60s>", tag);
	(void)snprintf(close, sizeof close, "</%.60s>", tag);
	at = text->len ? tw_str_find(*text, tw_str_of(open)) : SIZE_MAX;
	if (at >= text->len)
		return false;
	*text = tw_str_from(*text, at + strlen(open));
	end = text->len ? tw_str_find(*text, tw_str_of(close)) : SIZE_MAX;
	if (end >= text->len)
		return false;
	*ret = (struct tw_str){text->ptr, end};
	*text = tw_str_from(*text, end + strlen(close));
	return true;
}

static size_t entity(struct tw_str s, char *ret)
{
	static const struct {
		const char *text;
		char is;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#34;", '"'},
	        {"&apos;", '\''}, {"&#39;", '\''}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (tw_str_starts(s, tw_str_of(known[i].text))) {
			*ret = known[i].is;
			return strlen(known[i].text);
		}
	*ret = s.ptr[0];
	return 1;
}

void tw_xml_text(struct tw_str text, const char *tag, char *out, size_t cap)
{
	struct tw_str found;
	size_t n = 0;

	out[0] = '\0';
	if (!tw_xml_next(&text, tag, &found))
		return;
	while (found.len && n + 1 < cap)
		found = tw_str_from(found, entity(found, &out[n++]));
	out[n] = '\0';
}

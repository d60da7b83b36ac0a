/*
 * export_svg.c - the merged flame graph as one self-contained SVG: no script, no link, no font.
 *
 * The root is on top. Each box is a nested <svg>, which clips its name at any width of the
 * picture; the picture's width follows the window. Its <title> contains the complete name and the
 * numbers. Boxes are light and their text dark in both colour schemes; the page around them
 * follows the reader's scheme. Names are escaped, and characters that XML does not allow are
 * replaced.
 */
#include <inttypes.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "server/export/export_format.h"

enum { ROW = 18, TOP = 48, HUES = 8, TEXT_MAX_BYTES = 400 };
static const double text_from_share = 0.003; /* narrower boxes have no space for a letter */

static const char style[] = "<style>\n"
                            "text { font: 12px system-ui, sans-serif; fill: #161616; }\n"
                            ".page { fill: #ffffff; }\n"
                            ".title { font-weight: 600; }\n"
                            ".page-text { fill: #161616; }\n"
                            ".h0 { fill: #f7c59f; } .h1 { fill: #f2d388; } .h2 { fill: #f4b6a6; } "
                            ".h3 { fill: #e9d8a6; }\n"
                            ".h4 { fill: #c9dfa8; } .h5 { fill: #b5dcd0; } .h6 { fill: #b9cdf0; } "
                            ".h7 { fill: #d9c2ec; }\n"
                            ".other { fill: #d0d0d0; }\n"
                            "@media (prefers-color-scheme: dark) {\n"
                            "\t.page { fill: #17181c; }\n"
                            "\t.page-text { fill: #ececec; }\n"
                            "}\n"
                            "</style>\n";

/* U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML. */
static bool is_refused(const char *p, size_t left)
{
	return left >= 3 && memcmp(p, "\xEF\xBF", 2) == 0 && ((unsigned char)p[2] | 1) == 0xBF;
}

static const char *escape_of(const char *p, size_t left)
{
	switch (*p) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
	case '\n':
	case '\r':
		return " ";
	default:
		return (unsigned char)*p < 0x20 || is_refused(p, left) ? "\xEF\xBF\xBD" : NULL;
	}
}

static void put_text(struct tw_buf *out, struct tw_str s)
{
	size_t from = 0;
	size_t at = 0;

	while (at < s.len) {
		const char *instead = escape_of(s.ptr + at, s.len - at);
		size_t n = instead && is_refused(s.ptr + at, s.len - at) ? 3 : 1;

		if (instead) {
			(void)tw_buf_add(out, s.ptr + from, at - from);
			(void)tw_buf_add_str(out, tw_str_of(instead));
			from = at + n;
		}
		at += n;
	}
	(void)tw_buf_add(out, s.ptr + from, s.len - from);
}

/* The beginning of a text, truncated at a character. */
static struct tw_str beginning(struct tw_str s)
{
	size_t max = TEXT_MAX_BYTES;

	if (s.len <= max)
		return s;
	while (max && ((unsigned char)s.ptr[max] & 0xC0) == 0x80)
		max--;
	return (struct tw_str){s.ptr, max};
}

/* "Class.method" of "pkg.Class.method": boxes rarely have space for more. */
static struct tw_str last_two(struct tw_str name)
{
	size_t dots = 0;

	/* parameters contain dots too */
	for (size_t at = tw_str_find(name, TW_STR("(")); at-- > 0;)
		if (name.ptr[at] == '.' && ++dots == 2)
			return tw_str_from(name, at + 1);
	return name;
}

static void put_value(struct tw_export *x, int64_t v)
{
	struct tw_buf *out = &x->out;

	if (x->q.metric == TW_EXPORT_COUNT)
		(void)tw_buf_printf(out, "%" PRId64 " calls", v);
	else if (v < 1000)
		(void)tw_buf_printf(out, "%" PRId64 " ns", v);
	else if (v < 1000000)
		(void)tw_buf_printf(out, "%.2f \xC2\xB5s", (double)v / 1e3);
	else if (v < 1000000000)
		(void)tw_buf_printf(out, "%.2f ms", (double)v / 1e6);
	else
		(void)tw_buf_printf(out, "%.3f s", (double)v / 1e9);
}

/* "12.34%". For positions 4 digits (1 in 10,000 of a screen is visible), for text 2. */
static void put_share(struct tw_export *x, int64_t v, unsigned digits)
{
	int64_t total = x->flame.nodes[0].value;
	double scale = digits == 4 ? 1e6 : 1e4;

	tw_export_decimal(
	        &x->out, total > 0 ? (int64_t)((double)v / (double)total * scale) : 0, digits);
	(void)tw_buf_add(&x->out, "%", 1);
}

static uint32_t rows_of(const struct tw_flame *f)
{
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->nodes[i].depth > deepest)
			deepest = f->nodes[i].depth;
	return deepest + 1;
}

static void head(struct tw_export *x, uint32_t i)
{
	struct tw_buf *out = &x->out;
	unsigned height = TOP + rows_of(&x->flame) * ROW + 8;
	const char *title = x->facts.title[0] ? x->facts.title : "Flame graph";

	(void)i;
	(void)tw_buf_printf(out,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%u\" "
	        "role=\"img\">\n<title>",
	        height);
	put_text(out, tw_str_of(title));
	(void)tw_buf_add_str(out, TW_STR("</title>\n"));
	(void)tw_buf_add_str(out, tw_str_of(style));
	(void)tw_buf_add_str(out, TW_STR("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
	                                 "<text class=\"page-text title\" x=\"8\" y=\"18\">"));
	put_text(out, beginning(tw_str_of(title)));
	(void)tw_buf_add_str(out, TW_STR("</text>\n<text class=\"page-text\" x=\"8\" y=\"36\">"));
	put_text(out, beginning(tw_export_scope(x)));
	(void)tw_buf_add_str(out, x->q.view == TW_BOTTOM_UP ? TW_STR(", callers below, ")
	                                                    : TW_STR(", callees below, "));
	put_value(x, x->flame.nodes[0].value);
	(void)tw_buf_add_str(out, TW_STR("</text>\n"));
}

static void put_tip(struct tw_export *x, const struct tw_flame_node *n, struct tw_str name)
{
	struct tw_buf *out = &x->out;

	(void)tw_buf_add_str(out, TW_STR("<title>"));
	put_text(out, name);
	(void)tw_buf_add(out, "\n", 1);
	put_value(x, n->value);
	(void)tw_buf_add(out, " (", 2);
	put_share(x, n->value, 2);
	(void)tw_buf_add_str(out, TW_STR("), self "));
	put_value(x, n->self);
	if (n->others)
		(void)tw_buf_printf(out, ", %" PRIu32 " nodes", n->others);
	else if (x->q.metric != TW_EXPORT_COUNT)
		(void)tw_buf_printf(out, ", %" PRIu64 " calls", n->count);
	(void)tw_buf_add_str(out, TW_STR("</title>"));
}

static unsigned hue_of(struct tw_str name)
{
	uint32_t h = tw_fnv32(name);

	return (h ^ h >> 15) % HUES;
}

static void box(struct tw_export *x, uint32_t i)
{
	const struct tw_flame_node *n = &x->flame.nodes[i];
	int64_t total = x->flame.nodes[0].value;
	struct tw_str name = tw_export_node_name(x, i);
	struct tw_buf *out = &x->out;

	(void)tw_buf_add_str(out, TW_STR("<svg x=\""));
	put_share(x, x->flame_starts[i], 4);
	(void)tw_buf_printf(out, "\" y=\"%u\" width=\"", TOP + n->depth * ROW);
	put_share(x, n->value, 4);
	(void)tw_buf_printf(out, "\" height=\"%d\">", ROW - 1);
	put_tip(x, n, name);
	if (n->others)
		(void)tw_buf_add_str(out, TW_STR("<rect class=\"other\""));
	else
		(void)tw_buf_printf(out, "<rect class=\"h%u\"", hue_of(name));
	(void)tw_buf_add_str(out, TW_STR(" width=\"100%\" height=\"100%\" rx=\"1\"/>"));
	if ((double)n->value >= text_from_share * (double)total) {
		(void)tw_buf_add_str(out, TW_STR("<text x=\"3\" y=\"13\">"));
		put_text(out, beginning(last_two(name)));
		(void)tw_buf_add_str(out, TW_STR("</text>"));
	}
	(void)tw_buf_add_str(out, TW_STR("</svg>\n"));
}

static void tail(struct tw_export *x, uint32_t i)
{
	(void)i;
	(void)tw_buf_add_str(&x->out, TW_STR("</svg>\n"));
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, head},
        {TW_WALK_FLAME, box},
        {TW_WALK_ONCE, tail},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_svg = {
        .kind = {.name = "svg",
                .suffix = ".svg",
                .type = "image/svg+xml",
                .summary = "the merged flame graph as a standalone picture"},
        .program = program,
        .flame_nodes = 4000,
        .metrics = 1 << TW_EXPORT_WALL | 1 << TW_EXPORT_COUNT,
};

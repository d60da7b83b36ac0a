#include "server/source/source_rules.h"

#include "decoder/base/buf.h"

enum { LINK_BYTES = 8192 };

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t scheme_of(const char *text)
{
	if (strncmp(text, "https://", 8) == 0)
		return 8;
	return strncmp(text, "http://", 7) == 0 ? 7 : 0;
}

/* host[:port]/ */
static bool has_host(const char *text)
{
	const char *p = text + scheme_of(text);
	const char *begin = p;

	while (is_word(*p) || *p == '.' || *p == '-')
		p++;
	if (p == begin || scheme_of(text) == 0)
		return false;
	if (*p == ':')
		for (p++; *p >= '0' && *p <= '9';)
			p++;
	return *p == '/';
}

enum placeholder { NO_PLACEHOLDER, COMMIT, PATH, VERSION, LINE, END, PLACEHOLDERS };
static const char *const names[PLACEHOLDERS] = {
        "", "{commit}", "{path}", "{version}", "{line}", "{end}"};

/* The placeholder at p. */
static enum placeholder placeholder_at(const char *p)
{
	for (unsigned i = COMMIT; i < PLACEHOLDERS; i++)
		if (strncmp(p, names[i], strlen(names[i])) == 0)
			return (enum placeholder)i;
	return NO_PLACEHOLDER;
}

static bool is_plain(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p >= 0x7F || strchr("\"'<>\\^`|", *p))
			return false;
	return true;
}

/* Fails for unknown placeholders; *ret has a bit for each one found. */
static bool find_placeholders(const char *text, unsigned *ret)
{
	*ret = 0;
	for (const char *p = text; *p; p++) {
		enum placeholder at = *p == '{' ? placeholder_at(p) : NO_PLACEHOLDER;

		if (*p == '}' || (*p == '{' && at == NO_PLACEHOLDER))
			return false;
		if (at != NO_PLACEHOLDER) {
			*ret |= 1U << at;
			p += strlen(names[at]) - 1;
		}
	}
	return true;
}

static enum tw_status refuse(const char *what, const char *why, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST, "%.90s %s", what, why);
}

enum tw_status tw_link_check(
        const char *what, const char *text, bool needs_path, struct tw_err *err)
{
	unsigned placeholders;

	if (strlen(text) > TW_LINK_TEMPLATE_BYTES)
		return refuse(what, "has at most 512 bytes", err);
	if (!has_host(text))
		return refuse(what, "begins with http:// or https://, a host and a slash", err);
	if (!is_plain(text))
		return refuse(what, "has no blanks, quotes, brackets or letters beyond ASCII", err);
	if (!find_placeholders(text, &placeholders))
		return refuse(what,
		        "has an unknown name in braces: only {commit}, {path}, {line}, {end} and "
		        "{version} are known",
		        err);
	if (needs_path && !(placeholders & 1U << PATH))
		return refuse(what, "must contain {path}", err);
	if (!needs_path &&
	        (placeholders & ~(1U << COMMIT | 1U << VERSION) || !(placeholders & 1U << COMMIT)))
		return refuse(what, "must contain {commit}, and neither file nor line", err);
	return TW_OK;
}

static void put_encoded(struct tw_buf *out, const char *text, const char *kept)
{
	for (const char *p = text; *p; p++)
		if (is_word(*p) || strchr(kept, *p))
			(void)tw_buf_add(out, p, 1);
		else
			(void)tw_buf_printf(out, "%%%02X", (unsigned char)*p);
}

static void put_placeholder(struct tw_buf *out, enum placeholder at, const struct tw_link_values *v)
{
	if (at == COMMIT)
		put_encoded(out, v->commit, "-._~");
	else if (at == PATH)
		put_encoded(out, v->path, "-._~/");
	else if (at == VERSION)
		put_encoded(out, v->version, "-._~");
	else
		(void)tw_buf_printf(out, "%u", at == LINE || !v->end ? v->line : v->end);
}

/* The template's length without the part that needs a line, if the line is unknown. */
static size_t usable_length(const char *text, bool has_line)
{
	const char *hash = strchr(text, '#');
	bool needs_line = hash && (strstr(hash, "{line}") || strstr(hash, "{end}"));

	return needs_line && !has_line ? (size_t)(hash - text) : strlen(text);
}

/* Browsers go up a folder at a segment of dots. */
static bool has_dot_segment(const char *link)
{
	const char *p = link + scheme_of(link);

	while (*p && *p != '?' && *p != '#') {
		size_t n = strcspn(p, "/?#");

		if ((n == 1 || n == 2) && strncmp(p, "..", n) == 0)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

const char *tw_link_make(const char *text, const struct tw_link_values *v, struct tw_arena *a)
{
	size_t n = usable_length(text, v->line > 0);
	struct tw_buf out;
	char *made = NULL;

	tw_buf_init(&out, LINK_BYTES);
	for (size_t i = 0; i < n; i++) {
		enum placeholder at = text[i] == '{' ? placeholder_at(text + i) : NO_PLACEHOLDER;

		if (at == NO_PLACEHOLDER) {
			(void)tw_buf_add(&out, text + i, 1);
			continue;
		}
		put_placeholder(&out, at, v);
		i += strlen(names[at]) - 1;
	}
	if (tw_buf_status(&out) == TW_OK)
		made = tw_arena_str(a, tw_buf_str(&out));
	tw_buf_done(&out);
	return made && has_dot_segment(made) ? "" : made;
}

/*
 * source_owners.c - matches patterns segment by segment.
 *
 * Only the last star is retried, so that matching takes at most the pattern's length times the
 * path's.
 */
#include "server/source/source_owners.h"

#include <stdio.h>
#include <strings.h>

/* --- patterns --- */

static struct tw_str cut(struct tw_str s, size_t n)
{
	return (struct tw_str){s.ptr, n < s.len ? n : s.len};
}

/* The segment before the next slash; *io continues after it. */
static struct tw_str segment(struct tw_str *io)
{
	return tw_str_split(io, '/');
}

/* Whether the first character of the pattern matches c.  *ret_n: its bytes. */
static bool fits_one(struct tw_str p, char c, size_t *ret_n)
{
	bool escaped = p.ptr[0] == '\\' && p.len > 1;

	*ret_n = escaped ? 2 : 1;
	return escaped ? p.ptr[1] == c : p.ptr[0] == '?' || p.ptr[0] == c;
}

/* Matches one segment: * any text, ? one character. */
static bool fits_segment(struct tw_str p, struct tw_str s)
{
	struct tw_str star = {0}, from = {0};
	size_t n;

	while (s.len) {
		if (p.len && p.ptr[0] == '*') {
			p = star = tw_str_from(p, 1);
			from = s;
		} else if (p.len && fits_one(p, s.ptr[0], &n)) {
			p = tw_str_from(p, n);
			s = tw_str_from(s, 1);
		} else if (star.ptr) {
			p = star;
			s = from = tw_str_from(from, 1);
		} else {
			return false;
		}
	}
	while (p.len && p.ptr[0] == '*')
		p = tw_str_from(p, 1);
	return p.len == 0;
}

/* After the pattern's end the path may only continue below a folder that the pattern names. */
static bool fits_end(struct tw_str last, struct tw_str path)
{
	return path.len == 0 || !tw_str_eq(last, TW_STR("*"));
}

/* Matches pattern and path from the root. */
static bool fits_path(struct tw_str p, struct tw_str path)
{
	struct tw_str star = {0}, from = {0}, last = {0};

	for (;;) {
		struct tw_str p_rest = p, path_rest = path;
		struct tw_str want = segment(&p_rest), have = segment(&path_rest);

		if (p.len == 0 && last.ptr && fits_end(last, path))
			return true;
		if (tw_str_eq(want, TW_STR("**"))) {
			if (p_rest.len == 0)
				return path.len > 0;
			p = star = p_rest;
			from = path;
			continue;
		}
		if (p.len && path.len && fits_segment(want, have)) {
			last = want;
			p = p_rest;
			path = path_rest;
			continue;
		}
		if (!star.ptr || from.len == 0)
			return false;
		(void)segment(&from);
		p = star;
		path = from;
		last = (struct tw_str){0};
	}
}

bool tw_owners_fits(struct tw_str pattern, struct tw_str path)
{
	char space[TW_OWNERS_PATH_BYTES + 8];
	struct tw_str inner = pattern;
	size_t n;
	bool folder = inner.len && inner.ptr[inner.len - 1] == '/';
	bool anchored = inner.len && inner.ptr[0] == '/';

	if (anchored)
		inner = tw_str_from(inner, 1);
	if (folder && inner.len)
		inner.len--;
	if (inner.len == 0)
		return pattern.len == 1; /* "/" matches everything */
	if (inner.len > TW_OWNERS_PATH_BYTES || path.len > TW_OWNERS_PATH_BYTES)
		return false;
	n = (size_t)snprintf(space, sizeof space, "%s%.*s%s",
	        !anchored && tw_str_find(inner, TW_STR("/")) == inner.len ? "**/" : "",
	        (int)inner.len, inner.ptr, folder ? "/**" : "");
	return fits_path((struct tw_str){space, n}, path);
}

/* --- lines --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The first word, with escaped blanks; *io continues after it. */
static struct tw_str word(struct tw_str *io)
{
	struct tw_str s = tw_str_trim(*io);
	size_t n = 0;

	while (n < s.len && !is_blank(s.ptr[n]))
		n += s.ptr[n] == '\\' && n + 1 < s.len ? 2 : 1;
	*io = tw_str_trim(tw_str_from(s, n));
	return cut(s, n);
}

static struct tw_str without_comment(struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '#' && (i == 0 || is_blank(s.ptr[i - 1])))
			return tw_str_trim(cut(s, i));
	return s;
}

static bool same_name(struct tw_str a, struct tw_str b)
{
	return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

struct sections {
	struct tw_owners_hit *hits;
	struct tw_str defaults[TW_OWNERS_SECTIONS];
	size_t n, at; /* at == TW_OWNERS_SECTIONS: too many */
};

static void enter(struct sections *s, struct tw_str name, struct tw_str defaults)
{
	for (s->at = 0; s->at < s->n; s->at++)
		if (same_name(s->hits[s->at].section, name))
			break;
	if (s->at == TW_OWNERS_SECTIONS)
		return;
	if (s->at == s->n) {
		s->hits[s->n++] = (struct tw_owners_hit){.section = name};
		s->defaults[s->at] = defaults;
	} else if (defaults.len) {
		s->defaults[s->at] = defaults;
	}
}

/* "[Name]", "^[Name][2] @owner": true if the line begins a section. */
static bool begin_section(struct sections *s, struct tw_str line)
{
	struct tw_str at = line.len && line.ptr[0] == '^' ? tw_str_from(line, 1) : line;
	size_t end = tw_str_find(at, TW_STR("]"));
	struct tw_str rest;

	if (at.len == 0 || at.ptr[0] != '[' || end == at.len)
		return false;
	rest = tw_str_from(at, end + 1);
	if (rest.len && rest.ptr[0] == '[' && tw_str_find(rest, TW_STR("]")) < rest.len)
		rest = tw_str_from(rest, tw_str_find(rest, TW_STR("]")) + 1);
	enter(s, (struct tw_str){at.ptr + 1, end - 1}, tw_str_trim(rest));
	return true;
}

static void match_line(struct sections *s, struct tw_str line, struct tw_str path, uint32_t number)
{
	struct tw_str owners = line;
	struct tw_str pattern = word(&owners);
	struct tw_owners_hit *hit = &s->hits[s->at];

	if (s->at == TW_OWNERS_SECTIONS || pattern.ptr[0] == '!' || !tw_owners_fits(pattern, path))
		return;
	hit->line = number;
	hit->owners = owners.len ? owners : s->defaults[s->at];
}

size_t tw_owners_find(
        struct tw_str file, struct tw_str path, struct tw_owners_hit ret_hits[TW_OWNERS_SECTIONS])
{
	struct sections s = {.hits = ret_hits};
	size_t kept = 0;

	file = cut(file, TW_OWNERS_FILE_BYTES);
	enter(&s, TW_STR(""), TW_STR(""));
	for (uint32_t number = 1; file.len; number++) {
		struct tw_str line = tw_str_split(&file, '\n');

		line = without_comment(tw_str_trim(line));
		if (line.len && !begin_section(&s, line))
			match_line(&s, line, path, number);
	}
	for (size_t i = 0; i < s.n; i++)
		if (ret_hits[i].line)
			ret_hits[kept++] = ret_hits[i];
	return kept;
}

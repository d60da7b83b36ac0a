#include "server/http/http_int.h"

#include <string.h>
#include <strings.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(const char *s, size_t len)
{
	for (size_t i = 0, step; i < len; i += step) {
		step = tw_utf8_len(s + i, len - i);
		if (step == 0 || s[i] == '\0')
			return false;
	}
	return true;
}

/* Decodes %xx (and + in queries) into a NUL-terminated copy; NULL if the bytes are not text. */
static const char *decode(struct tw_arena *a, struct tw_str s, bool plus, bool *ret_nomem)
{
	char *out = tw_arena_alloc(a, s.len + 1, 1);
	size_t n = 0;

	*ret_nomem = !out;
	for (size_t i = 0; out && i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '%') {
			int high = s.len - i > 2 ? hex(s.ptr[i + 1]) : -1;
			int low = s.len - i > 2 ? hex(s.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		out[n++] = c;
	}
	if (!out || !is_text(out, n))
		return NULL;
	out[n] = '\0';
	return out;
}

static enum tw_status refuse(bool nomem, const char *what, struct tw_err *err)
{
	if (nomem)
		return tw_oom(err);
	return tw_fail(err, TW_BAD_REQUEST,
	        "%s contains NUL, an invalid %% escape or invalid UTF-8", what);
}

static enum tw_status parse_pieces(
        struct tw_arena *a, struct tw_str path, struct tw_target *t, struct tw_err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return tw_fail(err, TW_BAD_REQUEST, "the path must begin with /");
	path = (struct tw_str){path.ptr + 1, path.len - 1};
	while (path.len) {
		bool more = memchr(path.ptr, '/', path.len);
		struct tw_str piece = tw_str_split(&path, '/');
		bool nomem;

		if (t->n_pieces == TW_MAX_PIECES)
			return tw_fail(err, TW_NOT_FOUND, "no such path");
		t->pieces[t->n_pieces] = decode(a, piece, false, &nomem);
		if (!t->pieces[t->n_pieces])
			return refuse(nomem, "the path", err);
		t->n_pieces++;
		if (!more || path.len)
			continue;
		if (t->n_pieces == TW_MAX_PIECES)
			return tw_fail(err, TW_NOT_FOUND, "no such path");
		t->pieces[t->n_pieces++] = ""; /* a trailing / makes a different path */
	}
	return TW_OK;
}

static enum tw_status parse_pairs(
        struct tw_arena *a, struct tw_str query, struct tw_target *t, struct tw_err *err)
{
	while (query.len) {
		struct tw_str value = tw_str_split(&query, '&');
		struct tw_str name = tw_str_split(&value, '=');
		struct tw_pair *pair = &t->pairs[t->n_pairs];
		bool nomem;

		if (name.len == 0)
			continue;
		if (t->n_pairs == TW_MAX_PAIRS)
			return tw_fail(
			        err, TW_BAD_REQUEST, "more than %d query parameters", TW_MAX_PAIRS);
		pair->name = decode(a, name, true, &nomem);
		if (!pair->name)
			return refuse(nomem, "a query parameter's name", err);
		pair->value = decode(a, value, true, &nomem);
		if (!pair->value)
			return refuse(nomem, pair->name, err);
		t->n_pairs++;
	}
	return TW_OK;
}

static bool has_blanks(const char *raw)
{
	for (; *raw; raw++)
		if ((unsigned char)*raw <= ' ' || *raw == 0x7f)
			return true;
	return false;
}

/* Length of "http://authority"; 0: the target is not in absolute form. */
static size_t absolute_bytes(const char *raw, size_t *ret_scheme)
{
	*ret_scheme = strncasecmp(raw, "http://", 7) == 0    ? 7
	              : strncasecmp(raw, "https://", 8) == 0 ? 8
	                                                     : 0;
	return *ret_scheme ? *ret_scheme + strcspn(raw + *ret_scheme, "/?#") : 0;
}

enum tw_status tw_target_parse(
        struct tw_arena *a, const char *raw, struct tw_target *ret, struct tw_err *err)
{
	size_t scheme;
	const size_t absolute = absolute_bytes(raw, &scheme);
	const struct tw_str authority = {raw + scheme, absolute - scheme};
	struct tw_str query = tw_str_of(raw + absolute);
	struct tw_str path = tw_str_split(&query, '?');
	enum tw_status st;

	if (absolute && path.len == 0)
		path = TW_STR("/");
	*ret = (struct tw_target){.path = tw_arena_str(a, path),
	        .authority = absolute ? tw_arena_str(a, authority) : NULL};
	if (!ret->path || (absolute && !ret->authority))
		return tw_oom(err);
	if (has_blanks(raw))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the path contains a space or a control character: percent-encode it");
	if (absolute && (authority.len == 0 || strchr(ret->authority, '@')))
		return tw_fail(
		        err, TW_BAD_REQUEST, "the target's host is empty or has a user name");
	st = parse_pieces(a, path, ret, err);
	return st == TW_OK ? parse_pairs(a, query, ret, err) : st;
}

static bool is_variable(struct tw_str piece)
{
	return piece.len >= 2 && piece.ptr[0] == '{' && piece.ptr[piece.len - 1] == '}';
}

bool tw_target_matches(const struct tw_target *t, const char *template)
{
	struct tw_str rest = tw_str_of(template + 1);
	size_t at = 0;

	while (rest.len) {
		struct tw_str piece = tw_str_split(&rest, '/');

		if (tw_str_eq(piece, TW_STR("{*}")))
			return true;
		if (at == t->n_pieces)
			return false;
		if (is_variable(piece) ? !*t->pieces[at]
		                       : !tw_str_eq(piece, tw_str_of(t->pieces[at])))
			return false;
		at++;
	}
	return at == t->n_pieces;
}

static const char *join(const struct tw_target *t, size_t from, struct tw_arena *a)
{
	const char *all = from < t->n_pieces ? t->pieces[from] : "";

	for (size_t i = from + 1; all && i < t->n_pieces; i++)
		all = tw_arena_printf(a, "%s/%s", all, t->pieces[i]);
	return all;
}

const char *tw_target_piece(
        const struct tw_target *t, const char *template, const char *name, struct tw_arena *a)
{
	struct tw_str rest = tw_str_of(template + 1);

	for (size_t at = 0; rest.len; at++) {
		struct tw_str piece = tw_str_split(&rest, '/');

		if (!is_variable(piece))
			continue;
		piece = (struct tw_str){piece.ptr + 1, piece.len - 2};
		if (!tw_str_eq(piece, tw_str_of(name)))
			continue;
		if (tw_str_eq(piece, TW_STR("*")))
			return join(t, at, a);
		return at < t->n_pieces ? t->pieces[at] : NULL;
	}
	return NULL;
}

const char *tw_target_query(const struct tw_target *t, const char *name)
{
	for (size_t i = 0; i < t->n_pairs; i++)
		if (strcmp(t->pairs[i].name, name) == 0)
			return t->pairs[i].value;
	return NULL;
}

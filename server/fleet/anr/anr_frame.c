/*
 * anr_frame.c - splits a name at dots and dollar signs.
 *
 * The last dot ends the class.
 */
#include "server/fleet/anr/anr_frame.h"

static bool has(struct tw_str s, const char *what)
{
	return tw_str_find(s, tw_str_of(what)) < s.len;
}

static size_t method_at(struct tw_str name)
{
	size_t at = name.len;

	while (at && name.ptr[at - 1] != '.')
		at--;
	return at;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "app_release": Kotlin's suffix of methods that are internal to a module. */
static bool is_module_suffix(struct tw_str piece)
{
	static const char *const ends[] = {"_release", "_debug"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct tw_str end = tw_str_of(ends[i]);

		if (piece.len > end.len && tw_str_eq(tw_str_from(piece, piece.len - end.len), end))
			return true;
	}
	return false;
}

/* A method's name in the source, from "load-0d7_KjU", "load$default" or "load$app_release". */
static struct tw_str source_name(struct tw_str method)
{
	size_t dash = tw_str_find(method, TW_STR("-"));
	size_t dollar;
	struct tw_str piece;

	if (dash && dash < method.len)
		method.len = dash;
	dollar = tw_str_find_last(method, TW_STR("$"));
	if (dollar == 0 || dollar >= method.len)
		return method;
	piece = tw_str_from(method, dollar + 1);
	if (tw_str_eq(piece, TW_STR("default")) || is_module_suffix(piece))
		method.len = dollar;
	return method;
}

/* A part after a dollar sign, without its number. */
static struct tw_str without_number(struct tw_str piece)
{
	size_t end = piece.len;

	while (end && is_digit(piece.ptr[end - 1]))
		end--;
	if (end == 0 || tw_str_starts(piece, TW_STR("ExternalSynthetic")) ||
	        tw_str_starts(piece, TW_STR("InternalSynthetic")))
		piece.len = end;
	return piece;
}

struct out {
	char *text;
	size_t n, cap;
};

static void put(struct out *o, struct tw_str s)
{
	size_t space = o->cap - o->n;

	if (s.len > space)
		s.len = space;
	if (s.len)
		memcpy(o->text + o->n, s.ptr, s.len);
	o->n += s.len;
}

static void put_pieces(struct out *o, struct tw_str s)
{
	while (s.len) {
		size_t n = 0;

		while (n < s.len && s.ptr[n] != '$')
			n++;
		put(o, without_number((struct tw_str){s.ptr, n}));
		if (n < s.len)
			put(o, TW_STR("$"));
		s = tw_str_from(s, n < s.len ? n + 1 : n);
	}
}

size_t tw_anr_frame_plain(struct tw_str name, char *out, size_t cap)
{
	char space[4096];
	struct out o = {space, 0, sizeof space};
	size_t lambda = tw_str_find(name, TW_STR("$r8$lambda$"));
	size_t offset = tw_str_find(name, TW_STR("+0x"));
	size_t at;

	if (lambda < name.len)
		name.len = lambda + sizeof "$r8$lambda$" - 1;
	if (offset < name.len)
		name.len = offset;
	at = method_at(name);
	put_pieces(&o, (struct tw_str){name.ptr, at ? at - 1 : 0});
	if (at)
		put(&o, TW_STR("."));
	put_pieces(&o, source_name(tw_str_from(name, at)));
	return tw_utf8_clean(out, cap, (struct tw_str){space, o.n});
}

bool tw_anr_frame_is_bridge(struct tw_str name)
{
	static const char *const classes[] = {
	        "$$ExternalSynthetic", "$$InternalSynthetic", "$$Lambda$"};
	static const char *const methods[] = {"access$", "-$$Nest$", "$r8$lambda$"};
	size_t at = method_at(name);

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (has((struct tw_str){name.ptr, at}, classes[i]))
			return true;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (tw_str_starts(tw_str_from(name, at), tw_str_of(methods[i])))
			return true;
	return false;
}

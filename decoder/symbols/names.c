#include "symbols/names.h"

static bool display_id(const struct tw_names *n, uint64_t id, char *out, size_t cap)
{
	struct tw_method_name name;

	if (!n->retrace || !n->map || !tw_map_find(n->map, id, &name))
		return tw_map_display(n->map, id, out, cap);
	(void)tw_retrace_display(
	        n->retrace, name.class_name, name.method, name.descriptor, out, cap);
	return true;
}

/* "pkg.Class.method(I)V": the class ends at the last dot before the descriptor. */
static bool split(struct tw_str full, struct tw_str *ret_class, struct tw_str *ret_method,
        struct tw_str *ret_descriptor)
{
	size_t end = 0;
	size_t dot;

	while (end < full.len && full.ptr[end] != '(')
		end++;
	for (dot = end; dot > 0 && full.ptr[dot - 1] != '.';)
		dot--;
	if (dot < 2 || dot == end)
		return false;
	*ret_class = (struct tw_str){full.ptr, dot - 1};
	*ret_method = (struct tw_str){full.ptr + dot, end - dot};
	*ret_descriptor = (struct tw_str){full.ptr + end, full.len - end};
	return true;
}

/* Moves *at behind one type of a descriptor. */
static bool skip_type(struct tw_str s, size_t *at)
{
	static const char primitives[] = "BCDFIJSZV";

	while (*at < s.len && s.ptr[*at] == '[')
		++*at;
	if (*at >= s.len)
		return false;
	if (s.ptr[*at] == 'L')
		while (*at < s.len && s.ptr[*at] != ';')
			++*at;
	else if (!memchr(primitives, s.ptr[*at], sizeof primitives - 1))
		return false;
	return ++*at <= s.len;
}

struct tw_str tw_names_plain(struct tw_str name)
{
	const char *open = name.len ? memchr(name.ptr, '(', name.len) : NULL;
	size_t len = open ? (size_t)(open - name.ptr) : 0;
	size_t at = len + 1;

	if (len == 0)
		return name;
	while (at < name.len && name.ptr[at] != ')')
		if (!skip_type(name, &at))
			return name;
	at++;
	return skip_type(name, &at) && at == name.len ? (struct tw_str){name.ptr, len} : name;
}

bool tw_names_display(const struct tw_names *n, const struct tw_named *what, char *out, size_t cap)
{
	struct tw_str class_name;
	struct tw_str method;
	struct tw_str descriptor;

	if (what->has_id)
		return display_id(n, what->id, out, cap);
	if (!n->retrace || !split(what->name, &class_name, &method, &descriptor) ||
	        !tw_retrace_display(n->retrace, class_name, method, descriptor, out, cap))
		(void)tw_utf8_clean(out, cap, tw_names_plain(what->name));
	return true;
}

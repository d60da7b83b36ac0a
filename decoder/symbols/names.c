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

bool tw_names_display(const struct tw_names *n, const struct tw_named *what, char *out, size_t cap)
{
	struct tw_str class_name;
	struct tw_str method;
	struct tw_str descriptor;

	if (what->has_id)
		return display_id(n, what->id, out, cap);
	if (!n->retrace || !split(what->name, &class_name, &method, &descriptor) ||
	        !tw_retrace_display(n->retrace, class_name, method, descriptor, out, cap))
		(void)tw_utf8_clean(out, cap, what->name);
	return true;
}

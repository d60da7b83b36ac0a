#include "decoder/symbols/names.h"

enum { MAX_FRAMES = 32 };

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

	while (end < full.len && full.ptr[end] != '(')
		end++;
	if (!tw_retrace_split((struct tw_str){full.ptr, end}, ret_class, ret_method))
		return false;
	*ret_descriptor = tw_str_from(full, end);
	return true;
}

/* Moves *at past one type of a descriptor. */
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

uint32_t tw_names_line(struct tw_str name)
{
	uint64_t line = 0;
	size_t open;

	if (name.len == 0 || name.ptr[name.len - 1] != ')') /* true of most names */
		return 0;
	open = tw_str_find_last(name, TW_STR("(:"));
	if (open == name.len ||
	        !tw_str_u64((struct tw_str){name.ptr + open + 2, name.len - open - 3}, UINT32_MAX,
	                &line))
		return 0;
	return (uint32_t)line;
}

struct tw_str tw_names_plain(struct tw_str name)
{
	const char *open = name.len ? memchr(name.ptr, '(', name.len) : NULL;
	size_t len = open ? (size_t)(open - name.ptr) : 0;
	struct tw_native_frame native;
	size_t at = len + 1;

	if (tw_native_frame_parse(name, &native))
		return (struct tw_str){name.ptr, tw_str_find_last(name, TW_STR("("))};
	if (len == 0)
		return name;
	if (tw_names_line(name))
		return (struct tw_str){name.ptr, len};
	while (at < name.len && name.ptr[at] != ')')
		if (!skip_type(name, &at))
			return name;
	at++;
	return skip_type(name, &at) && at == name.len ? (struct tw_str){name.ptr, len} : name;
}

bool tw_names_is_frame(struct tw_str name)
{
	struct tw_native_frame native;

	return tw_names_line(name) || tw_native_frame_parse(name, &native);
}

bool tw_names_frames(const struct tw_names *n, const struct tw_named *what,
        struct tw_retrace_walk *walk, struct tw_retraced *ret, size_t cap, size_t *ret_n)
{
	struct tw_retrace_at at = {.line = what->has_id ? 0 : tw_names_line(what->name)};
	struct tw_native_frame native;
	struct tw_str line;
	bool known = false;
	bool one = false;

	if (!what->has_id && tw_native_frame_parse(what->name, &native)) {
		ret[0] = (struct tw_retraced){0};
		*ret_n = 1;
		return cap && tw_native_find(n->natives, &native, &ret[0].method);
	}
	if (!n->retrace || !at.line || !split(what->name, &at.class_name, &at.method, &line))
		return false;
	*ret_n = tw_retrace_next(walk, &at, ret, cap, &known);
	if (*ret_n)
		*ret_n = tw_retrace_select_one(ret, *ret_n, &one);
	return known && (one || *ret_n == 0);
}

/* For a frame with a line: the physical method, not those inlined into it. */
static bool display_frame(
        const struct tw_names *n, const struct tw_named *what, char *out, size_t cap)
{
	struct tw_retrace_walk walk = {.r = n->retrace};
	struct tw_retraced frames[MAX_FRAMES];
	const struct tw_retraced *f = frames;
	size_t count = 0;
	size_t at = 0;

	if (!tw_names_frames(n, what, &walk, frames, MAX_FRAMES, &count) || count == 0)
		return false;
	f += count - 1;
	at += tw_utf8_clean(out + at, cap - at, f->class_name);
	if (at)
		at += tw_utf8_clean(out + at, cap - at, TW_STR("."));
	(void)tw_utf8_clean(out + at, cap - at, f->method);
	return true;
}

bool tw_names_display(const struct tw_names *n, const struct tw_named *what, char *out, size_t cap)
{
	char module[TW_NATIVE_MODULE_BYTES];
	struct tw_native_frame native;
	struct tw_str class_name;
	struct tw_str method;
	struct tw_str descriptor;

	if (what->has_id)
		return display_id(n, what->id, out, cap);
	if (what->original) {
		(void)tw_utf8_clean(out, cap, what->name);
		return true;
	}
	if (display_frame(n, what, out, cap))
		return true;
	if (tw_native_frame_parse(what->name, &native)) {
		(void)tw_utf8_clean(out, cap, tw_native_frame_module(&native, module));
		return true;
	}
	if (!n->retrace || !split(what->name, &class_name, &method, &descriptor)) {
		(void)tw_utf8_clean(out, cap, tw_names_plain(what->name));
		return true;
	}
	if (tw_names_line(what->name))
		descriptor = TW_STR("");
	if (!tw_retrace_display(n->retrace, class_name, method, descriptor, out, cap))
		(void)tw_utf8_clean(out, cap, tw_names_plain(what->name));
	return true;
}

void tw_names_descriptor(
        const struct tw_names *n, const struct tw_named *what, char *out, size_t cap)
{
	const struct tw_str plain = tw_names_plain(what->name);
	struct tw_method_name name = {0};
	struct tw_str none;

	out[0] = '\0';
	if (what->has_id && n->map) {
		(void)tw_map_find(n->map, what->id, &name);
	} else if (!what->has_id && !tw_names_is_frame(what->name)) {
		(void)split(plain, &name.class_name, &name.method, &none);
		name.descriptor = tw_str_from(what->name, plain.len);
	}
	if (n->retrace && !what->original && name.method.len)
		tw_retrace_descriptor(
		        n->retrace, name.class_name, name.method, name.descriptor, out, cap);
	else
		(void)tw_utf8_clean(out, cap, name.descriptor);
}

static const struct tw_str waits[] = {
#define WAIT(name) {(name), sizeof(name) - 1},
#include "decoder/symbols/waits.def"
#undef WAIT
};

bool tw_name_waits(struct tw_str name)
{
	const char *open = name.len ? memchr(name.ptr, '(', name.len) : NULL;
	const struct tw_str plain = {name.ptr, open ? (size_t)(open - name.ptr) : name.len};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		if (tw_str_eq(plain, waits[i]))
			return true;
	return false;
}

#include "decoder/formats/label.h"

#include <stdio.h>

/* Whether the file is named after the class, as by compilers but not by R8.  Some profilers give
 * the class itself. */
static bool is_own_file(struct tw_str name, struct tw_str file)
{
	size_t dot = tw_str_find_last(name, TW_STR("."));
	struct tw_str class_name = {name.ptr, dot};
	size_t package = tw_str_find_last(class_name, TW_STR("."));
	struct tw_str outer = package < dot ? tw_str_from(class_name, package + 1) : class_name;
	struct tw_str simple = tw_str_split(&outer, '$');
	size_t end = tw_str_find_last(file, TW_STR("."));

	if (tw_str_eq(file, class_name))
		return true;
	if (end == file.len || !tw_str_starts(simple, (struct tw_str){file.ptr, end}))
		return false;
	simple = tw_str_from(simple, end);
	return simple.len == 0 || tw_str_eq(simple, TW_STR("Kt"));
}

struct tw_str tw_frame_name_at(
        char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str file, uint64_t line)
{
	int len;

	/* the number after "unavailable" is not a line */
	if (line == 0 || line > UINT32_MAX || tw_str_find(name, TW_STR(".")) == name.len ||
	        tw_str_find(name, TW_STR("(")) < name.len ||
	        tw_str_eq(file, TW_STR("unavailable")) || is_own_file(name, file))
		return name;
	len = snprintf(buf, TW_FRAME_NAME_BYTES, "%.*s(:%u)",
	        (int)(name.len < TW_FRAME_NAME_BYTES / 2 ? name.len : TW_FRAME_NAME_BYTES / 2),
	        name.ptr, (unsigned)line);
	return (struct tw_str){buf, len > 0 ? (size_t)len : 0};
}

struct tw_str tw_frame_name(char buf[TW_FRAME_NAME_BYTES], struct tw_str name, struct tw_str where)
{
	size_t colon = tw_str_find_last(where, TW_STR(":"));
	struct tw_str number = colon < where.len ? tw_str_from(where, colon + 1) : TW_STR("");
	uint64_t line = 0;

	if (number.len && number.ptr[number.len - 1] == ')')
		number.len--;
	(void)tw_str_u64(number, UINT32_MAX, &line);
	return tw_frame_name_at(buf, name, (struct tw_str){where.ptr, colon}, line);
}

struct tw_str tw_frame_name_of(char buf[TW_FRAME_NAME_BYTES], struct tw_str text)
{
	struct tw_str where = text;
	struct tw_str name = tw_str_trim(tw_str_split(&where, '('));

	return tw_frame_name(buf, name, tw_str_trim(where));
}

static bool in_parentheses(struct tw_str label, struct tw_str *ret_name, uint64_t *ret_tid)
{
	size_t open = tw_str_find_last(label, TW_STR(" ("));
	struct tw_str inner;
	struct tw_str digits;

	if (open == label.len || label.ptr[label.len - 1] != ')')
		return false;
	inner = (struct tw_str){label.ptr + open + 2, label.len - open - 3};
	digits = tw_str_split(&inner, ',');
	if (!tw_str_u64(digits, UINT32_MAX, ret_tid))
		return false;
	if (inner.len && !tw_str_eq(inner, TW_STR(" sampled")) &&
	        !tw_str_eq(inner, TW_STR(" counted")))
		return false;
	*ret_name = (struct tw_str){label.ptr, open};
	return true;
}

static bool in_brackets(struct tw_str label, struct tw_str *ret_name, uint64_t *ret_tid)
{
	size_t tid = tw_str_find_last(label, TW_STR(" tid="));
	struct tw_str digits;

	if (tid == label.len || label.ptr[0] != '[' || label.ptr[label.len - 1] != ']')
		return false;
	digits = (struct tw_str){label.ptr + tid + 5, label.len - tid - 6};
	*ret_name = (struct tw_str){label.ptr + 1, tid - 1};
	return tw_str_u64(digits, UINT32_MAX, ret_tid);
}

bool tw_thread_label(struct tw_str label, struct tw_str *ret_name, uint64_t *ret_tid)
{
	return label.len &&
	       (in_parentheses(label, ret_name, ret_tid) || in_brackets(label, ret_name, ret_tid));
}

#include "decoder/formats/thread_label.h"

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

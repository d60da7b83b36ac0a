#include "decoder/formats/json/json_stacks.h"

static enum tw_status read_one(struct tw_json_stack *ret, struct tw_samples *samples,
        const json_t *stack, const uint32_t *syms, size_t n_syms, struct tw_err *err)
{
	size_t n = json_array_size(stack);
	enum tw_status st = TW_OK;

	*ret = (struct tw_json_stack){
	        .first = tw_samples_frames(samples), .bad = !json_is_array(stack)};
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		int64_t frame;

		if (!tw_json_i64(json_array_get(stack, n - 1 - i), &frame) || frame < 0 ||
		        (uint64_t)frame >= n_syms) {
			ret->bad = true;
			break;
		}
		st = tw_samples_frame(samples, syms[frame], TW_NO_OFFSET, err);
	}
	ret->n = tw_samples_frames(samples) - ret->first;
	ret->bad = ret->bad || ret->n < n; /* also at the limit of frames */
	return st;
}

enum tw_status tw_json_stacks_read(struct tw_json_stacks *ret, struct tw_arena *a,
        struct tw_samples *samples, const json_t *stacks, const uint32_t *syms, size_t n_syms,
        struct tw_err *err)
{
	enum tw_status st = TW_OK;

	ret->n = json_array_size(stacks);
	ret->list = tw_arena_alloc(a, ret->n, sizeof *ret->list);
	if (!ret->list)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < ret->n; i++)
		st = read_one(&ret->list[i], samples, json_array_get(stacks, i), syms, n_syms, err);
	return st;
}

const struct tw_json_stack *tw_json_stacks_at(const struct tw_json_stacks *s, const json_t *index)
{
	int64_t i;

	if (!tw_json_i64(index, &i) || i < 0 || (uint64_t)i >= s->n || s->list[i].bad)
		return NULL;
	return &s->list[i];
}

/*
 * json_stacks.h - the table of stacks in JSON profiles: arrays of indexes into the frames, leaf
 * first.
 */
#ifndef TW_JSON_STACKS_H
#define TW_JSON_STACKS_H

#include "decoder/formats/json/json_text.h"
#include "decoder/formats/sampled/samples.h"

struct tw_json_stacks {
	struct tw_json_stack {
		uint32_t first, n; /* frames of samples.h */
		bool bad;          /* refers to a missing frame */
	} * list;
	size_t n;
};

/* syms[i] is the handle of frame i.  A `stacks` that is not an array counts as empty. */
enum tw_status tw_json_stacks_read(struct tw_json_stacks *ret, struct tw_arena *a,
        struct tw_samples *samples, const json_t *stacks, const uint32_t *syms, size_t n_syms,
        struct tw_err *err) TW_MUST_USE;

/* NULL: no such stack, or a bad one. */
const struct tw_json_stack *tw_json_stacks_at(const struct tw_json_stacks *s, const json_t *index);

#endif

/*
 * question_reshape.c - parses the parameter transform=.
 *
 * Its steps are separated by commas and applied in order:
 *   focus:METHOD  drop:METHOD  merge:METHOD  fold:METHOD  (METHOD: an index, also of
 *   a frame created by an earlier step)
 *   library:NAME  all methods whose name begins with NAME as one frame
 *   recursion     a method that calls itself as one frame
 *   app           only the app's frames, by the project's rules
 */
#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/trace/question.h"
#include "server/query/detect/frame_rules.h"

static uint8_t *new_set(const struct tw_question *q, struct tw_reshape *step)
{
	uint8_t *set;

	step->n_methods = q->v.n_methods + q->n_labels;
	set = tw_arena_zalloc(q->arena, step->n_methods / 8 + 1, 1);
	step->methods = set;
	return set;
}

static void select_method(uint8_t *set, uint32_t method)
{
	set[method >> 3] |= (uint8_t)(1u << (method & 7));
}

static enum tw_status one_method(
        struct tw_question *q, struct tw_str text, struct tw_reshape *step, struct tw_err *err)
{
	uint8_t *set = new_set(q, step);
	uint64_t method = 0;

	if (!set)
		return tw_oom(err);
	if (!tw_str_u64(text, UINT32_MAX, &method) || method >= step->n_methods)
		return tw_fail(err, TW_BAD_REQUEST, "transform: this trace has no method %.*s",
		        (int)(text.len % 100), text.ptr);
	select_method(set, (uint32_t)method);
	return TW_OK;
}

static enum tw_status library(
        struct tw_question *q, struct tw_str beginning, struct tw_reshape *step, struct tw_err *err)
{
	uint8_t *set = new_set(q, step);
	char label[TW_FRAME_RULE_BYTES + 3];
	char *copy;

	if (beginning.len == 0 || beginning.len > TW_FRAME_RULE_BYTES)
		return tw_fail(err, TW_BAD_REQUEST,
		        "transform: library: needs a prefix of a name, up to %d bytes",
		        TW_FRAME_RULE_BYTES);
	(void)snprintf(label, sizeof label, "[%.*s]", (int)beginning.len, beginning.ptr);
	copy = tw_arena_str(q->arena, tw_str_of(label));
	if (!set || !copy)
		return tw_oom(err);
	for (uint32_t i = 0; i < step->n_methods; i++)
		if (tw_frame_begins(tw_question_name(q, i), beginning))
			select_method(set, i);
	step->as = q->v.n_methods + q->n_labels;
	q->labels[q->n_labels++] = tw_str_of(copy);
	return TW_OK;
}

static enum tw_status app_only(
        struct tw_question *q, struct tw_reshape *step, int64_t *ret_version, struct tw_err *err)
{
	const struct tw_frame_rules *rules = NULL;
	uint8_t *set = new_set(q, step);
	enum tw_status st;

	if (!set)
		return tw_oom(err);
	st = tw_frame_rules_of(tw_api_of(q->v.req)->catalogue, q->v.row.project_id, q->arena,
	        &rules, ret_version, err);
	for (uint32_t i = 0; st == TW_OK && i < step->n_methods; i++)
		if (!tw_frame_rules_app(rules, tw_question_name(q, i)))
			select_method(set, i);
	return st;
}

static enum tw_status read_step(
        struct tw_question *q, struct tw_str text, int64_t *ret_version, struct tw_err *err)
{
	static const struct {
		const char *word;
		enum tw_reshape_kind kind;
	} of_methods[] = {{"focus", TW_RESHAPE_FOCUS}, {"drop", TW_RESHAPE_DROP},
	        {"merge", TW_RESHAPE_MERGE}, {"fold", TW_RESHAPE_FOLD}};
	struct tw_reshape *step = &q->steps[q->n_steps];
	struct tw_str word = tw_str_split(&text, ':');

	if (q->n_steps == TW_RESHAPES_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "transform: at most %d steps", TW_RESHAPES_MAX);
	q->n_steps++;
	for (size_t i = 0; i < sizeof of_methods / sizeof *of_methods; i++)
		if (tw_str_eq(word, tw_str_of(of_methods[i].word))) {
			step->kind = of_methods[i].kind;
			return one_method(q, text, step, err);
		}
	if (tw_str_eq(word, TW_STR("library"))) {
		step->kind = TW_RESHAPE_COLLAPSE;
		return library(q, text, step, err);
	}
	if (tw_str_eq(word, TW_STR("app"))) {
		step->kind = TW_RESHAPE_MERGE;
		return app_only(q, step, ret_version, err);
	}
	step->kind = TW_RESHAPE_RECURSION;
	if (tw_str_eq(word, TW_STR("recursion")))
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "transform does not know %.*s: focus, drop, merge, fold, library, "
	        "recursion, app",
	        (int)(word.len % 100), word.ptr);
}

const struct tw_param tw_question_step_params[] = {
        TW_PARAM_TEXT("transform", 4096,
                "Up to 32 steps, separated by commas, applied in order to the calls before "
                "they are counted: focus:METHOD (only its outermost calls and what they call), "
                "drop:METHOD (without its calls and everything they call), merge:METHOD (its time "
                "and callees become its caller's), fold:METHOD (the time of its callees becomes "
                "its own), library:NAME (methods whose name starts with NAME as one frame, which "
                "is a method after the trace's last), recursion (a method that calls itself as one "
                "frame), app (only the app's frames, by the project's rules: /api/v1/frames). "
                "METHOD is a method's index."),
        {0},
};

enum tw_status tw_question_read_steps(
        struct tw_question *q, int64_t *ret_version, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_text_or_empty(q->v.req, "transform"));
	enum tw_status st = TW_OK;

	while (st == TW_OK && rest.len)
		st = read_step(q, tw_str_split(&rest, ','), ret_version, err);
	return st;
}

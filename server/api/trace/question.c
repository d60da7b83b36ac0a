#include "server/api/trace/question.h"

#include <stdio.h>

#include "server/api/api.h"
#include "server/query/detect/frame_rules.h"

#define BODY_MAX  ((size_t)256 << 20)
#define ARENA_MAX ((size_t)1 << 30)

static enum tw_status open_question(struct tw_req *r, struct tw_question *q, struct tw_err *err)
{
	enum tw_status st = tw_view_open(r, &q->v, err);

	if (st != TW_OK)
		return st;
	tw_buf_init(&q->out, BODY_MAX);
	q->j = tw_json_to(&q->out);
	q->deadline = tw_view_deadline(&q->v);
	q->arena = tw_arena_new(ARENA_MAX);
	q->name = q->arena ? tw_arena_alloc(q->arena, TW_NAME_BYTES, 1) : NULL;
	q->names = q->name ? tw_arena_zalloc(q->arena, q->v.n_methods + 1, sizeof *q->names) : NULL;
	return q->names ? tw_view_selection(&q->v, false, &q->sel, err) : tw_oom(err);
}

static void close_question(struct tw_question *q)
{
	if (q->v.file)
		tw_view_close(&q->v);
	tw_arena_free(q->arena);
	tw_buf_done(&q->out);
}

static enum tw_status reply(struct tw_question *q,
        enum tw_status (*answer)(struct tw_question *q, struct tw_err *err), struct tw_err *err)
{
	static const char type[] = "application/json";
	enum tw_status st;

	if (tw_req_reply_again(q->v.req, type))
		return TW_OK;
	st = answer(q, err);
	if (st != TW_OK)
		return st;
	if (tw_deadline_passed(&q->deadline))
		return tw_view_reply(&q->v, &q->out, err);
	return tw_req_reply_and_keep(q->v.req, type, &q->out, err);
}

struct tw_str tw_question_name(const struct tw_question *q, uint32_t method)
{
	struct tw_str name;
	char *copy;

	if (method >= q->v.n_methods)
		return method - q->v.n_methods < q->n_labels ? q->labels[method - q->v.n_methods]
		                                             : TW_STR("");
	if (q->names[method].ptr)
		return q->names[method];
	name = tw_view_name(&q->v, method, q->name, NULL);
	copy = tw_arena_str(q->arena, name);
	if (!copy)
		return name;
	return q->names[method] = (struct tw_str){copy, name.len};
}

void tw_question_put_descriptor(struct tw_question *q, uint32_t method)
{
	tw_json_key_str(&q->j, "descriptor", tw_view_descriptor(&q->v, method, q->name));
}

enum tw_status tw_question_reshape(
        struct tw_question *q, struct tw_forest *forest, struct tw_err *err)
{
	struct tw_forest from = *forest;

	if (!q->n_steps)
		return TW_OK;
	return tw_query_reshape(&from, q->steps, q->n_steps, q->arena, forest, err);
}

/* --- reshaped graphs --- */

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
	st = tw_frame_rules_of(tw_api_catalogue(q->v.req), q->v.row.project_id, q->arena, &rules,
	        ret_version, err);
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

/* Reads transform= into q->steps.  If steps depend on the project's rules,
 * *ret_version identifies those; otherwise it is unchanged. */
static enum tw_status read_steps(struct tw_question *q, int64_t *ret_version, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_text_or_empty(q->v.req, "transform"));
	enum tw_status st = TW_OK;

	while (st == TW_OK && rest.len)
		st = read_step(q, tw_str_split(&rest, ','), ret_version, err);
	return st;
}

/* --- running a question --- */

enum tw_status tw_question_run(struct tw_req *r,
        enum tw_status (*answer)(struct tw_question *q, struct tw_err *err), struct tw_err *err)
{
	struct tw_question q = {.n_steps = 0};
	enum tw_status st = open_question(r, &q, err);

	if (st == TW_OK)
		st = read_steps(&q, &q.v.rules_version, err);
	if (st == TW_OK && !tw_view_unchanged(&q.v))
		st = reply(&q, answer, err);
	close_question(&q);
	return st;
}

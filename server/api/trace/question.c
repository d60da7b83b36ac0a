#include "server/api/trace/question.h"

#include <string.h>

#include "server/api/api.h"

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
	if (tw_deadline_passed(&q->deadline)) /* a repeated request may return more */
		return tw_req_reply_buf(q->v.req, 200, type, true, &q->out, err);
	return tw_req_reply_and_keep(q->v.req, type, &q->out, err);
}

enum tw_status tw_question_run(struct tw_req *r,
        enum tw_status (*answer)(struct tw_question *q, struct tw_err *err), struct tw_err *err)
{
	struct tw_question q = {.n_steps = 0};
	enum tw_status st = open_question(r, &q, err);

	if (st == TW_OK)
		st = tw_question_read_steps(&q, &q.v.rules_version, err);
	if (st == TW_OK && !tw_view_unchanged(&q.v))
		st = reply(&q, answer, err);
	close_question(&q);
	return st;
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

enum tw_status tw_question_reshape(
        struct tw_question *q, struct tw_forest *forest, struct tw_err *err)
{
	struct tw_forest from = *forest;

	if (!q->n_steps)
		return TW_OK;
	return tw_query_reshape(&from, q->steps, q->n_steps, q->arena, forest, err);
}

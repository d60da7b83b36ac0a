/*
 * question.h - one query on one trace: its view, its memory, its response.
 *
 * Shared by the endpoints on call trees: opening, the selection, the deadline, names, reshaping
 * (transform=), and the reply.  Thread: one request.
 */
#ifndef TW_QUESTION_H
#define TW_QUESTION_H

#include "server/api/trace/view_open.h"
#include "server/base/text/json_write.h"
#include "server/query/query_reshape.h"

struct tw_question {
	struct tw_view v;
	struct tw_arena *arena;
	struct tw_selection sel;
	struct tw_deadline deadline;
	struct tw_buf out;
	struct tw_json j;
	char *name;           /* TW_NAME_BYTES */
	struct tw_str *names; /* names of methods that were read; ptr NULL: not read yet */
	struct tw_reshape steps[TW_RESHAPES_MAX];
	size_t n_steps;
	struct tw_str
	        labels[TW_RESHAPES_MAX]; /* frames that steps make: methods from n_methods on */
	uint32_t n_labels;
};

/* Opens the trace, calls `answer` to write to q->out, replies. */
enum tw_status tw_question_run(struct tw_req *r,
        enum tw_status (*answer)(struct tw_question *q, struct tw_err *err),
        struct tw_err *err) TW_MUST_USE;

/* Each name is looked up once.  Valid as long as q. */
struct tw_str tw_question_name(const struct tw_question *q, uint32_t method);
/* Writes the member "descriptor": "" if unknown, or for a frame that a step made. */
void tw_question_put_descriptor(struct tw_question *q, uint32_t method);

/* Returns whether steps change the trees. */
static inline bool tw_question_reshapes(const struct tw_question *q)
{
	return q->n_steps > 0;
}

/* Applies the steps to *forest; unchanged if there are none. */
enum tw_status tw_question_reshape(
        struct tw_question *q, struct tw_forest *forest, struct tw_err *err) TW_MUST_USE;

extern const struct tw_param tw_question_step_params[];

#endif

/*
 * question_inline.c - sampled frames with lines as the methods that were inlined into them.
 *
 * A trace names such a frame by method and line, as its mapping may come later.  The first step of
 * a question replaces it by the methods that the mapping gives for the line, or by the method
 * alone, so that frames of one method are one node whatever their lines.  These methods have
 * indexes after those of the trace, in the order of their names, which are the same for every
 * request.
 */
#include <stdlib.h>
#include <string.h>

#include "server/api/trace/question.h"

enum { FRAMES = 32 };

struct method_name { /* of a place in the chains */
	const char *name;
	uint32_t at;
};

struct chains {
	struct tw_question *q;
	struct method_name *names;
	uint32_t *starts; /* by method; one more */
	uint32_t n, cap;
};

static bool add(struct chains *c, struct tw_str name)
{
	if (c->n == c->cap) {
		uint32_t cap = c->cap ? c->cap * 2 : 256;
		struct method_name *more = tw_arena_alloc(c->q->arena, cap, sizeof *more);

		if (!more)
			return false;
		if (c->n)
			memcpy(more, c->names, c->n * sizeof *more);
		c->names = more;
		c->cap = cap;
	}
	c->names[c->n] = (struct method_name){tw_arena_str(c->q->arena, name), c->n};
	return c->names[c->n++].name != NULL;
}

/* Outermost first. */
static bool add_frames(struct chains *c, uint32_t method)
{
	const struct tw_named what = tw_method_named(&c->q->v.methods[method]);
	struct tw_retraced frames[FRAMES];
	size_t n = 0;

	if (!tw_names_frames(&c->q->v.names, &what, frames, FRAMES, &n))
		return add(c, tw_view_name(&c->q->v, method, c->q->name, NULL));
	while (n-- > 0) {
		char *name = c->q->name;
		size_t len = tw_utf8_clean(name, TW_NAME_BYTES, frames[n].class_name);

		len += tw_utf8_clean(name + len, TW_NAME_BYTES - len, TW_STR("."));
		len += tw_utf8_clean(name + len, TW_NAME_BYTES - len, frames[n].method);
		if (!add(c, (struct tw_str){name, len}))
			return false;
	}
	return true;
}

static bool has_line(const struct tw_question *q, uint32_t method)
{
	const struct tw_method_ref *m = &q->v.methods[method];

	return m->name && tw_names_line(tw_method_named(m).name);
}

static int by_name(const void *pa, const void *pb)
{
	const struct method_name *a = pa;
	const struct method_name *b = pb;

	return strcmp(a->name, b->name);
}

/* Each different name is a label. */
static uint32_t *number(struct chains *c)
{
	struct tw_question *q = c->q;
	uint32_t *chain = tw_arena_alloc(q->arena, (size_t)c->n + 1, sizeof *chain);

	q->labels = tw_arena_alloc(q->arena, (size_t)c->n + TW_RESHAPES_MAX, sizeof *q->labels);
	if (!chain || !q->labels)
		return NULL;
	if (c->n)
		qsort(c->names, c->n, sizeof *c->names, by_name);
	for (uint32_t i = 0; i < c->n; i++) {
		if (i == 0 || strcmp(c->names[i].name, c->names[i - 1].name) != 0)
			q->labels[q->n_labels++] = tw_str_of(c->names[i].name);
		chain[c->names[i].at] = q->v.n_methods + q->n_labels - 1;
	}
	return chain;
}

enum tw_status tw_question_read_inlined(struct tw_question *q, struct tw_err *err)
{
	const uint32_t *chains;
	struct chains c = {.q = q};
	uint8_t *set = tw_arena_zalloc(q->arena, q->v.n_methods / 8 + 1, 1);
	bool any = false;

	c.starts = tw_arena_alloc(q->arena, (size_t)q->v.n_methods + 1, sizeof *c.starts);
	if (!set || !c.starts)
		return tw_oom(err);
	for (uint32_t i = 0; i < q->v.n_methods; i++) {
		c.starts[i] = c.n;
		if (!has_line(q, i))
			continue;
		any = true;
		set[i >> 3] |= (uint8_t)(1u << (i & 7));
		if (!add_frames(&c, i))
			return tw_oom(err);
	}
	c.starts[q->v.n_methods] = c.n;
	chains = number(&c);
	if (chains && any)
		q->steps[q->n_steps++] = (struct tw_reshape){.kind = TW_RESHAPE_INLINED,
		        .methods = set,
		        .n_methods = q->v.n_methods,
		        .chain_starts = c.starts,
		        .chains = chains};
	return chains ? TW_OK : tw_oom(err);
}

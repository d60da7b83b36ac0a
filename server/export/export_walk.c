/*
 * export_walk.c - runs a format's program: over threads, begins and ends, tree nodes, methods.
 *
 * The walk stops when a piece is complete and continues from there on the next call, so a format
 * never blocks, and a client that disconnects causes no more work.
 */

#include "decoder/base/hash.h"
#include "decoder/base/order.h"
#include "server/export/export_format.h"

enum { NOTES_AT_ONCE = 4096 };

static bool is_full(const struct tw_export *x)
{
	return x->out.len >= TW_EXPORT_PIECE || x->out.status != TW_OK || x->failure.code != TW_OK;
}

/* --- threads --- */

static bool is_walked(const struct tw_export *x, const struct tw_thread_info *t)
{
	const struct tw_selection *s = &x->q.sel;

	if (t->slices == 0 || !tw_selection_has(s, t))
		return false;
	return !s->ranged || (t->start_ns < s->to_ns && t->end_ns >= s->from_ns);
}

/* Enters the next thread from x->thread_at on. False: no more. */
static bool enter_thread(struct tw_export *x)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);

	x->thread = NULL;
	x->has_tree = false;
	x->follow = (struct tw_follow){.slots = NULL};
	tw_arena_reset(x->thread_arena);
	while (x->thread_at < n && !is_walked(x, &t[x->thread_at]))
		x->thread_at++;
	if (x->thread_at < n)
		x->thread = &t[x->thread_at++];
	return x->thread != NULL;
}

static void begin_threads(struct tw_export *x)
{
	x->thread_at = 0;
	x->loop = ++x->pc;
	if (enter_thread(x))
		return;
	while (x->format->program[x->pc].walk != TW_WALK_NEXT_THREAD)
		x->pc++;
	x->pc++;
}

/* --- call trees, and positions of edges in them --- */

static enum tw_status need_tree(struct tw_export *x, struct tw_err *err)
{
	uint32_t depth = 0;
	enum tw_status st;

	if (x->has_tree)
		return TW_OK;
	st = tw_query_thread_tree(x->file, x->thread, &x->q.sel, x->thread_arena, &x->tree, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < x->tree.n; i++)
		if (x->tree.nodes[i].depth > depth)
			depth = x->tree.nodes[i].depth;
	x->path = tw_arena_zalloc(x->thread_arena, (size_t)depth + 1, sizeof *x->path);
	x->has_tree = x->path != NULL;
	return x->has_tree ? TW_OK : tw_oom(err);
}

static uint32_t slot_of(const struct tw_follow *f, uint32_t parent, uint32_t method)
{
	uint64_t edge = (uint64_t)parent << 32 | method;

	return (uint32_t)tw_hash_id(edge, (uintptr_t)f->slots) & f->mask;
}

static enum tw_status follow_tree(struct tw_export *x, struct tw_err *err)
{
	struct tw_follow *f = &x->follow;
	uint32_t size = 16;

	f->at = f->lost = 0;
	if (f->slots) /* allocated by a previous walk */
		return TW_OK;
	while (size < x->tree.n * 2 && size < UINT32_MAX / 2)
		size *= 2;
	*f = (struct tw_follow){.mask = size - 1};
	f->slots = tw_arena_zalloc(x->thread_arena, size, sizeof *f->slots);
	if (!f->slots)
		return tw_oom(err);
	for (uint32_t i = 1; i < x->tree.n; i++) {
		uint32_t at = slot_of(f, x->tree.nodes[i].parent, x->tree.nodes[i].method);

		while (f->slots[at])
			at = (at + 1) & f->mask;
		f->slots[at] = i;
	}
	return TW_OK;
}

/* 0: the path is not in the tree. */
static uint32_t child_of(const struct tw_export *x, uint32_t parent, uint32_t method)
{
	const struct tw_follow *f = &x->follow;

	for (uint32_t at = slot_of(f, parent, method); f->slots[at]; at = (at + 1) & f->mask) {
		const struct tw_tree_node *n = &x->tree.nodes[f->slots[at]];

		if (n->parent == parent && n->method == method)
			return f->slots[at];
	}
	return 0;
}

static void follow(struct tw_export *x)
{
	struct tw_follow *f = &x->follow;
	uint32_t child = 0;

	if (!x->edge.begin) {
		if (f->lost)
			f->lost--;
		else
			f->at = x->tree.nodes[f->at].parent;
		return;
	}
	if (!f->lost)
		child = child_of(x, f->at, x->edge.method);
	if (child)
		f->at = child;
	else
		f->lost++;
}

/* --- walks --- */

static enum tw_status open_edges(struct tw_export *x, bool stacks, struct tw_err *err)
{
	const struct tw_selection *s = &x->q.sel;
	enum tw_status st = stacks ? need_tree(x, err) : TW_OK;

	if (st == TW_OK && stacks)
		st = follow_tree(x, err);
	if (st != TW_OK)
		return st;
	x->cursor_open = true;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) such a walk is inside a loop */
	return tw_cursor_open_range(&x->cursor, x->file, x->thread->thread_id,
	        x->thread->max_depth ? x->thread->max_depth : 1, s->ranged ? s->from_ns : INT64_MIN,
	        s->ranged ? s->to_ns : INT64_MAX, err);
}

static enum tw_status walk_edges(
        struct tw_export *x, const struct tw_export_step *step, struct tw_err *err)
{
	bool stacks = step->walk == TW_WALK_STACKS;
	enum tw_status st = x->cursor_open ? TW_OK : open_edges(x, stacks, err);

	while (st == TW_OK && !x->cursor.done && !is_full(x)) {
		st = tw_cursor_next(&x->cursor, &x->edge, err);
		if (st != TW_OK)
			break;
		if (stacks)
			follow(x);
		step->put(x, x->item++);
	}
	if (st == TW_OK && x->cursor.done) {
		tw_cursor_close(&x->cursor);
		x->cursor_open = false;
		x->item = 0;
		x->pc++;
	}
	return st;
}

/* A call's parent may end where the range begins and be outside of it; then it has no id. */
static bool make_slice_ids(struct tw_export *x)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) as for edges */
	size_t n = (size_t)x->thread->max_depth + 1;

	x->slice_ids = tw_arena_alloc(x->thread_arena, n, sizeof *x->slice_ids);
	for (size_t i = 0; x->slice_ids && i < n; i++)
		x->slice_ids[i] = -1;
	return x->slice_ids != NULL;
}

static enum tw_status walk_slices(
        struct tw_export *x, const struct tw_export_step *step, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!x->cursor_open) {
		st = open_edges(x, false, err);
		if (st == TW_OK && !make_slice_ids(x))
			return tw_oom(err);
	}
	while (st == TW_OK && !x->cursor.done && !is_full(x)) {
		st = tw_cursor_next_slice(&x->cursor, &x->slice, err);
		if (st != TW_OK)
			break;
		x->parent = x->slice.depth ? x->slice_ids[x->slice.depth - 1] : -1;
		x->slice_ids[x->slice.depth] = x->slice_id;
		step->put(x, 0);
		x->slice_id++;
	}
	if (st == TW_OK && x->cursor.done) {
		tw_cursor_close(&x->cursor);
		x->cursor_open = false;
		x->pc++;
	}
	return st;
}

static bool is_of_selection(const struct tw_export *x, uint32_t thread_id)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);

	for (uint32_t i = 0; i < n; i++)
		if (t[i].thread_id == thread_id)
			return tw_selection_has(&x->q.sel, &t[i]);
	return true;
}

struct note_walk {
	struct tw_export *x;
	const struct tw_export_step *step;
	uint32_t last_thread; /* threads of notes often repeat */
	bool last_is_of;
	uint32_t n;
};

static bool put_note(void *arg, uint64_t id, const struct tw_note_row *note)
{
	struct note_walk *w = arg;

	w->n++;
	w->x->note_id = id;
	w->x->note = note;
	if (note->thread_id != w->last_thread) {
		w->last_thread = note->thread_id;
		w->last_is_of = is_of_selection(w->x, note->thread_id);
	}
	if (w->last_is_of || note->thread_id == 0)
		w->step->put(w->x, 0);
	return true;
}

static enum tw_status walk_notes(
        struct tw_export *x, const struct tw_export_step *step, struct tw_err *err)
{
	const struct tw_selection *s = &x->q.sel;
	const struct tw_note_query q = {.kind = TW_NOTE_COUNT,
	        .from_ns = s->ranged ? s->from_ns : INT64_MIN,
	        .to_ns = s->ranged ? s->to_ns : INT64_MAX,
	        .after = x->note_id,
	        .limit = NOTES_AT_ONCE};
	struct note_walk w = {.x = x, .step = step};
	enum tw_status st = tw_trace_file_notes(x->file, &q, put_note, &w, err);

	x->note = NULL;
	if (st == TW_OK && w.n < NOTES_AT_ONCE)
		x->pc++;
	return st;
}

static bool put_document(void *arg, struct tw_str kind, struct tw_str json)
{
	struct note_walk *w = arg;

	w->x->document_kind = kind;
	w->x->document = json;
	w->step->put(w->x, 0);
	return true;
}

static enum tw_status walk_documents(
        struct tw_export *x, const struct tw_export_step *step, struct tw_err *err)
{
	struct note_walk w = {.x = x, .step = step};

	x->pc++;
	return tw_trace_file_documents(x->file, put_document, &w, err);
}

static void walk_items(struct tw_export *x, const struct tw_export_step *step, uint32_t n)
{
	while (x->item < n && !is_full(x))
		step->put(x, x->item++);
	if (x->item >= n) {
		x->item = 0;
		x->pc++;
	}
}

static enum tw_status walk_nodes(
        struct tw_export *x, const struct tw_export_step *step, struct tw_err *err)
{
	enum tw_status st = need_tree(x, err);

	if (st != TW_OK)
		return st;
	if (x->item == 0)
		x->item = 1; /* node 0 is the thread */
	for (; x->item < x->tree.n && !is_full(x); x->item++) {
		x->path[x->tree.nodes[x->item].depth] = x->item;
		step->put(x, x->item);
	}
	if (x->item >= x->tree.n) {
		x->item = 0;
		x->pc++;
	}
	return TW_OK;
}

/* --- totals per method --- */

static bool make_totals(struct tw_export *x)
{
	struct tw_export_totals *t = &x->totals;
	size_t n = (size_t)x->n_methods + 1;

	t->rows = tw_arena_zalloc(x->arena, n, sizeof *t->rows);
	t->active = tw_arena_zalloc(x->arena, n, sizeof *t->active);
	t->sources = tw_arena_zalloc(x->arena, n, sizeof *t->sources);
	return t->rows && t->active && t->sources;
}

static enum tw_status add_totals(struct tw_export *x, struct tw_err *err)
{
	struct tw_export_totals *t = &x->totals;
	enum tw_status st = need_tree(x, err);

	if (st != TW_OK)
		return st;
	if (!t->rows && !make_totals(x))
		return tw_oom(err);
	if (!tw_tree_add_methods(&x->tree, x->n_methods, t->rows, t->active))
		return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
	for (uint32_t i = 1; i < x->tree.n; i++)
		t->sources[x->tree.nodes[i].method] |= (uint8_t)(1u << x->thread->source);
	x->pc++;
	return TW_OK;
}

struct ranked {
	int64_t self_ns;
	uint32_t method;
};

TW_ORDER_BY(by_self, struct ranked, TW_FALLING(self_ns), TW_RISING(method))

static enum tw_status rank(struct tw_export *x, struct tw_err *err)
{
	struct ranked *list = tw_mem_alloc((size_t)x->n_methods + 1, sizeof *list);
	uint32_t n = 0;

	if (!list)
		return tw_oom(err);
	for (uint32_t i = 0; x->totals.rows && i < x->n_methods; i++)
		if (x->totals.rows[i].count)
			list[n++] = (struct ranked){x->totals.rows[i].self_ns, i};
	TW_SORT(list, n, by_self);
	for (uint32_t i = 0; i < n; i++)
		(void)tw_export_number(x, list[i].method);
	tw_mem_free(list);
	x->pc++;
	return TW_OK;
}

static enum tw_status walk_some(struct tw_export *x, struct tw_err *err)
{
	const struct tw_export_step *step = &x->format->program[x->pc];

	switch (step->walk) {
	case TW_WALK_END:
		x->ended = true;
		return TW_OK;
	case TW_WALK_ONCE:
		step->put(x, 0);
		x->pc++;
		return TW_OK;
	case TW_WALK_THREADS:
		begin_threads(x);
		return TW_OK;
	case TW_WALK_NEXT_THREAD:
		x->pc = enter_thread(x) ? x->loop : x->pc + 1;
		return TW_OK;
	case TW_WALK_NODES:
		return walk_nodes(x, step, err);
	case TW_WALK_TOTALS:
		return add_totals(x, err);
	case TW_WALK_RANKED:
		return rank(x, err);
	case TW_WALK_METHODS:
		walk_items(x, step, x->n_used);
		return TW_OK;
	case TW_WALK_EACH_METHOD:
		walk_items(x, step, x->n_methods);
		return TW_OK;
	case TW_WALK_SLICES:
		return walk_slices(x, step, err);
	case TW_WALK_NOTES:
		return walk_notes(x, step, err);
	case TW_WALK_DOCUMENTS:
		return walk_documents(x, step, err);
	case TW_WALK_REPEAT: {
		const size_t before = x->out.len;

		step->put(x, 0);
		x->pc += x->out.len == before;
		return TW_OK;
	}
	case TW_WALK_FLAME:
		walk_items(x, step, x->flame.n);
		return TW_OK;
	case TW_WALK_EDGES:
	case TW_WALK_STACKS:
		return walk_edges(x, step, err);
	}
	return tw_fail(err, TW_BUG, "no such walk");
}

enum tw_status tw_export_walk(struct tw_export *x, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	/* so that the first byte is sent early */
	while (st == TW_OK && !x->ended && !is_full(x) && (x->begun || x->out.len == 0))
		st = walk_some(x, err);
	x->begun = true;
	if (st != TW_OK || x->failure.code == TW_OK)
		return st;
	tw_err_copy(err, &x->failure);
	return x->failure.code;
}

void tw_export_walk_done(struct tw_export *x)
{
	if (x->cursor_open)
		tw_cursor_close(&x->cursor);
	x->cursor_open = false;
}

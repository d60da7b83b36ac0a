#include "server/trace/trace_file_internal.h"

#include <string.h>
#include <zstd.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"

enum { FRAMES = 32, STATES = 16, NESTED = 8, STEPS = 256, NAME_BYTES = 16384, ZSTD_LEVEL = 1 };

#define NO_CALLER UINT32_MAX

struct label { /* a name, and its index in the chains */
	const char *name;
	uint32_t at;
};

struct call { /* a call of an outline by a frame with a line */
	uint32_t caller, outline;
};

struct tw_inlined {
	struct tw_trace_file *file;
	struct tw_arena *arena;
	struct tw_names names;
	const struct tw_method_ref *stored;
	uint32_t n_stored;
	struct tw_method_ref *refs;
	uint32_t n_refs;
	bool *lined;    /* by stored method: whether it is a sampled frame to be resolved */
	bool *bare;     /* by stored method: whether it is shown as its module alone */
	unsigned steps; /* limit for one frame, against mappings with many alternatives */
	bool *outlined; /* by stored method: whether it is an outline */
	/* walk state that an outline leaves to its caller, without the outline's own callees */
	struct tw_retrace_walk *outlines;
	struct tw_list calls;     /* struct call, sorted by caller */
	uint32_t *starts, *chain; /* by stored method: its methods, outermost first */
	struct tw_list labels;    /* struct label */
	struct tw_tree *trees;    /* by thread */
	const struct tw_thread_info *threads;
	uint32_t n_threads, max_depth, stored_depth;
	struct tw_method_info *methods;
	struct tw_list rows;   /* struct tw_chunk_row, by thread, level, time */
	struct tw_list frames; /* struct tw_str, by chunk */
	bool chunked;
};

/* --- methods of a frame --- */

static size_t retrace(const struct tw_inlined *in, uint32_t method, struct tw_retrace_walk *walk,
        struct tw_retraced frames[FRAMES], bool *ret_known)
{
	const struct tw_named what = tw_method_named(&in->stored[method]);
	size_t n = 0;

	*ret_known = tw_names_frames(&in->names, &what, walk, frames, FRAMES, &n);
	return *ret_known ? n : 0;
}

static const struct call *calls_of(const struct tw_inlined *in, uint32_t caller, uint32_t *ret_n)
{
	const struct call *list = in->calls.items;
	uint32_t at;

	*ret_n = 0;
	TW_BISECT(at, in->calls.n, list[at].caller < caller);
	while (at + *ret_n < in->calls.n && list[at + *ret_n].caller == caller)
		++*ret_n;
	return *ret_n ? list + at : NULL;
}

/* States that the outlines called by a frame leave to it: at most STATES. */
static size_t states_below(
        struct tw_inlined *in, uint32_t caller, unsigned nested, struct tw_retrace_walk *ret);

/* NOLINTNEXTLINE(misc-no-recursion) as deep as NESTED */
static size_t states_after(
        struct tw_inlined *in, uint32_t outline, unsigned nested, struct tw_retrace_walk *ret)
{
	struct tw_retraced frames[FRAMES];
	bool known;
	size_t n = nested < NESTED && in->steps++ < STEPS
	                   ? states_below(in, outline, nested + 1, ret)
	                   : 0;

	if (n == 0)
		ret[n++] = in->outlines[outline];
	else
		for (size_t i = 0; i < n; i++)
			(void)retrace(in, outline, &ret[i], frames, &known);
	return n;
}

/* NOLINTNEXTLINE(misc-no-recursion) as deep as NESTED */
static size_t states_below(
        struct tw_inlined *in, uint32_t caller, unsigned nested, struct tw_retrace_walk *ret)
{
	uint32_t n_calls;
	const struct call *calls = calls_of(in, caller, &n_calls);
	size_t n = 0;

	for (uint32_t i = 0; i < n_calls && n < STATES; i++) {
		struct tw_retrace_walk more[STATES];
		size_t k = states_after(in, calls[i].outline, nested, more);

		for (size_t j = 0; j < k && n < STATES; j++)
			ret[n++] = more[j];
	}
	return n;
}

/* Number of outermost methods that both have in common. */
static size_t in_common(
        const struct tw_retraced *a, size_t n_a, const struct tw_retraced *b, size_t n_b)
{
	size_t n = 0;

	while (n < n_a && n < n_b &&
	        tw_str_eq(a[n_a - 1 - n].class_name, b[n_b - 1 - n].class_name) &&
	        tw_str_eq(a[n_a - 1 - n].method, b[n_b - 1 - n].method))
		n++;
	return n;
}

/* Innermost first, as from tw_names_frames. */
static size_t frames_of(
        struct tw_inlined *in, uint32_t method, struct tw_retraced frames[FRAMES], bool *ret_known)
{
	struct tw_retrace_walk states[STATES];
	struct tw_retrace_walk none = {.r = in->names.retrace};
	struct tw_retraced others[FRAMES];
	size_t n_states;
	size_t n;

	in->steps = 0;
	n_states = states_below(in, method, 0, states);
	n = retrace(in, method, n_states ? &states[0] : &none, frames, ret_known);

	for (size_t i = 1; *ret_known && i < n_states; i++) {
		size_t k = retrace(in, method, &states[i], others, ret_known);
		size_t same = *ret_known ? in_common(frames, n, others, k) : 0;

		memmove(frames, frames + (n - same), same * sizeof *frames);
		n = same;
	}
	return n;
}

static bool add_label(struct tw_inlined *in, struct tw_str name)
{
	struct label *l = tw_list_add(&in->labels, in->arena, sizeof *l);

	if (!l)
		return false;
	*l = (struct label){tw_arena_str(in->arena, name), in->labels.n - 1};
	return l->name != NULL;
}

static bool add_chain(struct tw_inlined *in, uint32_t method, char buf[NAME_BYTES])
{
	const struct tw_named what = tw_method_named(&in->stored[method]);
	struct tw_retraced frames[FRAMES];
	bool known;
	size_t n = frames_of(in, method, frames, &known);

	if (!known) {
		in->bare[method] = !tw_names_line(what.name);
		(void)tw_names_display(&in->names, &what, buf, NAME_BYTES);
		return add_label(in, tw_str_of(buf));
	}
	while (n-- > 0) {
		size_t len = tw_utf8_clean(buf, NAME_BYTES, frames[n].class_name);

		if (len)
			len += tw_utf8_clean(buf + len, NAME_BYTES - len, TW_STR("."));
		len += tw_utf8_clean(buf + len, NAME_BYTES - len, frames[n].method);
		if (!add_label(in, (struct tw_str){buf, len}))
			return false;
	}
	return true;
}

TW_ORDER_BY(by_name, struct label, TW_RISING(name), TW_RISING(at))

/* Assigns a method index to each distinct name. */
static bool number(struct tw_inlined *in)
{
	struct label *l = in->labels.items;
	uint32_t n = in->labels.n;

	in->chain = tw_arena_alloc(in->arena, (size_t)n + 1, sizeof *in->chain);
	in->refs = tw_arena_alloc(in->arena, (size_t)in->n_stored + n + 1, sizeof *in->refs);
	if (!in->chain || !in->refs)
		return false;
	memcpy(in->refs, in->stored, in->n_stored * sizeof *in->refs);
	in->n_refs = in->n_stored;
	TW_SORT(l, n, by_name);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(l[i].name, l[i - 1].name) != 0)
			in->refs[in->n_refs++] = (struct tw_method_ref){
			        l[i].name, strlen(l[i].name) | TW_METHOD_ORIGINAL};
		in->chain[l[i].at] = in->n_refs - 1;
	}
	return true;
}

static bool make_chains(struct tw_inlined *in)
{
	char *buf = tw_arena_alloc(in->arena, NAME_BYTES, 1);
	bool fits = buf != NULL;

	in->starts = tw_arena_alloc(in->arena, (size_t)in->n_stored + 1, sizeof *in->starts);
	in->bare = tw_arena_zalloc(in->arena, (size_t)in->n_stored + 1, sizeof *in->bare);
	fits = fits && in->starts && in->bare;
	for (uint32_t i = 0; fits && i < in->n_stored; i++) {
		in->starts[i] = in->labels.n;
		fits = !in->lined[i] || add_chain(in, i, buf);
	}
	if (!fits)
		return false;
	in->starts[in->n_stored] = in->labels.n;
	return number(in);
}

/* --- callers of outlines --- */

static bool find_outlines(struct tw_inlined *in, bool *ret_any)
{
	struct tw_retraced frames[FRAMES];
	bool known;

	*ret_any = false;
	in->outlines = tw_arena_zalloc(in->arena, (size_t)in->n_stored + 1, sizeof *in->outlines);
	in->outlined = tw_arena_zalloc(in->arena, (size_t)in->n_stored + 1, sizeof *in->outlined);
	if (!in->outlines || !in->outlined)
		return false;
	for (uint32_t i = 0; in->names.retrace && i < in->n_stored; i++) {
		struct tw_retrace_walk *w = &in->outlines[i];

		w->r = in->names.retrace;
		if (in->lined[i])
			(void)retrace(in, i, w, frames, &known);
		in->outlined[i] = w->outline_line != 0;
		*ret_any = *ret_any || in->outlined[i];
	}
	return true;
}

TW_ORDER_BY(by_caller, struct call, TW_RISING(caller), TW_RISING(outline))

static bool add_calls(struct tw_inlined *in, const struct tw_tree *t)
{
	for (uint32_t i = 1; i < t->n; i++) {
		uint32_t method = t->nodes[i].method;
		uint32_t caller = t->nodes[t->nodes[i].parent].method;
		struct call *c;

		if (method >= in->n_stored || !in->outlined[method] || caller >= in->n_stored ||
		        !in->lined[caller])
			continue;
		c = tw_list_add(&in->calls, in->arena, sizeof *c);
		if (!c)
			return false;
		*c = (struct call){caller, method};
	}
	return true;
}

static bool find_calls(struct tw_inlined *in)
{
	struct call *list;
	uint32_t n = 0;

	in->calls.n = 0;
	for (uint32_t i = 0; i < in->n_threads; i++)
		if (in->trees[i].n && !add_calls(in, &in->trees[i]))
			return false;
	list = in->calls.items;
	TW_SORT(list, in->calls.n, by_caller);
	for (uint32_t i = 0; i < in->calls.n; i++)
		if (n == 0 || by_caller(&list[n - 1], &list[i]) != 0)
			list[n++] = list[i];
	in->calls.n = n;
	return true;
}

/* Finds frames that belong to an outline only if the called outline has their line. */
static bool find_nested(struct tw_inlined *in)
{
	const struct call *list = in->calls.items;
	bool any = false;

	for (uint32_t i = 0; i < in->calls.n; i++) {
		struct tw_retrace_walk states[STATES];
		size_t n;

		in->steps = 0;
		n = in->outlined[list[i].caller] ? 0 : states_after(in, list[i].caller, 0, states);

		for (size_t k = 0; k < n; k++)
			if (states[k].outline_line)
				any = in->outlined[list[i].caller] = true;
	}
	return any;
}

static bool find_callers(struct tw_inlined *in)
{
	bool fits = find_calls(in);

	for (unsigned i = 0; i < NESTED && fits && find_nested(in); i++)
		fits = find_calls(in);
	return fits;
}

/* --- call trees --- */

/* Of a dozen frames of one module without symbols, one has all the information. */
static uint32_t chain_of(
        const struct tw_inlined *in, uint32_t method, uint32_t caller, const uint32_t **ret)
{
	bool lined = method < in->n_stored && in->lined[method];

	*ret = lined ? in->chain + in->starts[method] : NULL;
	if (lined && in->bare[method] && **ret == caller)
		return 0;
	return lined ? in->starts[method + 1] - in->starts[method] : 1;
}

/* Adds one node per method of the chain; the innermost gets the time and the callees. Without a
 * method, the time is added to the caller. */
static uint32_t add_nodes(const struct tw_inlined *in, struct tw_tree *to,
        const struct tw_tree_node *from, uint32_t parent)
{
	const uint32_t *chain;
	uint32_t n =
	        chain_of(in, from->method, parent ? to->nodes[parent].method : NO_CALLER, &chain);

	for (uint32_t i = 0; i < n; i++) {
		struct tw_tree_node *node = &to->nodes[to->n];

		*node = *from;
		if (chain)
			node->method = chain[i];
		if (i + 1 < n)
			node->self_ns = 0;
		node->parent = parent;
		node->depth = to->nodes[parent].depth + 1;
		parent = to->n++;
	}
	if (n == 0)
		to->nodes[parent].self_ns += from->self_ns;
	return parent;
}

static bool expand_tree(const struct tw_inlined *in, const struct tw_tree *from, struct tw_arena *a,
        struct tw_tree *to)
{
	uint32_t *map = tw_arena_alloc(a, from->n, sizeof *map);
	const uint32_t *chain;
	uint64_t n = 1;

	for (uint32_t i = 1; i < from->n; i++)
		n += chain_of(in, from->nodes[i].method, NO_CALLER, &chain);
	*to = (struct tw_tree){.n = 1};
	if (map && n <= UINT32_MAX)
		to->nodes = tw_arena_alloc(a, (size_t)n, sizeof *to->nodes);
	if (!to->nodes)
		return false;
	map[0] = 0;
	to->nodes[0] = from->nodes[0];
	for (uint32_t i = 1; i < from->n; i++)
		map[i] = add_nodes(in, to, &from->nodes[i], map[from->nodes[i].parent]);
	return true;
}

/* Merges calls whose paths became equal. */
static enum tw_status make_tree(struct tw_inlined *in, struct tw_tree *t, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(SIZE_MAX / 2);
	struct tw_tree_builder *b = a ? tw_tree_builder_new(UINT32_MAX) : NULL;
	struct tw_tree expanded;
	enum tw_status st = b ? TW_OK : TW_NOMEM;

	if (st == TW_OK && !expand_tree(in, t, a, &expanded))
		st = TW_NOMEM;
	if (st == TW_OK)
		st = tw_tree_builder_add_tree(b, &expanded);
	if (st == TW_OK)
		st = tw_tree_builder_finish(b, in->arena, t);
	tw_tree_builder_free(b);
	tw_arena_free(a);
	return st == TW_OK ? TW_OK : tw_oom(err);
}

static enum tw_status read_trees(struct tw_inlined *in, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	in->trees = tw_arena_zalloc(in->arena, (size_t)in->n_threads + 1, sizeof *in->trees);
	if (!in->trees)
		return tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < in->n_threads; i++)
		if (in->threads[i].slices)
			st = tw_trace_file_stored_tree(
			        in->file, in->threads[i].thread_id, in->arena, &in->trees[i], err);
	return st;
}

enum tw_status tw_inlined_tree(const struct tw_inlined *in, uint32_t thread_id, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err)
{
	for (uint32_t i = 0; i < in->n_threads; i++) {
		const struct tw_tree *t = &in->trees[i];

		if (in->threads[i].thread_id != thread_id || t->n == 0)
			continue;
		*ret = (struct tw_tree){tw_arena_alloc(a, t->n, sizeof *t->nodes), t->n};
		if (!ret->nodes)
			return tw_oom(err);
		memcpy(ret->nodes, t->nodes, t->n * sizeof *t->nodes);
		return TW_OK;
	}
	return tw_fail(err, TW_NOT_FOUND, "no such thread");
}

/* --- tables --- */

static bool find_lines(struct tw_inlined *in)
{
	in->lined = tw_arena_zalloc(in->arena, (size_t)in->n_stored + 1, sizeof *in->lined);
	for (uint32_t i = 0; in->lined && i < in->n_stored; i++)
		in->lined[i] = tw_method_is_frame(&in->stored[i]);
	return in->lined != NULL;
}

enum tw_status tw_inlined_new(struct tw_trace_file *f, const struct tw_names *names,
        struct tw_arena *a, struct tw_inlined **ret, struct tw_err *err)
{
	struct tw_inlined *in = tw_arena_zalloc(a, 1, sizeof *in);
	bool outlines = false;
	enum tw_status st;

	*ret = NULL;
	if (!in)
		return tw_oom(err);
	in->file = f;
	in->arena = a;
	in->names = *names;
	in->threads = tw_trace_file_threads(f, &in->n_threads);
	in->stored_depth = tw_trace_file_info(f)->max_depth;
	st = tw_trace_file_method_refs(f, &in->stored, &in->n_stored, err);
	if (st == TW_OK && !find_lines(in))
		st = tw_oom(err);
	if (st == TW_OK)
		st = read_trees(in, err);
	if (st == TW_OK && (!find_outlines(in, &outlines) || (outlines && !find_callers(in)) ||
	                           !make_chains(in)))
		st = tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < in->n_threads; i++)
		if (in->trees[i].n)
			st = make_tree(in, &in->trees[i], err);
	*ret = st == TW_OK ? in : NULL;
	return st;
}

void tw_inlined_facts(
        const struct tw_inlined *in, struct tw_thread_info *threads, struct tw_trace_info *info)
{
	info->slices = 0;
	info->max_depth = 0;
	info->methods = in->n_refs;
	for (uint32_t i = 0; i < in->n_threads; i++) {
		const struct tw_tree *tree = &in->trees[i];
		struct tw_thread_info *t = &threads[i];

		t->slices = t->roots = t->max_depth = 0;
		for (uint32_t k = 1; k < tree->n; k++) {
			const struct tw_tree_node *n = &tree->nodes[k];

			t->slices += n->count;
			t->roots += n->depth == 1 ? n->count : 0;
			t->max_depth = n->depth > t->max_depth ? n->depth : t->max_depth;
		}
		info->slices += t->slices;
		info->max_depth = t->max_depth > info->max_depth ? t->max_depth : info->max_depth;
	}
}

const struct tw_method_ref *tw_inlined_refs(const struct tw_inlined *in, uint32_t *ret_n)
{
	*ret_n = in->n_refs;
	return in->refs;
}

enum tw_status tw_inlined_methods(struct tw_inlined *in, const struct tw_method_info **ret,
        uint32_t *ret_n, struct tw_err *err)
{
	struct tw_method_info *rows = in->methods;
	uint32_t *active;

	if (!rows) {
		rows = tw_arena_zalloc(in->arena, (size_t)in->n_refs + 1, sizeof *rows);
		active = tw_arena_zalloc(in->arena, (size_t)in->n_refs + 1, sizeof *active);
		if (!rows || !active)
			return tw_oom(err);
		for (uint32_t i = 0; i < in->n_threads; i++)
			if (in->trees[i].n &&
			        !tw_tree_add_methods(&in->trees[i], in->n_refs, rows, active))
				return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
		for (uint32_t i = 0; i < in->n_refs; i++) {
			const struct tw_named what = tw_method_named(&in->refs[i]);

			rows[i].has_id = what.has_id;
			rows[i].id = what.id;
			rows[i].name = what.name;
			rows[i].original = what.original;
			if (rows[i].count == 0)
				rows[i].cpu_ns = -1;
		}
	}
	*ret = in->methods = rows;
	*ret_n = in->n_refs;
	return TW_OK;
}

/* Adds one thread's calls; `active` counts the open calls of each method, and is zero at the
 * end. */
bool tw_tree_add_methods(
        const struct tw_tree *t, uint32_t n_methods, struct tw_method_info *rows, uint32_t *active)
{
	uint32_t at = 0; /* the open node; its ancestors are open too */

	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		struct tw_method_info *m;

		for (; at != n->parent; at = t->nodes[at].parent)
			active[t->nodes[at].method]--;
		if (n->method >= n_methods)
			return false;
		m = &rows[n->method];
		if (m->count == 0)
			m->cpu_ns = -1;
		m->count += n->count;
		m->sum_ns += n->total_ns;
		m->self_ns += n->self_ns;
		if (active[n->method]++ == 0) { /* recursion counts once */
			m->total_ns += n->total_ns;
			if (n->cpu_ns >= 0)
				m->cpu_ns = tw_sum_ns(m->cpu_ns < 0 ? 0 : m->cpu_ns, n->cpu_ns);
		}
		if (n->max_ns > m->max_ns)
			m->max_ns = n->max_ns;
		at = i;
	}
	for (; at; at = t->nodes[at].parent)
		active[t->nodes[at].method]--;
	return true;
}

/* --- chunks --- */

struct rechunk {
	struct tw_inlined *in;
	struct tw_slice *batch, *stack, *open;
	uint32_t *depths; /* by stored depth: the new depth of calls below the slice open there */
	struct tw_chunk_info info;
	struct tw_chunk stored;
	struct tw_buf payload;
};

static enum tw_status flush(struct rechunk *c, struct tw_err *err)
{
	struct tw_inlined *in = c->in;
	struct tw_chunk_row *row;
	struct tw_str *frame;
	char *bytes;
	size_t bound;
	enum tw_status st;

	if (c->info.slices == 0)
		return TW_OK;
	tw_buf_clear(&c->payload);
	st = tw_chunk_encode(c->open, c->info.open, c->batch, c->info.slices, &c->payload);
	bound = ZSTD_compressBound(c->payload.len);
	bytes = tw_arena_alloc(in->arena, bound, 1);
	row = tw_list_add(&in->rows, in->arena, sizeof *row);
	frame = tw_list_add(&in->frames, in->arena, sizeof *frame);
	if (st != TW_OK || !bytes || !row || !frame)
		return tw_oom(err);
	bound = ZSTD_compress(bytes, bound, c->payload.data, c->payload.len, ZSTD_LEVEL);
	if (ZSTD_isError(bound))
		return tw_oom(err);
	*frame = (struct tw_str){bytes, bound};
	*row = (struct tw_chunk_row){in->rows.n, c->info, (uint32_t)bound};
	c->info.slices = 0;
	return TW_OK;
}

static enum tw_status add_slice(struct rechunk *c, const struct tw_slice *s, struct tw_err *err)
{
	int64_t end = s->start_ns + s->dur_ns;

	if (s->depth >= c->in->max_depth)
		return tw_fail(err, TW_CORRUPT, "the trace file is damaged (depth)");
	if (c->info.slices == 0) {
		memcpy(c->open, c->stack, s->depth * sizeof *c->open);
		c->info.open = s->depth;
		c->info.start_ns = s->start_ns;
		c->info.end_ns = end;
	}
	if (end > c->info.end_ns)
		c->info.end_ns = end;
	c->stack[s->depth] = c->batch[c->info.slices++] = *s;
	return c->info.slices == TW_CHUNK_SLICES ? flush(c, err) : TW_OK;
}

static enum tw_status expand_slice(struct rechunk *c, const struct tw_slice *s, struct tw_err *err)
{
	const uint32_t *chain;
	uint32_t depth = s->depth ? c->depths[s->depth - 1] : 0;
	uint32_t n =
	        chain_of(c->in, s->method, depth ? c->stack[depth - 1].method : NO_CALLER, &chain);
	struct tw_slice one = *s;
	enum tw_status st = TW_OK;

	if (s->merged && n > 1) /* several calls merged for display */
		n = 1;
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		one.depth = depth++;
		one.method = chain ? chain[i] : s->method;
		st = add_slice(c, &one, err);
	}
	c->depths[s->depth] = depth;
	return st;
}

static enum tw_status rechunk_thread(
        struct rechunk *c, const struct tw_thread_info *t, struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_stored_chunks(c->in->file, t->thread_id, &rows, &n, err);

	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		if (i == 0 || rows[i].info.level != rows[i - 1].info.level) {
			st = flush(c, err);
			c->info = (struct tw_chunk_info){.thread_id = t->thread_id,
			        .level = rows[i].info.level,
			        .min_dur_ns = rows[i].info.min_dur_ns};
		}
		if (st == TW_OK)
			st = tw_trace_file_stored_chunk(c->in->file, &rows[i], &c->stored, err);
		for (size_t k = 0; st == TW_OK && k < c->stored.n; k++)
			st = c->stored.slices[k].depth < c->in->stored_depth
			             ? expand_slice(c, &c->stored.slices[k], err)
			             : tw_fail(err, TW_CORRUPT,
			                       "the trace file is damaged (depth)");
	}
	return st == TW_OK ? flush(c, err) : st;
}

static enum tw_status make_chunks(struct tw_inlined *in, struct tw_err *err)
{
	struct rechunk c = {.in = in};
	enum tw_status st = TW_OK;

	in->max_depth = tw_trace_file_info(in->file)->max_depth;
	c.batch = tw_mem_alloc(TW_CHUNK_SLICES, sizeof *c.batch);
	c.stack = tw_mem_zalloc((size_t)in->max_depth + 1, sizeof *c.stack);
	c.open = tw_mem_zalloc((size_t)in->max_depth + 1, sizeof *c.open);
	c.depths = tw_mem_zalloc((size_t)in->stored_depth + 1, sizeof *c.depths);
	tw_chunk_init(&c.stored);
	tw_buf_init(&c.payload, TW_CHUNK_MAX_BYTES);
	if (!c.batch || !c.stack || !c.open || !c.depths)
		st = tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < in->n_threads; i++)
		st = rechunk_thread(&c, &in->threads[i], err);
	tw_chunk_done(&c.stored);
	tw_buf_done(&c.payload);
	tw_mem_free(c.batch);
	tw_mem_free(c.stack);
	tw_mem_free(c.open);
	tw_mem_free(c.depths);
	in->chunked = st == TW_OK;
	if (st != TW_OK)
		in->rows.n = in->frames.n = 0;
	return st;
}

enum tw_status tw_inlined_chunks(struct tw_inlined *in, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err)
{
	enum tw_status st = in->chunked ? TW_OK : make_chunks(in, err);
	const struct tw_chunk_row *rows = in->rows.items;
	uint32_t first = 0;
	uint32_t end;

	if (st != TW_OK)
		return st;
	while (first < in->rows.n && rows[first].info.thread_id != thread_id)
		first++;
	for (end = first; end < in->rows.n && rows[end].info.thread_id == thread_id;)
		end++;
	*ret = end > first ? rows + first : NULL;
	*ret_n = end - first;
	return TW_OK;
}

enum tw_status tw_inlined_chunk(
        struct tw_inlined *in, uint32_t chunk_id, struct tw_str *ret, struct tw_err *err)
{
	enum tw_status st = in->chunked ? TW_OK : make_chunks(in, err);

	if (st == TW_OK && (chunk_id == 0 || chunk_id > in->frames.n))
		st = tw_fail(err, TW_NOT_FOUND, "no such chunk");
	if (st == TW_OK)
		*ret = ((const struct tw_str *)in->frames.items)[chunk_id - 1];
	return st;
}

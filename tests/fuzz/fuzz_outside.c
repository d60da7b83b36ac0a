/* The call tree of a range by subtraction (query_outside.h).  For generated calls in small chunks,
 * it equals a scan of the range.  If stored bytes of the chunks or of the tree were changed, the
 * result is a well-formed tree or a refusal.  Input: range, calls per chunk, number of changes;
 * three bytes per change (which tree or chunks, place, value); then three bytes per call. */
#include "fuzz.h"
#include "server/query/query_outside.h"

enum { MAX_CALLS = 400, MAX_DEPTH = 12, METHODS = 6, HEAD = 4, CHANGE = 3, CALL = 3 };

struct calls {
	struct tw_slice at[MAX_CALLS];
	size_t n, per_chunk;
};

struct path { /* of a node, by the methods from the root */
	uint64_t id, count;
	int64_t total_ns, self_ns;
};

static int64_t end_of(const struct tw_slice *s)
{
	return s->start_ns + s->dur_ns;
}

/* In pre-order: siblings are disjoint, callees are inside their caller. */
static void make_calls(struct calls *c, const uint8_t *p, size_t size)
{
	int64_t free_ns[MAX_DEPTH + 1] = {0}; /* where the next call of a depth may begin */
	int64_t end_ns[MAX_DEPTH + 1] = {0};  /* end of the last call of a depth */
	uint32_t deepest = 0;

	for (c->n = 0; c->n < MAX_CALLS && size >= CALL; p += CALL, size -= CALL) {
		const uint32_t depth = p[0] % (deepest + 1);
		struct tw_slice s = {.start_ns = free_ns[depth] + (p[1] & 7),
		        .dur_ns = depth ? p[2] : 8 * p[2],
		        .cpu_ns = -1,
		        .method = (p[0] >> 4) % METHODS,
		        .depth = depth};

		if (depth && s.start_ns > end_ns[depth - 1])
			s.start_ns = end_ns[depth - 1];
		if (depth && end_of(&s) > end_ns[depth - 1])
			s.dur_ns = end_ns[depth - 1] - s.start_ns;
		free_ns[depth] = end_ns[depth] = end_of(&s);
		free_ns[depth + 1] = s.start_ns;
		deepest = depth + 1 < MAX_DEPTH ? depth + 1 : depth;
		c->at[c->n++] = s;
	}
}

/* The calls that are open where a call begins. */
static size_t open_at(const struct calls *c, size_t at, struct tw_slice ret[MAX_DEPTH])
{
	uint32_t depth = c->at[at].depth;
	const size_t n = depth;

	for (size_t i = at; i-- > 0 && depth > 0;)
		if (c->at[i].depth == depth - 1)
			ret[--depth] = c->at[i];
	return n;
}

static struct tw_tree_builder *new_builder(void)
{
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);

	FUZZ_CHECK(b);
	return b;
}

static struct tw_tree finish(struct tw_tree_builder *b, struct tw_arena *a)
{
	struct tw_tree t;

	FUZZ_CHECK(tw_tree_builder_finish(b, a, &t) == TW_OK);
	tw_tree_builder_free(b);
	return t;
}

static struct tw_tree stored_tree(const struct calls *c, struct tw_arena *a)
{
	struct tw_tree_builder *b = new_builder();

	FUZZ_CHECK(tw_tree_builder_add(b, c->at, c->n) == TW_OK);
	return finish(b, a);
}

static struct tw_tree scan(
        const struct calls *c, const struct tw_selection *sel, struct tw_arena *a)
{
	struct tw_range_walk w = {sel->from_ns, sel->to_ns, 0};
	struct tw_tree_builder *b = new_builder();
	size_t run;

	for (size_t at = 0; (run = tw_range_run(&w, c->at, c->n, &at)) > 0; at += run)
		for (size_t i = at; i < at + run; i++) {
			struct tw_slice s = c->at[i];
			const int64_t end_ns = end_of(&s) < sel->to_ns ? end_of(&s) : sel->to_ns;

			if (s.start_ns < sel->from_ns)
				s.start_ns = sel->from_ns;
			s.dur_ns = end_ns - s.start_ns;
			FUZZ_CHECK(tw_tree_builder_add(b, &s, 1) == TW_OK);
		}
	return finish(b, a);
}

/* --- the stored bytes --- */

struct changes {
	const uint8_t *at;
	size_t n;
};

/* `which`: 0 is the tree, other numbers are chunks; some chunks share their changes. */
static void change(const struct changes *c, size_t which, struct tw_buf *bytes)
{
	for (size_t i = 0; i < c->n && bytes->len; i++) {
		const uint8_t *p = c->at + CHANGE * i;

		if (p[0] % 4 == which % 4)
			bytes->data[(size_t)p[1] * bytes->len / 256] = p[2];
	}
}

/* False: the chunk was refused. */
static bool add_chunk(struct tw_tree_builder *b, const struct calls *c, size_t first,
        const struct tw_selection *sel, const struct changes *changes)
{
	const size_t n = c->n - first < c->per_chunk ? c->n - first : c->per_chunk;
	struct tw_slice open[MAX_DEPTH];
	const size_t n_open = open_at(c, first, open);
	int64_t end_ns = 0;
	struct tw_chunk chunk;
	struct tw_buf bytes;
	bool added;

	for (size_t i = first; i < first + n; i++)
		end_ns = end_of(&c->at[i]) > end_ns ? end_of(&c->at[i]) : end_ns;
	if (c->at[first].start_ns > sel->from_ns && end_ns < sel->to_ns)
		return true; /* all calls are inside, so the chunk is not read */
	tw_chunk_init(&chunk);
	tw_buf_init(&bytes, 1 << 20);
	FUZZ_CHECK(tw_chunk_encode(open, n_open, &c->at[first], n, &bytes) == TW_OK);
	change(changes, 1 + first / c->per_chunk, &bytes);
	added = tw_chunk_decode(&chunk, bytes.data, bytes.len, c->at[first].start_ns, NULL) ==
	                TW_OK &&
	        tw_outside_add(b, sel, &chunk) == TW_OK;
	FUZZ_CHECK(added || changes->n);
	tw_buf_done(&bytes);
	tw_chunk_done(&chunk);
	return added;
}

static bool damaged_tree(struct tw_tree *t, const struct changes *changes, struct tw_arena *a)
{
	struct tw_buf bytes;
	bool decoded;

	tw_buf_init(&bytes, 1 << 20);
	FUZZ_CHECK(tw_tree_encode(t, &bytes) == TW_OK);
	change(changes, 0, &bytes);
	decoded = tw_tree_decode(bytes.data, bytes.len, a, t, NULL) == TW_OK;
	FUZZ_CHECK(decoded || changes->n);
	tw_buf_done(&bytes);
	return decoded;
}

/* False: refused. */
static bool subtract(struct tw_tree *t, const struct calls *c, const struct tw_selection *sel,
        const struct changes *changes, struct tw_arena *a)
{
	struct tw_tree_builder *b = new_builder();
	bool fits = damaged_tree(t, changes, a);

	for (size_t i = 0; fits && i < c->n; i += c->per_chunk)
		fits = add_chunk(b, c, i, sel, changes);
	FUZZ_CHECK(tw_tree_builder_link(b) == TW_OK);
	fits = fits && tw_outside_subtract(t, b, METHODS, NULL) == TW_OK;
	FUZZ_CHECK(fits || changes->n);
	tw_tree_builder_free(b);
	return fits;
}

/* --- comparison --- */

static int by_id(const void *a, const void *b)
{
	const struct path *x = a;
	const struct path *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static struct path *paths_of(const struct tw_tree *t, struct tw_arena *a)
{
	struct path *p = tw_arena_alloc(a, t->n, sizeof *p);

	FUZZ_CHECK(p);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];

		FUZZ_CHECK(i == 0 || n->parent < i);
		FUZZ_CHECK(n->subtree > 0 && n->subtree <= t->n - i);
		p[i] = (struct path){
		        i ? (p[n->parent].id + n->method + 1) * UINT64_C(0x9E3779B97F4A7C15) : 1,
		        n->count, n->total_ns, n->self_ns};
	}
	qsort(p, t->n, sizeof *p, by_id);
	return p;
}

static void check_same(const struct tw_tree *got, const struct tw_tree *want, struct tw_arena *a)
{
	const struct path *x = paths_of(got, a);
	const struct path *y = paths_of(want, a);

	FUZZ_CHECK(got->n == want->n);
	for (uint32_t i = 0; i < got->n; i++)
		FUZZ_CHECK(x[i].id == y[i].id && x[i].count == y[i].count &&
		           x[i].total_ns == y[i].total_ns && x[i].self_ns == y[i].self_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct calls c;
	struct tw_selection sel = {.all_threads = true, .ranged = true};
	struct changes none = {NULL, 0};
	struct changes changes;
	struct tw_arena *a;
	struct tw_tree want, got;

	if (size < HEAD || size - HEAD < (size_t)CHANGE * (data[3] % 8))
		return 0;
	changes = (struct changes){data + HEAD, data[3] % 8};
	c.per_chunk = data[2] % 32 + 1;
	make_calls(&c, data + HEAD + CHANGE * changes.n, size - HEAD - CHANGE * changes.n);
	if (c.n == 0)
		return 0;
	a = tw_arena_new(64 << 20);
	FUZZ_CHECK(a);
	want = stored_tree(&c, a);
	sel.from_ns = want.nodes[0].total_ns * data[0] / 128;
	sel.to_ns = sel.from_ns + 1 + want.nodes[0].total_ns * data[1] / 128;
	got = want;
	FUZZ_CHECK(subtract(&got, &c, &sel, &none, a));
	want = scan(&c, &sel, a);
	check_same(&got, &want, a);
	got = stored_tree(&c, a);
	if (changes.n && subtract(&got, &c, &sel, &changes, a))
		(void)paths_of(&got, a);
	tw_arena_free(a);
	return 0;
}

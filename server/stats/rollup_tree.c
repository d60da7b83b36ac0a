#include "server/stats/rollup_tree.h"

#include <ctype.h>
#include <string.h>

#include "decoder/base/list.h"
#include "server/stats/rollup_id.h"
#include "server/stats/sketch.h"

enum { NODES_FIRST = 512, SUMS_FIRST = 1024, THREADS_FIRST = 16, LEVELS = 64 };

/* --- threads --- */

void tw_rollup_thread_name(struct tw_str name, bool is_main, char out[TW_ROLLUP_THREAD_BYTES])
{
	char plain[TW_ROLLUP_THREAD_BYTES];
	size_t n = 0;

	(void)tw_utf8_clean(plain, sizeof plain, is_main ? TW_STR("main") : name);
	for (const char *p = plain; *p; p++) {
		bool digit = isdigit((unsigned char)*p) != 0;

		if (!digit || n == 0 || out[n - 1] != '#')
			out[n++] = *p;
		if (digit)
			out[n - 1] = '#';
	}
	out[n] = '\0';
	if (n == 0 || (!is_main && strcmp(out, "main") == 0))
		(void)memcpy(out, n ? "main#" : "thread", n ? sizeof "main#" : sizeof "thread");
}

static uint64_t thread_id(const char *name)
{
	const struct tw_rollup_space nowhere = {"thread", "", ""};

	return tw_rollup_method_id(&nowhere, name);
}

/* --- nodes --- */

static uint32_t hash_of(uint32_t parent, uint64_t method)
{
	uint64_t h = (method ^ (uint64_t)parent << 32) * UINT64_C(0x9E3779B97F4A7C15);

	h = (h ^ (h >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
	return (uint32_t)(h >> 32);
}

/* The node's slot, or the one where it belongs. */
static uint32_t slot_of(const struct tw_rollup_tree *t, uint32_t parent, uint64_t method)
{
	uint32_t at = hash_of(parent, method) & (2 * t->cap - 1);

	while (t->slots[at]) {
		const struct tw_rollup_tree_node *n = &t->nodes[t->slots[at] - 1];

		if (n->parent == parent && n->method == method)
			break;
		at = (at + 1) & (2 * t->cap - 1);
	}
	return at;
}

static bool reserve_node(struct tw_rollup_tree *t)
{
	if (t->n < t->cap)
		return true;
	if (!TW_WIDEN_FROM(NODES_FIRST, t->arena, t->nodes, t->n, t->cap, t->slots))
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, t->nodes[i].parent, t->nodes[i].method)] = i + 1;
	return true;
}

uint32_t tw_rollup_tree_child(struct tw_rollup_tree *t, uint32_t parent, uint64_t method)
{
	uint32_t at;

	if (!reserve_node(t))
		return TW_ROLLUP_NO_NODE;
	at = slot_of(t, parent, method);
	if (!t->slots[at]) {
		t->nodes[t->n] = (struct tw_rollup_tree_node){method, parent, 0, 0};
		t->slots[at] = ++t->n;
	}
	return t->slots[at] - 1;
}

static bool name_thread(struct tw_rollup_tree *t, uint64_t id, struct tw_str name)
{
	if (t->cap &&
	        t->slots[slot_of(t, TW_ROLLUP_NO_NODE, id)]) /* it has a node, and so a name */
		return true;
	if (!TW_GROW_FROM(THREADS_FIRST, t->arena, t->threads, t->n_threads, t->cap_threads))
		return false;
	t->threads[t->n_threads++] = (struct tw_rollup_thread){id, name};
	return true;
}

uint32_t tw_rollup_tree_thread(struct tw_rollup_tree *t, struct tw_str name)
{
	const char *copy = tw_arena_str(t->arena, name);
	uint64_t id = copy ? thread_id(copy) : 0;

	if (!copy || !name_thread(t, id, (struct tw_str){copy, name.len}))
		return TW_ROLLUP_NO_NODE;
	return tw_rollup_tree_child(t, TW_ROLLUP_NO_NODE, id);
}

/* --- sums --- */

unsigned tw_rollup_tree_level(int64_t ns)
{
	return ns > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)ns) : 0;
}

/* The node's sum of that level, inserted in order; NULL: the arena is full. */
static struct tw_rollup_tree_sum *sum_of(
        struct tw_rollup_tree *t, struct tw_rollup_tree_node *n, uint32_t level)
{
	uint32_t *link = &n->first;

	while (*link && t->sums[*link - 1].level < level)
		link = &t->sums[*link - 1].next;
	if (*link && t->sums[*link - 1].level == level)
		return &t->sums[*link - 1];
	t->sums[t->n_sums] = (struct tw_rollup_tree_sum){.next = *link, .level = level};
	*link = ++t->n_sums;
	return &t->sums[t->n_sums - 1];
}

static void add_sum(struct tw_rollup_tree_sum *to, const struct tw_rollup_tree_sum *s)
{
	to->traces += s->traces;
	to->calls += s->calls;
	to->total_ns = tw_sketch_sum(to->total_ns, s->total_ns);
	to->self_ns = tw_sketch_sum(to->self_ns, s->self_ns);
	to->cpu_ns = tw_sketch_sum(to->cpu_ns, s->cpu_ns);
	to->cpu_self_ns = tw_sketch_sum(to->cpu_self_ns, s->cpu_self_ns);
	to->square += s->square;
}

bool tw_rollup_tree_add(struct tw_rollup_tree *t, uint32_t node, const struct tw_rollup_tree_sum *s)
{
	struct tw_rollup_tree_node *n = &t->nodes[node];

	if (!TW_GROW_FROM(SUMS_FIRST, t->arena, t->sums, t->n_sums, t->cap_sums))
		return false;
	add_sum(sum_of(t, n, s->level), s);
	if (s->level > n->top)
		n->top = s->level;
	return true;
}

struct tw_rollup_tree_sum tw_rollup_tree_all(const struct tw_rollup_tree *t, uint32_t node)
{
	struct tw_rollup_tree_sum all = {.level = t->nodes[node].top};

	for (uint32_t i = t->nodes[node].first; i; i = t->sums[i - 1].next)
		if (t->sums[i - 1].level >= t->drop)
			add_sum(&all, &t->sums[i - 1]);
	return all;
}

/* A node's highest level is at most its parent's, so the remaining tree is connected. */
void tw_rollup_tree_bound(struct tw_rollup_tree *t, uint32_t max)
{
	uint64_t at_top[LEVELS] = {0};
	uint64_t kept = 0;
	unsigned level = LEVELS;

	for (uint32_t i = 0; i < t->n; i++)
		at_top[t->nodes[i].top] += t->nodes[i].first != 0;
	while (level > 0 && kept + at_top[level - 1] <= max)
		kept += at_top[--level];
	if (level > t->drop)
		t->drop = level;
	if (t->drop > t->omitted_level)
		t->omitted_level = t->drop;
}

enum tw_status tw_tree_fail_too_large(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "too many call trees for one response; narrow the filter or the time range");
}

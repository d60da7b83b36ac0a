/* trace_oracle.c - see trace_oracle.h. */
#include "tests/fuzz/oracle/trace_oracle.h"

#include <string.h>

#include "decoder/base/sum.h"
#include "decoder/limits.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_DEPTH = 4096 }; /* what tw_limits_default() lets be */

struct frame { /* a call on the way down to the present one */
	int64_t start_ns, end_ns;
	uint32_t method;
};

struct counts {                         /* of a thread */
	struct tw_method_info *methods; /* of the trace */
	struct frame frames[MOST_DEPTH];
	uint32_t depth, max_depth; /* frames that are set */
	uint64_t roots;
	int64_t busy_ns, start_ns, end_ns;
};

/* On the way to a sum that fits, all may be out of range. */
static void add(int64_t *sum, int64_t ns)
{
	*sum = (int64_t)((uint64_t)*sum + (uint64_t)ns);
}

static void count_method(struct counts *t, const struct tw_slice *s)
{
	struct tw_method_info *m = &t->methods[s->method];
	bool inside = false;

	for (uint32_t d = 0; d < s->depth; d++)
		inside |= t->frames[d].method == s->method;
	m->count++;
	m->sum_ns = tw_sum_ns(m->sum_ns, s->dur_ns);
	add(&m->self_ns, s->dur_ns);
	m->total_ns = tw_sum_ns(m->total_ns, inside ? 0 : s->dur_ns);
	if (s->dur_ns > m->max_ns)
		m->max_ns = s->dur_ns;
	if (s->depth)
		add(&t->methods[t->frames[s->depth - 1].method].self_ns, -s->dur_ns);
}

static void take_slice(struct counts *t, const struct tw_slice *s, const struct trace_log *log)
{
	int64_t end = s->start_ns + s->dur_ns;

	FUZZ_CHECK(s->dur_ns >= 0 && s->cpu_ns >= -1 && s->merged == 0);
	FUZZ_CHECK(s->method < log->n_methods);
	FUZZ_CHECK(s->depth < MOST_DEPTH);
	FUZZ_CHECK(s->depth <= t->depth);
	if (s->depth < t->depth) /* the sibling before it */
		FUZZ_CHECK(s->start_ns >= t->frames[s->depth].end_ns);
	if (s->depth)
		FUZZ_CHECK(s->start_ns >= t->frames[s->depth - 1].start_ns &&
		           end <= t->frames[s->depth - 1].end_ns);
	count_method(t, s);
	t->frames[s->depth] = (struct frame){s->start_ns, end, s->method};
	t->depth = s->depth + 1;
	if (t->depth > t->max_depth)
		t->max_depth = t->depth;
	if (s->depth == 0) {
		if (t->roots++ == 0)
			t->start_ns = s->start_ns;
		t->end_ns = end;
		t->busy_ns += s->dur_ns;
	}
}

/* Each node's time is its self time and its children's; it contains all calls but those that it was
 * too full for. */
static void check_tree(const struct tw_tree *t, const struct tw_thread_info *info, uint64_t clipped)
{
	uint64_t count = 0;
	int64_t self = 0;

	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		int64_t rest = n->total_ns - n->self_ns;

		FUZZ_CHECK(n->parent < i && n->depth == t->nodes[n->parent].depth + 1);
		FUZZ_CHECK(n->self_ns >= 0 && n->max_ns <= n->total_ns && n->count > 0);
		for (uint32_t k = i + 1; k < i + n->subtree; k += t->nodes[k].subtree)
			rest -= t->nodes[k].total_ns;
		FUZZ_CHECK(rest == 0);
		count += n->count;
		self += n->self_ns;
	}
	FUZZ_CHECK(t->n > 0 && count <= info->slices && count + clipped >= info->slices);
	FUZZ_CHECK(self + t->nodes[0].self_ns == info->busy_ns);
}

static void check_thread(
        struct trace_log *log, const struct tw_thread_info *info, struct tw_method_info *methods)
{
	static struct counts t;
	size_t n;
	const struct tw_slice *s = trace_log_slices(log, info->thread_id, 0, &n);

	t.methods = methods; /* its frames are written before they are read */
	t.depth = t.max_depth = 0;
	t.roots = 0;
	t.busy_ns = t.start_ns = t.end_ns = 0;
	FUZZ_CHECK(s && n == info->slices);
	for (size_t i = 0; i < n; i++)
		take_slice(&t, &s[i], log);
	FUZZ_CHECK(t.roots == info->roots && t.busy_ns == info->busy_ns);
	FUZZ_CHECK(t.max_depth == info->max_depth);
	if (n)
		FUZZ_CHECK(t.start_ns == info->start_ns && t.end_ns == info->end_ns);
	check_tree(&log->trees[info->thread_id - 1], info, log->repairs[TW_REPAIR_call_tree_full]);
}

static void check_methods(const struct trace_log *log, const struct tw_method_info *want)
{
	for (size_t i = 0; i < log->n_methods; i++) {
		const struct tw_method_info *m = &log->methods[i];

		FUZZ_CHECK(m->count == want[i].count && m->sum_ns == want[i].sum_ns);
		FUZZ_CHECK(m->total_ns == want[i].total_ns);
		FUZZ_CHECK(m->sum_ns == INT64_MAX || m->self_ns == want[i].self_ns);
		FUZZ_CHECK(m->max_ns == want[i].max_ns);
	}
}

void trace_oracle_check(struct trace_log *log, const struct tw_limits *limits)
{
	struct tw_method_info *methods =
	        tw_arena_zalloc(log->arena, log->n_methods + 1, sizeof *methods);
	uint64_t slices = 0;

	FUZZ_CHECK(methods);
	for (size_t i = 0; i < log->n_threads; i++) {
		check_thread(log, &log->threads[i], methods);
		slices += log->threads[i].slices;
		FUZZ_CHECK(log->threads[i].max_depth <= limits->max_depth);
	}
	check_methods(log, methods);
	FUZZ_CHECK(slices == log->info.slices && slices <= limits->max_slices);
	FUZZ_CHECK(log->n_threads == log->info.threads && log->n_threads <= limits->max_threads);
	FUZZ_CHECK(log->n_methods == log->info.methods && log->n_methods <= limits->max_methods);
	FUZZ_CHECK(log->n_notes <= limits->max_notes && log->info.start_ns <= log->info.end_ns);
}

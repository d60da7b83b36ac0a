#include "server/fleet/anr/anr_brief.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/base/text/json.h"
#include "server/fleet/anr/anr_cause_int.h"

enum {
	THREADS_MAX = 48,
	FRAMES_MAX = 128,
	SAMPLES_MAX = 64,
	LOADS_MAX = 64,
	PATH_MAX_FRAMES = 64,
	NAME_BYTES = 512,
	PLAIN_MAX = 16 << 20,
	LEVEL = 3
};

/* --- relevant threads --- */

struct chosen { /* threads of a process, by index */
	bool *is;
	size_t n, of;
};

static void choose(struct chosen *c, const json_t *index)
{
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;

	if (i < 0 || (size_t)i >= c->of || c->n >= THREADS_MAX || c->is[i])
		return;
	c->is[i] = true;
	c->n++;
}

static void choose_steps(struct chosen *c, const json_t *steps)
{
	for (size_t i = 0; i < json_array_size(steps); i++)
		choose(c, json_object_get(json_array_get(steps, i), "thread"));
}

/* Threads on main's chain of waits first, then other waiting threads. */
static void choose_threads(struct chosen *c, const json_t *process, const json_t *threads)
{
	const json_t *cycles = json_object_get(process, "cycles");

	choose(c, json_object_get(process, "main"));
	choose_steps(c, json_object_get(process, "chain"));
	choose(c, json_object_get(process, "culprit"));
	for (size_t i = 0; i < json_array_size(cycles); i++)
		choose_steps(c, json_object_get(json_array_get(cycles, i), "threads"));
	for (size_t i = 0; i < c->of; i++) {
		const json_t *wants = json_object_get(json_array_get(threads, i), "wants");
		json_t *own = json_is_object(wants) ? json_integer((json_int_t)i) : NULL;

		if (own && c->n + 2 <= THREADS_MAX) {
			choose(c, own);
			choose(c, json_object_get(wants, "holder"));
		}
		json_decref(own);
	}
}

static json_t *cut(const json_t *list, size_t max)
{
	json_t *out = json_array();

	for (size_t i = 0; i < json_array_size(list) && i < max; i++)
		(void)json_array_append(out, json_array_get(list, i));
	return out;
}

static json_t *thread_brief(const json_t *thread)
{
	json_t *t = json_copy((json_t *)(uintptr_t)thread);

	(void)json_object_set_new(t, "frames", cut(json_object_get(thread, "frames"), FRAMES_MAX));
	(void)json_object_del(t, "victims");
	return t;
}

static json_t *process_brief(const json_t *process)
{
	const json_t *threads = json_object_get(process, "threads");
	struct chosen c = {.of = json_array_size(threads)};
	json_t *p = json_copy((json_t *)(uintptr_t)process);
	json_t *list = json_array();

	c.is = tw_mem_zalloc(c.of + 1, sizeof *c.is);
	if (!c.is || !p || !list) {
		tw_mem_free(c.is);
		json_decref(p);
		json_decref(list);
		return NULL;
	}
	choose_threads(&c, process, threads);
	for (size_t i = 0; i < c.of; i++)
		if (c.is[i])
			(void)json_array_append_new(list, thread_brief(json_array_get(threads, i)));
	tw_mem_free(c.is);
	(void)json_object_del(p, "chain"); /* recomputed when the document is read */
	(void)json_object_del(p, "cycles");
	(void)json_object_set_new(p, "threads", list);
	return p;
}

/* --- the document --- */

/* The blamed process, or from the first to the last sample. */
static json_t *processes_brief(const json_t *doc)
{
	const json_t *all = json_object_get(doc, "processes");
	const json_t *blamed = tw_anr_at(all, doc, "blamed");
	size_t n = json_array_size(all);
	size_t step = n / SAMPLES_MAX + 1;
	json_t *list = json_array();

	if (!json_is_true(json_object_get(doc, "sampled"))) {
		if (blamed)
			(void)json_array_append_new(list, process_brief(blamed));
		return list;
	}
	for (size_t i = 0; i < n; i += step)
		(void)json_array_append_new(list, process_brief(json_array_get(all, i)));
	return list;
}

static json_t *doc_brief(const json_t *doc)
{
	json_t *o = json_object();
	json_t *facts = json_object_get(doc, "facts");

	if (facts)
		(void)json_object_set(o, "facts", facts);
	(void)json_object_set_new(o, "loads", cut(json_object_get(doc, "loads"), LOADS_MAX));
	(void)json_object_set_new(o, "blamed", json_integer(0));
	(void)json_object_set_new(o, "processes", processes_brief(doc));
	return o;
}

struct tw_str tw_anr_brief(const json_t *doc, const json_t *path, struct tw_arena *a)
{
	json_t *o = json_object();
	struct tw_str out = {NULL, 0};
	char *text, *space;
	size_t len, cap, n;

	if (doc)
		(void)json_object_set_new(o, "doc", doc_brief(doc));
	if (path)
		(void)json_object_set(o, "path", (json_t *)(uintptr_t)path);
	text = tw_json_dumps(o, JSON_COMPACT);
	if (text && strlen(text) > PLAIN_MAX) { /* too large to be read back */
		(void)json_object_del(o, "doc");
		free(text);
		text = tw_json_dumps(o, JSON_COMPACT);
	}
	json_decref(o);
	len = text ? strlen(text) : 0;
	cap = ZSTD_compressBound(len);
	space = text ? tw_arena_alloc(a, cap, 1) : NULL;
	n = space ? ZSTD_compress(space, cap, text, len, LEVEL) : 0;
	free(text);
	if (space && !ZSTD_isError(n))
		out = (struct tw_str){space, n};
	return out;
}

json_t *tw_anr_brief_read(struct tw_str brief)
{
	unsigned long long size = ZSTD_getFrameContentSize(brief.ptr, brief.len);
	json_t *o = NULL;
	char *plain;
	size_t n;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > PLAIN_MAX)
		return NULL;
	plain = tw_mem_alloc((size_t)size + 1, 1);
	if (!plain)
		return NULL;
	n = ZSTD_decompress(plain, (size_t)size, brief.ptr, brief.len);
	if (!ZSTD_isError(n))
		o = json_loadb(plain, n, 0, NULL);
	tw_mem_free(plain);
	return o;
}

/* --- calls --- */

static const struct tw_thread_info *main_of(const struct tw_trace_file *f)
{
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (threads[i].is_main && threads[i].slices)
			return &threads[i];
	return NULL;
}

/* The child of each node with the longest time; 0: none. */
static uint32_t *heaviest_children(const struct tw_tree *t, struct tw_arena *a)
{
	uint32_t *best = tw_arena_zalloc(a, (size_t)t->n + 1, sizeof *best);

	for (uint32_t i = 1; best && i < t->n; i++) {
		uint32_t *b = &best[t->nodes[i].parent];

		if (!*b || t->nodes[i].total_ns > t->nodes[*b].total_ns)
			*b = i;
	}
	return best;
}

static json_t *method_json(const struct tw_method_info *m)
{
	char name[NAME_BYTES]; /* truncated: names may be long */

	if (m->has_id && m->id <= INT64_MAX)
		return json_pack("{s:I}", "id", (json_int_t)m->id);
	(void)tw_utf8_clean(name, sizeof name, m->name);
	return json_pack("{s:s}", "name", name);
}

/* From the outermost call inwards as long as at least half of the time is spent there. */
static json_t *walk(const struct tw_tree *t, const uint32_t *best,
        const struct tw_method_info *methods, uint32_t n_methods, int64_t window_ns)
{
	json_t *frames = json_array();
	int64_t ns = 0;

	for (uint32_t at = best[0]; at && t->nodes[at].total_ns >= window_ns / 2; at = best[at]) {
		if (t->nodes[at].method >= n_methods ||
		        json_array_insert_new(
		                frames, 0, method_json(&methods[t->nodes[at].method])) != 0)
			break;
		ns = t->nodes[at].total_ns;
		if (json_array_size(frames) > PATH_MAX_FRAMES)
			(void)json_array_remove(frames, PATH_MAX_FRAMES); /* remove the outermost */
	}
	if (json_array_size(frames) == 0) {
		json_decref(frames);
		return NULL;
	}
	return json_pack("{s:o, s:I, s:I}", "frames", frames, "ns", (json_int_t)ns, "window_ns",
	        (json_int_t)window_ns);
}

enum tw_status tw_anr_path_of_calls(struct tw_trace_file *f, int64_t end_ns, int64_t waited_ns,
        struct tw_arena *a, json_t **ret, struct tw_err *err)
{
	const struct tw_thread_info *t = main_of(f);
	struct tw_selection sel = {.ranged = true};
	const struct tw_method_info *methods;
	struct tw_tree tree;
	uint32_t n = 0;
	enum tw_status st;

	*ret = NULL;
	if (!t || t->source == TW_SOURCE_COUNTS)
		return TW_OK;
	sel.to_ns = end_ns < 0 ? t->end_ns : end_ns;
	sel.from_ns = waited_ns < sel.to_ns - t->start_ns ? sel.to_ns - waited_ns : t->start_ns;
	if (sel.to_ns <= sel.from_ns)
		return TW_OK;
	st = tw_query_thread_tree(f, t, &sel, a, &tree, err);
	if (st == TW_OK)
		st = tw_trace_file_methods(f, &methods, &n, err);
	if (st == TW_OK) {
		const uint32_t *best = heaviest_children(&tree, a);

		if (!best)
			return tw_oom(err);
		*ret = walk(&tree, best, methods, n, sel.to_ns - sel.from_ns);
	}
	return st;
}

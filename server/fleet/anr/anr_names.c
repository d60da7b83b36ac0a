#include "server/fleet/anr/anr_names.h"

#include <stdio.h>
#include <string.h>

#include "decoder/formats/anr/anr_report.h"
#include "decoder/formats/sinks/null_sink.h"

enum { NAME_BYTES = 4096, ORIGINALS = 16 };

#define WORK_BYTES ((size_t)256 << 20)

struct namer {
	const struct tw_retrace *retrace;
	const struct tw_natives *natives;
	struct tw_retrace_walk walk; /* walk along the current thread's stack */
	char type[NAME_BYTES];
};

struct text {
	char bytes[NAME_BYTES];
	size_t len;
};

static struct tw_str str_of(const struct text *t)
{
	return (struct tw_str){t->bytes, t->len};
}

static void put(struct text *t, struct tw_str s)
{
	size_t space = sizeof t->bytes - t->len;

	if (s.len > space)
		s.len = space;
	if (s.len)
		memcpy(t->bytes + t->len, s.ptr, s.len);
	t->len += s.len;
}

/* --- classes --- */

/* "java.lang.Class<a.b>" contains a class name. */
static struct tw_str name_type(void *arg, struct tw_str type)
{
	static const struct tw_str head = {"java.lang.Class<", 16};
	struct namer *n = arg;
	struct tw_str inner = type;
	struct tw_str original;
	int len;

	if (type.len > head.len + 1 && memcmp(type.ptr, head.ptr, head.len) == 0)
		inner = (struct tw_str){type.ptr + head.len, type.len - head.len - 1};
	if (!tw_retrace_class(n->retrace, inner, &original))
		return type;
	if (inner.ptr == type.ptr)
		return original;
	len = snprintf(
	        n->type, sizeof n->type, "%s%.*s>", head.ptr, (int)original.len, original.ptr);
	if (len < 0 || (size_t)len >= sizeof n->type)
		return type;
	return (struct tw_str){n->type, (size_t)len};
}

/* --- frames --- */

/* Line of "SourceFile:12"; 0 if unknown. The file name may contain colons, and a number after
 * "unavailable" is not a line. */
static uint32_t line_of(struct tw_str where, struct tw_str *ret_file)
{
	size_t colon = tw_str_find_last(where, TW_STR(":"));
	uint64_t line = 0;

	*ret_file = (struct tw_str){where.ptr, colon};
	if (colon == where.len || !tw_str_u64(tw_str_from(where, colon + 1), UINT32_MAX, &line) ||
	        tw_str_eq(*ret_file, TW_STR("unavailable")))
		return 0;
	return (uint32_t)line;
}

static struct text name_of(const struct tw_retraced *f)
{
	struct text t = {.len = 0};

	put(&t, f->class_name);
	put(&t, TW_STR("."));
	put(&t, f->method);
	return t;
}

static struct text location_of(const struct tw_retraced *f, struct tw_str seen)
{
	struct tw_retrace_file file = tw_retrace_file(f, seen);
	struct text t = {.len = 0};
	char line[16];
	int len = snprintf(line, sizeof line, ":%u", f->line);

	put(&t, file.name);
	put(&t, file.extension);
	if (f->line && len > 0)
		put(&t, (struct tw_str){line, (size_t)len});
	return t;
}

static bool same_name(const struct tw_retraced *a, const struct tw_retraced *b)
{
	return tw_str_eq(a->class_name, b->class_name) && tw_str_eq(a->method, b->method);
}

/* Adds one frame for an ambiguous retrace: for each alternative the innermost inlined method, which
 * is the one that was running. */
static void add_joined(struct tw_anr *m, const struct tw_retraced *f, size_t n, struct tw_str where)
{
	const struct tw_retraced *added[ORIGINALS];
	struct text name = {.len = 0};
	size_t n_added = 0;

	for (size_t i = 0; i < n; i++) {
		bool last = i + 1 == n || f[i + 1].alternative != f[i].alternative;
		bool before = false;

		for (size_t k = 0; k < n_added; k++)
			before = before || same_name(added[k], &f[i]);
		if (!last || before)
			continue;
		added[n_added++] = &f[i];
		if (name.len)
			put(&name, TW_STR(" | "));
		put(&name, f[i].class_name);
		put(&name, TW_STR("."));
		put(&name, f[i].method);
	}
	tw_anr_document_add_frame(m, str_of(&name), where, false);
}

static void add_inlined(struct tw_anr *m, const struct tw_retraced *f, size_t n, struct tw_str seen)
{
	for (size_t i = 0; i < n; i++) {
		struct text name = name_of(&f[i]);
		struct text where = location_of(&f[i], seen);

		tw_anr_document_add_frame(m, str_of(&name), str_of(&where), i + 1 < n);
	}
}

static void name_frame(void *arg, struct tw_anr *m, struct tw_str name, struct tw_str where)
{
	struct namer *n = arg;
	struct tw_retraced found[ORIGINALS];
	struct tw_retrace_at at = {.line = 0};
	struct tw_str file;
	bool known = false;
	bool one = false;
	size_t count;

	if (!tw_retrace_split(name, &at.class_name, &at.method)) {
		tw_anr_document_add_frame(m, name, where, false);
		return;
	}
	at.line = line_of(where, &file);
	count = tw_retrace_next(&n->walk, &at, found, ORIGINALS, &known);
	count = tw_retrace_select_one(found, count, &one);
	if (one)
		add_inlined(m, found, count, file);
	else if (count)
		add_joined(m, found, count, where);
	else if (!known)
		tw_anr_document_add_frame(m, name, where, false);
}

static void next_thread(void *arg)
{
	struct namer *n = arg;

	n->walk = (struct tw_retrace_walk){.r = n->retrace};
}

static struct tw_str name_native(void *arg, struct tw_str location, struct tw_str build_id)
{
	const struct namer *n = arg;
	char tagged[TW_NATIVE_FRAME_BYTES];
	struct tw_native_frame frame;
	struct tw_str function;

	if (tw_native_frame_parse(tw_native_frame_tagged(location, build_id, tagged), &frame) &&
	        tw_native_find(n->natives, &frame, &function))
		return function;
	return TW_STR("");
}

/* --- without a mapping --- */

static struct tw_str same_type(void *arg, struct tw_str type)
{
	(void)arg;
	return type;
}

static void same_frame(void *arg, struct tw_anr *m, struct tw_str name, struct tw_str where)
{
	(void)arg;
	tw_anr_document_add_frame(m, name, where, false);
}

/* --- the document --- */

static struct tw_str written(struct tw_arena *work, const json_t *doc, struct namer *names)
{
	const struct tw_anr_namer renaming = {
	        names, next_thread, name_frame, name_native, name_type};
	const struct tw_anr_namer keeping = {
	        names, next_thread, same_frame, name_native, same_type};
	const struct tw_anr_namer namer = names->retrace ? renaming : keeping;
	struct tw_limits limits = tw_limits_default();
	struct tw_sink sink = tw_null_sink();
	struct tw_str none = {NULL, 0};
	struct tw_anr_summary summary;
	struct tw_anr model;
	int64_t *times;

	limits.hash_salt = (uintptr_t)work;
	limits.max_threads = TW_ANR_MAX_THREADS; /* the decoder already truncated the document */
	if (!tw_anr_init(&model, work, &limits, &sink) ||
	        !tw_anr_document_read(&model, doc, &namer, &times) ||
	        !tw_anr_classify(&model, &summary))
		return none;
	return tw_anr_document(&model, &summary, times);
}

struct tw_str tw_anr_named(struct tw_arena *a, struct tw_str json, const struct tw_names *by)
{
	json_t *doc = json_loadb(json.ptr, json.len, 0, NULL);
	struct namer names = {.retrace = by->retrace, .natives = by->natives};
	struct tw_str named = {NULL, 0};
	struct tw_arena *work;
	char *copy;

	if (!json_is_object(doc)) {
		json_decref(doc);
		return json;
	}
	work = tw_arena_new(WORK_BYTES);
	if (work)
		named = written(work, doc, &names);
	json_decref(doc);
	copy = named.ptr ? tw_arena_str(a, named) : NULL;
	named.ptr = copy;
	tw_arena_free(work);
	return named;
}

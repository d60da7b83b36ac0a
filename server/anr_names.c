#include "anr_names.h"

#include <stdio.h>
#include <string.h>

#include "formats/anr_words.h"

enum { NAME_BYTES = 4096, ORIGINALS = 16, SENTENCE_MAX = 1 << 16 };

struct namer {
	const struct tw_retrace *r;
	bool failed;
};

static struct tw_str word(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		return TW_STR("");
	return (struct tw_str){json_string_value(v), json_string_length(v)};
}

/* Originals may be any bytes of the mapping's text. */
static void set(struct namer *n, json_t *o, const char *key, struct tw_str text)
{
	char clean[NAME_BYTES];
	size_t len = tw_utf8_clean(clean, sizeof clean, text);

	if (json_object_set_new(o, key, json_stringn(clean, len)) != 0)
		n->failed = true;
}

/* --- classes --- */

/* "java.lang.Class<a.b>" names a class within. */
static void name_class(struct namer *n, json_t *o, const char *key)
{
	static const struct tw_str head = {"java.lang.Class<", 16};
	struct tw_str type = word(o, key);
	struct tw_str original;
	char text[NAME_BYTES];
	bool inner = type.len > head.len + 1 && memcmp(type.ptr, head.ptr, head.len) == 0;
	int len;

	if (inner)
		type = (struct tw_str){type.ptr + head.len, type.len - head.len - 1};
	if (type.len == 0 || !tw_retrace_class(n->r, type, &original))
		return;
	len = snprintf(text, sizeof text, "%s%.*s%s", inner ? head.ptr : "", (int)original.len,
	        original.ptr, inner ? ">" : "");
	if (len > 0 && (size_t)len < sizeof text)
		set(n, o, key, (struct tw_str){text, (size_t)len});
}

static void name_locks(struct namer *n, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		name_class(n, json_array_get(list, i), "type");
}

/* --- methods --- */

static bool split(struct tw_str name, struct tw_str *ret_class, struct tw_str *ret_method)
{
	size_t dot = name.len;

	while (dot && name.ptr[dot - 1] != '.')
		dot--;
	if (dot < 2 || dot == name.len)
		return false;
	*ret_class = (struct tw_str){name.ptr, dot - 1};
	*ret_method = (struct tw_str){name.ptr + dot, name.len - dot};
	return true;
}

/* Of "SourceFile:12"; 0 unknown.  The number behind "unavailable" is no line. */
static uint32_t line_of(struct tw_str where)
{
	struct tw_str rest = where;
	struct tw_str file = tw_str_split(&rest, ':');
	uint64_t line;

	if (tw_str_eq(file, TW_STR("unavailable")) || !tw_str_u64(rest, UINT32_MAX, &line))
		return 0;
	return (uint32_t)line;
}

/* With a line that leaves one alternative: the method that is really there, the last of those
 * that were inlined into it.  Else all that it may be. */
static bool original(const struct namer *n, struct tw_str name, uint32_t line, char out[NAME_BYTES])
{
	struct tw_retraced found[ORIGINALS];
	struct tw_str cls, method;
	size_t count;
	int len;

	if (!split(name, &cls, &method))
		return false;
	count = line ? tw_retrace_frame(n->r, cls, method, line, found, ORIGINALS) : 0;
	if (count == 0 || found[0].alternative != found[count - 1].alternative)
		return tw_retrace_display(n->r, cls, method, TW_STR(""), out, NAME_BYTES);
	cls = found[count - 1].class_name;
	method = found[count - 1].method;
	len = snprintf(
	        out, NAME_BYTES, "%.*s.%.*s", (int)cls.len, cls.ptr, (int)method.len, method.ptr);
	return len > 0 && len < NAME_BYTES;
}

static void name_frame(struct namer *n, json_t *frame)
{
	char out[NAME_BYTES];

	if (!frame || json_object_get(frame, "kind"))
		return; /* native or the kernel's */
	name_locks(n, json_object_get(frame, "locks"));
	if (original(n, word(frame, "name"), line_of(word(frame, "where")), out))
		set(n, frame, "name", tw_str_of(out));
}

/* --- the sentence --- */

static void add_part(const struct namer *n, struct tw_buf *b, const json_t *part)
{
	struct tw_str cls = word(part, "class");
	struct tw_str method = word(part, "method");
	struct tw_str name = cls;
	char out[NAME_BYTES];

	if (json_is_string(part)) {
		(void)tw_buf_add_str(
		        b, (struct tw_str){json_string_value(part), json_string_length(part)});
		return;
	}
	if (cls.len)
		(void)tw_retrace_class(n->r, cls, &name);
	else if (original(n, method, 0, out))
		name = tw_str_of(out);
	else
		name = method;
	(void)tw_buf_add_str(
	        b, tw_anr_short(name, cls.len ? TW_ANR_PART_CLASS : TW_ANR_PART_METHOD));
}

static void name_verdict(struct namer *n, json_t *o)
{
	const json_t *parts = json_object_get(o, "verdict_parts");
	struct tw_buf b;

	if (json_array_size(parts) == 0)
		return;
	tw_buf_init(&b, SENTENCE_MAX);
	for (size_t i = 0; i < json_array_size(parts); i++)
		add_part(n, &b, json_array_get(parts, i));
	if (tw_buf_status(&b) == TW_OK && b.len)
		set(n, o, "verdict", (struct tw_str){(const char *)b.data, b.len});
	n->failed = n->failed || tw_buf_status(&b) == TW_NOMEM;
	tw_buf_done(&b);
}

/* --- what holds them --- */

static void name_steps(struct namer *n, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *step = json_array_get(list, i);

		name_frame(n, json_object_get(step, "frame"));
		name_frame(n, json_object_get(step, "app_frame"));
		name_frame(n, json_object_get(step, "taken_in"));
		name_class(n, json_object_get(step, "wants"), "type");
	}
}

static void name_thread(struct namer *n, const json_t *thread)
{
	const json_t *frames = json_object_get(thread, "frames");

	name_frame(n, json_object_get(thread, "top"));
	name_locks(n, json_object_get(thread, "held"));
	name_class(n, json_object_get(thread, "wants"), "type");
	for (size_t i = 0; i < json_array_size(frames); i++)
		name_frame(n, json_array_get(frames, i));
}

static void name_process(struct namer *n, json_t *process)
{
	const json_t *cycles = json_object_get(process, "cycles");
	const json_t *threads = json_object_get(process, "threads");

	name_verdict(n, process);
	name_frame(n, json_object_get(process, "main_frame"));
	name_steps(n, json_object_get(process, "chain"));
	for (size_t i = 0; i < json_array_size(cycles); i++)
		name_steps(n, json_object_get(json_array_get(cycles, i), "threads"));
	for (size_t i = 0; i < json_array_size(threads); i++)
		name_thread(n, json_array_get(threads, i));
}

bool tw_anr_names(json_t *doc, const struct tw_retrace *retrace)
{
	const json_t *processes = json_object_get(doc, "processes");
	struct namer n = {retrace, false};

	name_verdict(&n, doc);
	for (size_t i = 0; i < json_array_size(processes); i++)
		name_process(&n, json_array_get(processes, i));
	return !n.failed;
}

struct tw_str tw_anr_named(struct tw_arena *a, struct tw_str json, const struct tw_retrace *retrace)
{
	json_t *doc = json_loadb(json.ptr, json.len, 0, NULL);
	struct tw_str named = {NULL, 0};
	size_t size;
	char *out;

	if (!json_is_object(doc)) {
		json_decref(doc);
		return json;
	}
	size = tw_anr_names(doc, retrace) ? json_dumpb(doc, NULL, 0, JSON_COMPACT) : 0;
	out = size ? tw_arena_alloc(a, size, 1) : NULL;
	if (out && json_dumpb(doc, out, size, JSON_COMPACT) == size)
		named = (struct tw_str){out, size};
	json_decref(doc);
	return named;
}

#include "server/query/note_names.h"

#include <stdio.h>

#include "decoder/formats/json/json_text.h"

enum { NAME_BYTES = 4096, ORIGINALS = 16 };

struct tw_str tw_note_text(
        const struct tw_retrace *retrace, enum tw_note_kind kind, struct tw_str text)
{
	struct tw_str original;

	if (kind != TW_NOTE_contention && kind != TW_NOTE_wait && kind != TW_NOTE_notify &&
	        kind != TW_NOTE_class_load)
		return text;
	return tw_retrace_class(retrace, text, &original) ? original : text;
}

/* "void a.b.c(int, a.d)": class a.b, method c. */
static bool split(struct tw_str pretty, struct tw_retrace_at *ret)
{
	struct tw_str name = tw_str_split(&pretty, '(');
	size_t begin = name.len;

	while (begin && name.ptr[begin - 1] != ' ')
		begin--;
	name = tw_str_from(name, begin);
	return tw_retrace_split(name, &ret->class_name, &ret->method);
}

static bool set(json_t *o, const char *key, const char *text)
{
	char clean[NAME_BYTES];
	size_t len = tw_utf8_clean(clean, sizeof clean, tw_str_of(text));

	return json_object_set_new(o, key, json_stringn(clean, len)) == 0;
}

/* If the line leaves one alternative: the innermost inlined method. Otherwise all candidates. */
static bool name_method(
        const struct tw_retrace *retrace, json_t *o, const char *method_key, const char *source_key)
{
	struct tw_retrace_walk walk = {.r = retrace};
	struct tw_retraced found[ORIGINALS];
	struct tw_retrace_at at = {.line = 0};
	struct tw_str line = tw_json_text_of(o, source_key);
	char out[NAME_BYTES];
	struct tw_str file;
	bool known;
	bool one = false;
	uint64_t number;
	size_t n;

	if (!split(tw_json_text_of(o, method_key), &at))
		return true;
	file = tw_str_split(&line, ':');
	if (tw_str_u64(line, UINT32_MAX, &number))
		at.line = (uint32_t)number;
	n = at.line ? tw_retrace_next(&walk, &at, found, ORIGINALS, &known) : 0;
	n = tw_retrace_select_one(found, n, &one);
	if (one) {
		const struct tw_retraced *f = &found[n - 1];
		struct tw_retrace_file of = tw_retrace_file(f, file);

		(void)snprintf(out, sizeof out, "%.*s.%.*s", (int)f->class_name.len,
		        f->class_name.ptr, (int)f->method.len, f->method.ptr);
		if (!set(o, method_key, out))
			return false;
		(void)snprintf(out, sizeof out, "%.*s%.*s:%u", (int)of.name.len, of.name.ptr,
		        (int)of.extension.len, of.extension.ptr, f->line);
		return set(o, source_key, out);
	}
	return !tw_retrace_display(
	               retrace, at.class_name, at.method, TW_STR(""), out, sizeof out) ||
	       set(o, method_key, out);
}

bool tw_note_detail(const struct tw_retrace *retrace, json_t *detail)
{
	return name_method(retrace, detail, "owner_method", "owner_source") &&
	       name_method(retrace, detail, "method", "source");
}

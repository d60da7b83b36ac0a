/*
 * art_text.c - the text of an ART trace: before a file's records, after a stream's.
 *
 *   *version     its number, then key=value lines: clock, pid, data-file-overflow, ...
 *   *threads     <decimal id> TAB <name>
 *   *methods     <hex id> TAB class TAB method TAB signature TAB file [TAB line]
 *   *end
 * Lines end with LF, a line that begins with * begins a section.  A method may have fewer fields:
 * with a signature (it begins with a parenthesis) they are as above and end early, without one the
 * method's name is missing.  Class names have dots, slashes (Dalvik) or are descriptors.
 *
 * A method's name is class.method and the signature, by which R8's mapping of a build distinguishes
 * methods of one obfuscated name; file and line are dropped.  All other text is stored as a
 * document.
 */
#include "decoder/formats/art/art_internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10, KEY_MAX_BYTES = 256, FIELDS_MAX = 5 };

/* --- names --- */

struct fields {
	struct tw_str at[FIELDS_MAX];
	unsigned n;
};

static struct fields split_fields(struct tw_str line)
{
	struct fields f = {.n = 0};

	while (f.n < FIELDS_MAX) {
		bool last = !line.len || !memchr(line.ptr, '\t', line.len);

		f.at[f.n++] = tw_str_split(&line, '\t');
		if (last)
			break;
	}
	return f;
}

/* Whether the second field is the method's name.  Not in `class TAB file TAB line`. */
static bool has_method(const struct fields *f)
{
	if (f->n == 2 || f->n >= FIELDS_MAX)
		return true;
	return f->n >= 3 && f->at[2].len && f->at[2].ptr[0] == '(';
}

static struct tw_str signature_of(const struct fields *f)
{
	if (f->n < 3 || f->at[2].len == 0 || f->at[2].ptr[0] != '(')
		return (struct tw_str){0};
	return f->at[2];
}

static struct tw_str plain_class(struct tw_str name)
{
	if (name.len > 2 && name.ptr[0] == 'L' && name.ptr[name.len - 1] == ';')
		return (struct tw_str){name.ptr + 1, name.len - 2};
	return name;
}

enum tw_status tw_art_text_method(
        struct tw_art *s, uint64_t id, struct tw_str line, uint64_t offset, struct tw_err *err)
{
	struct fields f = split_fields(line);
	struct tw_str class_name = plain_class(f.at[0]);
	struct tw_str method = has_method(&f) ? f.at[1] : (struct tw_str){0};
	struct tw_str signature = method.len ? signature_of(&f) : (struct tw_str){0};
	size_t len = class_name.len + (method.len ? 1 + method.len + signature.len : 0);
	struct tw_art_method *m = len ? tw_art_unnamed(s, id, offset) : NULL;
	char *name;

	if (len == 0)
		tw_art_repair(s, TW_REPAIR_line_malformed, offset);
	if (!m)
		return s->no_memory ? tw_oom(err) : TW_OK;
	name = tw_arena_alloc(s->arena, len, 1);
	if (!name)
		return tw_oom(err);
	for (size_t i = 0; i < class_name.len; i++)
		name[i] = (char)(class_name.ptr[i] == '/' ? '.' : class_name.ptr[i]);
	if (method.len) {
		name[class_name.len] = '.';
		memcpy(name + class_name.len + 1, method.ptr, method.len);
		if (signature.len)
			memcpy(name + len - signature.len, signature.ptr, signature.len);
	}
	tw_art_name_method(s, m, (struct tw_str){name, len}, offset);
	return TW_OK;
}

void tw_art_text_thread(struct tw_art *s, uint32_t tid, struct tw_str name, uint64_t offset)
{
	if (name.len > s->limits.max_name_bytes) {
		tw_art_repair(s, TW_REPAIR_name_cut, offset);
		name.len = s->limits.max_name_bytes;
	}
	s->sink->ops->thread_name(s->sink, 0, tid, name);
}

/* --- lines of the sections --- */

/* 16: not a hex digit */
static unsigned hex_digit(unsigned char c)
{
	unsigned letter = (c | 0x20u) - 'a';

	if (c - (unsigned)'0' < 10)
		return c - (unsigned)'0';
	return letter < 6 ? letter + 10 : 16;
}

static bool hex_id(struct tw_str text, uint64_t *ret)
{
	uint64_t v = 0;

	if (text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 0x20) == 'x')
		text = tw_str_from(text, 2);
	if (text.len == 0 || text.len > 16)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = hex_digit((unsigned char)text.ptr[i]);

		if (digit > 15)
			return false;
		v = v << 4 | digit;
	}
	*ret = v;
	return true;
}

enum tw_status tw_art_text_method_line(
        struct tw_art *s, struct tw_str line, uint64_t offset, struct tw_err *err)
{
	struct tw_str rest = line;
	uint64_t id = 0;

	if (!hex_id(tw_str_split(&rest, '\t'), &id)) {
		tw_art_repair(s, TW_REPAIR_line_malformed, offset);
		return TW_OK;
	}
	return tw_art_text_method(s, id, rest, offset, err);
}

static void thread_line(struct tw_art *s, struct tw_str line, uint64_t offset)
{
	struct tw_str rest = line;
	uint64_t tid = 0;

	if (!tw_str_u64(tw_str_split(&rest, '\t'), UINT32_MAX, &tid))
		tw_art_repair(s, TW_REPAIR_line_malformed, offset);
	else if (rest.len)
		tw_art_text_thread(s, (uint32_t)tid, rest, offset);
}

static enum tw_art_clock clock_of(struct tw_str word)
{
	if (tw_str_eq(word, TW_STR("thread-cpu")))
		return TW_ART_CLOCK_CPU;
	if (tw_str_eq(word, TW_STR("dual")))
		return TW_ART_CLOCK_DUAL;
	return TW_ART_CLOCK_WALL;
}

static const char *keep(struct tw_art *s, struct tw_str text)
{
	char clean[KEY_MAX_BYTES];
	const char *copy;

	(void)tw_utf8_clean(clean, sizeof clean, text);
	copy = tw_arena_str(s->arena, tw_str_of(clean));
	s->no_memory |= !copy;
	return copy;
}

static void key_line(struct tw_art *s, struct tw_str line, uint64_t offset)
{
	struct tw_str value = line;
	struct tw_str key = tw_str_split(&value, '=');
	uint64_t pid = 0;

	if (tw_str_eq(key, TW_STR("clock"))) {
		s->clock = clock_of(value);
		s->clock_offset = offset;
	} else if (tw_str_eq(key, TW_STR("pid")) && tw_str_u64(value, INT32_MAX, &pid)) {
		s->pid = (uint32_t)pid;
	} else if (tw_str_eq(key, TW_STR("num-method-calls"))) {
		(void)tw_str_u64(value, UINT32_MAX, &s->declared_records);
	} else if (tw_str_eq(key, TW_STR("data-file-overflow"))) {
		s->overflow = tw_str_eq(value, TW_STR("true"));
	}
	if (s->n_keys < TW_ART_KEYS)
		s->keys[s->n_keys++] = (struct tw_art_key){keep(s, key), keep(s, value)};
}

static void section_line(struct tw_art *s, struct tw_str line)
{
	static const struct {
		const char *name;
		char section;
	} sections[] = {{"*version", 'v'}, {"*threads", 't'}, {"*methods", 'm'}, {"*end", 'e'}};

	s->section = 0;
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		if (tw_str_eq(line, tw_str_of(sections[i].name)))
			s->section = sections[i].section;
	s->has_text = true;
	if (s->section == 'e') {
		s->text_ended = true;
		s->state = s->has_lead ? TW_ART_DONE : TW_ART_LEAD;
	}
}

static enum tw_status one_line(
        struct tw_art *s, struct tw_str line, uint64_t offset, struct tw_err *err)
{
	if (line.len == 0)
		return TW_OK;
	if (line.ptr[0] == '*') {
		section_line(s, line);
	} else if (s->section == 'v') {
		if (s->n_keys < TW_ART_KEYS)
			s->keys[s->n_keys++] = (struct tw_art_key){"version", keep(s, line)};
		s->section = 'k';
	} else if (s->section == 'k') {
		key_line(s, line, offset);
	} else if (s->section == 't') {
		thread_line(s, line, offset);
	} else if (s->section == 'm') {
		return tw_art_text_method_line(s, line, offset, err);
	}
	return TW_OK;
}

enum tw_status tw_art_text_step(
        struct tw_art *s, const uint8_t *p, size_t n, size_t *ret_used, struct tw_err *err)
{
	size_t limit = n <= LINE_MAX_BYTES ? n : (size_t)LINE_MAX_BYTES + 1;
	const uint8_t *end = memchr(p, '\n', s->long_line ? n : limit);
	struct tw_str line = {(const char *)p, end ? (size_t)(end - p) : n};

	if (s->long_line) {
		*ret_used = line.len + (end != NULL);
		s->long_line = !end;
		return TW_OK;
	}
	if (!end && n <= LINE_MAX_BYTES) {
		s->want = n + 1;
		return TW_OK;
	}
	if (!end) {
		tw_art_repair(s, TW_REPAIR_line_malformed, s->offset);
		s->long_line = true;
		*ret_used = limit;
		return TW_OK;
	}
	*ret_used = line.len + 1;
	return one_line(s, line, s->offset, err);
}

/* --- document --- */

static const char *layout_of(const struct tw_art *s)
{
	static const char *const layouts[] = {
	        "?", "v2-A", "v2-B", "v2-C", "long-running", "counts"};

	if (!s->has_lead && s->form == TW_ART_FORM_UNKNOWN)
		return "header only";
	if (s->version <= 3)
		return s->streaming ? "v1 streaming" : "v1";
	return layouts[s->form];
}

enum tw_status tw_art_text_emit(struct tw_art *s, struct tw_err *err)
{
	json_t *o = json_object();
	char *text;
	enum tw_status st = TW_OK;

	(void)json_object_set_new(o, "layout", json_string(layout_of(s)));
	for (unsigned i = 0; i < s->n_keys; i++)
		(void)json_object_set_new(o, s->keys[i].key, json_string(s->keys[i].value));
	text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	if (!text || json_object_size(o) == 0)
		st = tw_oom(err);
	else
		st = s->sink->ops->document(s->sink, "art", tw_str_of(text), err);
	free(text);
	json_decref(o);
	return st;
}

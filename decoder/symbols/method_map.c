/*
 * method_map.c - converts mapping text to an image, and looks names up.
 *
 * Consecutive methods of a class share its name, as builds write them in that order.  Lines longer
 * than MAX_LINE or containing NUL are malformed: compilers do not write them, but binaries contain
 * them.
 */
#include "decoder/symbols/method_map.h"

#include <stdio.h>
#include <string.h>

#include "decoder/limits.h"
#include "decoder/symbols/map_text.h"

enum { HEADER = 64, RECORD = 24, MAX_LINE = 32 << 10, MAX_ID = INT32_MAX, DIGITS = 1 << 16 };

static const char magic[8] = "TWMAP1\0";

struct tw_map_writer {
	struct tw_buf records, strings;
	uint64_t max_bytes, seen;
	uint32_t max_entries;
	struct tw_map_stats stats;
	bool has_version, overlong;
	bool saw_nul, saw_retrace; /* signs that the file is not a method mapping */
	uint64_t line_offset;
	uint32_t class_at, class_len; /* of the previous record, in strings */
	size_t line_len;
	char line[MAX_LINE];
};

struct tw_map_writer *tw_map_writer_new(uint64_t max_bytes, uint32_t max_entries)
{
	struct tw_map_writer *w = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->max_bytes = max_bytes;
	w->max_entries = max_entries;
	w->stats.first_malformed = TW_NO_OFFSET;
	tw_buf_init(&w->records, (size_t)max_entries * RECORD);
	tw_buf_init(&w->strings, max_bytes < UINT32_MAX ? (size_t)max_bytes : UINT32_MAX);
	return w;
}

struct tw_map_writer *tw_map_writer_free(struct tw_map_writer *w)
{
	if (!w)
		return NULL;
	tw_buf_done(&w->records);
	tw_buf_done(&w->strings);
	tw_mem_free(w);
	return NULL;
}

/* --- text --- */

struct entry {
	uint32_t id, flags;
	struct tw_str class_name, method, descriptor;
};

static bool parse(struct tw_str line, struct entry *ret)
{
	struct tw_str id = tw_str_split(&line, ',');
	struct tw_str flags = tw_str_split(&line, ',');
	uint64_t id_value;
	uint64_t flags_value;

	ret->class_name = tw_str_split(&line, ' ');
	ret->method = tw_str_split(&line, ' ');
	ret->descriptor = line;
	if (!tw_str_u64(id, MAX_ID, &id_value) || !tw_str_u64(flags, UINT32_MAX, &flags_value))
		return false;
	ret->id = (uint32_t)id_value;
	ret->flags = (uint32_t)flags_value;
	return ret->class_name.len > 0 && ret->method.len > 0;
}

static void note_version(struct tw_map_writer *w, struct tw_str comment)
{
	if (w->has_version)
		return;
	w->has_version = true;
	(void)tw_utf8_clean(w->stats.version, sizeof w->stats.version, tw_str_trim(comment));
}

/* Offset of s in the strings; reuses the previous class. */
static uint32_t put_class(struct tw_map_writer *w, struct tw_str s)
{
	if (w->class_len != s.len || memcmp(w->strings.data + w->class_at, s.ptr, s.len) != 0) {
		w->class_at = (uint32_t)w->strings.len;
		w->class_len = (uint32_t)s.len;
		if (tw_buf_add_str(&w->strings, s) != TW_OK)
			w->class_len = 0;
	}
	return w->class_at;
}

static void put_entry(struct tw_map_writer *w, const struct entry *e)
{
	uint32_t class_at = put_class(w, e->class_name);
	uint32_t method_at = (uint32_t)w->strings.len;
	uint32_t descriptor_at = method_at + (uint32_t)e->method.len;

	tw_buf_add_str(&w->strings, e->method);
	tw_buf_add_str(&w->strings, e->descriptor);
	tw_buf_add_u8(&w->strings, 0);
	tw_buf_add_u32le(&w->records, e->id);
	tw_buf_add_u32le(&w->records, e->flags);
	tw_buf_add_u32le(&w->records, class_at);
	tw_buf_add_u32le(&w->records, method_at);
	tw_buf_add_u32le(&w->records, descriptor_at);
	tw_buf_add_u32le(&w->records, (uint32_t)(e->class_name.len | e->method.len << 16));
}

/* "a.B -> c:" */
static bool like_retrace(struct tw_str line)
{
	for (size_t i = 0; i + 4 < line.len; i++)
		if (memcmp(line.ptr + i, " -> ", 4) == 0)
			return true;
	return false;
}

static void malformed(struct tw_map_writer *w, struct tw_str line)
{
	w->saw_nul = w->saw_nul || (line.len && memchr(line.ptr, 0, line.len));
	w->saw_retrace = w->saw_retrace || like_retrace(line);
	w->stats.lines++;
	w->stats.malformed++;
	if (w->stats.first_malformed == TW_NO_OFFSET)
		w->stats.first_malformed = w->line_offset;
}

static void take_line(struct tw_map_writer *w, struct tw_str line)
{
	struct entry e;

	if (w->line_offset == 0 && line.len >= 3 && memcmp(line.ptr, "\xEF\xBB\xBF", 3) == 0)
		line = tw_str_from(line, 3);
	/* NOLINTNEXTLINE(bugprone-branch-clone) e is read only once it is parsed */
	if (w->overlong || (line.len && memchr(line.ptr, '\0', line.len))) {
		malformed(w, line);
	} else if (line.len && line.ptr[0] == '#') {
		note_version(w, tw_str_from(line, 1));
	} else if (line.len && !parse(line, &e)) {
		malformed(w, line);
	} else if (line.len) {
		w->stats.lines++;
		put_entry(w, &e);
	}
}

static enum tw_status end_line(struct tw_map_writer *w, struct tw_err *err)
{
	take_line(w, tw_str_trim((struct tw_str){w->line, w->line_len}));
	w->line_len = 0;
	w->overlong = false;
	if (tw_buf_status(&w->records) == TW_TOO_LARGE)
		return tw_fail_at(
		        err, TW_TOO_LARGE, w->line_offset, "more than %u methods", w->max_entries);
	if (tw_buf_status(&w->strings) == TW_TOO_LARGE)
		return tw_fail_at(err, TW_TOO_LARGE, w->line_offset,
		        "more than %llu bytes of names", (unsigned long long)w->max_bytes);
	if (tw_buf_status(&w->records) != TW_OK || tw_buf_status(&w->strings) != TW_OK)
		return tw_oom(err);
	return TW_OK;
}

static void extend_line(struct tw_map_writer *w, const uint8_t *p, size_t n)
{
	if (n > sizeof w->line - w->line_len)
		w->overlong = true;
	if (w->overlong)
		return;
	memcpy(w->line + w->line_len, p, n);
	w->line_len += n;
}

enum tw_status tw_map_writer_push(
        struct tw_map_writer *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (n > w->max_bytes - w->seen)
		return tw_fail_at(err, TW_TOO_LARGE, w->max_bytes,
		        "the mapping is longer than %llu bytes", (unsigned long long)w->max_bytes);
	while (n) {
		const uint8_t *newline = memchr(p, '\n', n);
		size_t piece = newline ? (size_t)(newline - p) : n;
		enum tw_status st;

		extend_line(w, p, piece);
		if (!newline) {
			w->seen += n;
			return TW_OK;
		}
		st = end_line(w, err);
		if (st != TW_OK)
			return st;
		w->seen += piece + 1;
		w->line_offset = w->seen;
		p += piece + 1;
		n -= piece + 1;
	}
	return TW_OK;
}

/* --- image --- */

static uint32_t id_of(const struct tw_map_writer *w, uint32_t record)
{
	return tw_u32le(w->records.data + (size_t)record * RECORD);
}

/* One pass of a stable counting sort of record numbers by 16 bits of their ids. */
static void sort_pass(const struct tw_map_writer *w, const uint32_t *from, uint32_t *to, uint32_t n,
        unsigned shift, uint32_t *counts)
{
	uint32_t at = 0;

	memset(counts, 0, DIGITS * sizeof *counts);
	for (uint32_t i = 0; i < n; i++)
		counts[id_of(w, from[i]) >> shift & (DIGITS - 1)]++;
	for (uint32_t d = 0; d < DIGITS; d++) {
		uint32_t count = counts[d];

		counts[d] = at;
		at += count;
	}
	for (uint32_t i = 0; i < n; i++)
		to[counts[id_of(w, from[i]) >> shift & (DIGITS - 1)]++] = from[i];
}

/* Of equal ids, which are adjacent in file order, keeps only the last. */
static uint32_t keep_last(const struct tw_map_writer *w, uint32_t *order, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i + 1 == n || id_of(w, order[i]) != id_of(w, order[i + 1]))
			order[kept++] = order[i];
	return kept;
}

static void write_image(const struct tw_map_writer *w, const uint32_t *order, struct tw_buf *out)
{
	static const uint8_t zero[16];

	tw_buf_add(out, magic, sizeof magic);
	tw_buf_add_u32le(out, (uint32_t)w->stats.entries);
	tw_buf_add_u32le(out, 0);
	tw_buf_add_u64le(out, w->strings.len);
	tw_buf_add_u64le(out, w->stats.lines);
	tw_buf_add_u64le(out, w->stats.malformed);
	tw_buf_add_u64le(out, w->stats.duplicates);
	tw_buf_add(out, zero, sizeof zero);
	for (uint64_t i = 0; i < w->stats.entries; i++)
		tw_buf_add(out, w->records.data + (size_t)order[i] * RECORD, RECORD);
	tw_buf_add(out, w->strings.data, w->strings.len);
}

static enum tw_status sort_and_write(
        struct tw_map_writer *w, struct tw_buf *out, struct tw_err *err)
{
	uint32_t n = (uint32_t)(w->records.len / RECORD);
	uint32_t *space = tw_mem_alloc(2 * (size_t)n + DIGITS, sizeof *space);
	uint32_t *order = space;

	if (!space)
		return tw_oom(err);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	sort_pass(w, order, space + n, n, 0, space + 2 * (size_t)n);
	sort_pass(w, space + n, order, n, 16, space + 2 * (size_t)n);
	w->stats.entries = keep_last(w, order, n);
	w->stats.duplicates = n - w->stats.entries;
	write_image(w, order, out);
	tw_mem_free(space);
	if (tw_buf_status(out) != TW_OK)
		return tw_fail(err, tw_buf_status(out), "the mapping's image is too large");
	return TW_OK;
}

static const char *guess(const struct tw_map_writer *w)
{
	if (w->saw_nul)
		return "it is a binary file, not methodMapping.txt";
	if (w->saw_retrace)
		return tw_map_text_belongs(TW_MAP_TEXT_RETRACE);
	return "is this methodMapping.txt?";
}

enum tw_status tw_map_writer_finish(
        struct tw_map_writer *w, struct tw_buf *out, struct tw_map_stats *ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (w->line_len || w->overlong)
		st = end_line(w, err);
	if (st == TW_OK && w->records.len == 0)
		st = tw_fail_at(err, TW_CORRUPT,
		        w->stats.first_malformed == TW_NO_OFFSET ? 0 : w->stats.first_malformed,
		        "no line has the form `<id>,<flags>,<class> <method>`: %s", guess(w));
	if (st == TW_OK)
		st = sort_and_write(w, out, err);
	if (st == TW_OK)
		*ret = w->stats;
	return st;
}

/* --- lookups --- */

enum tw_status tw_map_open(const void *data, size_t len, struct tw_map *ret, struct tw_err *err)
{
	const uint8_t *p = data;
	uint64_t records;

	if (len < HEADER || memcmp(p, magic, sizeof magic) != 0)
		return tw_fail_at(err, TW_CORRUPT, 0, "no mapping image");
	records = (uint64_t)tw_u32le(p + 8) * RECORD;
	if (records > len - HEADER || tw_u64le(p + 16) != len - HEADER - records)
		return tw_fail_at(err, TW_CORRUPT, 8,
		        "the length of the mapping image does not match its header");
	*ret = (struct tw_map){p, len, tw_u32le(p + 8)};
	return TW_OK;
}

static const uint8_t *find_record(const struct tw_map *m, uint64_t id)
{
	const uint8_t *records = m->data + HEADER;
	uint32_t low = 0;
	uint32_t high = m->entries;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const uint8_t *r = records + (size_t)middle * RECORD;

		if (tw_u32le(r) == id)
			return r;
		if (tw_u32le(r) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool piece(const struct tw_map *m, uint32_t at, size_t len, struct tw_str *ret)
{
	size_t begin = HEADER + (size_t)m->entries * RECORD;
	size_t bytes = m->len - begin;

	if (at > bytes || len > bytes - at)
		return false;
	*ret = (struct tw_str){(const char *)m->data + begin + at, len};
	return true;
}

bool tw_map_find(const struct tw_map *m, uint64_t id, struct tw_method_name *ret)
{
	const uint8_t *r = id <= MAX_ID ? find_record(m, id) : NULL;
	struct tw_method_name name;
	size_t begin = HEADER + (size_t)m->entries * RECORD;
	const char *nul;
	uint32_t lengths;

	if (!r)
		return false;
	lengths = tw_u32le(r + 20);
	if (!piece(m, tw_u32le(r + 8), lengths & 0xFFFF, &name.class_name) ||
	        !piece(m, tw_u32le(r + 12), lengths >> 16, &name.method) ||
	        !piece(m, tw_u32le(r + 16), 0, &name.descriptor))
		return false;
	nul = memchr(name.descriptor.ptr, '\0', m->len - begin - tw_u32le(r + 16));
	if (!nul)
		return false;
	name.descriptor.len = (size_t)(nul - name.descriptor.ptr);
	name.access_flags = tw_u32le(r + 4);
	*ret = name;
	return true;
}

bool tw_map_display(const struct tw_map *m, uint64_t id, char *out, size_t cap)
{
	struct tw_method_name name;
	size_t len;

	if (!m || !tw_map_find(m, id, &name)) {
		(void)snprintf(out, cap, "unknown:%llu", (unsigned long long)id);
		return false;
	}
	len = tw_utf8_clean(out, cap, name.class_name);
	len += tw_utf8_clean(out + len, cap - len, TW_STR("."));
	(void)tw_utf8_clean(out + len, cap - len, name.method);
	return true;
}

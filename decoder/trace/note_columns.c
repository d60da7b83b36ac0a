/*
 * note_columns.c - writes and reads blocks of notes (schema/columns.md).
 *
 * Like a chunk of slices: a header with the size of each column, then the columns.  Texts are
 * stored once per block, and as texts that end with NUL, so that readers need no copy.
 */
#include "decoder/trace/note_columns.h"

#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/hash.h"

enum column {
	COL_KINDS,
	COL_KIND,
	COL_THREAD,
	COL_TIME,
	COL_DURATION,
	COL_VALUE,
	COL_TEXT,
	COL_DETAIL,
	COL_TEXTS,
	COLUMNS
};
enum { NOTES_MAGIC = 0x314E5754 /* "TWN1" */, HEADER = 8 + 4 * COLUMNS };
enum { VARINT_MAX = 10, KIND_NAME_MAX = 16, KINDS_MAX = 128 };
_Static_assert((int)TW_NOTE_COUNT <= (int)KINDS_MAX, "a kind and a bit fit in a byte");
#define NOTE(name, value, text, meaning)                                                           \
	_Static_assert(sizeof #name <= KIND_NAME_MAX, "the space for names suffices");
#include "decoder/formats/notes.def"
#undef NOTE

/* --- writing --- */

struct texts { /* of a block, in the order of their numbers */
	struct tw_str *list;
	uint32_t n;
	uint16_t *slots; /* number, by address; 0 free */
	uint32_t mask;
};

/* The number of a text: 0 if it is empty, otherwise from 1. */
static uint32_t number_of(struct texts *t, struct tw_str text)
{
	uint32_t at = (uint32_t)tw_hash_id((uintptr_t)text.ptr, 0) & t->mask;

	if (!text.len)
		return 0;
	for (; t->slots[at]; at = (at + 1) & t->mask) {
		const struct tw_str *known = &t->list[t->slots[at] - 1];

		if (known->ptr == text.ptr && known->len == text.len)
			return t->slots[at];
	}
	t->list[t->n++] = text;
	t->slots[at] = (uint16_t)t->n;
	return t->n;
}

static uint8_t *put_kinds(
        uint8_t *p, const struct tw_note_row *rows, size_t n, uint8_t numbers[TW_NOTE_COUNT])
{
	uint8_t found = 0;

	memset(numbers, 0, TW_NOTE_COUNT);
	for (size_t i = 0; i < n; i++) {
		const char *name = tw_note_info(rows[i].kind)->name;

		if (numbers[rows[i].kind])
			continue;
		numbers[rows[i].kind] = ++found;
		memcpy(p, name, strlen(name) + 1);
		p += strlen(name) + 1;
	}
	return p;
}

static uint8_t *put_column(enum column c, uint8_t *p, const struct tw_note_row *rows, size_t n,
        const uint8_t kinds[TW_NOTE_COUNT], struct texts *texts)
{
	int64_t last_ns = 0;

	for (size_t i = 0; i < n; i++) {
		const struct tw_note_row *r = &rows[i];

		switch (c) {
		case COL_KIND:
			*p++ = (uint8_t)((kinds[r->kind] - 1) << 1 | r->from_system);
			break;
		case COL_THREAD:
			p = tw_put_varint(p, r->thread_id);
			break;
		case COL_TIME:
			p = tw_put_varint(p, (uint64_t)r->ts_ns - (uint64_t)last_ns);
			last_ns = r->ts_ns;
			break;
		case COL_DURATION:
			p = tw_put_varint(p, (uint64_t)r->dur_ns + 1);
			break;
		case COL_VALUE: /* the sign in the lowest bit */
			p = tw_put_varint(p, (uint64_t)r->value << 1 ^ (uint64_t)(r->value >> 63));
			break;
		case COL_TEXT:
			p = tw_put_varint(p, number_of(texts, r->text));
			break;
		case COL_DETAIL:
			p = tw_put_varint(p, number_of(texts, r->detail));
			break;
		case COL_KINDS:
		case COL_TEXTS:
		case COLUMNS:
		default:
			break;
		}
	}
	return p;
}

static bool has_detail(const struct tw_note_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].detail.len)
			return true;
	return false;
}

static void add_texts(const struct texts *t, struct tw_buf *out)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_str text = t->list[i];
		const bool plain = tw_utf8_is_plain(text);
		/* U+FFFD has three bytes */
		const size_t cap = (plain ? text.len : text.len * 3) + 1;

		if (tw_buf_reserve(out, cap) != TW_OK)
			return;
		if (plain) {
			memcpy(out->data + out->len, text.ptr, text.len);
			out->data[out->len + text.len] = 0;
			out->len += cap;
		} else {
			out->len += 1 + tw_utf8_clean((char *)out->data + out->len, cap, text);
		}
	}
}

static enum tw_status encode(
        const struct tw_note_row *rows, size_t n, struct texts *texts, struct tw_buf *out)
{
	const size_t begin = out->len;
	const bool detail = has_detail(rows, n);
	uint8_t kinds[TW_NOTE_COUNT];
	size_t ends[COLUMNS];
	uint8_t *p;

	if (tw_buf_reserve(out,
	            HEADER + KIND_NAME_MAX * TW_NOTE_COUNT + VARINT_MAX * COLUMNS * n) != TW_OK)
		return tw_buf_status(out);
	p = put_kinds(out->data + begin + HEADER, rows, n, kinds);
	ends[COL_KINDS] = (size_t)(p - out->data);
	for (enum column c = COL_KIND; c < COL_TEXTS; c++) {
		if (c != COL_DETAIL || detail)
			p = put_column(c, p, rows, n, kinds, texts);
		ends[c] = (size_t)(p - out->data);
	}
	out->len = ends[COL_DETAIL];
	add_texts(texts, out);
	ends[COL_TEXTS] = out->len;
	if (tw_buf_status(out) != TW_OK)
		return tw_buf_status(out);
	p = out->data + begin;
	tw_put_u32le(p, NOTES_MAGIC);
	tw_put_u32le(p + 4, (uint32_t)n);
	for (size_t c = 0; c < COLUMNS; c++)
		tw_put_u32le(
		        p + 8 + 4 * c, (uint32_t)(ends[c] - (c ? ends[c - 1] : begin + HEADER)));
	return TW_OK;
}

enum tw_status tw_notes_encode(const struct tw_note_row *rows, size_t n, struct tw_buf *out)
{
	struct texts t = {.mask = 15};
	enum tw_status st = TW_NOMEM;

	while (t.mask < 4 * n) /* at most two texts per note */
		t.mask = t.mask * 2 + 1;
	t.list = tw_mem_alloc(2 * n, sizeof *t.list);
	t.slots = tw_mem_zalloc((size_t)t.mask + 1, sizeof *t.slots);
	if (t.list && t.slots)
		st = encode(rows, n, &t, out);
	tw_mem_free(t.list);
	tw_mem_free(t.slots);
	return st;
}

/* --- reading --- */

struct reader {
	const uint8_t *at[COLUMNS];
	const uint8_t *end[COLUMNS];
	enum tw_note_kind kinds[KINDS_MAX];
	size_t n_kinds;
	struct tw_str *texts;
	size_t n_texts;
	bool bad;
};

static enum tw_status read_header(
        struct reader *r, const uint8_t *p, size_t len, size_t *ret_n, struct tw_err *err)
{
	const uint8_t *at = p + HEADER;
	uint64_t left = len < HEADER ? 0 : len - HEADER;

	if (len < HEADER || tw_u32le(p) != NOTES_MAGIC)
		return tw_fail_at(err, TW_CORRUPT, 0, "not a block of notes");
	for (size_t c = 0; c < COLUMNS; c++) {
		const uint32_t bytes = tw_u32le(p + 8 + 4 * c);

		if (bytes > left)
			return tw_fail_at(err, TW_CORRUPT, 0, "a block's columns do not fit it");
		r->at[c] = at;
		r->end[c] = at += bytes;
		left -= bytes;
	}
	*ret_n = tw_u32le(p + 4);
	if (*ret_n == 0 || *ret_n > TW_NOTES_AT_ONCE ||
	        *ret_n != (size_t)(r->end[COL_KIND] - r->at[COL_KIND]))
		return tw_fail_at(err, TW_CORRUPT, 4, "a block's size does not fit its columns");
	return TW_OK;
}

/* The next text of a column of texts; NULL at its end, or without a NUL. */
static const char *take_text(struct reader *r, enum column c, size_t *ret_len)
{
	const uint8_t *from = r->at[c];
	const uint8_t *nul = from < r->end[c] ? memchr(from, 0, (size_t)(r->end[c] - from)) : NULL;

	if (!nul)
		return NULL;
	r->at[c] = nul + 1;
	*ret_len = (size_t)(nul - from);
	return (const char *)from;
}

static void read_kinds(struct reader *r)
{
	const char *name;
	size_t len;

	while (r->n_kinds < KINDS_MAX && (name = take_text(r, COL_KINDS, &len)))
		r->kinds[r->n_kinds++] = tw_note_of_name(name);
}

static void read_texts(struct reader *r, size_t max)
{
	const char *text;
	size_t len = 0;

	while (r->n_texts < max && (text = take_text(r, COL_TEXTS, &len)))
		r->texts[r->n_texts++] = (struct tw_str){text, len};
}

static inline uint64_t take(struct reader *r, enum column c, uint64_t max)
{
	uint64_t v = 0;

	if (!tw_get_varint(&r->at[c], r->end[c], &v) || v > max) {
		r->bad = true;
		return 0;
	}
	return v;
}

static inline struct tw_str take_number(struct reader *r, enum column c)
{
	const uint64_t number = take(r, c, r->n_texts);

	return number ? r->texts[number - 1] : TW_STR("");
}

static void read_notes(struct reader *r, struct tw_note_row *rows, size_t n)
{
	const bool detail = r->at[COL_DETAIL] < r->end[COL_DETAIL];
	uint64_t ts_ns = 0;

	for (size_t i = 0; i < n && !r->bad; i++) {
		const uint8_t kind = *r->at[COL_KIND]++;
		const uint32_t thread_id = (uint32_t)take(r, COL_THREAD, UINT32_MAX);
		uint64_t dur_ns, value;

		ts_ns += take(r, COL_TIME, UINT64_MAX);
		dur_ns = take(r, COL_DURATION, (uint64_t)INT64_MAX + 1);
		value = take(r, COL_VALUE, UINT64_MAX);
		r->bad |= kind >> 1 >= r->n_kinds || ts_ns > INT64_MAX ||
		          (dur_ns && dur_ns - 1 > INT64_MAX - ts_ns);
		if (r->bad)
			return;
		rows[i] = (struct tw_note_row){
		        .kind = r->kinds[kind >> 1],
		        .thread_id = thread_id,
		        .ts_ns = (int64_t)ts_ns,
		        .dur_ns = (int64_t)dur_ns - 1,
		        .value = (int64_t)(value >> 1 ^ (0 - (value & 1))),
		        .text = take_number(r, COL_TEXT),
		        .detail = detail ? take_number(r, COL_DETAIL) : TW_STR(""),
		        .from_system = kind & 1,
		};
	}
}

static bool is_complete(const struct reader *r)
{
	for (int c = 0; c < COLUMNS; c++)
		if (r->at[c] != r->end[c])
			return false;
	return !r->bad;
}

enum tw_status tw_notes_decode(const uint8_t *payload, size_t len, struct tw_arena *a,
        struct tw_notes *ret, struct tw_err *err)
{
	struct reader r = {.bad = false};
	struct tw_notes d = {NULL, 0};
	enum tw_status st = read_header(&r, payload, len, &d.n, err);

	if (st != TW_OK)
		return st;
	d.rows = tw_arena_alloc(a, d.n, sizeof *d.rows);
	r.texts = tw_arena_alloc(a, 2 * d.n, sizeof *r.texts);
	if (!d.rows || !r.texts)
		return tw_oom(err);
	read_kinds(&r);
	read_texts(&r, 2 * d.n);
	read_notes(&r, d.rows, d.n);
	if (!is_complete(&r))
		return tw_fail_at(err, TW_CORRUPT, 0, "a block of notes is damaged");
	*ret = d;
	return TW_OK;
}

#include "server/export/sqlite_pages.h"

#include <string.h>

enum {
	PAGE = TW_SQLITE_PAGE,
	FILE_HEAD = 100,
	LEAF_HEAD = 8,
	INNER_HEAD = 12,
	LEAF = 13,
	INNER = 5,
	MAX_LOCAL = PAGE - 35,
	MIN_LOCAL = (PAGE - 12) * 32 / 255 - 23,
	OVERFLOW_BYTES = PAGE - 4,
	MAX_VALUES = 16,
	VARINT = 9,
	VERSION = 3040001
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xFFFF);
}

/* SQLite's varint: seven bits per byte, highest first; a ninth byte has eight. */
static uint32_t put_varint(uint8_t *p, uint64_t v)
{
	uint8_t turned[VARINT];
	uint32_t n = 0;

	if (v >> 56) {
		p[8] = (uint8_t)v;
		v >>= 8;
		for (int i = 7; i >= 0; i--, v >>= 7)
			p[i] = (uint8_t)(v | 0x80);
		return VARINT;
	}
	do {
		turned[n++] = (uint8_t)(v & 0x7F);
		v >>= 7;
	} while (v);
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)(turned[n - 1 - i] | (i + 1 < n ? 0x80 : 0));
	return n;
}

/* --- pages --- */

/* The number of the page written after n pages. */
static uint32_t next_page(const struct tw_sqlite_pages *w, uint32_t n)
{
	return n + 1 == w->lock_page ? n + 2 : n + 1;
}

static void add_page(struct tw_sqlite_pages *w, const uint8_t *page)
{
	if (w->out)
		(void)tw_buf_add(w->out, page, PAGE);
	w->pages++;
}

static uint32_t put_page(struct tw_sqlite_pages *w, const uint8_t *page)
{
	static const uint8_t nothing[PAGE];

	if (w->pages + 1 == w->lock_page)
		add_page(w, nothing);
	add_page(w, page);
	return w->pages;
}

static void empty_leaf(struct tw_sqlite_pages *w)
{
	memset(w->leaf, 0, PAGE);
	w->leaf[0] = LEAF;
	w->cells = 0;
	w->top = PAGE;
}

static void end_head(uint8_t *page, uint32_t cells, uint32_t top)
{
	put16(page + 3, cells);
	put16(page + 5, top);
}

/* --- inner pages --- */

/* Writes a page with the first n children of a level. */
static uint32_t put_inner(struct tw_sqlite_pages *w, struct tw_sqlite_level *level, uint32_t n)
{
	uint8_t page[PAGE] = {INNER};
	uint32_t top = PAGE;

	for (uint32_t i = 0; i + 1 < n; i++) {
		uint8_t cell[4 + VARINT];
		uint32_t len = 4 + put_varint(cell + 4, (uint64_t)level->children[i].last);

		put32(cell, level->children[i].page);
		top -= len;
		memcpy(page + top, cell, len);
		put16(page + INNER_HEAD + 2 * (size_t)i, top);
	}
	end_head(page, n - 1, top);
	put32(page + 8, level->children[n - 1].page);
	return put_page(w, page);
}

/* A page needs two children: the last two of a full level remain, so that a further child is not
 * alone. */
static void add_child(struct tw_sqlite_pages *w, struct tw_sqlite_child child)
{
	for (uint32_t i = 0; i < TW_SQLITE_LEVELS; i++) {
		struct tw_sqlite_level *level = &w->levels[i];

		level->children[level->n++] = child;
		if (level->n < TW_SQLITE_FANOUT + 2)
			return;
		child.last = level->children[TW_SQLITE_FANOUT - 1].last;
		child.page = put_inner(w, level, TW_SQLITE_FANOUT);
		memmove(level->children, level->children + TW_SQLITE_FANOUT,
		        2 * sizeof *level->children);
		level->n = 2;
	}
	w->bad = true;
}

static void end_leaf(struct tw_sqlite_pages *w)
{
	end_head(w->leaf, w->cells, w->top);
	add_child(w, (struct tw_sqlite_child){put_page(w, w->leaf), w->last});
	empty_leaf(w);
}

/* Each level with several children becomes a page of the level above; the last remaining child is
 * the root. */
static uint32_t end_levels(struct tw_sqlite_pages *w)
{
	struct tw_sqlite_child child = {0, 0};

	for (uint32_t i = 0; i < TW_SQLITE_LEVELS; i++) {
		struct tw_sqlite_level *level = &w->levels[i];

		if (child.page)
			level->children[level->n++] = child;
		if (level->n > 1)
			child = (struct tw_sqlite_child){
			        put_inner(w, level, level->n), level->children[level->n - 1].last};
		else if (level->n)
			child = level->children[0];
		level->n = 0;
	}
	return child.page;
}

/* --- rows --- */

struct record { /* an encoded row: its header, then its values */
	uint8_t head[VARINT * (MAX_VALUES + 1)];
	uint32_t n_head;
	uint8_t numbers[8 * MAX_VALUES];
	struct tw_str parts[MAX_VALUES + 1];
	uint32_t n_parts;
	size_t bytes;
};

/* Size of an integer as SQLite stores it, and its type. */
static uint32_t int_type(int64_t v, uint32_t *ret_bytes)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 6, 8};
	uint32_t type = 1;

	if (v == 0 || v == 1) {
		*ret_bytes = 0;
		return v ? 9 : 8;
	}
	while (type < 6 && (v < -(INT64_C(1) << (8 * bytes[type - 1] - 1)) ||
	                           v >= INT64_C(1) << (8 * bytes[type - 1] - 1)))
		type++;
	*ret_bytes = bytes[type - 1];
	return type;
}

static void add_part(struct record *r, const void *p, size_t n)
{
	r->parts[r->n_parts++] = (struct tw_str){p, n};
	r->bytes += n;
}

static void make_record(struct record *r, const struct tw_sqlite_value *v, uint32_t n)
{
	uint8_t types[VARINT * MAX_VALUES];
	uint8_t *number = r->numbers;
	uint32_t n_types = 0;
	uint32_t bytes;

	r->n_parts = 1;
	r->bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t type = 0;

		if (v[i].type == TW_SQLITE_INT) {
			type = int_type(v[i].number, &bytes);
			for (uint32_t k = 0; k < bytes; k++)
				number[k] = (uint8_t)((uint64_t)v[i].number >> 8 * (bytes - 1 - k));
			add_part(r, number, bytes);
			number += bytes;
		} else if (v[i].type == TW_SQLITE_TEXT) {
			type = 13 + 2 * (uint64_t)v[i].text.len;
			add_part(r, v[i].text.ptr, v[i].text.len);
		}
		n_types += put_varint(types + n_types, type);
	}
	r->n_head = put_varint(r->head, n_types + 1);
	if (r->n_head > 1) /* the header's length includes itself */
		r->n_head = put_varint(r->head, n_types + 2);
	memcpy(r->head + r->n_head, types, n_types);
	r->n_head += n_types;
	r->parts[0] = (struct tw_str){(const char *)r->head, r->n_head};
	r->bytes += r->n_head;
}

/* Copies the record's next n bytes; *part and *at are the position. */
static void take(const struct record *r, uint32_t *part, size_t *at, uint8_t *to, size_t n)
{
	while (n) {
		const struct tw_str *p = &r->parts[*part];
		size_t k = p->len - *at < n ? p->len - *at : n;

		if (k)
			memcpy(to, p->ptr + *at, k);
		*at += k;
		to += k;
		n -= k;
		if (*at == p->len) {
			++*part;
			*at = 0;
		}
	}
}

static size_t local_bytes(size_t bytes)
{
	size_t k;

	if (bytes <= MAX_LOCAL)
		return bytes;
	k = MIN_LOCAL + (bytes - MIN_LOCAL) % OVERFLOW_BYTES;
	return k <= MAX_LOCAL ? k : MIN_LOCAL;
}

static void put_overflow(
        struct tw_sqlite_pages *w, const struct record *r, uint32_t part, size_t at, size_t left)
{
	uint8_t page[PAGE];

	while (left) {
		size_t n = left < OVERFLOW_BYTES ? left : OVERFLOW_BYTES;

		memset(page, 0, PAGE);
		left -= n;
		put32(page, left ? next_page(w, next_page(w, w->pages)) : 0);
		take(r, &part, &at, page + 4, n);
		(void)put_page(w, page);
	}
}

/* A cell as stored in a leaf. Its overflow pages, if any, are written first. */
static uint32_t make_cell(
        struct tw_sqlite_pages *w, int64_t rowid, const struct record *r, uint8_t *cell)
{
	size_t local = local_bytes(r->bytes);
	uint32_t len = put_varint(cell, r->bytes);
	uint32_t part = 0;
	size_t at = 0;

	len += put_varint(cell + len, (uint64_t)rowid);
	take(r, &part, &at, cell + len, local);
	len += (uint32_t)local;
	if (local < r->bytes) {
		put32(cell + len, next_page(w, w->pages));
		len += 4;
		put_overflow(w, r, part, at, r->bytes - local);
	}
	return len;
}

static void put_cell(
        uint8_t *page, uint32_t head, uint32_t i, uint32_t *top, const uint8_t *cell, uint32_t len)
{
	*top -= len;
	memcpy(page + *top, cell, len);
	put16(page + head + LEAF_HEAD + 2 * (size_t)i, *top);
}

void tw_sqlite_row(
        struct tw_sqlite_pages *w, int64_t rowid, const struct tw_sqlite_value *v, uint32_t n)
{
	uint8_t cell[PAGE + 2 * VARINT];
	struct record r;
	uint32_t len;

	make_record(&r, v, n);
	len = make_cell(w, rowid, &r, cell);
	if (w->top < LEAF_HEAD + 2 * (w->cells + 1) + len)
		end_leaf(w);
	put_cell(w->leaf, 0, w->cells++, &w->top, cell, len);
	w->last = rowid;
}

void tw_sqlite_table_end(struct tw_sqlite_pages *w)
{
	bool is_view = strcmp(w->tables[w->table].type, "view") == 0;

	if (!is_view) {
		end_leaf(w);
		w->roots[w->table] = end_levels(w);
	}
	w->table++;
}

/* --- the first page --- */

static void put_head(const struct tw_sqlite_pages *w, uint8_t *page)
{
	memcpy(page, "SQLite format 3", 16);
	put16(page + 16, PAGE);
	page[18] = page[19] = 1; /* rollback journal */
	page[21] = 64, page[22] = page[23] = 32;
	put32(page + 24, 1); /* change counter: the number of pages is valid for it */
	put32(page + 28, w->counted);
	put32(page + 40, 1); /* schema cookie */
	put32(page + 44, 4); /* schema format */
	put32(page + 56, 1); /* UTF-8 */
	put32(page + 92, 1);
	put32(page + 96, VERSION);
}

static void put_first(struct tw_sqlite_pages *w)
{
	uint8_t page[PAGE] = {0};
	uint32_t top = PAGE;

	put_head(w, page);
	page[FILE_HEAD] = LEAF;
	for (uint32_t i = 0; i < w->n_tables; i++) {
		const struct tw_sqlite_table *t = &w->tables[i];
		const struct tw_sqlite_value row[] = {tw_sqlite_text(tw_str_of(t->type)),
		        tw_sqlite_text(tw_str_of(t->name)), tw_sqlite_text(tw_str_of(t->name)),
		        tw_sqlite_int(w->counted_roots[i]), tw_sqlite_text(tw_str_of(t->sql))};
		uint8_t cell[PAGE];
		struct record r;
		uint32_t len;

		make_record(&r, row, 5);
		len = make_cell(w, i + 1, &r, cell);
		if (top < FILE_HEAD + LEAF_HEAD + 2 * (i + 1) + len) {
			w->bad = true; /* the schema exceeds one page */
			return;
		}
		put_cell(page, FILE_HEAD, i, &top, cell, len);
	}
	end_head(page + FILE_HEAD, w->n_tables, top);
	(void)put_page(w, page);
}

void tw_sqlite_begin(struct tw_sqlite_pages *w, const struct tw_sqlite_table *tables, uint32_t n,
        struct tw_buf *out)
{
	w->tables = tables;
	w->n_tables = n;
	memcpy(w->counted_roots, w->roots, sizeof w->roots);
	w->counted = w->pages;
	w->pages = w->table = 0;
	if (!w->lock_page)
		w->lock_page = TW_SQLITE_LOCK_PAGE;
	w->out = out;
	empty_leaf(w);
	put_first(w);
}

bool tw_sqlite_end(const struct tw_sqlite_pages *w)
{
	return !w->bad && (!w->out || (w->pages == w->counted && memcmp(w->roots, w->counted_roots,
	                                                                 sizeof w->roots) == 0));
}

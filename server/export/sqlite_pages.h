/*
 * sqlite_pages.h - writes an SQLite database from its first byte to its last.
 *
 * SQLite itself needs a file that it can seek in.  Here tables are written one after another, rows
 * by rising rowid, and each page once: leaves as they fill, then the pages above them.  The first
 * page names the roots of all tables, so the same rows are written twice: first only to count
 * pages, then for real.  Memory: a few pages.  Format: https://sqlite.org/fileformat2.html
 * Thread: one at a time.
 */
#ifndef TW_SQLITE_PAGES_H
#define TW_SQLITE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/str.h"

enum {
	TW_SQLITE_PAGE = 8192,
	TW_SQLITE_LOCK_PAGE = (1 << 30) / TW_SQLITE_PAGE + 1,
	TW_SQLITE_FANOUT = 500, /* children of a page: 15 bytes each at most */
	TW_SQLITE_LEVELS = 4,
	TW_SQLITE_TABLES = 12
};

struct tw_sqlite_child {
	uint32_t page;
	int64_t last; /* its largest rowid */
};

struct tw_sqlite_level {
	struct tw_sqlite_child children[TW_SQLITE_FANOUT + 2];
	uint32_t n;
};

struct tw_sqlite_table {
	const char *type, *name, *sql; /* "table" or "view", and the statement that creates it */
};

struct tw_sqlite_pages {    /* initialise with zeros */
	uint32_t lock_page; /* SQLite locks its bytes, so it stays empty; 0: TW_SQLITE_LOCK_PAGE */
	const struct tw_sqlite_table *tables;
	uint32_t n_tables;
	struct tw_buf *out; /* NULL: count */
	uint32_t pages;     /* written, or counted */
	uint32_t table;     /* index of the current one */
	uint32_t roots[TW_SQLITE_TABLES];
	uint32_t counted_roots[TW_SQLITE_TABLES];
	uint32_t counted; /* pages of the first pass */
	uint8_t leaf[TW_SQLITE_PAGE];
	uint32_t cells, top; /* of the leaf; its content begins at top */
	int64_t last;
	struct tw_sqlite_level levels[TW_SQLITE_LEVELS];
	bool bad; /* more rows than the levels hold, or a table that does not exist */
};

enum tw_sqlite_type { TW_SQLITE_NULL, TW_SQLITE_INT, TW_SQLITE_TEXT };
struct tw_sqlite_value {
	enum tw_sqlite_type type;
	int64_t number;
	struct tw_str text;
};
static inline struct tw_sqlite_value tw_sqlite_int(int64_t v)
{
	return (struct tw_sqlite_value){.type = TW_SQLITE_INT, .number = v};
}
static inline struct tw_sqlite_value tw_sqlite_text(struct tw_str s)
{
	return (struct tw_sqlite_value){.type = TW_SQLITE_TEXT, .text = s};
}

/* Begins a pass: the first counts, the second appends the database to *out. */
void tw_sqlite_begin(struct tw_sqlite_pages *w, const struct tw_sqlite_table *tables, uint32_t n,
        struct tw_buf *out);
/* A row of the current table.  An INTEGER PRIMARY KEY is the rowid, and NULL among the values (at
 * most 16). */
void tw_sqlite_row(
        struct tw_sqlite_pages *w, int64_t rowid, const struct tw_sqlite_value *v, uint32_t n);
/* Ends the current table (a view too); the next row belongs to the next one. */
void tw_sqlite_table_end(struct tw_sqlite_pages *w);
/* At the end of a pass: false if the passes differ, or the rows did not fit. */
bool tw_sqlite_end(const struct tw_sqlite_pages *w);

#endif

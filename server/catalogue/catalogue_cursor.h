/*
 * catalogue_cursor.h - all rows of a table (catalogue_tables.h) in the order of its key, a page at
 * a time, so that neither memory nor a statement grows with the table.
 *
 * Texts are given as every engine can hold them: bytes that are no UTF-8, and NUL, are U+FFFD, as
 * the engine of PostgreSQL writes them.  Thread: the caller's.
 */
#ifndef TW_CATALOGUE_CURSOR_H
#define TW_CATALOGUE_CURSOR_H

#include "decoder/base/buf.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"

struct tw_cell {
	bool null;
	int64_t number;
	struct tw_str bytes; /* of a text too, which a NUL stands behind */
};

struct tw_row_cursor {
	const struct tw_table *table;
	struct tw_columns columns;
	bool there; /* is there a row? */
	struct tw_cell row[TW_COLUMNS_MAX];
	uint64_t rows;   /* read, this one too */
	uint64_t mended; /* texts that are not as they are kept */
	/* its own */
	struct tw_db *db;
	struct tw_cat_query q;
	bool open;
	unsigned on_page;
	struct tw_arena *texts, *last,
	        *keys[2]; /* of the row; of a page's last; of it and before */
	struct tw_cell last_key[TW_COLUMNS_MAX], key[TW_COLUMNS_MAX];
};

/* tw_row_cursor_close is owed, also after a failure. */
enum tw_status tw_row_cursor_open(struct tw_row_cursor *c, struct tw_db *db,
        const struct tw_table *t, struct tw_err *err) TW_MUST_USE;
/* To the first row, or the next.  What it gives is good until the next.  TW_CONFLICT when texts
 * that had to be mended leave two keys alike or out of order. */
enum tw_status tw_row_cursor_next(struct tw_row_cursor *c, struct tw_err *err) TW_MUST_USE;
void tw_row_cursor_close(struct tw_row_cursor *c);

/* By their keys: less than, equal to or greater than 0. */
int tw_row_cursor_compare(const struct tw_row_cursor *a, const struct tw_row_cursor *b);
bool tw_row_cursor_same_row(const struct tw_row_cursor *a, const struct tw_row_cursor *b);
/* The row in one way of writing, which no other row has. */
enum tw_status tw_row_cursor_write(const struct tw_row_cursor *c, struct tw_buf *out);
/* Column i as value `at` of a statement; NULL is not bound. */
void tw_row_cursor_bind(const struct tw_row_cursor *c, unsigned i, struct tw_cat_query *to, int at);
/* The key for people: project_id=01..., day=3 */
void tw_row_cursor_tell(const struct tw_row_cursor *c, char *out, size_t cap);

#endif

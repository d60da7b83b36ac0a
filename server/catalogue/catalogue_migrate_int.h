/* catalogue_migrate_int.h - shared by catalogue_migrate.c and catalogue_migrate_begin.c. */
#ifndef TW_CATALOGUE_MIGRATE_INT_H
#define TW_CATALOGUE_MIGRATE_INT_H

#include "decoder/base/buf.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_migrate.h"
#include "server/catalogue/catalogue_tables.h"

/* A reader of each catalogue: a snapshot of the source; of the target too with `still`, otherwise
 * its current state while it is written. */
struct tw_cat_sides {
	struct tw_db *from, *to;
};
enum tw_status tw_cat_sides_open(struct tw_migrate_rows *m, bool still, struct tw_cat_sides *ret,
        struct tw_err *err) TW_MUST_USE;
void tw_cat_sides_close(struct tw_migrate_rows *m, struct tw_cat_sides *s);

/* Copies the sequences of audit entries and deliveries: no number is used twice, even if the
 * highest was deleted. */
enum tw_status tw_cat_copy_sequences(
        struct tw_migrate_rows *m, const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT if the target would use a number twice. */
enum tw_status tw_cat_compare_sequences(
        const struct tw_cat_sides *s, struct tw_err *err) TW_MUST_USE;

/* --- all rows of a table in key order (catalogue_cursor.c) --- */

/* Reads all rows of a table (catalogue_tables.h) in key order, a page at a
 * time, so that neither memory nor a statement grows with the table.
 *
 * Texts are returned in a form that every engine can store: invalid UTF-8 and NUL become U+FFFD, as
 * in the PostgreSQL engine.
 * Thread: the caller's. */

struct tw_cell {
	bool null;
	int64_t number;
	struct tw_str bytes; /* texts are followed by a NUL */
};

struct tw_row_cursor {
	const struct tw_table *table;
	bool there; /* whether there is a row */
	struct tw_cell row[TW_COLUMNS_MAX];
	uint64_t rows;     /* read so far, including this one */
	uint64_t repaired; /* texts that differ from the stored ones */
	/* private */
	struct tw_db *db;
	struct tw_cat_query q;
	bool open;
	unsigned on_page;
	struct tw_arena *texts, *last,
	        *keys[2]; /* of the row; of a page's last row; of this row and the previous one */
	struct tw_cell last_key[TW_COLUMNS_MAX], key[TW_COLUMNS_MAX];
};

/* Always call tw_row_cursor_close, also after a failure. */
enum tw_status tw_row_cursor_open(struct tw_row_cursor *c, struct tw_db *db,
        const struct tw_table *t, struct tw_err *err) TW_MUST_USE;
/* Moves to the first or next row, which is valid until the next call.  TW_CONFLICT if repaired
 * texts make two keys equal or unordered. */
enum tw_status tw_row_cursor_next(struct tw_row_cursor *c, struct tw_err *err) TW_MUST_USE;
void tw_row_cursor_close(struct tw_row_cursor *c);

/* Compares keys: less than, equal to or greater than 0. */
int tw_row_cursor_compare(const struct tw_row_cursor *a, const struct tw_row_cursor *b);
bool tw_row_cursor_same_row(const struct tw_row_cursor *a, const struct tw_row_cursor *b);
/* Appends a unique serialisation of the row. */
enum tw_status tw_row_cursor_write(const struct tw_row_cursor *c, struct tw_buf *out);
/* Binds column i as parameter `at` of a statement; NULL is not bound. */
void tw_row_cursor_bind(const struct tw_row_cursor *c, unsigned i, struct tw_cat_query *to, int at);
/* The key for messages: project_id=01..., day=3 */
void tw_row_cursor_position(const struct tw_row_cursor *c, char *out, size_t cap);

#endif

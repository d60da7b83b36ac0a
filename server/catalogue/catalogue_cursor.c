#include "server/catalogue/catalogue_migrate_int.h"

#include <inttypes.h>
#include <stdio.h>

enum { SQL_BYTES = 1 << 13, ROW_BYTES = 1 << 30, KEY_BYTES = 1 << 20, SHOWN = 40 };

/* --- a page --- */

static void put_names(struct tw_buf *sql, const struct tw_table *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		(void)tw_buf_printf(sql, "%s%s", i ? "," : "", t->columns[i].name);
}

/* After the columns: for each nullable one, whether it is NULL. */
static void write_select(const struct tw_row_cursor *c, bool first, struct tw_buf *sql)
{
	const struct tw_table *t = c->table;

	(void)tw_buf_printf(sql, "SELECT ");
	put_names(sql, t, t->n);
	for (unsigned i = 0; i < t->n; i++)
		if (t->columns[i].may_be_null)
			(void)tw_buf_printf(sql, ",%s IS NULL", t->columns[i].name);
	(void)tw_buf_printf(sql, " FROM \"%s\"", t->name);
	if (!first) {
		(void)tw_buf_printf(sql, " WHERE (");
		put_names(sql, t, t->n_key);
		for (unsigned i = 0; i < t->n_key; i++)
			(void)tw_buf_printf(sql, "%s?%u", i ? "," : ")>(", i + 1);
		(void)tw_buf_printf(sql, ")");
	}
	(void)tw_buf_printf(sql, " ORDER BY ");
	put_names(sql, t, t->n_key);
	(void)tw_buf_printf(sql, " LIMIT %u", t->page);
	(void)tw_buf_add_u8(sql, 0);
}

static void bind(const struct tw_row_cursor *c, unsigned i, const struct tw_cell *cell,
        struct tw_cat_query *to, int at)
{
	if (cell->null)
		return;
	if (c->table->columns[i].kind == TW_COLUMN_INT)
		tw_cat_bind_int(to, at, cell->number);
	else if (c->table->columns[i].kind == TW_COLUMN_TEXT)
		tw_cat_bind_text(to, at, cell->bytes.ptr);
	else
		to->db->engine->bind_bytes(to->stmt, at, cell->bytes, false);
}

void tw_row_cursor_bind(const struct tw_row_cursor *c, unsigned i, struct tw_cat_query *to, int at)
{
	bind(c, i, &c->row[i], to, at);
}

static enum tw_status open_page(struct tw_row_cursor *c, bool first, struct tw_err *err)
{
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, SQL_BYTES);
	write_select(c, first, &sql);
	st = tw_buf_status(&sql);
	if (st != TW_OK)
		st = tw_fail(err, st, "no memory for a statement");
	else
		st = tw_cat_query(&c->q, c->db, err, (const char *)sql.data, "");
	tw_buf_done(&sql);
	if (st != TW_OK)
		return st;
	for (unsigned i = 0; !first && i < c->table->n_key; i++)
		bind(c, i, &c->last_key[i], &c->q, (int)i + 1);
	c->open = true;
	c->on_page = 0;
	return TW_OK;
}

/* --- a row --- */

static bool is_clean(struct tw_str s)
{
	for (size_t i = 0, n; i < s.len; i += n) {
		n = s.ptr[i] ? tw_utf8_len(s.ptr + i, s.len - i) : 0;
		if (n == 0)
			return false;
	}
	return true;
}

static bool clean(struct tw_row_cursor *c, struct tw_str *io)
{
	const size_t cap = 3 * io->len + 1;
	char *out = tw_arena_alloc(c->texts, cap, 1);

	if (!out)
		return false;
	*io = (struct tw_str){out, tw_utf8_clean(out, cap, *io)};
	c->repaired++;
	return true;
}

/* As stored. */
static struct tw_cell raw_cell(const struct tw_row_cursor *c, unsigned i)
{
	struct tw_cell cell = {.bytes = {"", 0}};

	if (c->table->columns[i].kind == TW_COLUMN_INT) {
		cell.number = tw_cat_int(&c->q, (int)i);
	} else {
		if (c->table->columns[i].kind == TW_COLUMN_TEXT) /* also appends a NUL */
			(void)tw_cat_str(&c->q, (int)i);
		cell.bytes = tw_cat_blob(&c->q, (int)i);
	}
	return cell;
}

static bool copy_key(const struct tw_cell *from, unsigned n, struct tw_cell *to, struct tw_arena *a)
{
	tw_arena_reset(a);
	for (unsigned i = 0; i < n; i++) {
		to[i] = from[i];
		to[i].bytes.ptr = tw_arena_str(a, from[i].bytes);
		if (!to[i].bytes.ptr)
			return false;
	}
	return true;
}

static bool read_row(struct tw_row_cursor *c)
{
	unsigned at = c->table->n;

	tw_arena_reset(c->texts);
	for (unsigned i = 0; i < c->table->n; i++) {
		c->row[i] = raw_cell(c, i);
		if (c->table->columns[i].may_be_null)
			c->row[i].null = tw_cat_int(&c->q, (int)at++) != 0;
	}
	if (++c->on_page == c->table->page &&
	        !copy_key(c->row, c->table->n_key, c->last_key, c->last))
		return false;
	for (unsigned i = 0; i < c->table->n; i++)
		if (c->table->columns[i].kind == TW_COLUMN_TEXT && !is_clean(c->row[i].bytes) &&
		        !clean(c, &c->row[i].bytes))
			return false;
	return true;
}

static int compare_cells(
        const struct tw_row_cursor *c, const struct tw_cell *a, const struct tw_cell *b, unsigned n)
{
	int d = 0;

	for (unsigned i = 0; d == 0 && i < n; i++) {
		if (a[i].null || b[i].null)
			d = (int)b[i].null - (int)a[i].null;
		else if (c->table->columns[i].kind == TW_COLUMN_INT)
			d = (a[i].number > b[i].number) - (a[i].number < b[i].number);
		else
			d = tw_str_cmp(a[i].bytes, b[i].bytes);
	}
	return d;
}

/* Both sides are read in one order, which must match the returned keys. */
static enum tw_status check_order(struct tw_row_cursor *c, struct tw_err *err)
{
	const unsigned n = c->table->n_key;
	char key[120];

	if (c->rows > 1 && compare_cells(c, c->key, c->row, n) >= 0) {
		tw_row_cursor_position(c, key, sizeof key);
		return tw_fail(err, TW_CONFLICT,
		        "%s: a key is not UTF-8, and its replacement would collide with another: "
		        "%s",
		        c->table->name, key);
	}
	if (!copy_key(c->row, n, c->key, c->keys[c->rows & 1]))
		return tw_oom(err);
	return TW_OK;
}

/* --- the cursor --- */

enum tw_status tw_row_cursor_open(
        struct tw_row_cursor *c, struct tw_db *db, const struct tw_table *t, struct tw_err *err)
{
	*c = (struct tw_row_cursor){.table = t, .db = db};
	c->texts = tw_arena_new(ROW_BYTES);
	c->last = tw_arena_new(KEY_BYTES);
	c->keys[0] = tw_arena_new(KEY_BYTES);
	c->keys[1] = tw_arena_new(KEY_BYTES);
	if (!c->texts || !c->last || !c->keys[0] || !c->keys[1])
		return tw_oom(err);
	return open_page(c, true, err);
}

void tw_row_cursor_close(struct tw_row_cursor *c)
{
	if (c->open)
		(void)tw_cat_close(&c->q, NULL);
	c->open = false;
	(void)tw_arena_free(c->texts);
	(void)tw_arena_free(c->last);
	(void)tw_arena_free(c->keys[0]);
	(void)tw_arena_free(c->keys[1]);
	c->texts = c->last = c->keys[0] = c->keys[1] = NULL;
}

enum tw_status tw_row_cursor_next(struct tw_row_cursor *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	c->there = false;
	while (st == TW_OK && c->open) {
		if (tw_cat_row(&c->q)) {
			c->there = true;
			c->rows++;
			return read_row(c) ? check_order(c, err) : tw_oom(err);
		}
		c->open = false;
		st = tw_cat_close(&c->q, err);
		if (st == TW_OK && c->on_page == c->table->page)
			st = open_page(c, false, err);
	}
	return st;
}

/* --- operations on a row --- */

int tw_row_cursor_compare(const struct tw_row_cursor *a, const struct tw_row_cursor *b)
{
	return compare_cells(a, a->row, b->row, a->table->n_key);
}

bool tw_row_cursor_same_row(const struct tw_row_cursor *a, const struct tw_row_cursor *b)
{
	return compare_cells(a, a->row, b->row, a->table->n) == 0;
}

enum tw_status tw_row_cursor_write(const struct tw_row_cursor *c, struct tw_buf *out)
{
	for (unsigned i = 0; i < c->table->n; i++) {
		const struct tw_cell *cell = &c->row[i];

		if (cell->null) {
			(void)tw_buf_add_u8(out, '-');
		} else if (c->table->columns[i].kind == TW_COLUMN_INT) {
			(void)tw_buf_printf(out, "%" PRId64 ";", cell->number);
		} else {
			(void)tw_buf_printf(out, "%zu:", cell->bytes.len);
			(void)tw_buf_add_str(out, cell->bytes);
		}
	}
	return tw_buf_add_u8(out, '\n');
}

static int format_cell(const struct tw_row_cursor *c, unsigned i, char *out, size_t cap)
{
	const struct tw_column *col = &c->table->columns[i];
	const struct tw_cell *cell = &c->row[i];

	if (col->kind == TW_COLUMN_INT)
		return snprintf(out, cap, "%s%s=%" PRId64, i ? ", " : "", col->name, cell->number);
	if (col->kind == TW_COLUMN_BYTES) /* a secret's hash */
		return snprintf(out, cap, "%s%s=...", i ? ", " : "", col->name);
	return snprintf(out, cap, "%s%s=%.*s", i ? ", " : "", col->name,
	        (int)(cell->bytes.len < SHOWN ? cell->bytes.len : SHOWN), cell->bytes.ptr);
}

void tw_row_cursor_position(const struct tw_row_cursor *c, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < c->table->n_key && at < cap; i++) {
		const int n = format_cell(c, i, out + at, cap - at);

		at += n > 0 ? (size_t)n : 0;
	}
}

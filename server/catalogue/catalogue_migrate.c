/*
 * catalogue_migrate.c - copies rows of one catalogue into another, and compares them.
 *
 * Extra rows are deleted first, referring tables before those they refer to; then missing rows are
 * inserted, in the opposite order.  So no row ever refers to a missing one.
 */
#include "server/catalogue/catalogue_migrate.h"

#include "server/base/file/crash_point.h"
#include "server/base/file/sha256.h"
#include "server/catalogue/catalogue_migrate_int.h"

enum { SQL_BYTES = 1 << 14, AT_ONCE = 500, REPORT_EVERY = 1000, ROW_BYTES = 1 << 30 };

enum pass { DROP, PUT, COMPARE };
enum change { INSERT, UPDATE, DELETE, CHANGES };

struct walk {
	struct tw_migrate_rows *m;
	struct tw_migrate_table *of;
	enum pass pass;
	struct tw_row_cursor from, to;
	struct tw_db *db;                  /* the target's writer: always the same one */
	struct tw_stmt *prepared[CHANGES]; /* its statements */
	unsigned open;                     /* changes in the open transaction; 0: none is open */
	gnutls_hash_hd_t from_sha, to_sha;
	struct tw_buf row;
};

/* --- changes of the target --- */

static void write_names(struct tw_buf *sql, const struct tw_row_cursor *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		(void)tw_buf_printf(sql, "%s%s", i ? "," : "", c->table->columns[i].name);
}

/* Columns begin..end-1, each with its parameter. */
static void write_pairs(struct tw_buf *sql, const struct tw_row_cursor *c, unsigned begin,
        unsigned end, const char *between)
{
	for (unsigned i = begin; i < end; i++)
		(void)tw_buf_printf(sql, "%s%s=?%u", i > begin ? between : "",
		        c->table->columns[i].name, i + 1);
}

static void write_change(struct tw_buf *sql, const struct tw_row_cursor *c, enum change kind)
{
	if (kind == INSERT) {
		(void)tw_buf_printf(sql, "INSERT INTO \"%s\"(", c->table->name);
		write_names(sql, c, c->table->n);
		for (unsigned i = 0; i < c->table->n; i++)
			(void)tw_buf_printf(sql, "%s?%u", i ? "," : ") VALUES(", i + 1);
		(void)tw_buf_printf(sql, ")");
	} else {
		(void)tw_buf_printf(sql,
		        kind == UPDATE ? "UPDATE \"%s\" SET " : "DELETE FROM \"%s\"",
		        c->table->name);
		if (kind == UPDATE)
			write_pairs(sql, c, c->table->n_key, c->table->n, ",");
		(void)tw_buf_printf(sql, " WHERE ");
		write_pairs(sql, c, 0, c->table->n_key, " AND ");
	}
	(void)tw_buf_add_u8(sql, 0);
}

static enum tw_status prepare_change(struct walk *w, const struct tw_row_cursor *row,
        enum change kind, struct tw_cat_query *q, struct tw_err *err)
{
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, SQL_BYTES);
	if (!w->prepared[kind])
		write_change(&sql, row, kind);
	st = tw_buf_status(&sql);
	if (st != TW_OK)
		st = tw_fail(err, st, "no memory for a statement");
	else
		st = tw_cat_query_prepared(q, w->db, &w->prepared[kind], err,
		        sql.data ? (const char *)sql.data : "", "");
	tw_buf_done(&sql);
	return st;
}

static enum tw_status change_row(
        struct walk *w, const struct tw_row_cursor *row, enum change kind, struct tw_err *err)
{
	struct tw_cat_query q;
	const unsigned n = kind == DELETE ? row->table->n_key : row->table->n;
	enum tw_status st = prepare_change(w, row, kind, &q, err);

	if (st != TW_OK)
		return st;
	for (unsigned i = 0; i < n; i++)
		tw_row_cursor_bind(row, i, &q, (int)i + 1);
	while (tw_cat_row(&q))
		continue;
	return tw_cat_close(&q, err);
}

static enum tw_status commit(struct walk *w, enum tw_status st, struct tw_err *err)
{
	if (w->open == 0)
		return st;
	w->open = 0;
	st = tw_cat_end(w->m->to, w->db, st, err);
	if (st == TW_OK)
		tw_crash_point("migrate_rows");
	return st;
}

/* Adds the table's name to the error of a refused row. */
static enum tw_status name_table(const struct walk *w, enum tw_status st, struct tw_err *err)
{
	struct tw_err why;

	if (!err)
		return st;
	why = *err;
	return tw_fail(err, st, "table %s: %.120s", w->of->name, why.msg);
}

static enum tw_status change(
        struct walk *w, const struct tw_row_cursor *row, enum change kind, struct tw_err *err)
{
	enum tw_status st =
	        w->open ? TW_OK : tw_cat_begin(w->m->to, TW_SUBJECT_ACCESS, "", &w->db, err);

	if (st != TW_OK)
		return st;
	w->open++;
	st = change_row(w, row, kind, err);
	if (st != TW_OK)
		return name_table(w, commit(w, st, err), err);
	if (kind == DELETE)
		w->of->dropped++;
	else
		w->of->put++;
	return w->open < AT_ONCE ? TW_OK : commit(w, TW_OK, err);
}

/* --- merging both sides --- */

/* order: less than 0 the row is missing in the target, greater than 0 in the source. */
static enum tw_status handle_row(struct walk *w, int order, struct tw_err *err)
{
	const bool same = order == 0 && tw_row_cursor_same_row(&w->from, &w->to);

	if (w->pass == DROP)
		return order > 0 ? change(w, &w->to, DELETE, err) : TW_OK;
	if (same)
		return TW_OK;
	if (w->pass == PUT)
		return order > 0 ? TW_OK : change(w, &w->from, order ? INSERT : UPDATE, err);
	if (w->of->differ++ == 0)
		tw_row_cursor_position(
		        (order > 0 ? &w->to : &w->from), w->of->first, sizeof w->of->first);
	return TW_OK;
}

static enum tw_status add_to_hash(
        struct walk *w, gnutls_hash_hd_t sha, const struct tw_row_cursor *row, struct tw_err *err)
{
	enum tw_status st;

	if (w->pass != COMPARE)
		return TW_OK;
	tw_buf_clear(&w->row);
	st = tw_row_cursor_write(row, &w->row);
	if (st != TW_OK)
		return tw_fail(err, st, "no memory for a row");
	(void)gnutls_hash(sha, w->row.data, w->row.len);
	return TW_OK;
}

static enum tw_status step_from(struct walk *w, struct tw_err *err)
{
	enum tw_status st = add_to_hash(w, w->from_sha, &w->from, err);

	if (w->m->progress && w->from.rows % REPORT_EVERY == 0)
		w->m->progress(w->m->arg, w->pass == COMPARE ? "compare" : "bring", w->of->name,
		        w->from.rows);
	return st == TW_OK ? tw_row_cursor_next(&w->from, err) : st;
}

static enum tw_status step_to(struct walk *w, struct tw_err *err)
{
	enum tw_status st = add_to_hash(w, w->to_sha, &w->to, err);

	return st == TW_OK ? tw_row_cursor_next(&w->to, err) : st;
}

static enum tw_status pair(struct walk *w, struct tw_err *err)
{
	const int order = !w->from.there ? 1
	                  : !w->to.there ? -1
	                                 : tw_row_cursor_compare(&w->from, &w->to);
	enum tw_status st = handle_row(w, order, err);

	if (st == TW_OK && order <= 0)
		st = step_from(w, err);
	if (st == TW_OK && order >= 0)
		st = step_to(w, err);
	return st;
}

static bool has_rows(const struct walk *w)
{
	return w->to.there || (w->from.there && w->pass != DROP);
}

static enum tw_status merge_table(struct walk *w, struct tw_err *err)
{
	enum tw_status st = tw_row_cursor_next(&w->from, err);

	if (st == TW_OK)
		st = tw_row_cursor_next(&w->to, err);
	while (st == TW_OK && has_rows(w))
		st = pair(w, err);
	return commit(w, st, err);
}

/* --- a table --- */

static void end_side(
        gnutls_hash_hd_t sha, const struct tw_row_cursor *c, struct tw_migrate_side *ret)
{
	uint8_t hash[32];

	gnutls_hash_output(sha, hash);
	tw_sha256_hex(hash, ret->sha256);
	ret->rows = c->rows;
}

static enum tw_status begin_hashes(struct walk *w, struct tw_err *err)
{
	enum tw_status st;

	if (w->pass != COMPARE)
		return TW_OK;
	st = tw_sha256_begin(GNUTLS_DIG_SHA256, &w->from_sha, err);
	return st == TW_OK ? tw_sha256_begin(GNUTLS_DIG_SHA256, &w->to_sha, err) : st;
}

static enum tw_status walk_table(struct tw_migrate_rows *m, size_t i, enum pass pass,
        struct tw_cat_sides *sides, struct tw_err *err)
{
	const struct tw_table *t = &tw_tables[i];
	struct walk w = {.m = m, .of = &m->tables[i], .pass = pass};
	enum tw_status st;

	w.of->name = t->name;
	tw_buf_init(&w.row, ROW_BYTES);
	st = begin_hashes(&w, err);
	if (st == TW_OK)
		st = tw_row_cursor_open(&w.from, sides->from, t, err);
	if (st == TW_OK)
		st = tw_row_cursor_open(&w.to, sides->to, t, err);
	if (st == TW_OK)
		st = merge_table(&w, err);
	if (st == TW_OK && pass == COMPARE) {
		end_side(w.from_sha, &w.from, &w.of->from);
		end_side(w.to_sha, &w.to, &w.of->to);
	}
	if (pass != DROP)
		w.of->repaired = w.from.repaired;
	tw_row_cursor_close(&w.from);
	tw_row_cursor_close(&w.to);
	for (int k = 0; k < CHANGES; k++)
		tw_stmt_drop(w.prepared[k]);
	if (w.from_sha)
		gnutls_hash_deinit(w.from_sha, NULL);
	if (w.to_sha)
		gnutls_hash_deinit(w.to_sha, NULL);
	tw_buf_done(&w.row);
	return st;
}

/* --- all tables --- */

enum tw_status tw_catalogue_copy_rows(struct tw_migrate_rows *m, struct tw_err *err)
{
	struct tw_cat_sides sides = {.from = NULL};
	enum tw_status st = tw_cat_sides_open(m, false, &sides, err);

	for (size_t i = m->n; st == TW_OK && i-- > 0;)
		st = walk_table(m, i, DROP, &sides, err);
	for (size_t i = 0; st == TW_OK && i < m->n; i++)
		st = walk_table(m, i, PUT, &sides, err);
	if (st == TW_OK)
		st = tw_cat_copy_sequences(m, &sides, err);
	tw_cat_sides_close(m, &sides);
	return st;
}

enum tw_status tw_catalogue_compare(struct tw_migrate_rows *m, struct tw_err *err)
{
	struct tw_cat_sides sides = {.from = NULL};
	enum tw_status st = tw_cat_sides_open(m, true, &sides, err);

	for (size_t i = 0; st == TW_OK && i < m->n; i++) {
		m->tables[i].differ = 0;
		st = walk_table(m, i, COMPARE, &sides, err);
	}
	if (st == TW_OK)
		st = tw_cat_compare_sequences(&sides, err);
	tw_cat_sides_close(m, &sides);
	return st;
}

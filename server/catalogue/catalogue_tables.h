/*
 * catalogue_tables.h - all tables of the catalogue with their keys and columns, for copying and
 * comparing catalogues across engines, and for checking an existing catalogue.
 *
 * schema/catalogue.py derives the list from the migrations.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_TABLES_H
#define TW_CATALOGUE_TABLES_H

#include <stdbool.h>

#include "decoder/base/err.h"

struct tw_db;

enum {
	TW_COLUMNS_MAX = 64,
	TW_PAGE = 1000,    /* rows per read */
	TW_PAGE_LARGE = 32 /* of tables with large bytes */
};

enum tw_column_kind { TW_COLUMN_TEXT, TW_COLUMN_INT, TW_COLUMN_BYTES };

struct tw_column {
	const char *name;
	enum tw_column_kind kind;
	bool may_be_null;
};

struct tw_table {
	const char *name;
	unsigned n_key; /* number of key columns, which come first, in key order */
	unsigned page;
	unsigned n;
	const struct tw_column *columns;
};

/* The tables that are copied, each after all tables that its rows refer to; then the others, such
 * as used sign-in links. */
extern const struct tw_table tw_tables[];
extern const unsigned tw_tables_n, tw_tables_all_n;

/* TW_UNSUPPORTED if a table lacks a column or has an unknown one, though the schema's number is
 * this program's: a development version wrote it (catalogue_columns.c).  Names the first one. */
enum tw_status tw_cat_check_columns(struct tw_db *db, struct tw_err *err) TW_MUST_USE;
/* Equal for programs with the same tables and columns.  In PostgreSQL it is the comment of the
 * table catalogue_schema: an equal one saves a command reading all columns, which takes 3 ms. */
enum { TW_COLUMNS_SUM_BYTES = 17 };
void tw_cat_columns_sum(char ret[TW_COLUMNS_SUM_BYTES]);

#endif

/*
 * catalogue_tables.h - all tables of the catalogue with their keys and columns, for copying and
 * comparing catalogues across engines.
 *
 * A test compares the list with the schemas of both engines.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_TABLES_H
#define TW_CATALOGUE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/str.h"

enum { TW_COLUMNS_MAX = 64 };

struct tw_table {
	const char *name;
	unsigned n_key; /* number of key columns, which come first, in key order */
	unsigned page;  /* rows per read */
	/* Names separated by blanks; NAME:i is a number, NAME:b bytes, otherwise text; ? allows
	 * NULL. */
	const char *columns;
};

enum tw_column_kind { TW_COLUMN_TEXT, TW_COLUMN_INT, TW_COLUMN_BYTES };

struct tw_column {
	struct tw_str name;
	enum tw_column_kind kind;
	bool may_be_null;
};

struct tw_columns {
	unsigned n;
	struct tw_column of[TW_COLUMNS_MAX];
};

/* A table comes after all tables that its rows refer to. */
const struct tw_table *tw_tables(size_t *ret_n);
void tw_table_columns(const struct tw_table *t, struct tw_columns *ret);

#endif

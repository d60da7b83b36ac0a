/*
 * catalogue_tables.h - every table of the catalogue with its key and columns, for what copies or
 * compares whole catalogues whatever engines they are in.
 *
 * A test compares the list with the schemas of both engines.  Thread: any.
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
	unsigned n_key; /* the first columns are its key, in the order of the key */
	unsigned page;  /* rows to read at once */
	/* Names with a blank between; NAME:i a number, NAME:b bytes, else a text; with ? it may be
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

/* What a row refers to stands in a table before its own. */
const struct tw_table *tw_tables(size_t *ret_n);
void tw_table_columns(const struct tw_table *t, struct tw_columns *ret);

#endif

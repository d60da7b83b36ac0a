/*
 * catalogue_postgres_dialect.h - statements as catalogue*.c writes them, in PostgreSQL's words.
 *
 * Statements are written once, in what both engines know.  Where they differ, this turns SQLite's
 * word into PostgreSQL's, outside of quotes:
 *   ?1, ?           $1, $2, ...
 *   INDEXED BY i    nothing: a hint
 *   CROSS JOIN ON   JOIN ON: its order is a hint too
 *   max(a,b)        greatest(a,b); min: least
 *   x'ff'           '\xff'::bytea
 *   LIKE            ILIKE
 *   char(10)        chr(10)
 *   BEGIN           of one moment, and nothing is written
 *   BEGIN IMMEDIATE behind all other writers
 * And what has no common words is written in both, by TW_EITHER (catalogue_db.h).
 */
#ifndef TW_CATALOGUE_POSTGRES_DIALECT_H
#define TW_CATALOGUE_POSTGRES_DIALECT_H

#include "decoder/base/buf.h"

/* With a NUL behind it.  *ret_values: the highest place of a value. */
enum tw_status tw_postgres_sql(const char *sql, struct tw_buf *out, int *ret_values);

#endif

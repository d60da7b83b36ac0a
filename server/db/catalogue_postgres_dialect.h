/*
 * catalogue_postgres_dialect.h - translates the statements in catalogue*.c to PostgreSQL.
 *
 * Statements are written once.  Outside quotes, these SQLite constructs are translated:
 *   ?1, ?           $1, $2, ...
 *   INDEXED BY i    dropped: a hint
 *   CROSS JOIN ON   JOIN ON: its order is a hint too
 *   max(a,b)        greatest(a,b); min: least
 *   x'ff'           '\xff'::bytea
 *   LIKE            ILIKE
 *   char(10)        chr(10)
 *   BEGIN           a read-only transaction on one snapshot
 *   BEGIN IMMEDIATE waits for all other writers
 * TW_EITHER (catalogue_db.h) has both versions where there is no common form.
 */
#ifndef TW_CATALOGUE_POSTGRES_DIALECT_H
#define TW_CATALOGUE_POSTGRES_DIALECT_H

#include "decoder/base/buf.h"

/* NUL-terminated.  *ret_values: the highest number of a parameter. */
enum tw_status tw_postgres_sql(const char *sql, struct tw_buf *out, int *ret_values);

#endif

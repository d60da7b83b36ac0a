/*
 * catalogue_postgres.h - PostgreSQL as the catalogue's engine: catalogue_postgres.c has its
 * connections, catalogue_postgres_stmt.c statements.
 *
 * A connection that was lost is made anew when it is used next outside of a transaction; within one
 * everything fails until it is ended.  Who writes locks one row first
 * (catalogue_postgres_dialect.h), so that writers of all processes follow one another as SQLite's
 * do.
 */
#ifndef TW_CATALOGUE_POSTGRES_H
#define TW_CATALOGUE_POSTGRES_H

#include "server/db/catalogue_db.h"

/* Is it the address of a server, and no path? */
bool tw_db_is_postgres(const char *address);

/* postgres://USER@HOST:PORT/DATABASE; tw_db_close is owed. */
enum tw_status tw_db_postgres_open(const char *address, struct tw_db **ret, struct tw_err *err);
/* From here on this connection, however often it is made anew, has the catalogue as the only server
 * (alone), or as one of several; TW_BUSY when another has it otherwise. */
enum tw_status tw_postgres_hold(struct tw_db *db, bool alone, struct tw_err *err);
/* How often a connection of this process was found dead, or could not be made. */
uint64_t tw_postgres_times_lost(void);
bool tw_postgres_hurries(void); /* this thread: tw_catalogue_hurry */

#endif

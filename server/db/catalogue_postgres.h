/*
 * catalogue_postgres.h - PostgreSQL as the catalogue's engine: connections are in
 * catalogue_postgres.c, statements in catalogue_postgres_stmt.c.
 *
 * A lost connection is replaced at its next use outside a transaction; within one, everything fails
 * until the transaction is ended.  Writing transactions run concurrently.
 * Thread: of a connection, one at a time.
 */
#ifndef TW_CATALOGUE_POSTGRES_H
#define TW_CATALOGUE_POSTGRES_H

#include "server/db/catalogue_db.h"

/* A write transaction that sends nothing for this time is ended.  TW_POSTGRES_FILE_IDLE applies to
 * a transaction that waits for files and locks only what they belong to. */
#define TW_POSTGRES_IDLE      "2s"
#define TW_POSTGRES_LOCK      "3s" /* a writer's wait for another: longer than that */
#define TW_POSTGRES_FILE_IDLE "30s"

/* Whether it is a server's address rather than a path. */
bool tw_db_is_postgres(const char *address);

/* postgres://USER@HOST:PORT/DATABASE; close with tw_db_close. */
enum tw_status tw_db_postgres_open(const char *address, struct tw_db **ret, struct tw_err *err);
/* From now on this connection, also after reconnecting, holds the catalogue as its only server
 * (`exclusive`) or as one of several; TW_BUSY if another server holds it in a conflicting way, or
 * if its schema is not the program's: a newer version migrated it while this connection was lost.
 */
enum tw_status tw_postgres_hold(
        struct tw_db *db, bool exclusive, int64_t schema, struct tw_err *err);
/* Whether that schema was the reason. */
bool tw_postgres_is_migrated(const struct tw_db *db);
#define TW_POSTGRES_MIGRATED "a newer version has migrated it, stop this server"
/* Keeps servers from holding it until the transaction ends; TW_BUSY if one holds it. */
enum tw_status tw_postgres_exclude_servers(struct tw_db *db, struct tw_err *err);
/* Number of times that a connection of this process was found dead or could not be made. */
uint64_t tw_postgres_times_lost(void);
/* whether tw_catalogue_shorten_timeout is set in this thread */
bool tw_postgres_timeout_is_short(void);

#endif

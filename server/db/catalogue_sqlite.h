/*
 * catalogue_sqlite.h - the catalogue's engine in one file of this machine, and what only it has.
 */
#ifndef TW_CATALOGUE_SQLITE_H
#define TW_CATALOGUE_SQLITE_H

#include <sqlite3.h>

#include "server/db/catalogue_db.h"

enum tw_db_open {
	TW_DB_CREATE, /* and made where it is not there */
	TW_DB_WRITE,
	TW_DB_LOOK /* nothing is changed, not even its log */
};

/* tw_db_close is owed.  *ret_room: what its pages had for their sums; NULL: not asked. */
enum tw_status tw_db_sqlite_open(const char *path, enum tw_db_open how, struct tw_db **ret,
        int *ret_room, struct tw_err *err);
/* How long a writer waits for another; TW_DB_WAIT_MS unless told. */
enum { TW_DB_WAIT_MS = 10000 };
void tw_db_sqlite_wait(struct tw_db *db, int ms);
/* The library's own connection. */
sqlite3 *tw_db_sqlite(struct tw_db *db);

#endif

/*
 * catalogue_sqlite.h - the catalogue's engine in one file of this machine, and what only it has.
 */
#ifndef TW_CATALOGUE_SQLITE_H
#define TW_CATALOGUE_SQLITE_H

#include <sqlite3.h>

#include "catalogue_db.h"

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

/* Room for the sums at the end of each page (catalogue_sums.h), in what is new and in a copy; what
 * is there already gets it when it is rewritten.  A rewriting or copying forgets this. */
void tw_db_reserve_room(struct tw_db *db);
/* What its pages have, or are to have after tw_db_reserve_room; 0 where there are none yet. */
int tw_db_room(struct tw_db *db);

#endif

/* catalogue_sqlite.h - SQLite as the catalogue's engine, and its specific functions. */
#ifndef TW_CATALOGUE_SQLITE_H
#define TW_CATALOGUE_SQLITE_H

#include <sqlite3.h>

#include "server/db/catalogue_db.h"

enum tw_db_open {
	TW_DB_CREATE, /* created if missing */
	TW_DB_WRITE,
	TW_DB_READ_ONLY /* read-only: not even the log changes */
};

/* Close with tw_db_close.  *ret_reserved: the bytes that its pages reserve for checksums; may be
 * NULL. */
enum tw_status tw_db_sqlite_open(const char *path, enum tw_db_open how, struct tw_db **ret,
        int *ret_reserved, struct tw_err *err);
/* How long a writer waits for another; the default is TW_DB_WAIT_MS. */
enum { TW_DB_WAIT_MS = 10000 };
void tw_db_sqlite_wait(struct tw_db *db, int ms);
/* SQLite's own handle. */
sqlite3 *tw_db_sqlite(struct tw_db *db);

#endif

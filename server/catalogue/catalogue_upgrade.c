/*
 * catalogue_upgrade.c - migrates the schema of a catalogue in SQLite.
 *
 * Migrations are numbered files; PRAGMA user_version is the number of the last one applied.  All
 * missing ones are applied in one transaction, after a copy of the catalogue was made.  If several
 * processes start at once, one migrates under a lock of the folder, and the others wait for it.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/db/catalogue_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "server/db/catalogue_sums.h"

enum { PATH_BYTES = 1500 };

int tw_cat_last_schema(const struct tw_embedded *schema)
{
	int last = 0;

	while (schema[last].name)
		last++;
	return last;
}

enum tw_status tw_cat_unknown_schema(int have, const struct tw_embedded *schema, struct tw_err *err)
{
	if (have < 1)
		return tw_fail(err, TW_UNSUPPORTED,
		        "the database has tables but no schema number: it is not a catalogue of "
		        "tracewell");
	return tw_fail(err, TW_UNSUPPORTED,
	        "the catalogue has schema %d, this program knows up to %d: it was written by a "
	        "newer tracewell, or by one before the first release",
	        have, tw_cat_last_schema(schema));
}

enum tw_status tw_cat_old_schema(int have, const struct tw_embedded *schema, struct tw_err *err)
{
	return tw_fail(err, TW_CONFLICT,
	        "the catalogue has schema %d, this program needs %d: start its server, which "
	        "migrates the catalogue, or use the version that wrote it",
	        have, tw_cat_last_schema(schema));
}

static enum tw_status schema_version(struct tw_db *db, int *ret, struct tw_err *err)
{
	int64_t version = 0;
	enum tw_status st = tw_cat_get_int(db, &version, err, "PRAGMA user_version", "");

	*ret = (int)version;
	return st;
}

static enum tw_status apply(
        struct tw_db *db, const struct tw_embedded *file, int number, struct tw_err *err)
{
	char set[64];
	enum tw_status st;

	(void)snprintf(set, sizeof set, "PRAGMA user_version=%d", number);
	st = tw_db_run(db, (const char *)file->data, err);
	return st == TW_OK ? tw_db_run(db, set, err) : st;
}

/* The catalogue's folder. */
static enum tw_status folder_of(const char *path, char ret[PATH_BYTES], struct tw_err *err)
{
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) : 0;

	if (len + 1 >= PATH_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "the data folder's path is too long");
	(void)snprintf(ret, PATH_BYTES, "%.*s", len, path);
	if (len == 0)
		(void)snprintf(ret, PATH_BYTES, "%s", slash ? "/" : ".");
	return TW_OK;
}

/* One process migrates at a time; the others wait here.  Returns -1 on a file system without
 * locks. */
static int lock_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX) != 0)
		if (errno != EINTR)
			break;
	return fd;
}

/* Copies the catalogue to catalogue.db.schema-N, for a downgrade to the program that wrote it. */
static enum tw_status keep_old(struct tw_catalogue *c, int have, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof path, "%s.schema-%d", c->path, have) >= (int)sizeof path)
		return tw_fail(err, TW_BAD_REQUEST, "the data folder's path is too long");
	(void)unlink(path);
	return tw_cat_exec(c->writers[0].db, NULL, err, "VACUUM INTO ?", "t", path);
}

/* A connection opened before another process created the catalogue does not know that its pages
 * have reserved space, so a new one checks. */
static bool has_space(const struct tw_catalogue *c)
{
	struct tw_db *db = NULL;
	int reserved = 0;
	enum tw_status st = tw_db_sqlite_open(c->path, TW_DB_WRITE, &db, &reserved, NULL);

	tw_db_close(db);
	return st == TW_OK && reserved == TW_SUMS_BYTES;
}

static enum tw_status has_tables(struct tw_db *db, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, "SELECT count(*) FROM sqlite_master", "");

	*ret = n > 0;
	return st;
}

static enum tw_status migrate(
        struct tw_catalogue *c, const struct tw_embedded *schema, struct tw_err *err)
{
	const int last = tw_cat_last_schema(schema);
	int have = 0;
	bool foreign = false;
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = schema_version(w, &have, err);
	if (st == TW_OK && have < 1)
		st = has_tables(w, &foreign, err);
	if (st == TW_OK && (foreign || have < 0 || have > last))
		st = tw_cat_unknown_schema(have, schema, err);
	for (int i = have; st == TW_OK && i < last; i++)
		st = apply(w, &schema[i], i + 1, err);
	return tw_cat_end(c, w, st, err);
}

/* Call with the folder's lock held.  Another process may have done it already. */
static enum tw_status copy_and_migrate(
        struct tw_catalogue *c, const struct tw_embedded *schema, struct tw_err *err)
{
	int have = 0;
	enum tw_status st = schema_version(c->writers[0].db, &have, err);

	if (st == TW_OK && have < tw_cat_last_schema(schema))
		st = keep_old(c, have, err);
	return st == TW_OK ? migrate(c, schema, err) : st;
}

static enum tw_status upgrade(
        struct tw_catalogue *c, const struct tw_embedded *schema, struct tw_err *err)
{
	char folder[PATH_BYTES];
	enum tw_status st = folder_of(c->path, folder, err);
	int lock;

	if (st != TW_OK)
		return st;
	lock = lock_folder(folder);
	st = copy_and_migrate(c, schema, err);
	if (lock >= 0)
		(void)close(lock);
	return st;
}

enum tw_status tw_cat_upgrade(struct tw_catalogue *c, const struct tw_embedded *schema,
        int reserved, bool may_migrate, struct tw_err *err)
{
	const int last = tw_cat_last_schema(schema);
	int have = 0;
	enum tw_status st = schema_version(c->writers[0].db, &have, err);

	if (st != TW_OK)
		return st;
	if (have > 0 && have <= last && reserved != TW_SUMS_BYTES && !has_space(c))
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "the catalogue's first page is damaged: restore a backup");
	if (have > 0 && have < last)
		return may_migrate ? upgrade(c, schema, err) : tw_cat_old_schema(have, schema, err);
	return migrate(c, schema, err);
}

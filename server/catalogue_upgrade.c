/*
 * catalogue_upgrade.c - a catalogue of an earlier program is copied, given sums, and its schema
 * brought forward.
 *
 * Migrations are numbered files applied in order by PRAGMA user_version, each in its own
 * transaction.  Several processes may come at once: one upgrades, under a lock of the folder, and
 * the others wait and find it done.
 */
#include "catalogue_internal.h"
#include "catalogue_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "catalogue_sums.h"
#include "embedded.h"

extern const struct tw_embedded tw_catalogue_schema[];

enum { PATH_BYTES = 1500, SCHEMA_WITH_SUMS = 16 };

static enum tw_status schema_version(struct tw_db *db, int *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, "PRAGMA user_version", "");

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (int)tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static enum tw_status apply(struct tw_catalogue *c, int number, struct tw_err *err)
{
	char set[64];
	enum tw_status st;

	(void)snprintf(set, sizeof set, "PRAGMA user_version=%d", number + 1);
	st = tw_db_run(c->writer, (const char *)tw_catalogue_schema[number].data, err);
	return st == TW_OK ? tw_db_run(c->writer, set, err) : st;
}

static int known_schema(void)
{
	int known = 0;

	while (tw_catalogue_schema[known].name)
		known++;
	return known;
}

/* The folder that a catalogue lies in. */
static enum tw_status folder_of(const char *path, char ret[PATH_BYTES], struct tw_err *err)
{
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) : 0;

	if (len + 1 >= PATH_BYTES)
		return tw_fail(
		        err, TW_BAD_REQUEST, TW_NO_OFFSET, "the data folder's path is too long");
	(void)snprintf(ret, PATH_BYTES, "%.*s", len, path);
	if (len == 0)
		(void)snprintf(ret, PATH_BYTES, "%s", slash ? "/" : ".");
	return TW_OK;
}

/* Only one process upgrades at a time; the rest wait here.  -1 on a file system without locks. */
static int lock_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX) != 0)
		if (errno != EINTR)
			break;
	return fd;
}

/* Before an old catalogue is changed it is copied to catalogue.db.schema-N: the way back to the
 * program that wrote it. */
static enum tw_status keep_old(struct tw_catalogue *c, int have, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof path, "%s.schema-%d", c->path, have) >= (int)sizeof path)
		return tw_fail(
		        err, TW_BAD_REQUEST, TW_NO_OFFSET, "the data folder's path is too long");
	(void)unlink(path);
	return tw_cat_exec(c->writer, NULL, err, "VACUUM INTO ?", "t", path);
}

/* Written anew, with room for sums, by way of a file that nobody sees in the same folder: a large
 * catalogue goes neither into memory nor into a small /tmp. */
static enum tw_status rewrite(struct tw_catalogue *c, const char *folder, struct tw_err *err)
{
	static const char sql[] = "PRAGMA temp_store=FILE; VACUUM; PRAGMA temp_store=MEMORY;"
	                          "PRAGMA wal_checkpoint(TRUNCATE)";
	char *before = sqlite3_temp_directory;
	enum tw_status st;

	tw_db_reserve_room(c->writer);
	sqlite3_temp_directory = sqlite3_mprintf("%s", folder);
	st = tw_db_run(c->writer, sql, err);
	sqlite3_free(sqlite3_temp_directory);
	sqlite3_temp_directory = before;
	return st;
}

/* As one sees it who comes now: a connection does not notice that another process gave room. */
static bool has_room(const struct tw_catalogue *c)
{
	struct tw_db *db = NULL;
	int room = 0;
	enum tw_status st = tw_db_sqlite_open(c->path, TW_DB_WRITE, &db, &room, NULL);

	tw_db_close(db);
	return st == TW_OK && room == TW_SUMS_BYTES;
}

/* A catalogue of a schema that always had sums, without, has a damaged first page. */
static enum tw_status judge_room(struct tw_catalogue *c, int have, struct tw_err *err)
{
	if (have < SCHEMA_WITH_SUMS || have > known_schema() || has_room(c))
		return TW_OK;
	return tw_fail(
	        err, TW_CORRUPT, 0, "the catalogue's first page is damaged: restore a backup");
}

static enum tw_status migrate(struct tw_catalogue *c, struct tw_err *err)
{
	const int known = known_schema();
	int have = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = schema_version(c->writer, &have, err);
	if (st == TW_OK && have > known)
		st = tw_fail(err, TW_UNSUPPORTED, TW_NO_OFFSET,
		        "the catalogue has schema %d, this program knows up to %d: it was written "
		        "by a newer tracewell",
		        have, known);
	for (int i = have; st == TW_OK && i < known; i++)
		st = apply(c, i, err);
	return tw_cat_end(c, st, err);
}

/* Under the folder's lock.  Another process may have been quicker. */
static enum tw_status bring_forward(struct tw_catalogue *c, const char *folder, struct tw_err *err)
{
	int have = 0;
	enum tw_status st = schema_version(c->writer, &have, err);

	if (st == TW_OK)
		st = judge_room(c, have, err);
	if (st == TW_OK && have < known_schema())
		st = keep_old(c, have, err);
	if (st == TW_OK && have < SCHEMA_WITH_SUMS && !has_room(c))
		st = rewrite(c, folder, err);
	return st == TW_OK ? migrate(c, err) : st;
}

static enum tw_status upgrade(struct tw_catalogue *c, struct tw_err *err)
{
	char folder[PATH_BYTES];
	enum tw_status st = folder_of(c->path, folder, err);
	int lock;

	if (st != TW_OK)
		return st;
	lock = lock_folder(folder);
	st = bring_forward(c, folder, err);
	if (lock >= 0)
		(void)close(lock);
	return st;
}

enum tw_status tw_cat_upgrade(struct tw_catalogue *c, int room, struct tw_err *err)
{
	int have = 0;
	enum tw_status st = schema_version(c->writer, &have, err);

	if (st == TW_OK && have > 0 && have < known_schema())
		return upgrade(c, err);
	if (st == TW_OK && room != TW_SUMS_BYTES)
		st = judge_room(c, have, err);
	return st == TW_OK ? migrate(c, err) : st;
}

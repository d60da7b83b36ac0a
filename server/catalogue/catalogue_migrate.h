/*
 * catalogue_migrate.h - copies a complete catalogue into another one, with any engines.
 *
 * Both are read in key order, table by table: missing and different rows are written to the target,
 * extra rows are deleted.  It can be repeated at any time, after an interruption or when the
 * source has changed, and then copies only the differences.  Until both are verified to be equal,
 * the target is recorded as incomplete and cannot be served (tw_catalogue_migrating).
 * Thread: the caller's.
 */
#ifndef TW_CATALOGUE_MIGRATE_H
#define TW_CATALOGUE_MIGRATE_H

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

enum { TW_SOURCE_ID = 64, TW_MIGRATE_FIRST = 120 };

struct tw_migrate_side {
	uint64_t rows;
	char sha256[TW_SHA256_HEX]; /* of all rows in key order */
};

struct tw_migrate_table {
	const char *name;
	uint64_t put, dropped;
	uint64_t repaired;               /* texts of the source with invalid UTF-8 */
	struct tw_migrate_side from, to; /* from tw_catalogue_compare */
	uint64_t differ;
	char first[TW_MIGRATE_FIRST]; /* the key of the first different row */
};

struct tw_migrate_rows {
	struct tw_catalogue *from, *to;
	/* All tables, in the order of tw_tables. */
	struct tw_migrate_table *tables;
	size_t n;
	void (*progress)(void *arg, const char *doing, const char *table, uint64_t rows);
	void *arg;
};

/* Id of the first project, which is different in every catalogue.  "" if there is none. */
enum tw_status tw_catalogue_source_id(
        struct tw_catalogue *c, char ret[TW_SOURCE_ID], struct tw_err *err) TW_MUST_USE;

/* Whether it is the target of an unfinished migration. */
enum tw_status tw_catalogue_migrating(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Records that a migration has begun.  TW_CONFLICT unless the catalogue is empty or an unfinished
 * copy of the same source. */
enum tw_status tw_catalogue_begin_migration(
        struct tw_catalogue *to, const char *source, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_end_migration(struct tw_catalogue *to, struct tw_err *err) TW_MUST_USE;
/* Writes an entry to the source's audit log, and so to the target's. */
enum tw_status tw_catalogue_note_migration(
        struct tw_catalogue *from, const char *to_engine, struct tw_err *err) TW_MUST_USE;

/* Blocks writers; reading continues.  TW_BUSY if another writer does not finish in time.  Always
 * call tw_catalogue_unblock_writers, which reports whether the block held all the time. */
enum tw_status tw_catalogue_block_writers(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_still_held(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_unblock_writers(struct tw_catalogue *c, struct tw_err *err);

/* Makes the rows of `to` equal to a snapshot of `from`, and continues its number sequences. */
enum tw_status tw_catalogue_copy_rows(struct tw_migrate_rows *m, struct tw_err *err) TW_MUST_USE;
/* Reads all of both, each from a snapshot.  TW_OK also if they differ. */
enum tw_status tw_catalogue_compare(struct tw_migrate_rows *m, struct tw_err *err) TW_MUST_USE;

#endif

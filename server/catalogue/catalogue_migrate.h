/*
 * catalogue_migrate.h - a whole catalogue brought into another one, of whichever engines.
 *
 * Both are walked in the order of their keys, table by table: what the other lacks or has otherwise
 * is put, what it has too much is dropped.  So it is done again at any time, after it was cut short
 * or when the source has changed since, and each time only does what is left.  Until the two are
 * found alike the target has a mark, and whoever would serve it is refused
 * (tw_catalogue_migrating).  Thread: the caller's.
 */
#ifndef TW_CATALOGUE_MIGRATE_H
#define TW_CATALOGUE_MIGRATE_H

#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

enum { TW_SOURCE_ID = 64, TW_MIGRATE_FIRST = 120 };

struct tw_migrate_side {
	uint64_t rows;
	char sha256[TW_SHA256_HEX]; /* of all rows in the order of their key */
};

struct tw_migrate_table {
	const char *name;
	uint64_t put, dropped;
	uint64_t mended;                 /* texts of the source with bytes that are no UTF-8 */
	struct tw_migrate_side from, to; /* by tw_catalogue_compare */
	uint64_t differ;
	char first[TW_MIGRATE_FIRST]; /* the key of the first row that differs */
};

struct tw_migrate_rows {
	struct tw_catalogue *from, *to;
	/* Of all tables, in the order of tw_tables; `at` goes through them. */
	struct tw_migrate_table *tables;
	size_t n;
	void (*progress)(void *arg, const char *doing, const char *table, uint64_t rows);
	void *arg;
};

/* Of the first project: another catalogue has another.  "" where there is none. */
enum tw_status tw_catalogue_source_id(
        struct tw_catalogue *c, char ret[TW_SOURCE_ID], struct tw_err *err) TW_MUST_USE;

/* Is it the target of a migration that is not done? */
enum tw_status tw_catalogue_migrating(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The mark.  TW_CONFLICT unless it is empty, or half a copy of the same source. */
enum tw_status tw_catalogue_mark_migrating(
        struct tw_catalogue *to, const char *source, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_unmark_migrating(
        struct tw_catalogue *to, struct tw_err *err) TW_MUST_USE;
/* On the source's record, and so on the target's. */
enum tw_status tw_catalogue_note_migration(
        struct tw_catalogue *from, const char *to_engine, struct tw_err *err) TW_MUST_USE;

/* From here on nobody writes to it; reading goes on.  TW_BUSY when somebody writes for too long.
 * tw_catalogue_release is owed, which says whether it was held all the time. */
enum tw_status tw_catalogue_hold(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_still_held(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_release(struct tw_catalogue *c, struct tw_err *err);

/* Makes the rows of `to` those that `from` has at one moment, and numbers that are given in a row
 * go on where they were. */
enum tw_status tw_catalogue_bring(struct tw_migrate_rows *m, struct tw_err *err) TW_MUST_USE;
/* Reads all of both, each as it stands at one moment.  TW_OK also when they differ. */
enum tw_status tw_catalogue_compare(struct tw_migrate_rows *m, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * catalogue_internal.h - connections and statements, shared by the catalogue's files.
 *
 * Writes go through one connection under a mutex, in BEGIN IMMEDIATE
 * transactions; reads use a pool of read-only connections, a snapshot each.
 * Values are bound by a string of types: t text (NULL is ''), i int64_t,
 * h 32-byte hash.  Nothing is ever pasted into SQL but constants of this code.
 */
#ifndef TW_CATALOGUE_INTERNAL_H
#define TW_CATALOGUE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "catalogue.h"

enum { TW_CATALOGUE_READERS = 8, TW_CATALOGUE_PARTS = 16 };

struct tw_cat_arrival; /* an upload on its way in; catalogue_arrive.c */

struct tw_cat_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tw_cat_arrival *first;
	struct tw_cat_arrival **last; /* where the next one is hung */
	bool writing;
};

struct tw_catalogue {
	char *path;
	pthread_mutex_t write_lock;
	sqlite3 *writer;
	pthread_mutex_t pool_lock;
	sqlite3 *idle[TW_CATALOGUE_READERS];
	unsigned n_idle;
	struct tw_cat_queue arrivals;
};

int64_t tw_cat_now_ms(void);

/* TW_FULL, TW_BUSY, TW_NOMEM, TW_CORRUPT or TW_IO by what SQLite says. */
enum tw_status tw_cat_fail(sqlite3 *db, struct tw_err *err);

/* Locks, begins; commits when st is TW_OK, else rolls back; gives st or why the commit failed. */
enum tw_status tw_cat_begin(struct tw_catalogue *c, struct tw_err *err);
enum tw_status tw_cat_end(struct tw_catalogue *c, enum tw_status st, struct tw_err *err);

/* A read connection; tw_cat_done is owed. */
enum tw_status tw_cat_reader(struct tw_catalogue *c, sqlite3 **ret, struct tw_err *err);
void tw_cat_done(struct tw_catalogue *c, sqlite3 *db);

/* Prepares and binds.  tw_cat_row steps: true for a row; false at the end or on failure, which
 * tw_cat_close tells. */
struct tw_cat_query {
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int rc;
};
enum tw_status tw_cat_query(struct tw_cat_query *q, sqlite3 *db, struct tw_err *err,
        const char *sql, const char *types, ...);
bool tw_cat_row(struct tw_cat_query *q);
enum tw_status tw_cat_close(struct tw_cat_query *q, struct tw_err *err);
/* Closes and gives st, or when that is TW_OK how the query itself ended. */
enum tw_status tw_cat_close_after(struct tw_cat_query *q, enum tw_status st, struct tw_err *err);
void tw_cat_bind_text(struct tw_cat_query *q, int at, const char *text);
void tw_cat_bind_int(struct tw_cat_query *q, int at, int64_t v);

/* Runs to the end; *ret_changed (may be NULL) rows changed. */
enum tw_status tw_cat_exec(
        sqlite3 *db, int *ret_changed, struct tw_err *err, const char *sql, const char *types, ...);

int64_t tw_cat_int(const struct tw_cat_query *q, int col);
/* A copy in the arena, "" for NULL; NULL when memory is short. */
const char *tw_cat_text(const struct tw_cat_query *q, int col, struct tw_arena *a);

/* Puts the counts of a trace's names into its row and its build's sums; NULL takes them out. */
enum tw_status tw_cat_set_names(sqlite3 *db, const char *project_id, const char *trace_id,
        const struct tw_name_counts *counts, struct tw_err *err);
/* The traces of a build are to be counted again: a mapping came. */
enum tw_status tw_cat_recount(
        sqlite3 *db, const char *project_id, const char *build_id, struct tw_err *err);

/* Those of the n contents that nothing refers to any more, copied into the arena. */
enum tw_status tw_cat_unused_blobs(sqlite3 *db, const char *const *sha256, size_t n,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err);

#endif

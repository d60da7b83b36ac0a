/*
 * catalogue.h - the server's database: opening it, its locks and leases, its health and copies. The
 * rows are in a header per subject, in access/, traces/, fleet/, anr/, notify/ and storage/.
 *
 * One database, SQLite's data/catalogue.db (WAL, synchronous=FULL) or one in PostgreSQL (engines:
 * catalogue_db.h).  This interface contains no SQL.  Every table's key starts with project_id and
 * every lookup takes it, so that no caller reaches another project's rows (I11).  Ids are ULIDs
 * made here. Strings in rows are copies in the arena passed in.  One transaction writes at a time,
 * with several servers up to eight per server; readers do not wait for writers.
 * Several processes may open it (`tracewell key create` while a server runs).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_H
#define TW_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_catalogue;

/* Opens or creates the catalogue at a path or postgres://..., and applies migrations
 * (schema/catalogue*).  Refuses a schema newer than this binary's (TW_UNSUPPORTED), and in
 * PostgreSQL a migration while a server uses it (TW_BUSY). */
enum tw_status tw_catalogue_open(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* The same for a server: SQLite's file is opened only if no other server uses it (TW_BUSY). */
enum tw_status tw_catalogue_open_to_serve(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
/* Locks SQLite's file at path for a server or backup until *ret_fd is closed.  The record lock on
 * path.lock ends with the process and is not inherited by children, so a killed server can restart
 * immediately.  TW_BUSY, without a message: locked by another process. */
enum tw_status tw_catalogue_hold_file(
        const char *path, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* For commands, which may run while a server of an earlier version does: refuses an older schema
 * (TW_CONFLICT) instead of migrating it. */
enum tw_status tw_catalogue_open_current(
        const char *path, struct tw_catalogue **ret, struct tw_err *err) TW_MUST_USE;
struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c);
/* "sqlite" or "postgresql". */
const char *tw_catalogue_engine(const struct tw_catalogue *c);
/* Registers a server until the catalogue is closed, as the only one or as one of several.  TW_BUSY
 * if another server is registered in a conflicting way; TW_BAD_REQUEST: several with SQLite. */
enum tw_status tw_catalogue_serve(
        struct tw_catalogue *c, bool several, struct tw_err *err) TW_MUST_USE;
/* Whether a server is registered in PostgreSQL.  Always false with SQLite: use
 * tw_data_catalogue_in_use. */
enum tw_status tw_catalogue_is_served(
        struct tw_catalogue *c, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Whether other servers may use it. */
bool tw_catalogue_is_shared(const struct tw_catalogue *c);
/* Identity of a shared catalogue: unique, and fixed while its row exists. */
enum tw_status tw_catalogue_identity(
        struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err) TW_MUST_USE;
/* Records the location of its files: the data folder with that id, or a store (s3://...).
 * TW_CONFLICT if they are in a location other than `instead` ("" none). */
enum tw_status tw_catalogue_take_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* Whether they are in one of the two, or not stored yet.  TW_CONFLICT as above; "" none. */
enum tw_status tw_catalogue_may_have_folder(struct tw_catalogue *c, const char *folder,
        const char *instead, struct tw_err *err) TW_MUST_USE;
/* From now on, commits of this thread succeed only while there(arg) is true: until its commit,
 * another server may delete files that the new rows are the first to refer to.  NULL: no condition.
 * A refused commit fails with TW_IO and changes nothing. */
void tw_catalogue_only_while(bool (*there)(void *arg), void *arg);
/* Takes or renews the lease `what` for this owner.  A single server always has it. */
enum tw_status tw_catalogue_take_lease(struct tw_catalogue *c, const char *what, const char *owner,
        int64_t lease_ms, bool *ret, struct tw_err *err) TW_MUST_USE;
/* A named lock of a shared catalogue, shared or exclusive, without waiting.
 * *ret_session is needed to unlock; 0: it is held by another. */
enum tw_status tw_catalogue_key_lock(struct tw_catalogue *c, const char *name, bool exclusive,
        uint64_t *ret_session, struct tw_err *err) TW_MUST_USE;
/* Whether an exclusive lock is still held; sends a query. */
enum tw_status tw_catalogue_key_held(struct tw_catalogue *c, const char *name, uint64_t session,
        bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* *ret_held false: it had already been lost. */
enum tw_status tw_catalogue_key_unlock(struct tw_catalogue *c, const char *name, bool exclusive,
        uint64_t session, bool *ret_held, struct tw_err *err) TW_MUST_USE;
/* Adds changes of counters to their rows, in the background. */
enum tw_status tw_catalogue_counts_add(struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* Calls drop if nothing refers to the content, while no other connection can start to. */
enum tw_status tw_catalogue_unless_used(struct tw_catalogue *c, const char *sha256,
        enum tw_status (*drop)(void *arg, const char *sha256, struct tw_err *err), void *arg,
        struct tw_err *err) TW_MUST_USE;
/* A write transaction without visible changes.  In SQLite it writes a page and syncs it. */
enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err);

/* --- health (catalogue_health.c): health.h probes it, transactions report their result --- */

/* Reads one row, with a short time limit.  Writes nothing.  TW_BUSY also if the database is
 * read-only, like a replica. */
enum tw_status tw_catalogue_probe(struct tw_catalogue *c, bool *ret_writable, struct tw_err *err);
/* The result of the last write transactions, from memory.  Not TW_OK: the last one failed for a
 * reason that affects other transactions too (disk, connection), or one has been in progress for
 * long. */
enum tw_status tw_catalogue_writes(struct tw_catalogue *c, struct tw_err *err);
/* Writes again after a failed write, so that recovery is noticed even without other writes.  Does
 * nothing after a successful write, and in PostgreSQL, where every server writes all the time. */
void tw_catalogue_write_again(struct tw_catalogue *c);
/* Checkpoints SQLite's log, which keeps its disk space. */
void tw_catalogue_checkpoint(struct tw_catalogue *c);
/* Keeps that space when the catalogue is closed, for the next start. */
void tw_catalogue_keep_log(struct tw_catalogue *c);

/* For a copy: later changes are not recorded in the audit log. */
void tw_catalogue_stop_record(struct tw_catalogue *c);
/* Writes a snapshot into a new file at path; the caller makes it durable.  Writers are not
 * blocked. */
enum tw_status tw_catalogue_copy(
        struct tw_catalogue *c, const char *path, struct tw_err *err) TW_MUST_USE;
/* The engine's own check of the whole database, and of the traces' ids and stored JSON; calls
 * `wrong` with each message. */
enum tw_status tw_catalogue_verify(struct tw_catalogue *c,
        void (*wrong)(void *arg, const char *text), void *arg, struct tw_err *err) TW_MUST_USE;

/* --- read-only inspection: no migration, and no lock that affects a server --- */

struct tw_catalogue_facts {
	int schema, known_schema;       /* of the file; of this program */
	char differs[200];              /* how its tables differ from this program's; "": they do
	                                 * not.  The members below are 0 if the schema differs */
	int64_t newest_ms;              /* of traces and keys, Unix ms */
	int64_t oldest_job_ms;          /* queued since, 0: none */
	uint64_t recent, recent_failed; /* traces of the last day that ended, and that failed */
	char recent_why[200];           /* the most frequent error */
	uint64_t unnamed_builds;        /* without a mapping, with ids in their traces */
	char unnamed_build[128];        /* one of them, with the most traces */
	uint64_t readable_builds;       /* without a mapping, with names in their traces */
	uint64_t quarantined;
};
/* TW_CORRUPT if it is not a database. */
enum tw_status tw_catalogue_read_facts(const char *path, int64_t now_ms,
        struct tw_catalogue_facts *ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * catalogue_internal.h - connections and statements, shared by the catalogue's files.
 *
 * Writes are transactions on a writing connection: SQLite has one, each of several servers on
 * PostgreSQL a few (catalogue_writer.c).  Reads use a pool of read-only connections, with one
 * snapshot each (in PostgreSQL one per statement, unless they begin a transaction). Values are
 * bound by a string of types: t text (NULL is ''), i int64_t, h 32-byte hash, b const struct tw_str
 * * of bytes that must stay valid until the query is closed, a const struct tw_cat_array *.  Only
 * constants of this code become part of the SQL text.
 */
#ifndef TW_CATALOGUE_INTERNAL_H
#define TW_CATALOGUE_INTERNAL_H

#include <pthread.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/base/embedded.h"
#include "server/base/thread/fair.h"
#include "server/base/thread/turn_lock.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/db/catalogue_db.h"
#include "server/db/commit_gate.h"

struct tw_blob_list;
struct tw_build_row;
struct tw_catalogue;
struct tw_libraries;
struct tw_used_libraries;
struct tw_mapping_ids;
struct tw_mapping_sent;
struct tw_name_counts;
struct tw_named_trace;
struct tw_rename;
struct tw_trace_row;

enum {
	TW_CATALOGUE_READERS = 8,
	TW_CATALOGUE_OUT = 32,
	TW_CATALOGUE_WRITERS = 8, /* of each of several servers; otherwise there is one */
	TW_CATALOGUE_PARTS = 16
};

struct tw_cat_arrival; /* an upload being added; catalogue_commit_upload.c */

/* Statements for each upload, which stay prepared. */
enum tw_cat_prepared {
	TW_PREPARED_BY_KEY,
	TW_PREPARED_BY_CONTENT,
	TW_PREPARED_BY_TIME,
	TW_PREPARED_OLD,
	TW_PREPARED_TRACE,
	TW_PREPARED_PART,
	TW_PREPARED_BUILD,
	TW_PREPARED_JOB,
	TW_PREPARED_N
};

struct tw_cat_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tw_cat_arrival *first;
	struct tw_cat_arrival **last; /* where the next one is linked */
	bool writing;
	int64_t batch; /* of the last transaction; 0: unknown yet */
};

struct tw_cat_writer {
	struct tw_db *db; /* NULL: not connected yet */
	bool taken;
	bool one;         /* in use for a statement without BEGIN */
	int64_t began_ms; /* monotonic, of its transaction; 0: none */
	struct tw_stmt *prepared[TW_PREPARED_N];
};

struct tw_cat_writes { /* results of write transactions; catalogue_health.c */
	pthread_mutex_t lock;
	int64_t ended_ms; /* of the last one that shows the state of the database; 0: none yet */
	struct tw_err last;
};

struct tw_cat_lock_request;
struct tw_cat_locker { /* catalogue_key_lock.c */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tw_cat_lock_request *first, **last; /* where the next one is linked */
	unsigned held;
	bool running;     /* a thread uses db and seed */
	struct tw_db *db; /* NULL until used */
	uint64_t seed;
};

struct tw_catalogue {
	char *path;
	struct tw_cat_writes writes;
	struct tw_turn_lock write_lock;                     /* as many slots as writers */
	pthread_mutex_t writers_lock;                       /* of which are taken */
	struct tw_cat_writer writers[TW_CATALOGUE_WRITERS]; /* the first is always there */
	unsigned n_writers;                                 /* the most that may be connected */
	struct tw_db *held;                                 /* of tw_catalogue_block_writers */
	struct tw_db *renewer; /* NULL: none yet; used by the thread that renews claims */
	pthread_mutex_t pool_lock;
	struct tw_db *idle[TW_CATALOGUE_READERS];
	unsigned n_idle, n_out; /* n_out: in use */
	pthread_cond_t given_back;
	bool shared;     /* by several servers */
	int serve_lock;  /* SQLite: descriptor of the lock of the only server; -1: not held */
	bool adds_drops; /* files are in a store (file_drop.h) */
	struct tw_cat_locker locker;
	struct tw_cat_queue arrivals;
	bool unrecorded; /* a copy: repairs in it are not logged */
	struct {
		pthread_mutex_t lock;     /* held while a job is claimed */
		char served[TW_ID_BYTES]; /* the project of the last claim */
		struct tw_fair fair;      /* decoder or compiler time */
	} turns[TW_QUEUES];
};

/* A statement for either queue: SQL is a macro with the names of the table and of its id. */
#define TW_OF_QUEUE(queue, SQL)                                                                    \
	((queue) == TW_QUEUE_MAPPINGS ? SQL("mapping_job", "job_id") : SQL("job", "trace_id"))

/* The status for the engine's last error: TW_FULL, TW_BUSY, TW_NOMEM, TW_IO or TW_BUG. */
enum tw_status tw_cat_fail(struct tw_db *db, struct tw_err *err);

bool tw_cat_is_sqlite(const struct tw_catalogue *c);

/* Migrations of the catalogue, from 1; both engines have the same number (schema/). */
extern const struct tw_embedded tw_catalogue_schema[], tw_catalogue_postgres_schema[];
/* Number of the last migration of a list. */
int tw_cat_last_schema(const struct tw_embedded *schema);
/* Fails: `have` is a schema unknown to this program. */
enum tw_status tw_cat_unknown_schema(
        int have, const struct tw_embedded *schema, struct tw_err *err);
/* Fails: `have` is older than this program's. */
enum tw_status tw_cat_old_schema(int have, const struct tw_embedded *schema, struct tw_err *err);
/* Applies missing migrations of `schema` (catalogue_upgrade.c); of an existing catalogue only if
 * may_migrate, otherwise TW_CONFLICT.  `reserved`: bytes that the pages reserved for checksums when
 * the writer was opened. */
enum tw_status tw_cat_upgrade(struct tw_catalogue *c, const struct tw_embedded *schema,
        int reserved, bool may_migrate, struct tw_err *err);
/* The same in PostgreSQL (catalogue_postgres_schema.c).  TW_BUSY while a server uses it.
 * *ret_same: it was already the catalogue of a program with the same columns. */
enum tw_status tw_postgres_upgrade(struct tw_db *db, const struct tw_embedded *schema,
        bool may_migrate, bool *ret_same, struct tw_err *err);
/* tw_postgres_hold with this program's schema. */
enum tw_status tw_cat_postgres_hold(struct tw_db *db, bool exclusive, struct tw_err *err);
/* Begins a short write transaction on a connection without the servers' lock; `set` are more of its
 * settings.  TW_BUSY, also with the transaction begun: a newer version has migrated the
 * catalogue. */
enum tw_status tw_cat_postgres_begin_unlocked(
        struct tw_db *db, const char *set, struct tw_err *err) TW_MUST_USE;

/* Locks the rows that a SELECT of a write transaction finds; SQLite has one writer. */
#define TW_CAT_FOR_UPDATE TW_EITHER("", " FOR UPDATE")

/* The scope that a write transaction locks exclusively.  In SQLite all transactions are serialized.
 * In PostgreSQL, transactions of one subject (and id) are serialized; others run concurrently, and
 * rows and unique keys resolve their conflicts. */
enum tw_cat_subject {
	TW_SUBJECT_NONE,   /* its rows suffice */
	TW_SUBJECT_ACCESS, /* projects, keys, people, sessions, settings */
	TW_SUBJECT_NOTIFY, /* webhooks, outbox, digests */
	TW_SUBJECT_FLEET,  /* rollups, regressions, findings */
	TW_SUBJECT_ANR,
	TW_SUBJECT_TRACE,  /* id: of the trace */
	TW_SUBJECT_BUILD,  /* id: of the build: its mappings */
	TW_SUBJECT_CONTENT /* id: SHA-256 of a file that is deleted if no row has it */
};

/* Takes a writing connection and begins.  tw_cat_end commits if st is TW_OK, otherwise rolls back,
 * gives it back, and returns st or the commit's error.  If db is NULL (begin failed), returns st.
 */
enum tw_status tw_cat_begin(struct tw_catalogue *c, enum tw_cat_subject subject, const char *id,
        struct tw_db **ret, struct tw_err *err);
/* For a group of uploads; independent of this thread's actor.  `one`: as tw_cat_begin_one. */
enum tw_status tw_cat_begin_uploads(
        struct tw_catalogue *c, bool one, struct tw_db **ret, struct tw_err *err);
/* With another statement than BEGIN IMMEDIATE. */
enum tw_status tw_cat_begin_as(
        struct tw_catalogue *c, const char *sql, struct tw_db **ret, struct tw_err *err);
/* For one statement, which in PostgreSQL is a transaction without BEGIN and COMMIT.  After a lost
 * connection it may run a second time: it must be repeatable. */
enum tw_status tw_cat_begin_one(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err);
/* For optional writes: TW_BUSY instead of waiting. */
enum tw_status tw_cat_begin_soon(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err);
enum tw_status tw_cat_end(
        struct tw_catalogue *c, struct tw_db *db, enum tw_status st, struct tw_err *err);
/* In a transaction: locks a subject, also in addition to others.  `exclusive` false: shared with
 * other transactions that do not lock it exclusively.  Does nothing in SQLite. */
enum tw_status tw_cat_lock(struct tw_db *w, enum tw_cat_subject of, const char *id, bool exclusive,
        struct tw_err *err);
/* The number of the advisory lock, for statements that take it themselves. */
int64_t tw_cat_lock_number(enum tw_cat_subject of, const char *id);
/* Whether to run this thread's transaction, which ended with st, again: another one changed the
 * same rows first.  Pauses before, and allows only a few retries.  *io_tries is 0 at first.
 * Effects outside the database must be repeatable. */
bool tw_cat_again(enum tw_status st, unsigned *io_tries);
/* A transaction as a function, which is run again after a conflict (tw_cat_again).  Its effects
 * outside the database must be repeatable; those of the last run remain. */
typedef enum tw_status (*tw_cat_work)(struct tw_db *w, void *arg, struct tw_err *err);
enum tw_status tw_cat_transact(struct tw_catalogue *c, enum tw_cat_subject subject,
        tw_cat_work work, void *arg, struct tw_err *err);
/* In a transaction that waits for files, and has locked only what they belong to. */
enum tw_status tw_cat_may_idle(struct tw_db *w, struct tw_err *err);
/* For statements outside of a transaction (catalogue_writer.c). */
struct tw_db *tw_cat_writer_take(struct tw_catalogue *c);
void tw_cat_writer_give(struct tw_catalogue *c, struct tw_db *w);
/* The statements that stay prepared on this writing connection. */
struct tw_stmt **tw_cat_writer_prepared(struct tw_catalogue *c, const struct tw_db *w);
enum tw_status tw_cat_hold_folder(struct tw_catalogue *c, struct tw_err *err);
void tw_cat_writers_init(struct tw_catalogue *c);
void tw_cat_writers_widen(struct tw_catalogue *c); /* to TW_CATALOGUE_WRITERS */
void tw_cat_writers_close(struct tw_catalogue *c);
/* Ends a transaction that is open. */
enum tw_status tw_cat_undo(struct tw_db *db, struct tw_err *err);

/* Reports the end of a write transaction, or that it could not begin.  `by_engine`: st is the
 * result of COMMIT or BEGIN rather than of a statement in the transaction. */
void tw_cat_write_ended(
        struct tw_catalogue *c, enum tw_status st, bool by_engine, const struct tw_err *err);

/* A change, for the audit log (catalogue_audit.h). */
enum { TW_CHANGE_FACTS = 6, TW_NUMBER_BYTES = 24 };
struct tw_change {
	const char *action;        /* "key.create" */
	const char *project_id;    /* "": of the server */
	const char *target;        /* id or name of the changed object */
	const struct tw_actor *by; /* NULL: the thread's actor */
	struct {
		/* never a secret; text NULL: omitted, name NULL: the end */
		const char *name, *text;
	} facts[TW_CHANGE_FACTS];
};
/* Call in the transaction of the change. */
enum tw_status tw_cat_audit(struct tw_db *db, const struct tw_change *ch, struct tw_err *err);
/* tw_cat_end; adds the audit entry before a commit. */
enum tw_status tw_cat_end_audited(struct tw_catalogue *c, struct tw_db *w, enum tw_status st,
        const struct tw_change *ch, struct tw_err *err);
const char *tw_cat_number(int64_t n, char out[TW_NUMBER_BYTES]);

struct tw_session;
/* Inserts a row of user (catalogue_user.c): TW_CONFLICT if the name exists.  Call in a transaction,
 * whose audit entry the caller writes. */
enum tw_status tw_cat_user_insert(struct tw_db *db, const char *name, const char *password,
        bool is_admin, char ret_id[TW_ID_BYTES], struct tw_err *err);
/* tw_catalogue_session_add in a transaction (catalogue_session.c). */
enum tw_status tw_cat_session_add(struct tw_db *db, const struct tw_session *s, struct tw_err *err);

/* A read connection; return it with tw_cat_done, which accepts NULL. */
enum tw_status tw_cat_reader(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err);
void tw_cat_done(struct tw_catalogue *c, struct tw_db *db);
/* One with a single snapshot until tw_cat_snapshot_done, which must always be called, after
 * dropping its prepared statements. */
enum tw_status tw_cat_snapshot(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err);
void tw_cat_snapshot_done(struct tw_catalogue *c, struct tw_db *db);
/* A read-only connection to a catalogue that is not open (catalogue_facts.c). */
enum tw_status tw_cat_inspect(const char *path, struct tw_db **ret, struct tw_err *err);
/* A new connection, which has not read anything. */
enum tw_status tw_cat_reader_new(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err);

/* A parameter of type a, in PostgreSQL only: one member, a text or an int64_t, of n structs. */
struct tw_cat_array {
	char type; /* t or i */
	const void *first;
	size_t n, step; /* bytes from one struct to the next */
};

/* Prepares and binds.  tw_cat_row steps: true for a row; false at the end or on failure, which
 * tw_cat_close returns. */
struct tw_cat_query {
	bool late;               /* no row was read because the work's deadline passed */
	enum tw_status unopened; /* of tw_cat_close if stmt is NULL; there are no rows */
	struct tw_db *db;
	struct tw_stmt *stmt;
	struct tw_stmt **prepared;      /* NULL: the statement is dropped on close */
	const struct tw_fields *fields; /* of its placeholders (catalogue_row.h), or NULL */
	enum tw_step step;
};
enum tw_status tw_cat_query(struct tw_cat_query *q, struct tw_db *db, struct tw_err *err,
        const char *sql, const char *types, ...);
/* The same with a statement that stays in *prepared, initially NULL; its owner drops it. */
enum tw_status tw_cat_query_prepared(struct tw_cat_query *q, struct tw_db *db,
        struct tw_stmt **prepared, struct tw_err *err, const char *sql, const char *types, ...);
/* The same for a statement with the placeholders of catalogue_row.h. */
enum tw_status tw_cat_query_fields(struct tw_cat_query *q, struct tw_db *db,
        const struct tw_fields *fields, struct tw_err *err, const char *sql, const char *types,
        ...);
bool tw_cat_row(struct tw_cat_query *q);
/* Whether the last tw_cat_row reached the end rather than failed. */
bool tw_cat_at_end(const struct tw_cat_query *q);
enum tw_status tw_cat_close(struct tw_cat_query *q, struct tw_err *err);
/* Closes the query and returns st, or if that is TW_OK the query's own result. */
enum tw_status tw_cat_close_after(struct tw_cat_query *q, enum tw_status st, struct tw_err *err);
void tw_cat_bind_text(struct tw_cat_query *q, int at, const char *text);
void tw_cat_bind_int(struct tw_cat_query *q, int at, int64_t v);

/* Many rows by their numbers in one statement: a parameter of type t is the list.  Numbers found
 * are matched with tw_cat_index_of. */
#define TW_CAT_AMONG(parameter)                                                                    \
	TW_EITHER(" IN (SELECT n.value FROM json_each(" parameter ") n)",                          \
	        "=ANY(CAST(" parameter " AS BIGINT[]))")
struct tw_cat_numbers {
	const char *list;
	size_t n;
	struct tw_cat_number {
		int64_t number;
		size_t at; /* in the list as given */
	} * sorted;
};
/* *ret is in the arena; TW_TOO_LARGE: it is full. */
enum tw_status tw_cat_numbers(const struct tw_db *db, const int64_t *numbers, size_t n,
        struct tw_arena *a, struct tw_cat_numbers *ret, struct tw_err *err);
/* Index of the first equal one in `sorted`; n: not found. */
size_t tw_cat_index_of(const struct tw_cat_numbers *of, int64_t number);

/* The same for texts; NULL: out of memory. */
#define TW_CAT_AMONG_TEXTS(parameter)                                                              \
	TW_EITHER(" IN (SELECT n.value FROM json_each(" parameter ") n)",                          \
	        "=ANY(CAST(" parameter " AS TEXT[]))")
const char *tw_cat_texts(
        const struct tw_db *db, const char *const *texts, size_t n, struct tw_arena *a);

/* True of the rows of `from`, which ends with a LIMIT; `key` is their primary key.  A plan of
 * PostgreSQL that is made for any limit would join them with the complete table. */
#define TW_CAT_SOME(key, from)                                                                     \
	TW_EITHER("(" key ") IN (SELECT " key " FROM " from ")",                                   \
	        "ctid=ANY(ARRAY(SELECT ctid FROM " from "))")

/* Joins the rows of table `of` (with its alias) that match `where`, separately for each row of the
 * tables before it.  PostgreSQL would otherwise read the complete table if it expects many. */
#define TW_CAT_JOIN_EACH(of, alias, where)                                                         \
	TW_EITHER(" CROSS JOIN " of " ON " where,                                                  \
	        " JOIN LATERAL (SELECT * FROM " of " WHERE " where " OFFSET 0) " alias " ON 1=1")

/* One statement for many rows (catalogue_rows.c).  In `sql`, {rows} stands for a source named r
 * with columns c1, c2, ..., one per type (t, i or b, as in tw_cat_query).  PostgreSQL runs it at
 * the end, or when there are many: until then the rows are not written. */
struct tw_cat_rows {
	struct tw_db *db;
	const char *sql, *types;
	/* NULL, or called with each row of the result, in any order */
	enum tw_status (*take)(void *arg, const struct tw_cat_query *q, struct tw_err *err);
	void *arg;
	int64_t changed; /* rows, when it has ended */
	struct tw_stmt *stmt;
	size_t n, bytes; /* of the rows that wait */
};
enum tw_status tw_cat_rows_add(struct tw_cat_rows *r, struct tw_err *err, ...);
/* Writes the rest if st is TW_OK; returns st, or its own failure.  Always called, once. */
enum tw_status tw_cat_rows_end(struct tw_cat_rows *r, enum tw_status st, struct tw_err *err);

/* Statements with parameters that the thread has executed. */
uint64_t tw_cat_statements(void);
void tw_cat_count_statement(void);

/* A random number. */
int64_t tw_cat_random(void);

/* By the clock that all servers on this catalogue share; leases use it. */
enum tw_status tw_cat_now(struct tw_db *db, int64_t *ret_ms, struct tw_err *err);
/* Work that is due later was scheduled before the clock was set back: the longest wait, of a
 * Retry-After, is a day. */
#define TW_LONGEST_WAIT_MS (2 * TW_DAY_MS)
/* A time of this server's clock, but not later than theirs, so that jobs queued now are due now. */
#define TW_CAT_DATABASE_MS "CAST(extract(epoch FROM clock_timestamp())*1000 AS BIGINT)"
#define TW_CAT_BY_NOW(ms)  TW_EITHER(ms, "least(" ms "," TW_CAT_DATABASE_MS ")")

/* Runs to the end; *ret_changed (may be NULL): rows changed. */
enum tw_status tw_cat_exec(struct tw_db *db, int *ret_changed, struct tw_err *err, const char *sql,
        const char *types, ...);

/* The same; TW_NOT_FOUND with that message if no row changed. */
enum tw_status tw_cat_change(struct tw_db *db, const char *missing, struct tw_err *err,
        const char *sql, const char *types, ...);

/* One statement as a transaction. */
struct tw_cat_statement {
	enum tw_cat_subject subject;
	const char *id;                 /* of the subject */
	const char *missing;            /* as of tw_cat_change; NULL: no row is no error */
	const struct tw_change *change; /* its audit entry; NULL: none */
};
enum tw_status tw_cat_run(struct tw_catalogue *c, const struct tw_cat_statement *how,
        struct tw_err *err, const char *sql, const char *types, ...);

enum tw_status tw_cat_exec_prepared(struct tw_db *db, struct tw_stmt **prepared, struct tw_err *err,
        const char *sql, const char *types, ...);
/* Writes a row: its values follow the statement's own parameters.  `prepared` may be NULL. */
struct tw_cat_written {
	const struct tw_fields *fields;
	const void *row;
	struct tw_stmt **prepared;
};
enum tw_status tw_cat_write(struct tw_db *db, const struct tw_cat_written *what, struct tw_err *err,
        const char *sql, const char *types, ...);

/* The same for a statement that returns rows; close with tw_cat_close. */
enum tw_status tw_cat_query_write(struct tw_cat_query *q, struct tw_db *db,
        const struct tw_cat_written *what, struct tw_err *err, const char *sql, const char *types,
        ...);

/* Reads the first row by its fields.  Without one, *row is unchanged; ret_found may be NULL. */
enum tw_status tw_cat_get_row(struct tw_db *db, const struct tw_fields *fields, struct tw_arena *a,
        void *row, bool *ret_found, struct tw_err *err, const char *sql, const char *types, ...);
/* The same on a read connection. */
enum tw_status tw_cat_read_row(struct tw_catalogue *c, const struct tw_fields *fields,
        struct tw_arena *a, void *row, bool *ret_found, struct tw_err *err, const char *sql,
        const char *types, ...);

/* The first column of the first row; "" if there is no row, or NULL in it. */
enum tw_status tw_cat_get_text(struct tw_db *db, char *ret, size_t cap, struct tw_err *err,
        const char *sql, const char *types, ...);
/* The same on a read connection. */
enum tw_status tw_cat_read_text(struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err,
        const char *sql, const char *types, ...);

/* The first column of the first row; *io is unchanged if there is no row. */
enum tw_status tw_cat_get_int(
        struct tw_db *db, int64_t *io, struct tw_err *err, const char *sql, const char *types, ...);

/* The same on a read connection. */
enum tw_status tw_cat_read_int(struct tw_catalogue *c, int64_t *io, struct tw_err *err,
        const char *sql, const char *types, ...);

/* Rows of a query on a read connection, in an arena. */
struct tw_cat_list {
	struct tw_arena *arena;
	size_t limit, row_bytes; /* the most rows, and the size of one */
	/* Fills *ret_row; false: out of memory.  NULL: by its fields. */
	bool (*read)(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row);
	void *rows; /* the result, if TW_OK */
	size_t n;
	const struct tw_fields *fields; /* of the statement's placeholders; NULL: it has none */
	/* Optional: where the result goes if TW_OK, as the address and number of rows or, without
	 * ret_n, as a copy of the first row. */
	void *ret;
	size_t *ret_n;
	const char *missing; /* message of TW_NOT_FOUND if there is no row; NULL: not an error */
	uint32_t cap;        /* allocated rows */
};
#define TW_CAT_LIST(arena_, limit_, fields_, ret_, ret_n_)                                         \
	&(struct tw_cat_list)                                                                      \
	{                                                                                          \
		.arena = (arena_), .limit = (limit_), .row_bytes = sizeof **(ret_),                \
		.fields = (fields_), .ret = (ret_), .ret_n = (ret_n_)                              \
	}
#define TW_CAT_ONE(arena_, fields_, ret_, missing_)                                                \
	&(struct tw_cat_list)                                                                      \
	{                                                                                          \
		.arena = (arena_), .limit = 1, .row_bytes = sizeof *(ret_), .fields = (fields_),   \
		.ret = (ret_), .missing = (missing_)                                               \
	}
enum tw_status tw_cat_list(struct tw_catalogue *c, struct tw_cat_list *l, struct tw_err *err,
        const char *sql, const char *types, ...);

int64_t tw_cat_int(const struct tw_cat_query *q, int col);
/* Valid until the next row; NULL for NULL. */
const char *tw_cat_str(const struct tw_cat_query *q, int col);
struct tw_str tw_cat_blob(const struct tw_cat_query *q, int col);
/* A copy in the arena, "" for NULL; NULL if memory is short. */
const char *tw_cat_text(const struct tw_cat_query *q, int col, struct tw_arena *a);

/* Whether it is the earliest trace of its ANR's group. */
#define TW_TRACE_IS_FIRST                                                                          \
	"anr<>'' AND NOT EXISTS (SELECT 1 FROM trace o WHERE o.project_id=trace.project_id"        \
	" AND o.anr=trace.anr AND o.anr<>'' AND (o.created_ms,o.trace_id)<"                        \
	"(trace.created_ms,trace.trace_id))"
/* A trace's row, by its fields; the error is not one of them (catalogue_trace.c).  false: out of
 * memory. */
#define TW_CAT_TRACE_STATE                                                                         \
	"CASE WHEN state=0 AND EXISTS(SELECT 1 FROM job j WHERE j.project_id=trace.project_id AND" \
	" j.trace_id=trace.trace_id AND j.claimed=1) THEN 1 ELSE state END"
#define TW_CAT_TRACE_COLUMNS "{columns},error_status,error_message,error_offset"
bool tw_cat_read_trace(const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *r);

/* Removes the counts of a trace's names from its row and its build's sums. */
enum tw_status tw_cat_clear_names(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err);
/* After a new mapping: schedules a stage ("names", "rollup", "anr") to name the build again.  A new
 * generation stops a renaming with an earlier mapping, even one that has not begun. */
enum tw_status tw_cat_rename(struct tw_db *db, const char *stage, const char *project_id,
        const char *build_id, struct tw_err *err);
/* A build to rename, after that of `after` (NULL: the first); TW_NOT_FOUND: none. */
enum tw_status tw_cat_rename_next(struct tw_catalogue *c, const char *stage,
        const struct tw_rename *after, struct tw_arena *a, struct tw_rename *ret,
        struct tw_err *err);
/* Records that the build is renamed up to `last`; NULL: completely.  *ret_ours false: another
 * mapping arrived, and the renaming restarts. */
enum tw_status tw_cat_rename_done(struct tw_db *db, const char *stage, const struct tw_rename *of,
        const char *last, bool *ret_ours, struct tw_err *err);

/* Whether these are still the trace's mappings. */
enum tw_status tw_cat_is_named_by(struct tw_db *db, const struct tw_named_trace *of,
        const struct tw_mapping_ids *by, bool *ret, struct tw_err *err);

/* The same of the symbols of a trace's libraries (catalogue_build.c). */
enum tw_status tw_cat_has_images(struct tw_db *db, const char *project_id,
        const struct tw_libraries *of, bool *ret, struct tw_err *err);
/* Records them, so that symbols that arrive later find the builds to count or to name again. */
enum tw_status tw_cat_add_libraries(struct tw_db *db, const char *project_id,
        const struct tw_used_libraries *used, struct tw_err *err);

/* Claims a job for that owner with at most per_project claims of one project (catalogue_turn.c),
 * and up to cap - 1 more (tw_catalogue_jobs_claim).  Call with the queue's lock held.  The project
 * is charged from now on for all, under the id of the first: tw_fair_end must be called. */
struct tw_cat_turn {
	enum tw_queue queue;
	const char *owner;
	int64_t lease_ms;
	unsigned per_project; /* 0: no limit */
	uint64_t small_bytes;
	int64_t now; /* set by the claim */
};
enum tw_status tw_cat_claim(struct tw_catalogue *c, struct tw_cat_turn *io, struct tw_arena *a,
        struct tw_job_row *ret, size_t cap, size_t *ret_n, struct tw_err *err);
/* Deletes the row of a claimed job.  TW_CONFLICT: another server has the job; TW_NOT_FOUND: it was
 * deleted (catalogue_job.c). */
enum tw_status tw_cat_drop_job(struct tw_db *db, const struct tw_job_row *job, struct tw_err *err);

/* A build with its mappings and uploads; *ret_found false if there is none (catalogue_build.c). */
enum tw_status tw_cat_build_get(struct tw_db *db, const char *project_id, const char *build_id,
        struct tw_arena *a, struct tw_build_row *ret, bool *ret_found, struct tw_err *err);
/* Sets or replaces its mapping of that kind, the only part of `row` used; blobs no longer used are
 * returned as in tw_catalogue_trace_delete. */
enum tw_status tw_cat_build_put(struct tw_db *db, const struct tw_mapping_sent *of,
        const struct tw_build_row *row, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err);

/* TW_CONFLICT while a test delivery of the webhook is waiting (catalogue_outbox.c). */
enum tw_status tw_cat_no_test(
        struct tw_db *db, const char *project_id, const char *hook_id, struct tw_err *err);

/* Add the keys of files that are to be deleted from a store; nothing with a data folder
 * (file_drop.c). */
enum tw_status tw_cat_blob_drop(struct tw_db *w, const char *sha256, struct tw_err *err);
enum tw_status tw_cat_trace_drop(struct tw_db *w, const char *trace_id, struct tw_err *err);
/* The same for the record of a trace, or of a build. */
enum tw_status tw_cat_record_drop(struct tw_db *w, const char *trace_id, struct tw_err *err);
enum tw_status tw_cat_build_record_drop(
        struct tw_db *w, const char *project_id, const char *build_id, struct tw_err *err);

/* Deletes a trace's files that are rows (small_file.h), before its own rows and after its job's, as
 * the end of a decode locks them in that order.  *ret: TW_CAT_SMALL_UPLOAD and TW_CAT_SMALL_DECODED
 * if there were any. */
enum tw_cat_small {
	TW_CAT_SMALL_UPLOAD = 1, /* without the next */
	TW_CAT_SMALL_DECODED = 2,
	TW_CAT_SMALL_SYSTEM = 4, /* the device's own trace, which outlives the upload */
	TW_CAT_SMALL_ALL = 7
};
enum tw_status tw_cat_small_drop(
        struct tw_db *w, const char *trace_id, unsigned which, unsigned *ret, struct tw_err *err);

/* Those of the n contents that are no longer referred to, copied into the arena.  Their files are
 * to be deleted. */
enum tw_status tw_cat_unused_blobs(struct tw_db *db, const char *const *sha256, size_t n,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err);

#endif

/*
 * catalogue_postgres_int.h - a connection to PostgreSQL, shared by catalogue_postgres*.c.
 */
#ifndef TW_CATALOGUE_POSTGRES_INT_H
#define TW_CATALOGUE_POSTGRES_INT_H

#include <libpq-fe.h>

#include "server/db/catalogue_postgres.h"

enum { TW_POSTGRES_PREPARED = 128, TW_POSTGRES_SEEN = 512, TW_POSTGRES_MESSAGE = 300 };

/* Statements of a session that PostgreSQL has parsed, by their number in its name. */
struct tw_postgres_prepared {
	uint64_t keys[TW_POSTGRES_PREPARED]; /* of text and types of parameters */
	char *texts[TW_POSTGRES_PREPARED];
	unsigned n;
	bool there; /* the session has some, even if they are no longer recorded here */
	uint64_t seen[TW_POSTGRES_SEEN]; /* keys of statements that ran before, by hash */
	int64_t until_ms, life_ms;       /* then they are planned again */
};

enum tw_postgres_hold {
	TW_POSTGRES_FREE,      /* a reader or a command */
	TW_POSTGRES_EXCLUSIVE, /* the only server */
	TW_POSTGRES_SHARED     /* one of several servers */
};

struct tw_postgres {
	struct tw_db db;
	PGconn *of;
	char *address;
	int64_t since_ms; /* monotonic time at which this connection was made */
	enum tw_postgres_hold hold;
	int64_t schema;      /* of this program; a server stops writing to a newer one */
	bool configured;     /* the session is configured and holds its advisory lock */
	bool patient;        /* no time limit: a schema migration */
	bool gave_up;        /* the last answer did not come in time */
	bool taken;          /* other servers hold the catalogue, or migrated it */
	bool migrated;       /* that is: migrated it */
	bool stale;          /* its host lacks data that this process has seen */
	bool in_transaction; /* begun and not ended, even if the connection was lost */
	int64_t changed;
	enum tw_status failed; /* the last failure, and its message */
	bool conflict;         /* it is a conflict with another transaction */
	char message[TW_POSTGRES_MESSAGE];
	struct tw_postgres_prepared prepared;
};

struct tw_postgres_values {
	int n;
	const Oid *types;
	const char *const *values;
	const int *lengths, *formats;
};

/* Runs one statement; NULL on failure, see tw_postgres_fail.  values NULL: several statements
 * without parameters.  Free with PQclear. */
PGresult *tw_postgres_run(
        struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v);
enum tw_status tw_postgres_fail(struct tw_db *db, struct tw_err *err);

/* The last result of the sent statements (free with PQclear); NULL if none was sent.  A longer wait
 * than limit_ms, or than the limit for `sql`, gives the connection up. */
PGresult *tw_postgres_result_within(struct tw_postgres *p, int sent, int64_t limit_ms);
PGresult *tw_postgres_answer(struct tw_postgres *p, int sent, const char *sql);
/* Shuts the connection down; libpq then reports it as lost. */
void tw_postgres_give_up(struct tw_postgres *p);

/* No host could be used. */
void tw_postgres_note_away(int64_t began_ms);
/* All existing connections will be replaced at their next use. */
void tw_postgres_suspect_all(void);
void tw_postgres_note_well(void);
bool tw_postgres_is_suspect(const struct tw_postgres *p);
bool tw_postgres_may_dial(void);

/* Reconnects to one of the address's hosts (catalogue_postgres_hosts.c). */
unsigned tw_postgres_hosts(const char *address);
void tw_postgres_dial(struct tw_postgres *p, unsigned host);
bool tw_postgres_is_stale(struct tw_postgres *p);

/* Prepared statements (catalogue_postgres_plan.c).  The name of a statement that runs repeatedly,
 * which is prepared at its second run; -1: run it without a name.  *ret_failed (free with PQclear):
 * the error if preparing failed, which aborts a transaction. */
enum { TW_POSTGRES_NAME = 16 };
int tw_postgres_name(struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v,
        char name[TW_POSTGRES_NAME], PGresult **ret_failed);
/* The session is new or ended. */
void tw_postgres_forget_plans(struct tw_postgres *p);
/* Outside transactions: has PostgreSQL renew old plans. */
void tw_postgres_renew_plans(struct tw_postgres *p);
/* Whether the failure says that a prepared statement no longer fits; all are then forgotten. */
bool tw_postgres_outdated(struct tw_postgres *p, const PGresult *r);

/* Statements (catalogue_postgres_stmt.c), as in struct tw_db_engine. */
enum tw_status tw_postgres_prepare(
        struct tw_db *db, const char *sql, struct tw_stmt **ret, struct tw_err *err);
void tw_postgres_drop(struct tw_stmt *s);
void tw_postgres_bind_text(struct tw_stmt *s, int at, const char *text);
void tw_postgres_bind_int(struct tw_stmt *s, int at, int64_t v);
void tw_postgres_bind_bytes(struct tw_stmt *s, int at, struct tw_str bytes, bool stays);
void tw_postgres_append(struct tw_stmt *s, int at, const struct tw_db_value *v);
enum tw_step tw_postgres_step(struct tw_stmt *s);
void tw_postgres_reset(struct tw_stmt *s);
bool tw_postgres_oom(const struct tw_stmt *s);
int64_t tw_postgres_int(struct tw_stmt *s, int col);
const char *tw_postgres_text(struct tw_stmt *s, int col);
struct tw_str tw_postgres_bytes(struct tw_stmt *s, int col);

#endif

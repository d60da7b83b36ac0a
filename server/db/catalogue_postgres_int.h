/*
 * catalogue_postgres_int.h - a connection to PostgreSQL, shared by catalogue_postgres*.c.
 */
#ifndef TW_CATALOGUE_POSTGRES_INT_H
#define TW_CATALOGUE_POSTGRES_INT_H

#include <libpq-fe.h>

#include "server/db/catalogue_postgres.h"

enum { TW_POSTGRES_PREPARED = 64, TW_POSTGRES_SAID = 300 };

enum tw_postgres_hold {
	TW_POSTGRES_FREE,  /* a reader's, a command's */
	TW_POSTGRES_ALONE, /* of the only server */
	TW_POSTGRES_BESIDE /* of one of several */
};

struct tw_postgres {
	struct tw_db db;
	PGconn *of;
	char *address;
	int64_t since_ms; /* monotonic, of this connection */
	enum tw_postgres_hold hold;
	bool settled;        /* the connection is set up, and holds what it is to */
	bool patient;        /* what is asked may take any time: a migration of the schema */
	bool gave_up;        /* the last answer did not come in time */
	bool taken;          /* another server has the catalogue there */
	bool stale;          /* it is of a host that lacks what this process has seen */
	bool in_transaction; /* begun and not ended, even when the connection is lost */
	int64_t changed;
	enum tw_status failed; /* what failed last, and in words */
	char said[TW_POSTGRES_SAID];
	char *prepared[TW_POSTGRES_PREPARED]; /* texts of statements that the server knows by place
	                                       */
	unsigned n_prepared;
};

struct tw_postgres_values {
	int n;
	const Oid *types;
	const char *const *values;
	const int *lengths, *formats;
};

/* Runs one statement by whichever way suits; NULL when it failed, which tw_postgres_fail tells.
 * values NULL: several statements, without values.  PQclear is owed. */
PGresult *tw_postgres_run(
        struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v, bool stays);
enum tw_status tw_postgres_fail(struct tw_db *db, struct tw_err *err);

/* The last result of what was sent, PQclear is owed; NULL when nothing was.  What takes longer
 * loses the connection: longer than that, or than what was sent, sql, may. */
PGresult *tw_postgres_answer_within(struct tw_postgres *p, int sent, int64_t limit_ms);
PGresult *tw_postgres_answer(struct tw_postgres *p, int sent, const char *sql);
/* What to send for it: who begins to write waits less while commits do not come back. */
const char *tw_postgres_begin(const char *sql);
/* The connection is lost from here on. */
void tw_postgres_give_up(struct tw_postgres *p);

/* While its server hangs nobody waits for it but one at a time, who looks (of all connections). */
void tw_postgres_note_hung(int64_t began_ms);
/* None of the hosts was the one. */
void tw_postgres_note_away(int64_t began_ms);
/* Connections of before are made anew. */
void tw_postgres_suspect_all(void);
void tw_postgres_note_well(void);
bool tw_postgres_is_suspect(const struct tw_postgres *p);
bool tw_postgres_may_dial(void);

/* Connects anew, to one of the address' hosts (catalogue_postgres_hosts.c). */
unsigned tw_postgres_hosts(const char *address);
void tw_postgres_dial(struct tw_postgres *p, unsigned host);
bool tw_postgres_is_stale(struct tw_postgres *p);

/* Statements (catalogue_postgres_stmt.c), as in struct tw_db_engine. */
enum tw_status tw_postgres_prepare(
        struct tw_db *db, const char *sql, bool stays, struct tw_stmt **ret, struct tw_err *err);
void tw_postgres_drop(struct tw_stmt *s);
void tw_postgres_bind_text(struct tw_stmt *s, int at, const char *text);
void tw_postgres_bind_int(struct tw_stmt *s, int at, int64_t v);
void tw_postgres_bind_bytes(struct tw_stmt *s, int at, struct tw_str bytes, bool stays);
enum tw_step tw_postgres_step(struct tw_stmt *s);
void tw_postgres_reset(struct tw_stmt *s);
bool tw_postgres_lacked(const struct tw_stmt *s);
int64_t tw_postgres_int(struct tw_stmt *s, int col);
const char *tw_postgres_text(struct tw_stmt *s, int col);
struct tw_str tw_postgres_bytes(struct tw_stmt *s, int col);

#endif

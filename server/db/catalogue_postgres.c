/*
 * catalogue_postgres.c - PostgreSQL as the catalogue's engine: connections and errors.
 *
 * The server commits durably unless configured otherwise (synchronous_commit).  All waits have
 * limits: for a connection, a lock, an answer, and a peer that disappeared silently.
 */
#include "server/db/catalogue_postgres.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/db/catalogue_postgres_dialect.h"
#include "server/db/catalogue_postgres_int.h"
#include "server/db/commit_gate.h"

enum {
	SQL_BYTES = 1 << 20,
	LOG_EVERY_MS = 5000,
	HOLD_WAIT_MS = 15000,
	HOLD_RETRY_MS = 200,
	REASON_BYTES = 1024
};

bool tw_db_is_postgres(const char *address)
{
	return strncmp(address, "postgres://", 11) == 0 ||
	       strncmp(address, "postgresql://", 13) == 0;
}

/* --- errors --- */

struct meaning {
	const char *state; /* prefix of the SQLSTATE */
	enum tw_status status;
};

#define READ_ONLY "25006" /* it has become a standby */

/* PostgreSQL's manual, appendix A. */
static const struct meaning meanings[] = {
        {"08", TW_BUSY}, /* the connection is lost */
        {READ_ONLY, TW_BUSY},
        {"40", TW_BUSY},     /* serialization, deadlock */
        {"23503", TW_BUSY},  /* another transaction deleted the row that this one refers to, */
        {"23505", TW_BUSY},  /* or inserted it first */
        {"53100", TW_FULL},  /* disk full */
        {"53200", TW_NOMEM}, /* out of memory */
        {"53", TW_BUSY},     /* too many connections */
        {"55P03", TW_BUSY},  /* lock timeout */
        {"57", TW_BUSY},     /* statement timeout; shutting down or starting */
        {"42501", TW_IO},    /* the role lacks a privilege: not the statement's fault */
        {"0A", TW_BUG},
        {"22", TW_BUG},
        {"42", TW_BUG},
};

static enum tw_status meaning_of(const char *state)
{
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
		if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
			return meanings[i].status;
	return TW_IO;
}

static bool is_conflict(const char *state)
{
	return strncmp(state, "40", 2) == 0 || strcmp(state, "23503") == 0 ||
	       strcmp(state, "23505") == 0;
}

/* The message of libpq, which has several lines, as one. */
static void copy_as_line(const char *message, char *out, size_t size)
{
	size_t n = 0;

	for (; *message && n + 1 < size; message++) {
		const bool space = isspace((unsigned char)*message) != 0;

		if (!space)
			out[n++] = *message;
		else if (n > 0 && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	out[n > 0 && out[n - 1] == ' ' ? n - 1 : n] = '\0';
}

/* Messages of libpq contain hosts and accounts, so they only go to the log, rate-limited. */
static void log_lost(const struct tw_postgres *p)
{
	static _Atomic int64_t next_ms;
	const int64_t now = tw_monotonic_ms();
	char reason[REASON_BYTES];

	if (now < atomic_load(&next_ms))
		return;
	atomic_store(&next_ms, now + LOG_EVERY_MS);
	copy_as_line(p->of ? PQerrorMessage(p->of) : "no memory", reason, sizeof reason);
	tw_log(TW_LOG_WARN, "catalogue_lost", tw_log_text("reason", reason));
}

static _Atomic uint64_t times_lost;

uint64_t tw_postgres_times_lost(void)
{
	return atomic_load(&times_lost);
}

static void note_lost(struct tw_postgres *p)
{
	atomic_fetch_add(&times_lost, 1);
	p->failed = TW_BUSY;
	/* a wrong password or database is a lost connection, too */
	(void)snprintf(p->message, sizeof p->message, "%s",
	        p->gave_up
	                ? "its server does not respond in time"
	                : "no connection to its server; the log has the reason (catalogue_lost)");
	log_lost(p);
}

static void note_no_memory(struct tw_postgres *p)
{
	p->conflict = false;
	p->failed = TW_NOMEM;
	(void)snprintf(p->message, sizeof p->message, "out of memory");
}

/* Only the first line, as the others quote values. */
static void note_failed(struct tw_postgres *p, const PGresult *r)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	const char *message = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (PQstatus(p->of) == CONNECTION_BAD) {
		note_lost(p);
		return;
	}
	if (!state) { /* created by libpq itself, or out of memory */
		note_no_memory(p);
		return;
	}
	if (strcmp(state, READ_ONLY) == 0) /* another host may be the primary */
		tw_postgres_give_up(p);
	p->failed = meaning_of(state);
	p->conflict = is_conflict(state);
	(void)snprintf(
	        p->message, sizeof p->message, "%s (%s)", message ? message : "it failed", state);
}

enum tw_status tw_postgres_fail(struct tw_db *db, struct tw_err *err)
{
	const struct tw_postgres *p = (const struct tw_postgres *)db;

	if (!p)
		return tw_fail(err, TW_NOMEM, "catalogue: out of memory");
	return tw_fail(err, p->failed == TW_OK ? TW_BUG : p->failed, "catalogue: %s", p->message);
}

/* --- connections --- */

static void ignore_notice(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static PGresult *execute(struct tw_postgres *p, const char *sql)
{
	return tw_postgres_answer(p, PQsendQuery(p->of, sql), sql);
}

/* Whether `sql` returns one row with this value.  Otherwise the reason is recorded: `taken`, or the
 * error. */
static bool check_value(struct tw_postgres *p, const char *sql, const char *want, const char *taken)
{
	PGresult *r = execute(p, sql);
	bool same = false;

	if (PQresultStatus(r) == PGRES_TUPLES_OK) {
		same = PQntuples(r) == 1 && strcmp(PQgetvalue(r, 0, 0), want) == 0;
		p->taken = !same;
		p->failed = TW_BUSY;
		(void)snprintf(p->message, sizeof p->message, "%s", taken);
	} else {
		note_failed(p, r);
	}
	PQclear(r);
	return same;
}

#define TRY_LOCK(kind)                                                                             \
	"SELECT pg_try_advisory_" kind "(1953977199, hashtext(identity)) FROM catalogue_identity"

/* The lock belongs to the session: only this connection holds it, and only it writes.  A migration
 * excludes it (tw_postgres_exclude_servers), so the schema does not change while it is held. */
static bool hold(struct tw_postgres *p)
{
	static const char *const sql[] = {[TW_POSTGRES_EXCLUSIVE] = TRY_LOCK("lock"),
	        [TW_POSTGRES_SHARED] = TRY_LOCK("lock_shared")};
	char schema[24];

	if (p->hold == TW_POSTGRES_FREE)
		return true;
	(void)snprintf(schema, sizeof schema, "%lld", (long long)p->schema);
	if (!check_value(p, sql[p->hold], "t", "another server has it"))
		return false;
	if (check_value(p, "SELECT version FROM catalogue_schema", schema, TW_POSTGRES_MIGRATED))
		return true;
	p->migrated = p->taken;
	PQclear(execute(p, "SELECT pg_advisory_unlock_all()"));
	return false;
}

#define SET(name, to) "set_config('" name "','" to "',false)"
#define SESSION(lock, idle)                                                                        \
	"SELECT " SET("statement_timeout", "60s") "," SET("lock_timeout", lock) "," SET(           \
	        "idle_in_transaction_session_timeout", idle) "," SET("tcp_keepalives_idle",        \
	        "10") "," SET("tcp_keepalives_interval", "3") "," SET("tcp_keepalives_count",      \
	        "2") "," SET("standard_conforming_strings", "on")

/* Writers change few rows, by keys.  PostgreSQL expects less of a plan for any values than of one
 * for these, and would plan each run again, which costs more than the run.  Without scans of whole
 * tables, a plan made for an empty table also suits a full one. */
#define WRITER                                                                                     \
	"," SET("plan_cache_mode", "force_generic_plan") "," SET("enable_seqscan", "off") "," SET( \
	        "jit", "off")

/* Once per connection.  A server that stalls in a write transaction keeps its rows locked until
 * PostgreSQL ends its session. */
static bool configure_session(struct tw_postgres *p)
{
	const char *sql = p->hold == TW_POSTGRES_FREE ? SESSION("10s", "30s")
	                                              : SESSION(TW_POSTGRES_LOCK, TW_POSTGRES_IDLE)
	                                                        WRITER;
	PGresult *r;
	bool fine;

	tw_postgres_forget_plans(p);
	p->configured = false;
	p->stale = p->taken = p->migrated = p->gave_up = false;
	p->db.session++;
	if (PQstatus(p->of) != CONNECTION_OK || PQsetnonblocking(p->of, 1) != 0) {
		note_lost(p);
		return false;
	}
	(void)PQsetNoticeProcessor(p->of, ignore_notice, NULL);
	r = execute(p, sql);
	fine = PQresultStatus(r) == PGRES_TUPLES_OK;
	if (!fine)
		note_failed(p, r);
	PQclear(r);
	p->stale = fine && tw_postgres_is_stale(p);
	p->configured = fine && !p->stale && hold(p);
	return p->configured;
}

/* The error if no request was sent. */
static void note_hangs(struct tw_postgres *p)
{
	p->failed = TW_BUSY;
	(void)snprintf(p->message, sizeof p->message, "its server does not respond");
}

/* Tries each host once. */
static bool connect(struct tw_postgres *p)
{
	static _Atomic unsigned last_host; /* the host used last */
	const unsigned n = tw_postgres_hosts(p->address), first = atomic_load(&last_host);
	const int64_t began_ms = tw_monotonic_ms();

	for (unsigned i = 0; i < n; i++) {
		p->since_ms = tw_monotonic_ms();
		tw_postgres_dial(p, (first + i) % n);
		if (configure_session(p)) {
			atomic_store(&last_host, (first + i) % n);
			tw_postgres_note_well();
			return true;
		}
		if (p->stale) {
			tw_postgres_give_up(p);
			p->failed = TW_BUSY;
			(void)snprintf(
			        p->message, sizeof p->message, "its server is a former primary");
		} else if (p->taken) /* this is the right host: trying others is pointless */
			return false;
	}
	tw_postgres_note_away(began_ms);
	return false;
}

/* A password would be visible in the process list and wherever settings are shown. */
static enum tw_status no_password_in(const char *address, struct tw_err *err)
{
	char *why = NULL;
	PQconninfoOption *all = PQconninfoParse(address, &why);
	bool has = false;
	bool read = all != NULL;

	for (const PQconninfoOption *o = all; o && o->keyword; o++)
		has = has || (o->val && strcmp(o->keyword, "password") == 0);
	PQconninfoFree(all);
	PQfreemem(why);
	if (!read)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the catalogue's address is invalid: use "
		        "postgres://USER@HOST:PORT/DATABASE");
	if (has)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the catalogue's address contains a password, visible to other users: "
		        "store it in a file, set by ?passfile=FILE or PGPASSFILE");
	return TW_OK;
}

static bool is_lost(const struct tw_postgres *p)
{
	return PQstatus(p->of) == CONNECTION_BAD;
}

/* Within a transaction a new connection would lack the earlier changes. */
static bool ready(struct tw_postgres *p)
{
	const bool there = !is_lost(p) && p->configured;

	if (there && (p->in_transaction || !tw_postgres_is_suspect(p)))
		return true;
	if (p->in_transaction) {
		note_lost(p);
		return false;
	}
	note_hangs(p);
	return tw_postgres_may_dial() && connect(p);
}

/* --- running --- */

static bool is_fine(const PGresult *r)
{
	ExecStatusType s = PQresultStatus(r);

	return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
}

static PGresult *send(struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v)
{
	PGresult *failed = NULL;
	char name[TW_POSTGRES_NAME];
	bool named;
	int sent;

	if (!p->in_transaction)
		tw_postgres_renew_plans(p);
	if (!v)
		return execute(p, sql);
	named = tw_postgres_name(p, sql, v, name, &failed) >= 0;
	if (failed)
		return failed;
	sent = named ? PQsendQueryPrepared(p->of, name, v->n, v->values, v->lengths, v->formats, 1)
	             : PQsendQueryParams(
	                       p->of, sql, v->n, v->types, v->values, v->lengths, v->formats, 1);
	return tw_postgres_answer(p, sent, sql);
}

/* COMMIT of a failed transaction rolls back without reporting an error. */
static bool is_committed(struct tw_postgres *p, const char *sql, PGresult *r)
{
	if (strcmp(sql, "COMMIT") != 0 || strcmp(PQcmdStatus(r), "COMMIT") == 0)
		return true;
	p->failed = TW_IO;
	(void)snprintf(
	        p->message, sizeof p->message, "a transaction that failed was not committed");
	return false;
}

static bool ends_transaction(const char *sql)
{
	return strcmp(sql, "COMMIT") == 0 || strcmp(sql, "ROLLBACK") == 0;
}

PGresult *tw_postgres_run(
        struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v)
{
	const bool within = p->in_transaction;
	bool outdated;
	PGresult *r;

	note_no_memory(p); /* the default error */
	r = ready(p) ? send(p, sql, v) : NULL;
	outdated = r && tw_postgres_outdated(p, r);
	/* the server was restarted in the meantime: no transaction was begun */
	if (r && (outdated || is_lost(p)) && !within && !p->gave_up) {
		PQclear(r);
		r = ready(p) ? send(p, sql, v) : NULL;
	}
	if (!is_lost(p))
		p->in_transaction = PQtransactionStatus(p->of) != PQTRANS_IDLE;
	else if (ends_transaction(sql))
		p->in_transaction = false;
	if (r && is_fine(r) && is_committed(p, sql, r)) {
		p->changed = 0;
		(void)tw_str_i64(tw_str_of(PQcmdTuples(r)), &p->changed);
		return r;
	}
	if (r && !is_fine(r)) /* records the error, also of a commit that was rolled back */
		note_failed(p, r);
	else if (!r && is_lost(p) && p->failed == TW_NOMEM)
		note_lost(p);
	if (outdated) { /* works when the transaction runs again */
		p->failed = TW_BUSY;
		p->conflict = true;
	}
	PQclear(r);
	return NULL;
}

static enum tw_status run(struct tw_db *db, const char *sql, struct tw_err *err)
{
	struct tw_buf text;
	PGresult *r = NULL;
	int n = 0;
	enum tw_status st;

	if (strcmp(sql, "COMMIT") == 0 && !tw_cat_gate_passes())
		return tw_fail(err, TW_IO, "catalogue: files could not be made durable");
	tw_buf_init(&text, SQL_BYTES);
	st = tw_postgres_sql(sql, &text, &n);
	if (st == TW_OK)
		r = tw_postgres_run((struct tw_postgres *)db, (const char *)text.data, NULL);
	tw_buf_done(&text);
	if (st != TW_OK)
		return tw_fail(err, st, "catalogue: no memory for a statement");
	if (!r)
		return tw_postgres_fail(db, err);
	PQclear(r);
	return TW_OK;
}

/* True also if the connection is lost: statements fail until the transaction is ended. */
static bool in_transaction(const struct tw_db *db)
{
	return ((const struct tw_postgres *)db)->in_transaction;
}

static int64_t changed(const struct tw_db *db)
{
	return ((const struct tw_postgres *)db)->changed;
}

static bool conflicts(const struct tw_db *db)
{
	return ((const struct tw_postgres *)db)->conflict;
}

static void close_db(struct tw_db *db)
{
	struct tw_postgres *p = (struct tw_postgres *)db;

	tw_postgres_forget_plans(p);
	PQfinish(p->of);
	tw_mem_free(p->address);
	tw_mem_free(p);
}

static const struct tw_db_engine engine = {
        .name = "postgresql",
        .has_clock = true,
        .is_shared = true,
        .close = close_db,
        .run = run,
        .in_transaction = in_transaction,
        .changed = changed,
        .fail = tw_postgres_fail,
        .conflicts = conflicts,
        .prepare = tw_postgres_prepare,
        .drop = tw_postgres_drop,
        .bind_text = tw_postgres_bind_text,
        .bind_int = tw_postgres_bind_int,
        .bind_bytes = tw_postgres_bind_bytes,
        .append = tw_postgres_append,
        .step = tw_postgres_step,
        .reset = tw_postgres_reset,
        .oom = tw_postgres_oom,
        .to_int = tw_postgres_int,
        .to_text = tw_postgres_text,
        .to_bytes = tw_postgres_bytes,
};

/* Retries, as the session of a killed server may live on for a moment. */
enum tw_status tw_postgres_hold(
        struct tw_db *db, bool exclusive, int64_t schema, struct tw_err *err)
{
	struct tw_postgres *p = (struct tw_postgres *)db;
	const int64_t until = tw_monotonic_ms() + HOLD_WAIT_MS;

	p->schema = schema;
	p->hold = exclusive ? TW_POSTGRES_EXCLUSIVE : TW_POSTGRES_SHARED;
	p->configured = false;
	while (!ready(p)) {
		if (p->migrated || tw_monotonic_ms() >= until)
			return tw_postgres_fail(db, err);
		tw_sleep_ms(HOLD_RETRY_MS);
	}
	return TW_OK;
}

bool tw_postgres_is_migrated(const struct tw_db *db)
{
	return ((const struct tw_postgres *)db)->migrated;
}

enum tw_status tw_postgres_exclude_servers(struct tw_db *db, struct tw_err *err)
{
	struct tw_postgres *p = (struct tw_postgres *)db;
	const int64_t until = tw_monotonic_ms() + HOLD_WAIT_MS;

	while (!check_value(p, TRY_LOCK("xact_lock"), "t", "servers use it")) {
		if (!p->taken || tw_monotonic_ms() >= until)
			return tw_postgres_fail(db, err);
		tw_sleep_ms(HOLD_RETRY_MS);
	}
	return TW_OK;
}

enum tw_status tw_db_postgres_open(const char *address, struct tw_db **ret, struct tw_err *err)
{
	struct tw_postgres *p;
	enum tw_status st = no_password_in(address, err);

	if (st != TW_OK)
		return st;
	p = tw_mem_zalloc(1, sizeof *p);
	if (!p)
		return tw_postgres_fail(NULL, err);
	p->db.engine = &engine;
	p->address = tw_mem_alloc(strlen(address) + 1, 1);
	if (p->address)
		memcpy(p->address, address, strlen(address) + 1);
	note_hangs(p);
	if (p->address && tw_postgres_may_dial() && connect(p)) {
		*ret = &p->db;
		return TW_OK;
	}
	st = tw_postgres_fail(p->address ? &p->db : NULL, err);
	close_db(&p->db);
	return st;
}

/*
 * catalogue_postgres_wait.c - answers of PostgreSQL are waited for, but not for ever.
 *
 * The limits that PostgreSQL is given do not end a commit that waits for a replica, nor anything
 * where its process or a proxy before it stands still while the machine's network is well.  What
 * waits longer than it could take gives the connection up: what became of a commit is not known
 * then, as where a connection is lost.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/clock.h"
#include "server/db/catalogue_postgres_int.h"
#include "server/db/commit_gate.h"

/* ANSWER_MS is more than statement_timeout; a commit has nothing to compute, and who is in a hurry
 * asks for a row by its key. */
enum {
	ANSWER_MS = 70000,
	COMMIT_MS = 10000,
	COMMIT_AGAIN_MS = 2000, /* after one that did not come back */
	SETTLE_MS = 10000,
	HURRY_MS = 3000,
	FOR_EVER_MS = 1 << 30
};
/* What is not answered for so long hangs; then so long nobody asks, and then one alone looks. */
enum { HANGS_MS = 2000, PAUSE_MS = 1000, LOOK_MS = 5000, OVERDUE_MS = 5000 };

static _Thread_local bool hurried;

/* Monotonic: when it hung last, and when somebody may look again; 0: never, and all may. */
static _Atomic int64_t hung_ms, again_ms;

/* Sessions given up in a hurry since any session was answered last: one is slow by itself, with
 * several it is their server. */
enum { GIVEN_UP_FEW = 1 };
static _Atomic unsigned given_up;

/* The last commit of a writer was given up: while a replica is gone the next one will be, too, and
 * writers wait for each other. */
static _Atomic bool commits_wait;

void tw_catalogue_hurry(bool hurry)
{
	hurried = hurry;
}

bool tw_postgres_hurries(void)
{
	return hurried;
}

/* --- a database that hangs --- */

void tw_postgres_note_hung(int64_t began_ms)
{
	const int64_t now = tw_monotonic_ms();

	if (now - began_ms < HANGS_MS)
		return;
	atomic_store(&hung_ms, now);
	atomic_store(&again_ms, now + PAUSE_MS);
}

void tw_postgres_note_away(int64_t began_ms)
{
	tw_postgres_note_hung(began_ms);
	if (atomic_load(&again_ms) != 0) /* who looked has looked */
		atomic_store(&again_ms, tw_monotonic_ms() + PAUSE_MS);
}

void tw_postgres_suspect_all(void)
{
	atomic_store(&hung_ms, tw_monotonic_ms());
}

void tw_postgres_note_well(void)
{
	atomic_store(&again_ms, 0);
}

/* Its connections of before are as dead as the one that was seen to be, and to learn that of each
 * by waiting takes long. */
bool tw_postgres_is_suspect(const struct tw_postgres *p)
{
	return p->since_ms < atomic_load(&hung_ms);
}

/* Who is in a hurry leaves it to others, unless there are none. */
bool tw_postgres_may_dial(void)
{
	int64_t again = atomic_load(&again_ms);
	const int64_t now = tw_monotonic_ms();

	if (again == 0)
		return true;
	return now >= again + (hurried ? OVERDUE_MS : 0) &&
	       atomic_compare_exchange_strong(&again_ms, &again, now + LOOK_MS);
}

/* --- waiting --- */

/* What is written is of many, and not given up for one. */
static bool is_hurried(const struct tw_postgres *p)
{
	return hurried && p->hold == TW_POSTGRES_FREE;
}

static bool is_commit(const char *sql)
{
	return strcmp(sql, "COMMIT") == 0;
}

static int64_t limit_ms_of(const struct tw_postgres *p, const char *sql)
{
	if (p->patient)
		return FOR_EVER_MS;
	if (is_hurried(p))
		return HURRY_MS;
	if (!p->settled)
		return SETTLE_MS;
	if (!is_commit(sql))
		return ANSWER_MS;
	return atomic_load(&commits_wait) ? COMMIT_AGAIN_MS : COMMIT_MS;
}

/* libpq finds it closed, and says so. */
void tw_postgres_give_up(struct tw_postgres *p)
{
	if (PQsocket(p->of) >= 0)
		(void)shutdown(PQsocket(p->of), SHUT_RDWR);
}

/* False: the time is over. */
static bool wait_for(PGconn *of, short events, int64_t until_ms)
{
	struct pollfd at = {.fd = PQsocket(of), .events = events};
	int64_t left;
	int n = 0;

	while ((left = until_ms - tw_monotonic_ms()) > 0) {
		n = poll(&at, 1, (int)left);
		if (n > 0 || (n < 0 && errno != EINTR))
			return true;
	}
	return false;
}

/* What was given up waits on in its server, and keeps the lock of who writes until it is through.
 */
const char *tw_postgres_begin(const char *sql)
{
	if (strcmp(sql, "BEGIN IMMEDIATE") != 0 || !atomic_load(&commits_wait))
		return sql;
	return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout='2s';"
	       " SELECT writer FROM catalogue_writer FOR UPDATE";
}

/* True also when the connection is lost, which the result tells. */
static bool is_sent(PGconn *of, int64_t until_ms)
{
	while (PQflush(of) == 1) {
		if (!wait_for(of, POLLIN | POLLOUT, until_ms))
			return false;
		if (!PQconsumeInput(of))
			return true;
	}
	return true;
}

static bool has_come(PGconn *of, int64_t until_ms)
{
	while (PQisBusy(of)) {
		if (!wait_for(of, POLLIN, until_ms))
			return false;
		if (!PQconsumeInput(of))
			return true;
	}
	return true;
}

/* Who is not in a hurry asks what may take long. */
static void note_lost_after(const struct tw_postgres *p, int64_t began_ms)
{
	if (!p->gave_up || (is_hurried(p) && atomic_fetch_add(&given_up, 1) >= GIVEN_UP_FEW))
		tw_postgres_note_hung(began_ms);
}

PGresult *tw_postgres_answer_within(struct tw_postgres *p, int sent, int64_t limit_ms)
{
	const int64_t began_ms = tw_monotonic_ms(), until_ms = began_ms + limit_ms;
	PGresult *last = NULL, *r;

	p->gave_up = false;
	if (!sent)
		return NULL;
	do {
		if (!is_sent(p->of, until_ms) || !has_come(p->of, until_ms)) {
			p->gave_up = true;
			tw_postgres_give_up(p);
		}
		r = PQgetResult(p->of);
		if (r) {
			PQclear(last);
			last = r;
		}
	} while (r);
	if (PQstatus(p->of) == CONNECTION_BAD)
		note_lost_after(p, began_ms);
	else
		atomic_store(&given_up, 0);
	return last;
}

PGresult *tw_postgres_answer(struct tw_postgres *p, int sent, const char *sql)
{
	PGresult *r = tw_postgres_answer_within(p, sent, limit_ms_of(p, sql));

	if (is_commit(sql) && p->hold != TW_POSTGRES_FREE)
		atomic_store(&commits_wait, p->gave_up);
	return r;
}

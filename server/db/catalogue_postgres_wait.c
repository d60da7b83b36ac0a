/*
 * catalogue_postgres_wait.c - limits the wait for PostgreSQL's answers.
 *
 * PostgreSQL's own limits do not end a commit that waits for a replica, nor a wait for a stopped
 * server process or proxy behind a working network.  A request that waits longer than its limit
 * gives the connection up: the outcome of a commit is then unknown, as after a lost connection.
 * Queries may take long, so their limit is long, but they are also given up once requests with a
 * short timeout show that the server does not respond at all.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/clock.h"
#include "server/db/catalogue_postgres_int.h"
#include "server/db/commit_gate.h"

/* ANSWER_MS exceeds statement_timeout; a commit computes nothing, and threads with a short timeout
 * only look up rows by key. */
enum {
	ANSWER_MS = 70000,
	COMMIT_MS = 10000,
	COMMIT_AGAIN_MS = 2000, /* after a commit that timed out */
	SETTLE_MS = 10000,
	SHORT_MS = 3000,
	FOR_EVER_MS = 1 << 30
};
/* A request unanswered for HANGS_MS means that the server hangs; no thread retries for PAUSE_MS,
 * and then one at a time does. */
enum { HANGS_MS = 2000, PAUSE_MS = 1000, ATTEMPT_MS = 5000, OVERDUE_MS = 5000, POLL_MS = 250 };

static _Thread_local bool short_timeout;

/* Monotonic: when it last hung, and when the next attempt is allowed; 0: never, and any time. */
static _Atomic int64_t hung_ms, again_ms;

/* Sessions with a short timeout given up since any session was last answered: one may be slow by
 * itself, with several the server hangs. */
enum { GIVEN_UP_FEW = 1 };
static _Atomic unsigned given_up;

/* Neither sessions nor new connections are answered. */
static _Atomic bool silent;

/* The last commit of a writer was given up: while a replica is down the next ones will be too, and
 * writers wait for each other. */
static _Atomic bool commits_wait;

void tw_catalogue_shorten_timeout(bool shorten)
{
	short_timeout = shorten;
}

bool tw_postgres_timeout_is_short(void)
{
	return short_timeout;
}

/* --- a server that hangs --- */

/* A request since began_ms was not answered: the server hangs.  Until it responds, only one thread
 * of all connections at a time sends requests. */
static void note_hung(int64_t began_ms)
{
	const int64_t now = tw_monotonic_ms();

	if (now - began_ms < HANGS_MS)
		return;
	atomic_store(&hung_ms, now);
	atomic_store(&again_ms, now + PAUSE_MS);
}

void tw_postgres_note_away(int64_t began_ms)
{
	note_hung(began_ms);
	if (tw_monotonic_ms() - began_ms >= HANGS_MS)
		atomic_store(&silent, true);
	if (atomic_load(&again_ms) != 0) /* the current attempt has ended */
		atomic_store(&again_ms, tw_monotonic_ms() + PAUSE_MS);
}

void tw_postgres_suspect_all(void)
{
	atomic_store(&hung_ms, tw_monotonic_ms());
}

void tw_postgres_note_well(void)
{
	atomic_store(&again_ms, 0);
	atomic_store(&silent, false);
}

/* Older connections are probably dead as well, and finding that out by waiting for each takes
 * long. */
bool tw_postgres_is_suspect(const struct tw_postgres *p)
{
	return p->since_ms < atomic_load(&hung_ms);
}

/* Threads with a short timeout leave the attempt to others, unless there are none. */
bool tw_postgres_may_dial(void)
{
	int64_t again = atomic_load(&again_ms);
	const int64_t now = tw_monotonic_ms();

	if (again == 0)
		return true;
	return now >= again + (short_timeout ? OVERDUE_MS : 0) &&
	       atomic_compare_exchange_strong(&again_ms, &again, now + ATTEMPT_MS);
}

/* --- waiting --- */

/* Transactions affect many requests, and are not given up for a single one. */
static bool has_short_timeout(const struct tw_postgres *p)
{
	return short_timeout && p->hold == TW_POSTGRES_FREE;
}

static bool is_commit(const char *sql)
{
	return strcmp(sql, "COMMIT") == 0;
}

static int64_t limit_ms_of(const struct tw_postgres *p, const char *sql)
{
	if (p->patient)
		return FOR_EVER_MS;
	if (has_short_timeout(p))
		return SHORT_MS;
	if (!p->configured)
		return SETTLE_MS;
	if (!is_commit(sql))
		return ANSWER_MS;
	return atomic_load(&commits_wait) ? COMMIT_AGAIN_MS : COMMIT_MS;
}

/* libpq then reports the connection as closed. */
void tw_postgres_give_up(struct tw_postgres *p)
{
	if (PQsocket(p->of) >= 0)
		(void)shutdown(PQsocket(p->of), SHUT_RDWR);
}

/* A wait for a request's answer. */
struct wait {
	PGconn *of;
	int64_t began_ms, until_ms;
	bool is_query; /* given up early if the server does not respond to any connection */
};

static bool is_unresponsive(const struct wait *w, int64_t now)
{
	return w->is_query && now - w->began_ms >= HANGS_MS && atomic_load(&silent);
}

/* False: timeout. */
static bool wait_for(const struct wait *w, short events)
{
	struct pollfd at = {.fd = PQsocket(w->of), .events = events};
	int64_t now;
	int n = 0;

	while ((now = tw_monotonic_ms()) < w->until_ms && !is_unresponsive(w, now)) {
		const int64_t left = w->until_ms - now;

		n = poll(&at, 1, (int)(w->is_query && left > POLL_MS ? POLL_MS : left));
		if (n > 0 || (n < 0 && errno != EINTR))
			return true;
	}
	return false;
}

/* True also if the connection is lost, which the result shows. */
static bool is_sent(const struct wait *w)
{
	while (PQflush(w->of) == 1) {
		if (!wait_for(w, POLLIN | POLLOUT))
			return false;
		if (!PQconsumeInput(w->of))
			return true;
	}
	return true;
}

static bool has_come(const struct wait *w)
{
	while (PQisBusy(w->of)) {
		if (!wait_for(w, POLLIN))
			return false;
		if (!PQconsumeInput(w->of))
			return true;
	}
	return true;
}

/* Requests of threads without a short timeout may take long. */
static void note_lost_after(const struct tw_postgres *p, int64_t began_ms)
{
	const bool many = p->gave_up && has_short_timeout(p) &&
	                  atomic_fetch_add(&given_up, 1) >= GIVEN_UP_FEW;

	if (many)
		atomic_store(&silent, true);
	if (many || !p->gave_up)
		note_hung(began_ms);
}

PGresult *tw_postgres_result_within(struct tw_postgres *p, int sent, int64_t limit_ms)
{
	const int64_t began_ms = tw_monotonic_ms();
	const struct wait w = {p->of, began_ms, began_ms + limit_ms, limit_ms == ANSWER_MS};
	PGresult *last = NULL, *r;

	p->gave_up = false;
	if (!sent)
		return NULL;
	do {
		if (!is_sent(&w) || !has_come(&w)) {
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
	else {
		atomic_store(&given_up, 0);
		atomic_store(&silent, false);
	}
	return last;
}

PGresult *tw_postgres_answer(struct tw_postgres *p, int sent, const char *sql)
{
	PGresult *r = tw_postgres_result_within(p, sent, limit_ms_of(p, sql));

	if (is_commit(sql) && p->hold != TW_POSTGRES_FREE)
		atomic_store(&commits_wait, p->gave_up);
	return r;
}

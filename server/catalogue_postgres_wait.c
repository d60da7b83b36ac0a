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
#include <string.h>
#include <sys/socket.h>

#include "catalogue_postgres_int.h"
#include "clock.h"

/* More than statement_timeout; a commit has nothing to compute. */
enum { ANSWER_MS = 70000, COMMIT_MS = 10000, SETTLE_MS = 10000, FOR_EVER_MS = 1 << 30 };

int64_t tw_postgres_limit_ms(const struct tw_postgres *p, const char *sql)
{
	if (p->patient)
		return FOR_EVER_MS;
	if (!p->settled)
		return SETTLE_MS;
	return strcmp(sql, "COMMIT") == 0 ? COMMIT_MS : ANSWER_MS;
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

PGresult *tw_postgres_answer(struct tw_postgres *p, int sent, int64_t limit_ms)
{
	const int64_t until_ms = tw_monotonic_ms() + limit_ms;
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
	return last;
}

/*
 * catalogue_postgres_hosts.c - which of several hosts has the catalogue.
 *
 * libpq takes the first that lets it write.  After a fail-over that may be the old primary, started
 * again as if nothing had been: it lacks what was written since.  Each fail-over begins a new
 * timeline of the same database system, so one of an earlier timeline than this process has seen is
 * none, and the next host is asked.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "catalogue_postgres_int.h"
#include "log.h"

enum { LIST_BYTES = 1024, TIMELINE_BYTES = 9, ASK_MS = 10000 };

static const char ask_timeline[] =
        "SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
        " FROM pg_control_system()";

/* --- timelines --- */

/* The latest that was seen, of the system that was seen last. */
static struct {
	pthread_mutex_t lock;
	char system[24];
	char timeline[TIMELINE_BYTES]; /* in digits that sort as they count */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_earlier(const char *system, const char *timeline)
{
	bool earlier;

	(void)pthread_mutex_lock(&seen.lock);
	if (strcmp(seen.system, system) != 0) {
		(void)snprintf(seen.system, sizeof seen.system, "%s", system);
		seen.timeline[0] = '\0';
	}
	earlier = strcmp(timeline, seen.timeline) < 0;
	if (!earlier)
		(void)snprintf(seen.timeline, sizeof seen.timeline, "%s", timeline);
	(void)pthread_mutex_unlock(&seen.lock);
	return earlier;
}

/* What does not know the question (not every service lets it be asked) is believed. */
bool tw_postgres_is_stale(struct tw_postgres *p)
{
	PGresult *r = tw_postgres_answer(p, PQsendQuery(p->of, ask_timeline), ASK_MS);
	bool stale = false;

	if (r && PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1)
		stale = is_earlier(PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1));
	PQclear(r);
	if (stale)
		tw_log(TW_LOG_WARN, "catalogue_stale", tw_log_text("host", PQhost(p->of)),
		        tw_log_text("port", PQport(p->of)));
	return stale;
}

/* --- hosts --- */

unsigned tw_postgres_hosts(const char *address)
{
	PQconninfoOption *all = PQconninfoParse(address, NULL);
	unsigned most = 1;

	for (const PQconninfoOption *o = all; o && o->keyword; o++) {
		unsigned n = 1;

		if (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0)
			continue;
		for (const char *at = o->val; at && (at = strchr(at, ',')) != NULL; at++)
			n++;
		most = n > most ? n : most;
	}
	PQconninfoFree(all);
	return most;
}

/* "a,b,c" from the second on: "b,c,a"; it is shorter than LIST_BYTES. */
static void turn_list(const char *list, unsigned by, char ret[LIST_BYTES])
{
	const size_t len = strlen(list);
	const char *from = list;
	size_t head;

	for (; by && strchr(from, ','); by--)
		from = strchr(from, ',') + 1;
	head = (size_t)(from - list);
	memcpy(ret, from, len - head + 1);
	if (!head)
		return;
	ret[len - head] = ',';
	memcpy(ret + (len - head) + 1, list, head - 1);
	ret[len] = '\0';
}

/* What is set behind the address goes before what stands in it. */
void tw_postgres_dial(struct tw_postgres *p)
{
	static const char *const lists[] = {"host", "hostaddr", "port"};
	const char *names[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	        "keepalives_count", "tcp_user_timeout", "target_session_attrs",
	        "fallback_application_name", "dbname", "client_encoding", NULL, NULL, NULL, NULL};
	const char *values[] = {"5", "10", "5", "3", "20000", "read-write", "tracewell", p->address,
	        "UTF8", NULL, NULL, NULL, NULL};
	PQconninfoOption *all = PQconninfoParse(p->address, NULL);
	const unsigned n_hosts = tw_postgres_hosts(p->address);
	char turned[3][LIST_BYTES];
	unsigned n = 9;

	for (const PQconninfoOption *o = all; n_hosts > 1 && o && o->keyword; o++)
		for (unsigned i = 0; i < 3; i++)
			if (o->val && strcmp(o->keyword, lists[i]) == 0 &&
			        strlen(o->val) + 1 < LIST_BYTES) {
				turn_list(o->val, p->turn % n_hosts, turned[i]);
				names[n] = lists[i];
				values[n++] = turned[i];
			}
	PQconninfoFree(all);
	PQfinish(p->of);
	p->of = PQconnectdbParams(names, values, 1);
}

/*
 * catalogue_postgres_hosts.c - selects one of several hosts.
 *
 * The right host accepts writes.  The last one used is tried first, as otherwise each connection
 * would wait for a host that is down.  After a fail-over the old primary may be started again as if
 * nothing had happened: it lacks later writes.  Each fail-over starts a new timeline of the same
 * database system, so a host on an earlier timeline than this process has seen is rejected.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "server/base/log.h"
#include "server/db/catalogue_postgres_int.h"

enum { LIST_BYTES = 1024, TIMELINE_BYTES = 9, QUERY_MS = 10000 };

static const char query_timeline[] =
        "SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
        " FROM pg_control_system()";

/* --- timelines --- */

/* The latest timeline seen, of the last system seen. */
static struct {
	pthread_mutex_t lock;
	char system[24];
	char timeline[TIMELINE_BYTES]; /* zero-padded, so that it sorts numerically */
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
	if (seen.timeline[0] && strcmp(timeline, seen.timeline) > 0)
		tw_postgres_suspect_all(); /* some connections may be to the old primary */
	if (!earlier)
		(void)snprintf(seen.timeline, sizeof seen.timeline, "%s", timeline);
	(void)pthread_mutex_unlock(&seen.lock);
	return earlier;
}

/* A host that does not support the query (not every service allows it) is accepted. */
bool tw_postgres_is_stale(struct tw_postgres *p)
{
	PGresult *r = tw_postgres_result_within(p, PQsendQuery(p->of, query_timeline), QUERY_MS);
	bool stale = false;

	if (r && PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1)
		stale = is_earlier(PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1));
	PQclear(r);
	if (stale)
		tw_log(TW_LOG_WARN, "catalogue_stale", tw_log_text("host", PQhost(p->of)),
		        tw_log_text("port", PQport(p->of)),
		        tw_log_text("remedy", "remove or rewind it; if the switch back was "
		                              "intended, restart tracewell"));
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

/* The item of "a,b,c" at that index; a list of one always gives its item. */
static void pick(const char *list, unsigned at, char ret[LIST_BYTES])
{
	const char *from = list;
	size_t len;

	for (; at && strchr(from, ','); at--)
		from = strchr(from, ',') + 1;
	len = strcspn(from, ",");
	(void)snprintf(ret, LIST_BYTES, "%.*s", (int)(len < LIST_BYTES ? len : 0), from);
}

/* Parameters appended to the address override its own.  The connect timeout is short, as another
 * host may be the right one and many requests wait. */
void tw_postgres_dial(struct tw_postgres *p, unsigned host)
{
	static const char *const lists[] = {"host", "hostaddr", "port"};
	const char *names[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	        "keepalives_count", "tcp_user_timeout", "target_session_attrs",
	        "fallback_application_name", "dbname", "client_encoding", NULL, NULL, NULL, NULL};
	const char *values[] = {tw_postgres_timeout_is_short() ? "2" : "4", "4", "2", "2", "8000",
	        "read-write", "tracewell", p->address, "UTF8", NULL, NULL, NULL, NULL};
	PQconninfoOption *all = PQconninfoParse(p->address, NULL);
	const bool several = tw_postgres_hosts(p->address) > 1;
	char picked[3][LIST_BYTES];
	unsigned n = 9;

	for (const PQconninfoOption *o = all; several && o && o->keyword; o++)
		for (unsigned i = 0; i < 3; i++)
			if (o->val && strcmp(o->keyword, lists[i]) == 0) {
				pick(o->val, host, picked[i]);
				names[n] = lists[i];
				values[n++] = picked[i];
			}
	PQconninfoFree(all);
	PQfinish(p->of);
	p->of = PQconnectdbParams(names, values, 1);
}

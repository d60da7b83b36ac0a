/*
 * catalogue_postgres_plan.c - prepared statements: PostgreSQL parses a statement once per
 * connection and, if that costs no more, plans it once.
 *
 * A plan is made from the sizes of the tables at that time.  PostgreSQL renews it after ANALYZE,
 * which autovacuum runs about a minute after a table has grown.  A new catalogue grows from nothing
 * within seconds, so a connection also renews its plans itself: after a second, and each time after
 * twice as long.
 */
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/hash.h"
#include "server/base/clock.h"
#include "server/db/catalogue_postgres_int.h"

enum { LIFE_FIRST_MS = 1000, LIFE_MAX_MS = 60000 };

static void forget_all(struct tw_postgres_prepared *a)
{
	for (unsigned i = 0; i < a->n; i++)
		tw_mem_free(a->texts[i]);
	a->n = 0;
}

void tw_postgres_forget_plans(struct tw_postgres *p)
{
	forget_all(&p->prepared);
	p->prepared.there = false;
	p->prepared.life_ms = LIFE_FIRST_MS;
	p->prepared.until_ms = tw_monotonic_ms() + LIFE_FIRST_MS;
}

static void deallocate(struct tw_postgres *p)
{
	static const char all[] = "DEALLOCATE ALL";

	forget_all(&p->prepared);
	p->prepared.there = false;
	PQclear(tw_postgres_answer(p, PQsendQuery(p->of, all), all));
}

void tw_postgres_renew_plans(struct tw_postgres *p)
{
	struct tw_postgres_prepared *a = &p->prepared;
	const int64_t now = tw_monotonic_ms();

	if (now < a->until_ms)
		return;
	a->life_ms = a->life_ms < LIFE_MAX_MS / 2 ? 2 * a->life_ms : LIFE_MAX_MS;
	a->until_ms = now + a->life_ms;
	if (a->there)
		deallocate(p);
}

bool tw_postgres_outdated(struct tw_postgres *p, const PGresult *r)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	/* columns changed their types; the session was reset, as by a pooler */
	if (!state || (strcmp(state, "0A000") != 0 && strcmp(state, "26000") != 0) ||
	        p->prepared.n == 0)
		return false;
	forget_all(&p->prepared);
	p->prepared.until_ms = 0; /* the next renewal drops them in the session */
	return true;
}

/* The same text with parameters of other types is another statement. */
static uint64_t key_of(const char *sql, const struct tw_postgres_values *v)
{
	uint64_t key = tw_hash_str(tw_str_of(sql), 0);

	if (v->n)
		key = tw_hash_str(
		        (struct tw_str){(const char *)v->types, (size_t)v->n * sizeof *v->types},
		        key);
	return key ? key : 1;
}

static bool seen_before(struct tw_postgres_prepared *a, uint64_t key)
{
	uint64_t *at = &a->seen[key % TW_POSTGRES_SEEN];
	const bool seen = *at == key;

	*at = key;
	return seen;
}

static int prepare(struct tw_postgres *p, uint64_t key, const char *sql,
        const struct tw_postgres_values *v, const char *name, PGresult **ret_failed)
{
	struct tw_postgres_prepared *a = &p->prepared;
	char *copy = tw_mem_alloc(strlen(sql) + 1, 1);
	PGresult *r;

	if (!copy)
		return -1;
	r = tw_postgres_answer(p, PQsendPrepare(p->of, name, sql, v->n, v->types), sql);
	if (PQresultStatus(r) != PGRES_COMMAND_OK) {
		tw_mem_free(copy);
		*ret_failed = r;
		return -1;
	}
	PQclear(r);
	a->there = true;
	memcpy(copy, sql, strlen(sql) + 1);
	a->keys[a->n] = key;
	a->texts[a->n] = copy;
	return (int)a->n++;
}

int tw_postgres_name(struct tw_postgres *p, const char *sql, const struct tw_postgres_values *v,
        char name[TW_POSTGRES_NAME], PGresult **ret_failed)
{
	static const char by_values[] = "SELECT " TW_DB_BY_VALUES;
	struct tw_postgres_prepared *a = &p->prepared;
	const uint64_t key = key_of(sql, v);
	unsigned at = 0;

	if (strncmp(sql, by_values, sizeof by_values - 1) == 0)
		return -1;
	while (at < a->n && (a->keys[at] != key || strcmp(a->texts[at], sql) != 0))
		at++;
	(void)snprintf(name, TW_POSTGRES_NAME, "s%u", at);
	if (at < a->n)
		return (int)at;
	if (at == TW_POSTGRES_PREPARED || !seen_before(a, key))
		return -1;
	return prepare(p, key, sql, v, name, ret_failed);
}

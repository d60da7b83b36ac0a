/*
 * plan_postgres.h - PostgreSQL's plans of the statements of a session over all functions of the
 * catalogue.
 */
#ifndef PLAN_POSTGRES_H
#define PLAN_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

struct tw_db;

enum { PLAN_SQL = 6144, PLAN_STATEMENTS = 1000 };

/* Whether PostgreSQL accepts the statement on a connection to the catalogue. */
bool plan_postgres_takes(struct tw_db *db, const char *sql);
/* Fails if a plan does not use one.  Does nothing without a server. */
void plan_on_postgres(const char *dir, char (*statements)[PLAN_SQL], size_t n);

#endif

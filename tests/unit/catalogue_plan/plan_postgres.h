/*
 * plan_postgres.h - statements of a session over all functions of the catalogue, as SQLite saw
 * them, put before PostgreSQL.
 */
#ifndef PLAN_POSTGRES_H
#define PLAN_POSTGRES_H

#include <stddef.h>

enum { PLAN_SQL = 6144, PLAN_STATEMENTS = 512 };

/* Fails if a plan does not use one.  Does nothing without a server. */
void plan_on_postgres(const char *dir, char (*statements)[PLAN_SQL], size_t n);

#endif

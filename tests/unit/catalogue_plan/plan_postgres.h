/*
 * plan_postgres.h - statements of a session over all functions of the catalogue, as SQLite saw
 * them, put before PostgreSQL.
 */
#ifndef PLAN_POSTGRES_H
#define PLAN_POSTGRES_H

#include <stddef.h>

enum { PLAN_SQL = 4096, PLAN_STATEMENTS = 512 };

/* Fails where it takes one not.  Nothing happens where there is no server. */
void plan_on_postgres(const char *dir, char (*statements)[PLAN_SQL], size_t n);

#endif

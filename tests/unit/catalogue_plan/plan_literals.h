/*
 * plan_literals.h - the statements in the object files of the catalogue, so that the plans of
 * those that the test does not run are checked, too.
 */
#ifndef PLAN_LITERALS_H
#define PLAN_LITERALS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether it reads or writes rows, in any dialect. */
bool plan_is_statement(const char *sql);

struct plan_literals {
	/* Whether the test has run a statement that contains the text. */
	bool (*is_run)(void *arg, const char *text);
	/* A complete statement, with "*" for its columns.  False: no engine accepts it. */
	bool (*take)(void *arg, const char *sql);
	void *arg;
};

/* Prints the statements that were neither run nor accepted and returns their number; *ret_n is the
 * number of literals. */
size_t plan_read_literals(const struct plan_literals *l, size_t *ret_n);

#endif

/*
 * unit.h - a file of unit tests, one of several in a program.
 *
 *   static const struct CMUnitTest tests[] = {cmocka_unit_test(test_this), ...};
 *   UNIT_TESTS("art", tests)          or UNIT_TESTS_WITH("art", tests, setup, teardown) for the
 * group
 *
 * The program has the files that tests/meson.build lists for it.  `unit_formats` runs all of them,
 * `unit_formats art` one file, `unit_formats art 'test_half*'` some of its tests, `unit_formats
 * --list` prints "file test" lines.
 */
#ifndef TW_UNIT_H
#define TW_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct unit_file {
	const char *name;
	const struct CMUnitTest *tests;
	size_t n;
	CMFixtureFunction setup, teardown; /* of the group; NULL: none */
	struct unit_file *next;
};

void unit_register(struct unit_file *file);

#define UNIT_TESTS(file_name, table) UNIT_TESTS_WITH(file_name, table, NULL, NULL)
#define UNIT_TESTS_WITH(file_name, table, group_setup, group_teardown)                             \
	static void __attribute__((constructor)) unit_register_tests(void)                         \
	{                                                                                          \
		static struct unit_file file = {.name = file_name,                                 \
		        .tests = table,                                                            \
		        .n = sizeof(table) / sizeof *(table),                                      \
		        .setup = group_setup,                                                      \
		        .teardown = group_teardown};                                               \
		unit_register(&file);                                                              \
	}

/* The path of a file of the checkout.  The text is valid until the next call. */
const char *unit_source(const char *name);

/* Skips the calling test, with "needs WHAT" as the reason, if that is not there.  Call it before
 * the test allocates anything. */
void unit_needs(bool there, const char *what);

/* The path of a real recording: $TRACEWELL_SAMPLES/name, by default ../shared/samples next to the
 * checkout.  Skips the calling test if the file does not exist, like unit_needs.  The text is valid
 * until the next call. */
const char *unit_sample(const char *name);

#endif

/* Unit tests of role.c: each set of roles as text and back, and invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/base/role.h"
#include "tests/unit/unit.h"

static void every_set_comes_back(void **state)
{
	(void)state;
	for (unsigned roles = 1; roles <= TW_ROLE_ALL; roles++) {
		char text[64];
		unsigned back = 0;

		tw_roles_write(roles, text, sizeof text);
		assert_int_equal(tw_roles_parse(text, &back, NULL), TW_OK);
		assert_int_equal(back, roles);
	}
}

static void all_is_one_word(void **state)
{
	char text[64];
	unsigned roles = 0;

	(void)state;
	assert_int_equal(tw_roles_parse("query,ingest,decode", &roles, NULL), TW_OK);
	assert_int_equal(roles, TW_ROLE_ALL);
	tw_roles_write(roles, text, sizeof text);
	assert_string_equal(text, "all");
}

static void other_words_are_refused(void **state)
{
	static const char *const wrong[] = {"", "cook", "ingest,", ",ingest", "ingest,,query",
	        "Ingest", "ingest query", "all,cook"};
	struct tw_err err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		unsigned roles = 99;

		assert_int_equal(tw_roles_parse(wrong[i], &roles, &err), TW_BAD_REQUEST);
		assert_non_null(strstr(err.msg, "must be ingest, decode, query or all"));
		assert_int_equal(roles, 99);
	}
}

static void a_short_buffer_is_cut(void **state)
{
	char text[8];

	(void)state;
	tw_roles_write(TW_ROLE_INGEST | TW_ROLE_QUERY, text, sizeof text);
	assert_string_equal(text, "ingest,");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_comes_back),
        cmocka_unit_test(all_is_one_word),
        cmocka_unit_test(other_words_are_refused),
        cmocka_unit_test(a_short_buffer_is_cut),
};

UNIT_TESTS("role", tests)

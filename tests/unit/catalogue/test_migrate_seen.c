/* Files that a run found in the target: each with its very content, and as many as there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "decoder/base/arena.h"
#include "server/ops/migrate_seen.h"
#include "tests/unit/unit.h"

static struct tw_migrate_file file(unsigned n, unsigned content)
{
	struct tw_migrate_file f = {.bytes = 1};

	(void)snprintf(f.key, sizeof f.key, "traces/%02x/%u.db", n % 256, n);
	(void)snprintf(f.sha256, sizeof f.sha256, "%064x", content);
	return f;
}

static void test_many(void **state)
{
	struct tw_migrate_seen *s = tw_migrate_seen_new();

	(void)state;
	assert_non_null(s);
	for (unsigned i = 0; i < 20000; i++) {
		const struct tw_migrate_file f = file(i, i);

		assert_false(tw_migrate_seen_has(s, &f));
		tw_migrate_seen_add(s, &f);
		tw_migrate_seen_add(s, &f);
	}
	for (unsigned i = 0; i < 20000; i++) {
		const struct tw_migrate_file f = file(i, i), again = file(i, i + 1);

		assert_true(tw_migrate_seen_has(s, &f));
		assert_false(tw_migrate_seen_has(s, &again)); /* decoded again since */
	}
	assert_null(tw_migrate_seen_free(s));
}

static void test_an_unknown_content_is_never_seen(void **state)
{
	struct tw_migrate_seen *s = tw_migrate_seen_new();
	struct tw_migrate_file f = file(1, 1);

	(void)state;
	f.sha256[0] = '\0';
	tw_migrate_seen_add(s, &f);
	assert_false(tw_migrate_seen_has(s, &f));
	assert_null(tw_migrate_seen_free(s));
	assert_null(tw_migrate_seen_free(NULL));
}

static void test_keys_alone(void **state)
{
	struct tw_migrate_seen *s = tw_migrate_seen_new();
	const struct tw_migrate_file f = file(7, 7);

	(void)state;
	assert_false(tw_migrate_seen_may_have_key(s, f.key));
	tw_migrate_seen_add_key(s, f.key);
	assert_true(tw_migrate_seen_may_have_key(s, f.key));
	assert_false(tw_migrate_seen_may_have_key(s, "blobs/00/x"));
	assert_false(tw_migrate_seen_has(s, &f));
	assert_null(tw_migrate_seen_free(s));
}

/* A file omitted for lack of memory may still exist. */
static void test_without_memory(void **state)
{
	struct tw_migrate_seen *s = tw_migrate_seen_new();

	(void)state;
	tw_mem_fail_at(1);
	for (unsigned i = 0; i < 600; i++) {
		const struct tw_migrate_file f = file(i, i);

		tw_migrate_seen_add_key(s, f.key);
	}
	tw_mem_fail_at(0);
	assert_true(tw_migrate_seen_may_have_key(s, "blobs/00/x"));
	assert_null(tw_migrate_seen_free(s));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_an_unknown_content_is_never_seen),
        cmocka_unit_test(test_keys_alone),
        cmocka_unit_test(test_without_memory),
};

UNIT_TESTS("migrate_seen", tests)

/* The record of changes: on whose behalf, found again, forgotten in time, and never left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/catalogue.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { FEW = 5, PAGE = 500 /* at most */, AT_ONCE = 1000 /* forgotten */ };

struct record {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_audit_entry *entries;
	size_t n;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct record r;

	memcpy(r.dir, "/tmp/tw-audit-XXXXXX", sizeof "/tmp/tw-audit-XXXXXX");
	assert_non_null(mkdtemp(r.dir));
	r.c = catalogue_in(r.dir);
	r.arena = tw_arena_new(64 << 20);
	*state = &r;
	return 0;
}

static int teardown(void **state)
{
	struct record *r = *state;

	tw_actor_set(NULL);
	r->c = tw_catalogue_close(r->c);
	r->arena = tw_arena_free(r->arena);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void make(struct record *r, const char *name)
{
	char id[TW_ID_BYTES];

	assert_int_equal(tw_catalogue_user_add(r->c, name, "", false, id, NULL), TW_OK);
}

/* How many entries there are of that kind, newest first in r->entries. */
static size_t ask(struct record *r, struct tw_audit_query of)
{
	of.action = of.action ? of.action : "";
	of.by = of.by ? of.by : "";
	of.target = of.target ? of.target : "";
	of.limit = of.limit ? of.limit : PAGE;
	assert_int_equal(tw_catalogue_audit(r->c, &of, r->arena, &r->entries, &r->n, NULL), TW_OK);
	return r->n;
}

/* --- who --- */

static void *other_thread(void *arg)
{
	*(const char **)arg = tw_actor_get()->kind;
	return NULL;
}

static void test_each_thread_for_itself(void **state)
{
	const struct tw_actor ann = {"user", "1", "ann", "10.0.0.1", "req"};
	const char *kind = "";
	pthread_t thread;

	(void)state;
	assert_string_equal(tw_actor_get()->kind, "server");
	tw_actor_set(&ann);
	assert_string_equal(tw_actor_get()->name, "ann");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &kind), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(kind, "server");
	tw_actor_set(NULL);
	assert_string_equal(tw_actor_get()->kind, "server");
	tw_actor_set_cli();
	assert_string_equal(tw_actor_get()->kind, "cli");
	assert_true(strlen(tw_actor_get()->name) > 0);
	tw_actor_set(NULL);
}

static void test_an_entry_has_all_fields(void **state)
{
	const struct tw_actor ann = {"user", "1", "ann", "10.0.0.1", "req"};
	struct record *r = *state;

	tw_actor_set(&ann);
	make(r, "bob");
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "user.create"}), 1);
	assert_string_equal(r->entries[0].by.kind, "user");
	assert_string_equal(r->entries[0].by.id, "1");
	assert_string_equal(r->entries[0].by.name, "ann");
	assert_string_equal(r->entries[0].by.address, "10.0.0.1");
	assert_string_equal(r->entries[0].by.request_id, "req");
	assert_string_equal(r->entries[0].target, "bob");
	assert_string_equal(r->entries[0].project_id, "");
	assert_true(r->entries[0].at_ms > 0);
	assert_non_null(strstr(r->entries[0].facts, "\"admin\":\"false\""));
}

/* A change that failed has no audit entry. */
static void test_a_refusal_leaves_none(void **state)
{
	struct record *r = *state;
	char id[TW_ID_BYTES];
	size_t before;

	make(r, "bob");
	before = ask(r, (struct tw_audit_query){.limit = 0});
	assert_int_equal(tw_catalogue_user_add(r->c, "bob", "", false, id, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_user_remove(r->c, "nobody", NULL), TW_NOT_FOUND);
	assert_int_equal(ask(r, (struct tw_audit_query){.limit = 0}), before);
}

/* --- found again --- */

static void test_filters(void **state)
{
	const struct tw_actor ann = {"user", "1", "ann", "", ""};
	struct record *r = *state;
	char name[16];
	int64_t last;

	for (int i = 0; i < FEW; i++) {
		tw_actor_set(i % 2 ? &ann : NULL);
		(void)snprintf(name, sizeof name, "user%d", i);
		make(r, name);
	}
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "user"}), FEW);
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "use"}), 0);
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "user.creat"}), 0);
	assert_int_equal(ask(r, (struct tw_audit_query){.by = "ann"}), FEW / 2);
	assert_int_equal(ask(r, (struct tw_audit_query){.by = "1"}), FEW / 2);
	assert_int_equal(ask(r, (struct tw_audit_query){.target = "user3"}), 1);
	assert_int_equal(ask(r, (struct tw_audit_query){.project_id = "01"}), 0);
	assert_int_equal(ask(r, (struct tw_audit_query){.target = "x' OR ''='"}), 0);

	assert_int_equal(ask(r, (struct tw_audit_query){.action = "user", .limit = 2}), 2);
	assert_string_equal(r->entries[0].target, "user4");
	last = r->entries[1].id;
	assert_int_equal(
	        ask(r, (struct tw_audit_query){.action = "user", .limit = 9, .before = last}),
	        FEW - 2);
	assert_string_equal(r->entries[0].target, "user2");
	assert_true(r->entries[0].id < last);
}

/* --- forgotten --- */

static void fill(struct record *r, int n)
{
	char name[16];

	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "many%d", i);
		make(r, name);
	}
}

static void test_forgotten_some_at_a_time(void **state)
{
	struct record *r = *state;
	bool more = false;

	fill(r, AT_ONCE + 1);
	assert_int_equal(ask(r, (struct tw_audit_query){.limit = PAGE + 1}), PAGE);
	assert_int_equal(tw_catalogue_audit_expire(r->c, 1, &more, NULL), TW_OK);
	assert_false(more);
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "audit.expire"}), 0);
	assert_int_equal(tw_catalogue_audit_expire(r->c, INT64_MAX, &more, NULL), TW_OK);
	assert_true(more);
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "audit.expire"}), 1);
	assert_non_null(strstr(r->entries[0].facts, "\"entries\":\"1000\""));
	assert_int_equal(ask(r, (struct tw_audit_query){.action = "user"}), 1);
	assert_string_equal(r->entries[0].target, "many1000"); /* the oldest went */
}

#define WITH_RECORD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_thread_for_itself),
        WITH_RECORD(test_an_entry_has_all_fields),
        WITH_RECORD(test_a_refusal_leaves_none),
        WITH_RECORD(test_filters),
        WITH_RECORD(test_forgotten_some_at_a_time),
};

UNIT_TESTS("audit", tests)

/*
 * Unit tests of people: names, passwords, attempts, roles and what ends a session.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/auth/auth_password.h"
#include "server/auth/auth_throttle.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/catalogue.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

struct people {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	char one[TW_ID_BYTES], two[TW_ID_BYTES]; /* projects */
	char ann[TW_ID_BYTES];
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct people p;
	bool is_new;

	memcpy(p.dir, "/tmp/tw-user-XXXXXX", sizeof "/tmp/tw-user-XXXXXX");
	assert_non_null(mkdtemp(p.dir));
	p.c = catalogue_in(p.dir);
	assert_int_equal(tw_catalogue_project(p.c, "one", p.one, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project(p.c, "two", p.two, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_user_add(p.c, "ann", "hash", false, p.ann, NULL), TW_OK);
	p.arena = tw_arena_new(64 << 20);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct people *p = *state;

	p->c = tw_catalogue_close(p->c);
	tw_arena_free(p->arena);
	(void)nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* --- names --- */

static void test_names(void **state)
{
	char longest[TW_USER_NAME_BYTES + 1], name[TW_USER_NAME_BYTES] = "before";
	static const char *const bad[] = {"", "a b", "a/b", "\xc3\xa4", "a\n", "a%", "a'b"};

	(void)state;
	assert_int_equal(tw_user_name("Ann.B_c-1+x@Example.org", name, NULL), TW_OK);
	assert_string_equal(name, "ann.b_c-1+x@example.org");
	memset(longest, 'a', sizeof longest);
	longest[TW_USER_NAME_BYTES] = '\0';
	assert_int_equal(tw_user_name(longest, name, NULL), TW_BAD_REQUEST);
	assert_string_equal(name, "ann.b_c-1+x@example.org"); /* untouched */
	longest[TW_USER_NAME_BYTES - 1] = '\0';
	assert_int_equal(tw_user_name(longest, name, NULL), TW_OK);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(tw_user_name(bad[i], name, NULL), TW_BAD_REQUEST);
}

static void test_accounts(void **state)
{
	struct people *p = *state;
	struct tw_user user;
	char id[TW_ID_BYTES] = "before";

	assert_int_equal(tw_catalogue_user_add(p->c, "ann", "", true, id, NULL), TW_CONFLICT);
	assert_string_equal(id, "before");
	assert_int_equal(tw_catalogue_user_get(p->c, "ann", &user, NULL), TW_OK);
	assert_string_equal(user.id, p->ann);
	assert_string_equal(user.password, "hash");
	assert_false(user.is_admin);
	assert_int_equal(tw_catalogue_user_get(p->c, "bob", &user, NULL), TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_user_change(p->c, "nobody",
	                &(struct tw_user_change){.sets_admin = true, .is_admin = true}, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_user_remove(p->c, "nobody", NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_user_change(
	                         p->c, p->ann, &(struct tw_user_change){.password = "other"}, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_user_get(p->c, "ann", &user, NULL), TW_OK);
	assert_string_equal(user.password, "other");
}

/* A page has at most the limit, and the next one begins after it. */
static void test_pages(void **state)
{
	struct people *p = *state;
	struct tw_user_row *rows;
	char name[16], id[TW_ID_BYTES];
	size_t n;

	for (int i = 0; i < TW_USERS_MAX; i++) {
		(void)snprintf(name, sizeof name, "user%03d", i);
		assert_int_equal(tw_catalogue_user_add(p->c, name, "", false, id, NULL), TW_OK);
	}
	assert_int_equal(tw_catalogue_users(p->c, "", "", p->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, TW_USERS_MAX);
	assert_string_equal(rows[0].name, "ann");
	assert_true(rows[0].has_password);
	assert_false(rows[1].has_password);
	assert_int_equal(
	        tw_catalogue_users(p->c, "", rows[n - 1].name, p->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].name, "user199");
}

/* --- sessions and roles --- */

static const uint8_t cookie[32] = {1}, other_cookie[32] = {2};

static enum tw_status sign_in(struct people *p, const uint8_t *hash, const uint8_t *replaces,
        int64_t idle_ms, int64_t life_ms)
{
	const struct tw_session s = {
	        hash, replaces, p->ann, "", "", idle_ms, tw_unix_ms() + life_ms};

	return tw_catalogue_session_add(p->c, &s, NULL);
}

static enum tw_status cost(struct people *p, const char *project, struct tw_caller *ret)
{
	return tw_catalogue_session_find(p->c, cookie, project, ret, NULL);
}

static void test_roles(void **state)
{
	struct people *p = *state;
	struct tw_caller who;
	struct tw_project_row *projects, project;
	struct tw_user_row *rows;
	size_t n;

	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_OK); /* signed in, and no role anywhere */
	assert_int_equal(who.scope, TW_SCOPE_PUBLIC);
	assert_string_equal(who.user_id, p->ann);
	assert_string_equal(who.project_id, "");
	assert_int_equal(cost(p, p->one, &who), TW_NOT_FOUND);

	assert_int_equal(tw_catalogue_member_set(p->c, p->two, p->ann, TW_SCOPE_READ, NULL), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_OK);
	assert_string_equal(who.project_id, p->two);
	assert_int_equal(who.scope, TW_SCOPE_READ);
	assert_int_equal(cost(p, p->one, &who), TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_member_set(p->c, p->two, p->ann, TW_SCOPE_ADMIN, NULL), TW_OK);
	assert_int_equal(cost(p, p->two, &who), TW_OK);
	assert_int_equal(who.scope, TW_SCOPE_ADMIN);
	assert_int_equal(
	        tw_catalogue_projects_after(p->c, p->ann, "", 9, p->arena, &projects, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(projects[0].name, "two");
	assert_int_equal(tw_catalogue_projects_after(
	                         p->c, p->ann, projects[0].id, 9, p->arena, &projects, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(
	        tw_catalogue_project_get(p->c, p->ann, p->two, p->arena, &project, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_get(p->c, p->ann, p->one, p->arena, &project, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_project_get(p->c, "", p->one, p->arena, &project, NULL), TW_OK);
	assert_int_equal(tw_catalogue_users(p->c, p->one, "", p->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(tw_catalogue_users(p->c, p->two, "", p->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].scope, TW_SCOPE_ADMIN);

	assert_int_equal(
	        tw_catalogue_member_set(p->c, p->two, p->ann, TW_SCOPE_PUBLIC, NULL), TW_OK);
	assert_int_equal(cost(p, p->two, &who), TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_member_set(p->c, p->two, p->ann, TW_SCOPE_PUBLIC, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_member_set(p->c, "nowhere", p->ann, TW_SCOPE_READ, NULL),
	        TW_NOT_FOUND);
}

static void test_admin_of_the_server(void **state)
{
	struct people *p = *state;
	struct tw_caller who;

	assert_int_equal(
	        tw_catalogue_user_change(p->c, p->ann,
	                &(struct tw_user_change){.sets_admin = true, .is_admin = true}, NULL),
	        TW_OK);
	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK);
	assert_int_equal(cost(p, p->two, &who), TW_OK);
	assert_int_equal(who.scope, TW_SCOPE_SERVER);
	assert_string_equal(who.name, "ann");
	assert_int_equal(cost(p, "nowhere", &who), TW_NOT_FOUND);
}

static void test_what_ends_a_session(void **state)
{
	struct people *p = *state;
	struct tw_caller who;

	assert_int_equal(sign_in(p, cookie, NULL, 60000, 0), TW_OK); /* at its end */
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
	assert_int_equal(sign_in(p, cookie, cookie, 0, 60000), TW_OK); /* unseen too long */
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK); /* those have expired */
	assert_int_equal(cost(p, "", &who), TW_OK);
	assert_int_equal(sign_in(p, other_cookie, cookie, 60000, 60000), TW_OK); /* replaced */
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK);
	assert_int_equal(tw_catalogue_sessions_end(p->c, p->ann, NULL), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK);
	assert_int_equal(tw_catalogue_user_change(
	                         p->c, p->ann, &(struct tw_user_change){.password = "new"}, NULL),
	        TW_OK);
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
	assert_int_equal(sign_in(p, cookie, NULL, 60000, 60000), TW_OK);
	assert_int_equal(tw_catalogue_user_remove(p->c, p->ann, NULL), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
}

/* As if so much time had passed since. */
static void pass(struct people *p, const char *what)
{
	struct tw_db *db = catalogue_connect(p->dir);
	char sql[120];

	(void)snprintf(sql, sizeof sql, "UPDATE session SET %s", what);
	catalogue_run(db, sql);
	tw_db_close(db);
}

/* Use extends a session, but not beyond its maximum age. */
static void test_idle_starts_over(void **state)
{
	struct people *p = *state;
	struct tw_caller who;

	assert_int_equal(sign_in(p, cookie, NULL, 3600000, 86400000), TW_OK);
	for (int i = 0; i < 3; i++) {
		pass(p, "seen_ms=seen_ms-3000000");
		assert_int_equal(cost(p, "", &who), TW_OK);
	}
	pass(p, "expires_ms=expires_ms-86400000");
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
}

static void test_session_of_a_key(void **state)
{
	struct people *p = *state;
	const uint8_t key[32] = {7};
	struct tw_caller who;
	char id[TW_ID_BYTES];
	struct tw_session s = {cookie, NULL, "", p->two, id, 60000, tw_unix_ms() + 60000};

	assert_int_equal(tw_catalogue_key_add(p->c,
	                         &(struct tw_key_new){.project_id = p->two,
	                                 .name = "k",
	                                 .scope = TW_SCOPE_WRITE,
	                                 .hash = key},
	                         id, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_session_add(p->c, &s, NULL), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_OK);
	assert_int_equal(who.scope, TW_SCOPE_WRITE);
	assert_string_equal(who.project_id, p->two);
	assert_int_equal(tw_catalogue_key_revoke(p->c, p->two, id, NULL), TW_OK);
	assert_int_equal(cost(p, "", &who), TW_NO_TOKEN);
}

/* --- passwords --- */

static void test_passwords(void **state)
{
	char hash[TW_PASSWORD_HASH_BYTES], again[TW_PASSWORD_HASH_BYTES];
	char text[TW_PASSWORD_MAX + 2];
	bool right = false;

	(void)state;
	memset(text, 'x', sizeof text);
	text[TW_PASSWORD_MAX + 1] = '\0';
	assert_int_equal(tw_password_verify(text, "ann", NULL), TW_BAD_REQUEST);
	text[TW_PASSWORD_MAX] = '\0';
	assert_int_equal(tw_password_verify(text, "ann", NULL), TW_OK);
	text[TW_PASSWORD_MIN] = '\0';
	assert_int_equal(tw_password_verify(text, "ann", NULL), TW_OK);
	text[TW_PASSWORD_MIN - 1] = '\0';
	assert_int_equal(tw_password_verify(text, "ann", NULL), TW_BAD_REQUEST);
	assert_int_equal(
	        tw_password_verify("Ann@Example.org", "ann@example.org", NULL), TW_BAD_REQUEST);

	assert_int_equal(tw_password_hash("correct horse", hash, NULL), TW_OK);
	assert_int_equal(tw_password_hash("correct horse", again, NULL), TW_OK);
	assert_string_not_equal(hash, again); /* salted */
	assert_memory_equal(hash, "$argon2id$v=19$m=65536,t=2,p=1$", 31);
	assert_int_equal(tw_password_check(hash, "correct horse", &right, NULL), TW_OK);
	assert_true(right);
	assert_int_equal(tw_password_check(hash, "correct horsf", &right, NULL), TW_OK);
	assert_false(right);
	right = true;
	assert_int_equal(tw_password_check("", "", &right, NULL), TW_OK);
	assert_false(right);
}

/* --- links --- */

static enum tw_status use_link(struct people *p, uint8_t link, uint8_t session)
{
	const uint8_t link_hash[32] = {link}, hash[32] = {session};
	const struct tw_session s = {hash, NULL, "", "", "", 100000, tw_unix_ms() + 100000, "link"};
	struct tw_caller caller;
	enum tw_status st = tw_catalogue_link_use(p->c, link_hash, &s, NULL);

	assert_int_equal(tw_catalogue_session_find(p->c, hash, "", &caller, NULL),
	        st == TW_OK ? TW_OK : TW_NO_TOKEN);
	assert_true(st != TW_OK || caller.scope == TW_SCOPE_SERVER);
	return st;
}

/* The link of the first admin is good once, and for its time. */
static void test_a_link_once(void **state)
{
	struct people *p = *state;
	const uint8_t good[32] = {1}, over[32] = {2}, now[32] = {3};

	assert_int_equal(tw_catalogue_link_add(p->c, good, tw_unix_ms() + 100000, NULL), TW_OK);
	assert_int_equal(use_link(p, 9, 101), TW_NO_TOKEN);
	assert_int_equal(use_link(p, 1, 102), TW_OK);
	assert_int_equal(use_link(p, 1, 103), TW_NO_TOKEN);
	assert_int_equal(tw_catalogue_link_add(p->c, over, tw_unix_ms() - 1, NULL), TW_OK);
	assert_int_equal(use_link(p, 2, 104), TW_NO_TOKEN);
	assert_int_equal(tw_catalogue_link_add(p->c, now, tw_unix_ms(), NULL), TW_OK);
	assert_int_equal(use_link(p, 3, 105), TW_NO_TOKEN); /* not in the millisecond it ends */
}

/* --- attempts --- */

static enum tw_status try(struct tw_throttle *t, const char *who, const char *where, int64_t at_ms)
{
	unsigned wait_s = 0;
	enum tw_status st = tw_throttle_attempt(t, who, where, at_ms, &wait_s, NULL);

	assert_int_equal(st == TW_RATE, wait_s > 0);
	return st;
}

static void test_tries_of_an_account(void **state)
{
	struct tw_throttle *t = tw_throttle_new();
	char address[16];
	int64_t at = 1000000;

	(void)state;
	for (int i = 0; i < TW_THROTTLE_ACCOUNT_TRIES; i++) {
		(void)snprintf(address, sizeof address, "10.0.0.%d", i);
		assert_int_equal(try(t, "ann", address, at), TW_OK);
	}
	assert_int_equal(try(t, "ann", "10.0.1.1", at), TW_RATE);
	assert_int_equal(try(t, "ann", "10.0.1.1", at + TW_THROTTLE_ACCOUNT_MS - 1), TW_RATE);
	assert_int_equal(try(t, "ann", "10.0.1.1", at + TW_THROTTLE_ACCOUNT_MS), TW_OK);
	assert_int_equal(try(t, "ann", "10.0.1.1", at + TW_THROTTLE_ACCOUNT_MS), TW_RATE);
	assert_int_equal(try(t, "bob", "10.0.1.1", at), TW_OK);
	tw_throttle_succeeded(t, "ann", "10.0.0.1"); /* one of them was right */
	assert_int_equal(try(t, "ann", "10.0.1.1", at + TW_THROTTLE_ACCOUNT_MS), TW_OK);
	assert_null(tw_throttle_free(t));
	assert_null(tw_throttle_free(NULL));
}

static void test_tries_of_an_address(void **state)
{
	struct tw_throttle *t = tw_throttle_new();
	char who[16], address[48];

	(void)state;
	for (int i = 0; i < TW_THROTTLE_ADDRESS_TRIES; i++) { /* one house, many addresses */
		(void)snprintf(who, sizeof who, "user%d", i);
		(void)snprintf(address, sizeof address, "2001:db8:1:2::%x", i);
		assert_int_equal(try(t, who, address, 1), TW_OK);
	}
	assert_int_equal(try(t, "ann", "2001:db8:1:2:ffff::1", 1), TW_RATE);
	assert_int_equal(try(t, "ann", "2001:db8:1:3::1", 1), TW_OK);
	(void)tw_throttle_free(t);
}

/* Who fills the table with names does not make it forget the one that was tried most. */
static void test_tries_are_not_washed_away(void **state)
{
	struct tw_throttle *t = tw_throttle_new();
	char who[24], address[24];

	(void)state;
	for (int i = 0; i < TW_THROTTLE_ACCOUNT_TRIES; i++) {
		(void)snprintf(address, sizeof address, "10.9.0.%d", i);
		assert_int_equal(try(t, "ann", address, 1), TW_OK);
	}
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(who, sizeof who, "user%d", i);
		(void)snprintf(
		        address, sizeof address, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
		(void)try(t, who, address, 1);
	}
	assert_int_equal(try(t, "ann", "192.0.2.1", 1), TW_RATE);
	(void)tw_throttle_free(t);
}

/* Only failures count: checks are free, and two names are counted separately. */
static void test_failures_alone(void **state)
{
	struct tw_throttle *t = tw_throttle_new();
	unsigned wait_s = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(tw_throttle_check(t, "ann", NULL, 1, &wait_s, NULL), TW_OK);
	for (int i = 0; i < TW_THROTTLE_ACCOUNT_TRIES; i++) {
		assert_int_equal(tw_throttle_check(t, "ann", NULL, 1, &wait_s, NULL), TW_OK);
		tw_throttle_failed(t, "ann", NULL, 1);
	}
	assert_int_equal(tw_throttle_check(t, "ann", NULL, 1, &wait_s, NULL), TW_RATE);
	assert_int_equal(wait_s, TW_THROTTLE_ACCOUNT_MS / 1000);
	tw_throttle_failed(t, "ann", NULL, 1); /* with a concurrent one: at most full */
	assert_int_equal(
	        tw_throttle_check(t, "ann", NULL, 1 + TW_THROTTLE_ACCOUNT_MS, &wait_s, NULL),
	        TW_OK);
	assert_int_equal(tw_throttle_check(t, "bob", NULL, 1, &wait_s, NULL), TW_OK);
	assert_int_equal(tw_throttle_check(t, NULL, "10.0.0.1", 1, &wait_s, NULL), TW_OK);
	for (int i = 0; i < TW_THROTTLE_ADDRESS_TRIES; i++)
		tw_throttle_failed(t, NULL, "10.0.0.1", 1);
	assert_int_equal(tw_throttle_check(t, NULL, "10.0.0.1", 1, &wait_s, NULL), TW_RATE);
	assert_int_equal(tw_throttle_check(t, NULL, "10.0.0.2", 1, &wait_s, NULL), TW_OK);
	(void)tw_throttle_free(t);
}

#define WITH_PEOPLE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        WITH_PEOPLE(test_accounts),
        WITH_PEOPLE(test_pages),
        WITH_PEOPLE(test_roles),
        WITH_PEOPLE(test_admin_of_the_server),
        WITH_PEOPLE(test_what_ends_a_session),
        WITH_PEOPLE(test_idle_starts_over),
        WITH_PEOPLE(test_session_of_a_key),
        cmocka_unit_test(test_passwords),
        cmocka_unit_test(test_tries_of_an_account),
        cmocka_unit_test(test_tries_of_an_address),
        cmocka_unit_test(test_tries_are_not_washed_away),
        cmocka_unit_test(test_failures_alone),
        WITH_PEOPLE(test_a_link_once),
};

UNIT_TESTS("user", tests)

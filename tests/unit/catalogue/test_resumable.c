/* Rows of uploads in pieces: who holds one, what counts, what goes; and sign-ins that are used
 * once. Run on both engines (tests/unit/on_postgres). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/auth/auth_throttle.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_throttle.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { LEASE_MS = 60000, KEEP_MS = 60000, WRITERS = 6, ROUNDS = 20 };

struct fixture {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
};

static const struct tw_resumable_limits limits = {3, 1000, KEEP_MS};
static const char trace_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct fixture f;
	struct tw_db *beside;

	f = (struct fixture){.dir = "/tmp/tw-resumable-XXXXXX"};
	assert_non_null(mkdtemp(f.dir));
	f.c = catalogue_in(f.dir);
	beside = catalogue_connect(f.dir);
	catalogue_run(beside, "INSERT INTO project VALUES('P', 'p', 1, 0)");
	tw_db_close(beside);
	f.arena = tw_arena_new(64 << 20);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->c = tw_catalogue_close(f->c);
	tw_arena_free(f->arena);
	(void)nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static enum tw_status add_as(
        struct fixture *f, const char *key_id, uint64_t bytes, char ret_id[TW_ID_BYTES])
{
	struct tw_resumable u = {
	        .project_id = "P", .key = "once", .bytes = bytes, .metadata = "a b"};

	(void)snprintf(u.key_id, sizeof u.key_id, "%s", key_id);
	tw_ulid_new(1, u.id);
	memcpy(ret_id, u.id, TW_ID_BYTES);
	return tw_catalogue_resumable_add(f->c, &u, &limits, NULL);
}

static void add(struct fixture *f, uint64_t bytes, char ret_id[TW_ID_BYTES])
{
	assert_int_equal(add_as(f, "K", bytes, ret_id), TW_OK);
}

static struct tw_resumable_hold hold_of(const char *id, const char *owner)
{
	struct tw_resumable_hold h = {.project_id = "P"};

	(void)snprintf(h.id, sizeof h.id, "%s", id);
	(void)snprintf(h.owner, sizeof h.owner, "%s", owner);
	return h;
}

static enum tw_status hold_for(
        struct fixture *f, const struct tw_resumable_hold *h, int64_t lease_ms)
{
	struct tw_resumable u;

	return tw_catalogue_resumable_hold(f->c, h, lease_ms, f->arena, &u, NULL);
}

static enum tw_status append(struct fixture *f, const struct tw_resumable_hold *h, uint64_t start,
        uint64_t bytes, int64_t lease_ms)
{
	char object[160];
	const struct tw_resumable_piece p = {start, bytes, "aa", object};

	(void)snprintf(object, sizeof object, "pieces/xx/%s-%s-%llu", h->id, h->owner,
	        (unsigned long long)start);
	return tw_catalogue_resumable_append(f->c, h, &p, lease_ms, KEEP_MS, NULL);
}

static enum tw_status look(struct fixture *f, const char *id, struct tw_resumable *ret)
{
	return tw_catalogue_resumable_get(f->c, "P", id, f->arena, ret, NULL);
}

static size_t pieces(struct fixture *f, const char *id)
{
	struct tw_resumable_piece *p = NULL;
	size_t n = 0;

	assert_int_equal(
	        tw_catalogue_resumable_pieces(f->c, "P", id, f->arena, &p, &n, NULL), TW_OK);
	return n;
}

/* Several servers only: a single server has no other that could delete the project. */
static void test_project_was_deleted(void **state)
{
	struct fixture *f = *state;
	struct tw_resumable u = {
	        .project_id = "GONE", .key_id = "K", .key = "once", .metadata = ""};

	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	tw_ulid_new(1, u.id);
	assert_int_equal(tw_catalogue_resumable_add(f->c, &u, &limits, NULL), TW_NOT_FOUND);
}

static void test_one_goes_on(void **state)
{
	struct fixture *f = *state;
	struct tw_resumable u;
	char id[TW_ID_BYTES];
	struct tw_resumable_hold a, b;

	add(f, 100, id);
	a = hold_of(id, "a-1");
	b = hold_of(id, "b-1");
	assert_int_equal(look(f, id, &u), TW_OK);
	assert_string_equal(u.metadata, "a b");
	assert_string_equal(u.key, "once");
	assert_int_equal(
	        tw_catalogue_resumable_get(f->c, "Q", id, f->arena, &u, NULL), TW_NOT_FOUND);
	assert_int_equal(hold_for(f, &a, LEASE_MS), TW_OK);
	assert_int_equal(hold_for(f, &b, LEASE_MS), TW_LOCKED);
	assert_int_equal(append(f, &b, 0, 10, LEASE_MS), TW_LOCKED);
	assert_int_equal(append(f, &a, 0, 10, LEASE_MS), TW_OK);
	assert_int_equal(append(f, &a, 0, 10, LEASE_MS), TW_LOCKED);  /* it is at another server */
	assert_int_equal(append(f, &a, 10, 91, LEASE_MS), TW_LOCKED); /* past its end */
	assert_int_equal(append(f, &a, 10, 10, 0), TW_OK);
	assert_int_equal(append(f, &a, 20, 10, LEASE_MS), TW_LOCKED); /* the hold ended with it */
	assert_int_equal(hold_for(f, &b, LEASE_MS), TW_OK);
	assert_int_equal(look(f, id, &u), TW_OK);
	assert_int_equal(u.arrived, 20);
	assert_int_equal(u.pieces, 2);
	assert_int_equal(pieces(f, id), 2);
	assert_int_equal(
	        tw_catalogue_resumable_release(f->c, &a, NULL), TW_OK); /* not its to give */
	assert_int_equal(hold_for(f, &a, LEASE_MS), TW_LOCKED);
}

/* An expired claim may continue until another server takes it. */
static void test_stood_still(void **state)
{
	struct fixture *f = *state;
	struct tw_resumable u;
	char id[TW_ID_BYTES];
	struct tw_resumable_hold a, b;
	enum tw_status st;

	add(f, 100, id);
	a = hold_of(id, "a-1");
	b = hold_of(id, "b-1");
	assert_int_equal(hold_for(f, &a, 0), TW_OK);
	assert_int_equal(append(f, &a, 0, 10, 1), TW_OK);
	while ((st = hold_for(f, &b, LEASE_MS)) == TW_LOCKED)
		continue; /* until its lease of 1 ms has ended */
	assert_int_equal(st, TW_OK);
	assert_int_equal(tw_catalogue_resumables_renew(f->c, &a, 1, LEASE_MS, NULL), TW_OK);
	assert_int_equal(append(f, &a, 10, 10, LEASE_MS), TW_LOCKED);
	assert_int_equal(tw_catalogue_resumable_done(f->c, &a, trace_id, KEEP_MS, NULL), TW_LOCKED);
	assert_int_equal(tw_catalogue_resumable_drop(f->c, &a, NULL), TW_LOCKED);
	assert_int_equal(append(f, &b, 10, 10, LEASE_MS), TW_OK);
	assert_int_equal(look(f, id, &u), TW_OK);
	assert_int_equal(u.arrived, 20);
	assert_int_equal(tw_catalogue_resumable_release(f->c, &b, NULL), TW_OK);
	assert_int_equal(hold_for(f, &a, 0), TW_OK);
	assert_int_equal(tw_catalogue_resumables_renew(f->c, &a, 1, LEASE_MS, NULL), TW_OK);
	assert_int_equal(hold_for(f, &b, LEASE_MS), TW_LOCKED); /* renewed */
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	struct tw_resumable_hold h;
	uint64_t n = 0, bytes = 0;
	char id[4][TW_ID_BYTES];

	add(f, 400, id[0]);
	add(f, 600, id[1]);
	assert_int_equal(add_as(f, "K", 1, id[2]), TW_RATE);
	assert_int_equal(add_as(f, "L", 1001, id[2]), TW_RATE);
	assert_int_equal(add_as(f, "L", 1, id[2]), TW_OK);
	assert_int_equal(add_as(f, "L", 1, id[2]), TW_OK);
	assert_int_equal(add_as(f, "L", 1, id[2]), TW_OK);
	assert_int_equal(add_as(f, "L", 1, id[3]), TW_RATE);
	h = hold_of(id[0], "a-1");
	assert_int_equal(hold_for(f, &h, LEASE_MS), TW_OK);
	assert_int_equal(append(f, &h, 0, 150, LEASE_MS), TW_OK);
	assert_int_equal(tw_catalogue_resumables_open(f->c, &n, &bytes, NULL), TW_OK);
	assert_int_equal(n, 5);
	assert_int_equal(bytes, 150);
	assert_int_equal(tw_catalogue_resumable_drop(f->c, &h, NULL), TW_OK);
	assert_int_equal(add_as(f, "K", 400, id[0]), TW_OK); /* it counts no more */
}

static enum tw_status clean(struct fixture *f, struct tw_resumable_hold *h, bool *ret_expired)
{
	*h = (struct tw_resumable_hold){.owner = "cleaner"};
	return tw_catalogue_resumable_clean(f->c, h, LEASE_MS, ret_expired, NULL);
}

static void test_what_goes(void **state)
{
	struct fixture *f = *state;
	struct tw_resumable_hold h, c;
	struct tw_resumable u;
	bool expired = true, named = false;
	char id[TW_ID_BYTES], object[64];

	add(f, 20, id);
	h = hold_of(id, "a-1");
	assert_int_equal(clean(f, &c, &expired), TW_NOT_FOUND);
	assert_int_equal(hold_for(f, &h, LEASE_MS), TW_OK);
	assert_int_equal(append(f, &h, 0, 20, LEASE_MS), TW_OK);
	assert_int_equal(
	        tw_catalogue_resumable_cleaned(f->c, &h, NULL), TW_LOCKED); /* still in progress */
	(void)snprintf(object, sizeof object, "pieces/xx/%s-a-1-0", id);
	assert_int_equal(tw_catalogue_resumable_refers_to(f->c, object, &named, NULL), TW_OK);
	assert_true(named);
	assert_int_equal(tw_catalogue_resumable_done(f->c, &h, trace_id, KEEP_MS, NULL), TW_OK);
	assert_int_equal(tw_catalogue_resumable_done(f->c, &h, trace_id, KEEP_MS, NULL), TW_OK);
	assert_int_equal(clean(f, &c, &expired), TW_OK);
	assert_false(expired);
	assert_string_equal(c.id, id);
	assert_int_equal(hold_for(f, &h, LEASE_MS), TW_OK); /* to be reported */
	assert_int_equal(tw_catalogue_resumable_drop(f->c, &h, NULL), TW_LOCKED);
	(void)snprintf(c.owner, sizeof c.owner, "slow cleaner"); /* another has it by now */
	assert_int_equal(tw_catalogue_resumable_cleaned(f->c, &c, NULL), TW_OK);
	assert_int_equal(pieces(f, id), 0);
	assert_int_equal(tw_catalogue_resumable_refers_to(f->c, object, &named, NULL), TW_OK);
	assert_false(named);
	assert_int_equal(look(f, id, &u), TW_OK); /* it names its trace */
	assert_string_equal(u.trace_id, trace_id);
	assert_int_equal(clean(f, &c, &expired), TW_NOT_FOUND);
	assert_int_equal(hold_for(f, &h, LEASE_MS), TW_OK);
	assert_int_equal(tw_catalogue_resumable_drop(f->c, &h, NULL), TW_OK);
	assert_int_equal(look(f, id, &u), TW_NOT_FOUND);
	assert_int_equal(clean(f, &c, &expired), TW_OK);
	assert_int_equal(tw_catalogue_resumable_cleaned(f->c, &c, NULL), TW_OK);
	assert_int_equal(clean(f, &c, &expired), TW_NOT_FOUND);
}

static void test_expires(void **state)
{
	struct fixture *f = *state;
	struct tw_db *beside = catalogue_connect(f->dir);
	struct tw_resumable_hold h, c;
	struct tw_resumable u;
	bool expired = false;
	char id[2][TW_ID_BYTES];

	add(f, 20, id[0]);
	add(f, 20, id[1]);
	h = hold_of(id[0], "a-1");
	assert_int_equal(hold_for(f, &h, LEASE_MS), TW_OK);
	assert_int_equal(clean(f, &c, &expired), TW_NOT_FOUND);
	catalogue_run(beside, "UPDATE resumable SET expires_ms=1");
	assert_int_equal(look(f, id[1], &u), TW_NOT_FOUND);
	assert_int_equal(clean(f, &c, &expired), TW_OK);
	assert_true(expired);
	assert_string_equal(c.id, id[1]); /* the other is held */
	assert_int_equal(tw_catalogue_resumable_cleaned(f->c, &c, NULL), TW_OK);
	assert_int_equal(clean(f, &c, &expired), TW_NOT_FOUND);
	catalogue_run(beside, "UPDATE resumable SET until_ms=1");
	assert_int_equal(clean(f, &c, &expired), TW_OK);
	assert_string_equal(c.id, id[0]);
	assert_int_equal(append(f, &h, 0, 20, LEASE_MS), TW_LOCKED);
	assert_int_equal(tw_catalogue_resumable_cleaned(f->c, &c, NULL), TW_OK);
	tw_db_close(beside);
}

struct race {
	struct fixture *f;
	const char *id;
	char owner[16];
	_Atomic int *won;
};

static void *run_race(void *arg)
{
	struct race *r = arg;
	struct tw_resumable_hold h = hold_of(r->id, r->owner);
	struct tw_arena *a = tw_arena_new(1 << 16);
	struct tw_resumable u;
	enum tw_status st = tw_catalogue_resumable_hold(r->f->c, &h, LEASE_MS, a, &u, NULL);

	assert_true(st == TW_OK || st == TW_LOCKED);
	(void)atomic_fetch_add(r->won, st == TW_OK);
	(void)tw_arena_free(a);
	return NULL;
}

static void test_race(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < ROUNDS; round++) {
		struct race r[WRITERS];
		pthread_t threads[WRITERS];
		_Atomic int won = 0;
		struct tw_resumable_hold h;
		char id[TW_ID_BYTES];

		add(f, 10, id);
		for (int i = 0; i < WRITERS; i++) {
			r[i] = (struct race){f, id, "", &won};
			(void)snprintf(r[i].owner, sizeof r[i].owner, "w-%d", i);
			assert_int_equal(pthread_create(&threads[i], NULL, run_race, &r[i]), 0);
		}
		for (int i = 0; i < WRITERS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(won, 1);
		for (int i = 0; i < WRITERS; i++) { /* its alone */
			h = hold_of(id, r[i].owner);
			won += tw_catalogue_resumable_drop(f->c, &h, NULL) == TW_OK;
		}
		assert_int_equal(won, 2);
	}
}

struct adding {
	struct fixture *f;
	const char *project_id;
	_Atomic int *added;
};

static void *run_adding(void *arg)
{
	struct adding *r = arg;
	struct tw_resumable u = {.key_id = "K", .key = "k", .bytes = 1, .metadata = ""};
	enum tw_status st;

	(void)snprintf(u.project_id, sizeof u.project_id, "%s", r->project_id);
	tw_ulid_new(1, u.id);
	st = tw_catalogue_resumable_add(r->f->c, &u, &limits, NULL);
	assert_true(st == TW_OK || st == TW_RATE);
	(void)atomic_fetch_add(r->added, st == TW_OK);
	return NULL;
}

/* Limits hold for those who begin at the same moment. */
static void test_adding_at_once(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < ROUNDS; round++) {
		char project_id[TW_ID_BYTES], name[16];
		pthread_t threads[WRITERS];
		_Atomic int added = 0;
		struct adding r = {f, project_id, &added};
		bool is_new;

		(void)snprintf(name, sizeof name, "p%d", round);
		assert_int_equal(
		        tw_catalogue_project(f->c, name, project_id, &is_new, NULL), TW_OK);
		for (int i = 0; i < WRITERS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, run_adding, &r), 0);
		for (int i = 0; i < WRITERS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(added, limits.count);
	}
}

static void test_signins(void **state)
{
	struct fixture *f = *state;
	const int64_t soon = tw_unix_ms() + 60000;
	bool first = false;

	assert_int_equal(tw_catalogue_signin_use(f->c, "m", soon, &first, NULL), TW_OK);
	assert_true(first);
	assert_int_equal(tw_catalogue_signin_use(f->c, "m", soon, &first, NULL), TW_OK);
	assert_false(first);
	assert_int_equal(tw_catalogue_signin_use(f->c, "old", 1, &first, NULL), TW_OK);
	assert_int_equal(tw_catalogue_signin_use(f->c, "old", 1, &first, NULL), TW_OK);
	assert_true(first); /* over, and forgotten */
}

static enum tw_status take(void *arg, const struct tw_throttle_cost *ask, bool count,
        int64_t *ret_wait_ms, struct tw_err *err)
{
	return tw_catalogue_throttle(arg, ask, count, ret_wait_ms, err);
}

static void give_back(void *arg, const struct tw_throttle_cost *ask)
{
	(void)tw_catalogue_throttle_back(arg, ask, NULL);
}

/* Two servers count in the same buckets. */
static void test_tries(void **state)
{
	struct fixture *f = *state;
	const struct tw_throttle_sharing with = {
	        .secret = "the same", .take = take, .give_back = give_back, .arg = f->c};
	struct tw_throttle *t[] = {tw_throttle_new(), tw_throttle_new()};
	unsigned wait_s = 0;

	tw_throttle_share(t[0], &with);
	tw_throttle_share(t[1], &with);
	for (int i = 0; i < TW_THROTTLE_ACCOUNT_TRIES; i++)
		assert_int_equal(
		        tw_throttle_attempt(t[i % 2], "ann", "10.0.0.1", 0, &wait_s, NULL), TW_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		        tw_throttle_attempt(t[i], "ann", "10.0.0.2", 0, &wait_s, NULL), TW_RATE);
		assert_in_range(wait_s, 1, TW_THROTTLE_ACCOUNT_MS / 1000);
		assert_int_equal(tw_throttle_check(t[i], "ann", NULL, 0, &wait_s, NULL), TW_RATE);
		assert_int_equal(
		        tw_throttle_check(t[i], "bob", "10.0.0.1", 0, &wait_s, NULL), TW_OK);
	}
	tw_throttle_succeeded(t[1], "ann", "10.0.0.1");
	assert_int_equal(tw_throttle_attempt(t[0], "ann", "10.0.0.1", 0, &wait_s, NULL), TW_OK);
	tw_throttle_failed(t[1], "ann", NULL, 0); /* the limit has no space for it */
	for (int i = 0; i < TW_THROTTLE_ADDRESS_TRIES; i++)
		tw_throttle_failed(t[i % 2], NULL, "10.0.0.1", 0);
	assert_int_equal(tw_throttle_check(t[0], "bob", "10.0.0.1", 0, &wait_s, NULL), TW_RATE);
	assert_int_equal(tw_throttle_check(t[0], "bob", "10.0.0.2", 0, &wait_s, NULL), TW_OK);
	for (int i = 0; i < 2; i++)
		(void)tw_throttle_free(t[i]);
}

/* Counts an hour in the future were made before the clock was set back: no caller waits that long.
 * */
static void test_tries_after_the_clock_went_back(void **state)
{
	struct fixture *f = *state;
	const struct tw_throttle_cost ask = {{{7, 1000, 4000}}, 1};
	struct tw_db *beside = catalogue_connect(f->dir);
	int64_t wait_ms = 0;

	assert_int_equal(tw_catalogue_throttle(f->c, &ask, true, &wait_ms, NULL), TW_OK);
	assert_int_equal(wait_ms, 0);
	catalogue_run(beside, "UPDATE signin_try SET empty_ms=empty_ms+3600000");
	assert_int_equal(tw_catalogue_throttle(f->c, &ask, true, &wait_ms, NULL), TW_OK);
	assert_in_range(wait_ms, 1, 1000);
	assert_in_range(catalogue_number(beside, "SELECT max(empty_ms) FROM signin_try"),
	        tw_unix_ms(), tw_unix_ms() + 4000 + 500);
	catalogue_run(beside, "UPDATE signin_try SET empty_ms=empty_ms-1000");
	assert_int_equal(tw_catalogue_throttle(f->c, &ask, true, &wait_ms, NULL), TW_OK);
	assert_int_equal(wait_ms, 0); /* it drains as ever */
	tw_db_close(beside);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_was_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stood_still, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expires, setup, teardown),
        cmocka_unit_test_setup_teardown(test_race, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adding_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tries_after_the_clock_went_back, setup, teardown),
};

UNIT_TESTS("resumable", tests)

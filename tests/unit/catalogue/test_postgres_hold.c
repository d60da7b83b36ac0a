/* Holders of a catalogue in PostgreSQL: one server or several; and the effects of a wait for its
 * writers. Skipped without PostgreSQL (tests/unit/on_postgres). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_migrate.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { READERS = TW_CATALOGUE_OUT, PATIENT_MS = 10000 };

/* Its sessions end as a restart of the database server ends them. */
#define END_OTHERS                                                                                 \
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid<>pg_backend_pid()"       \
	" AND application_name='tracewell'"

static void test_one_server_or_several(void **state)
{
	struct tw_catalogue *one, *other;
	struct tw_err err = {.msg = ""};

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	one = catalogue_in("/hold");
	other = catalogue_in("/hold");
	assert_int_equal(tw_catalogue_serve(one, false, &err), TW_OK);
	assert_false(tw_catalogue_is_shared(one));
	assert_int_equal(tw_catalogue_serve(other, true, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "without --several-servers"));
	(void)tw_catalogue_close(other);
	(void)tw_catalogue_close(one);
	one = catalogue_in("/hold");
	other = catalogue_in("/hold");
	assert_int_equal(tw_catalogue_serve(one, true, &err), TW_OK);
	assert_int_equal(tw_catalogue_serve(other, true, &err), TW_OK);
	assert_true(tw_catalogue_is_shared(other));
	(void)tw_catalogue_close(other);
	(void)tw_catalogue_close(one);
}

/* A server that lost its session to another one stops writing. */
static void test_a_lost_hold_does_not_write(void **state)
{
	struct tw_catalogue *old, *new;
	struct tw_db *beside;
	struct tw_err err = {.msg = ""};

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	old = catalogue_in("/lost");
	beside = catalogue_connect("/lost");
	assert_int_equal(tw_catalogue_serve(old, false, &err), TW_OK);
	catalogue_run(beside, END_OTHERS);
	assert_int_equal(tw_catalogue_ping(old, &err),
	        TW_OK); /* no other server came: it holds the lock again */
	catalogue_run(beside, END_OTHERS);
	new = catalogue_in("/lost");
	assert_int_equal(tw_catalogue_serve(new, false, &err), TW_OK);
	assert_int_equal(tw_catalogue_ping(old, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "another server has it"));
	assert_int_equal(tw_catalogue_ping(new, &err), TW_OK);
	(void)tw_catalogue_close(new);
	assert_int_equal(tw_catalogue_ping(old, &err), TW_OK);
	(void)tw_catalogue_close(old);
	tw_db_close(beside);
}

/* The block that the wait ended in is undone, and the next begin goes through. */
static void test_begins_again_after_a_wait(void **state)
{
	struct tw_catalogue *c;
	struct tw_db *beside;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/wait");
	beside = catalogue_connect("/wait");
	catalogue_run(beside, "BEGIN IMMEDIATE");
	catalogue_run(beside, "LOCK TABLE project IN EXCLUSIVE MODE");
	assert_int_equal(tw_catalogue_ping(c, NULL), TW_BUSY);
	assert_false(c->writers[0].db->engine->in_transaction(c->writers[0].db));
	catalogue_run(beside, "ROLLBACK");
	assert_int_equal(tw_catalogue_ping(c, NULL), TW_OK);
	tw_db_close(beside);
	(void)tw_catalogue_close(c);
}

static enum tw_status send(struct tw_catalogue *c, const char *project, const char *key,
        const char *build, char ret_id[TW_ID_BYTES])
{
	struct tw_caller caller = {.key_id = "k"};
	const struct tw_trace_meta meta = {.build_id = build, .capture = "rule", .device = "d"};
	const struct tw_part part = {"trace", key, "", 8, false};
	const struct tw_arrival up = {
	        .caller = &caller, .key = key, .meta = &meta, .parts = &part, .n_parts = 1};
	bool is_new = false;
	enum tw_status st;

	(void)snprintf(caller.project_id, sizeof caller.project_id, "%s", project);
	st = tw_catalogue_trace_add(c, &up, ret_id, &is_new, NULL);
	assert_true(st != TW_OK || is_new);
	return st;
}

/* One stands still in transactions of every subject, with a trace of the same build and device: the
 * other takes uploads of the same build and device, claims them and ends them. */
static void test_a_server_that_stalls_delays_no_other(void **state)
{
	struct tw_catalogue *stalls, *works;
	struct tw_arena *a = tw_arena_new(1 << 16);
	char project[TW_ID_BYTES], id[TW_ID_BYTES];
	struct tw_db *w[TW_SUBJECT_CONTENT + 1];
	struct tw_job_row job;
	bool is_new;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	stalls = catalogue_in("/stall");
	works = catalogue_in("/stall");
	assert_int_equal(tw_catalogue_serve(stalls, true, NULL), TW_OK);
	assert_int_equal(tw_catalogue_serve(works, true, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project(stalls, "p", project, &is_new, NULL), TW_OK);
	assert_int_equal(send(stalls, project, "0", "b", id), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(stalls,
	                &(struct tw_claim){.owner = "it", .lease_ms = 10000}, a, &job, NULL),
	        TW_OK);
	for (int i = 0; i <= TW_SUBJECT_CONTENT; i++) {
		assert_int_equal(
		        tw_cat_begin(stalls, (enum tw_cat_subject)i, "x", &w[i], NULL), TW_OK);
		assert_int_equal(tw_cat_exec(w[i], NULL, NULL,
		                         "SET LOCAL idle_in_transaction_session_timeout=0", ""),
		        TW_OK); /* it stalls until the end of the test */
	}
	assert_int_equal(tw_cat_exec(w[TW_SUBJECT_NONE], NULL, NULL,
	                         "UPDATE trace SET title='mine' WHERE trace_id=?", "t", id),
	        TW_OK);
	assert_int_equal(
	        tw_cat_exec(w[TW_SUBJECT_ACCESS], NULL, NULL, "UPDATE api_key SET name=name", ""),
	        TW_OK);
	for (int i = 1; i <= 5; i++) {
		char key[8];

		(void)snprintf(key, sizeof key, "%d", i);
		assert_int_equal(send(works, project, key, i % 2 ? "b" : "c", id), TW_OK);
		assert_int_equal(tw_catalogue_queue_claim(works,
		                         &(struct tw_claim){.owner = "me", .lease_ms = 10000}, a,
		                         &job, NULL),
		        TW_OK);
		assert_string_equal(job.trace_id, id);
		assert_int_equal(tw_catalogue_job_publish(works, &job,
		                         &(struct tw_trace_summary){.format = "art"}, NULL, NULL),
		        TW_OK);
	}
	for (int i = 0; i <= TW_SUBJECT_CONTENT; i++)
		assert_int_equal(tw_cat_end(stalls, w[i], TW_OK, NULL), TW_OK);
	(void)tw_catalogue_close(works);
	(void)tw_catalogue_close(stalls);
	tw_arena_free(a);
}

/* Who waits for the same subject waits until the database ends the stalled one's session. */
static void test_a_stalled_transaction_is_ended(void **state)
{
	struct tw_catalogue *stalls, *works;
	struct tw_db *w = NULL, *next = NULL;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	stalls = catalogue_in("/ended");
	works = catalogue_in("/ended");
	assert_int_equal(tw_catalogue_serve(stalls, true, NULL), TW_OK);
	assert_int_equal(tw_catalogue_serve(works, true, NULL), TW_OK);
	assert_int_equal(tw_cat_begin(stalls, TW_SUBJECT_TRACE, "t", &w, NULL), TW_OK);
	assert_int_equal(tw_cat_begin(works, TW_SUBJECT_TRACE, "t", &next, NULL), TW_OK);
	assert_int_equal(tw_cat_end(works, next, TW_OK, NULL), TW_OK);
	assert_int_equal(tw_cat_end(stalls, w, TW_OK, NULL), TW_BUSY);
	assert_int_equal(tw_cat_begin(stalls, TW_SUBJECT_TRACE, "t", &w, NULL), TW_OK);
	assert_int_equal(tw_cat_end(stalls, w, TW_OK, NULL), TW_OK);
	(void)tw_catalogue_close(works);
	(void)tw_catalogue_close(stalls);
}

static uint64_t traces_of(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_build_row build;

	assert_int_equal(tw_catalogue_build_get(c, project, "b", a, &build, NULL), TW_OK);
	return build.traces;
}

static uint64_t captured(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_capture_count *counts;
	size_t n = 0;

	assert_int_equal(tw_catalogue_capture_counts(c, project, 0, a, &counts, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(counts->devices, 1);
	return counts->traces;
}

/* The sums are equal before and after the deltas are merged. */
static void test_counters(void **state)
{
	struct tw_catalogue *c;
	struct tw_db *beside;
	struct tw_arena *a = tw_arena_new(1 << 20);
	char project[TW_ID_BYTES], id[TW_ID_BYTES], key[8];
	struct tw_blob_list unused;
	bool is_new;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/counters");
	beside = catalogue_connect("/counters");
	assert_int_equal(tw_catalogue_project(c, "p", project, &is_new, NULL), TW_OK);
	for (int i = 0; i < 5; i++) {
		(void)snprintf(key, sizeof key, "%d", i);
		assert_int_equal(send(c, project, key, "b", id), TW_OK);
	}
	assert_int_equal(catalogue_number(beside, "SELECT traces FROM build"), 0);
	for (int added = 0; added < 2; added++) {
		assert_int_equal(traces_of(c, project, a), 5);
		assert_int_equal(captured(c, project, a), 5);
		assert_int_equal(tw_catalogue_counts_add(c, NULL), TW_OK);
	}
	assert_int_equal(catalogue_number(beside, "SELECT count(*) FROM count_delta"), 0);
	assert_int_equal(catalogue_number(beside, "SELECT traces FROM build"), 5);
	assert_int_equal(tw_catalogue_trace_delete(c, project, id, a, &unused, NULL), TW_OK);
	assert_int_equal(traces_of(c, project, a), 4);
	assert_int_equal(send(c, project, "9", "b", id), TW_OK);
	assert_int_equal(traces_of(c, project, a), 5);
	assert_int_equal(tw_catalogue_counts_add(c, NULL), TW_OK);
	assert_int_equal(traces_of(c, project, a), 5);
	assert_int_equal(captured(c, project, a), 6);
	tw_db_close(beside);
	(void)tw_catalogue_close(c);
	tw_arena_free(a);
}

/* One more waits, and is refused at the end; a returned connection is reused. */
static void test_so_many_connections(void **state)
{
	struct tw_db *out[READERS];
	struct tw_db *more = NULL;
	struct tw_catalogue *c;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/many");
	for (int i = 0; i < READERS; i++)
		assert_int_equal(tw_cat_reader(c, &out[i], NULL), TW_OK);
	assert_int_equal(tw_cat_reader(c, &more, NULL), TW_BUSY);
	tw_cat_done(c, out[0]);
	assert_int_equal(tw_cat_reader(c, &out[0], NULL), TW_OK);
	for (int i = 0; i < READERS; i++)
		tw_cat_done(c, out[i]);
	(void)tw_catalogue_close(c);
}

/* The first folder is its, under whatever address, and no other. */
static void test_one_folder(void **state)
{
	struct tw_catalogue *c;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/folder");
	assert_int_equal(tw_catalogue_may_have_folder(c, "", "", NULL), TW_OK);
	assert_int_equal(tw_catalogue_take_folder(c, "A", "", NULL), TW_OK);
	assert_int_equal(tw_catalogue_take_folder(c, "A", "", NULL), TW_OK);
	assert_int_equal(tw_catalogue_may_have_folder(c, "A", "", NULL), TW_OK);
	assert_int_equal(tw_catalogue_may_have_folder(c, "", "", NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_take_folder(c, "B", "", NULL), TW_CONFLICT);
	(void)tw_catalogue_close(c);
}

/* By another text of the same address. */
static struct tw_catalogue *catalogue_as(const char *folder, const char *more)
{
	char address[CATALOGUE_ADDRESS], other[CATALOGUE_ADDRESS + 40];
	struct tw_catalogue *c = NULL;

	catalogue_address(folder, address);
	(void)snprintf(other, sizeof other, "%s%s", address, more);
	assert_int_equal(tw_catalogue_open(other, &c, NULL), TW_OK);
	return c;
}

static void test_a_key_is_the_same_by_any_address(void **state)
{
	struct tw_catalogue *one, *other;
	uint64_t mine = 0, theirs = 0;
	bool held = false;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	one = catalogue_in("/keys");
	other = catalogue_as("/keys", "&connect_timeout=7");
	assert_int_equal(tw_catalogue_key_lock(one, "k", true, &mine, NULL), TW_OK);
	assert_int_not_equal(mine, 0);
	assert_int_equal(tw_catalogue_key_lock(other, "k", false, &theirs, NULL), TW_OK);
	assert_int_equal(theirs, 0);
	assert_int_equal(tw_catalogue_key_held(one, "k", mine, &held, NULL), TW_OK);
	assert_true(held);
	assert_int_equal(tw_catalogue_key_held(one, "l", mine, &held, NULL), TW_OK);
	assert_false(held);
	assert_int_equal(tw_catalogue_key_unlock(one, "k", true, mine, &held, NULL), TW_OK);
	assert_true(held);
	assert_int_equal(tw_catalogue_key_lock(other, "k", false, &theirs, NULL), TW_OK);
	assert_int_not_equal(theirs, 0);
	(void)tw_catalogue_close(other);
	(void)tw_catalogue_close(one);
}

/* One thread's was lost; another has the same since, by the same server's next connection. */
static void test_a_lost_key_is_not_anothers(void **state)
{
	struct tw_catalogue *c;
	struct tw_db *beside;
	uint64_t lost = 0, new = 0;
	bool held = true;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/lost_key");
	beside = catalogue_connect("/lost_key");
	assert_int_equal(tw_catalogue_key_lock(c, "k", true, &lost, NULL), TW_OK);
	catalogue_run(beside, END_OTHERS);
	assert_int_equal(tw_catalogue_key_held(c, "k", lost, &held, NULL), TW_OK);
	assert_false(held);
	assert_int_equal(tw_catalogue_key_lock(c, "k", true, &new, NULL), TW_OK);
	assert_int_not_equal(new, lost);
	assert_int_equal(tw_catalogue_key_unlock(c, "k", true, lost, &held, NULL), TW_OK);
	assert_false(held);
	assert_int_equal(tw_catalogue_key_unlock(c, "k", true, new, &held, NULL), TW_OK);
	assert_true(held);
	tw_db_close(beside);
	(void)tw_catalogue_close(c);
}

/* Also those who renew claims, and wait for no writer. */
static void test_nothing_changes_while_it_is_held(void **state)
{
	struct tw_catalogue *c;
	struct tw_db *beside;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/held");
	beside = catalogue_connect("/held");
	catalogue_run(beside, "SET lock_timeout='200ms'");
	assert_int_equal(tw_catalogue_block_writers(c, NULL), TW_OK);
	assert_int_equal(tw_db_run(beside, "UPDATE job SET due_ms=due_ms+1", NULL), TW_BUSY);
	assert_int_equal(catalogue_number(beside, "SELECT count(*) FROM job"), 0);
	assert_int_equal(tw_catalogue_unblock_writers(c, NULL), TW_OK);
	catalogue_run(beside, "UPDATE job SET due_ms=due_ms+1");
	tw_db_close(beside);
	(void)tw_catalogue_close(c);
}

/* --- slow sessions, with a shortened timeout --- */

static void *ask_slowly(void *arg)
{
	tw_catalogue_shorten_timeout(true);
	assert_int_equal(tw_cat_exec(arg, NULL, NULL, "SELECT pg_sleep(6)", ""), TW_BUSY);
	tw_catalogue_shorten_timeout(false);
	return NULL;
}

static enum tw_status request_on_short_notice(struct tw_db *db)
{
	int64_t n = 0;
	enum tw_status st;

	tw_catalogue_shorten_timeout(true);
	st = tw_cat_get_int(db, &n, NULL, "SELECT 1", "");
	tw_catalogue_shorten_timeout(false);
	return st;
}

/* Sessions that are released immediately, and another one in between. */
static enum tw_status with_slow_ones(struct tw_catalogue *c, int n_slow, bool *ret_kept)
{
	struct tw_db *slow[2], *other;
	pthread_t threads[2];
	uint64_t session;
	enum tw_status st;

	assert_int_equal(tw_cat_reader(c, &other, NULL), TW_OK);
	assert_int_equal(request_on_short_notice(other), TW_OK);
	session = other->session;
	for (int i = 0; i < n_slow; i++)
		assert_int_equal(tw_cat_reader(c, &slow[i], NULL), TW_OK);
	for (int i = 0; i < n_slow; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_slowly, slow[i]), 0);
	for (int i = 0; i < n_slow; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	st = request_on_short_notice(other);
	*ret_kept = other->session == session;
	for (int i = 0; i < n_slow; i++)
		tw_cat_done(c, slow[i]);
	tw_cat_done(c, other);
	return st;
}

/* One slow query delays only its session.  If several are slow, PostgreSQL is treated as
 * unresponsive, and a request with a short deadline is refused immediately. */
static void test_a_slow_lookup_delays_only_itself(void **state)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	struct tw_catalogue *c;
	bool kept = false;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/slow");
	assert_int_equal(with_slow_ones(c, 1, &kept), TW_OK);
	assert_true(kept);
	assert_int_equal(with_slow_ones(c, 2, &kept), TW_BUSY);
	for (int i = 0; i < 1200 && tw_catalogue_ping(c, NULL) != TW_OK; i++)
		(void)nanosleep(&pause, NULL); /* until another attempt is allowed */
	assert_int_equal(tw_catalogue_ping(c, NULL), TW_OK);
	(void)tw_catalogue_close(c);
}

/* With a shortened timeout, the wait for a free connection is shorter than PATIENT_MS. */
static void test_no_connection_on_short_notice(void **state)
{
	struct tw_db *out[READERS], *more = NULL;
	struct tw_catalogue *c;
	int64_t began;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/no_space");
	for (int i = 0; i < READERS; i++)
		assert_int_equal(tw_cat_reader(c, &out[i], NULL), TW_OK);
	tw_catalogue_shorten_timeout(true);
	do {
		began = tw_monotonic_ms();
		assert_int_equal(tw_cat_reader(c, &more, NULL), TW_BUSY);
	} while (tw_monotonic_ms() - began >= PATIENT_MS); /* on a busy machine */
	tw_catalogue_shorten_timeout(false);
	for (int i = 0; i < READERS; i++)
		tw_cat_done(c, out[i]);
	(void)tw_catalogue_close(c);
}

/* --- prepared statements --- */

#define PLANNED "SELECT a FROM planned WHERE b=?"

static int64_t planned(struct tw_db *db)
{
	int64_t n = -1;

	assert_int_equal(tw_cat_get_int(db, &n, NULL, PLANNED, "t", "x"), TW_OK);
	return n;
}

/* When the session prepared it, in us; 0: it has not. */
static int64_t prepared_at(struct tw_db *db)
{
	int64_t us = 0;

	assert_int_equal(tw_cat_get_int(db, &us, NULL,
	                         "SELECT coalesce(max((extract(epoch FROM prepare_time)"
	                         "*1000000)::bigint),0) FROM pg_prepared_statements"
	                         " WHERE statement='SELECT a FROM planned WHERE b=$1'",
	                         ""),
	        TW_OK);
	return us;
}

/* A statement is prepared when it runs again, and works on after all that makes its session or
 * PostgreSQL forget it. */
static void test_prepared_statements(void **state)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	struct tw_catalogue *c;
	struct tw_db *db, *beside;
	char sql[64];
	int64_t n, first;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	c = catalogue_in("/planned");
	beside = catalogue_connect("/planned");
	catalogue_run(beside, "CREATE TABLE planned (a integer, b text)");
	catalogue_run(beside, "INSERT INTO planned VALUES (7, 'x')");
	assert_int_equal(tw_cat_reader(c, &db, NULL), TW_OK);
	assert_int_equal(planned(db), 7);
	assert_int_equal(prepared_at(db), 0);
	assert_int_equal(planned(db), 7);
	first = prepared_at(db);
	assert_true(first > 0);
	while (prepared_at(db) == first) { /* plans are renewed */
		assert_int_equal(planned(db), 7);
		(void)nanosleep(&pause, NULL);
	}

	assert_int_equal(planned(db), 7);
	catalogue_run(beside, "ALTER TABLE planned ALTER a TYPE bigint");
	assert_int_equal(planned(db), 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(planned(db), 7);
	assert_int_equal(tw_db_run(db, "DEALLOCATE ALL", NULL), TW_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(planned(db), 7);
	assert_true(prepared_at(db) > 0);

	assert_int_equal(tw_db_run(db, "BEGIN", NULL), TW_OK);
	assert_int_equal(tw_db_run(db, "DEALLOCATE ALL", NULL), TW_OK);
	assert_int_equal(tw_cat_get_int(db, &n, NULL, PLANNED, "t", "x"), TW_BUSY);
	assert_true(db->engine->conflicts(db)); /* so that the transaction runs again */
	assert_int_equal(tw_db_run(db, "ROLLBACK", NULL), TW_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(planned(db), 7);

	for (int i = 0; i < 3; i++) { /* the same text with other types */
		assert_int_equal(
		        tw_cat_get_int(db, &n, NULL, "SELECT length(?||'')", "t", "ab"), TW_OK);
		assert_int_equal(n, 2);
		assert_int_equal(
		        tw_cat_get_int(db, &n, NULL, "SELECT length(?||'')", "i", (int64_t)12345),
		        TW_OK);
		assert_int_equal(n, 5);
	}
	for (int i = 0; i < 600; i++) { /* more than are stored */
		(void)snprintf(sql, sizeof sql, "SELECT %d+?", i / 2);
		assert_int_equal(tw_cat_get_int(db, &n, NULL, sql, "i", (int64_t)1), TW_OK);
		assert_int_equal(n, i / 2 + 1);
	}
	assert_int_equal(tw_cat_get_int(db, &n, NULL,
	                         "SELECT count(*)<=128 FROM pg_prepared_statements", ""),
	        TW_OK);
	assert_int_equal(n, 1);
	catalogue_run(beside, END_OTHERS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(planned(db), 7);
	tw_cat_done(c, db);
	tw_db_close(beside);
	(void)tw_catalogue_close(c);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepared_statements),
        cmocka_unit_test(test_one_server_or_several),
        cmocka_unit_test(test_a_lost_hold_does_not_write),
        cmocka_unit_test(test_begins_again_after_a_wait),
        cmocka_unit_test(test_a_server_that_stalls_delays_no_other),
        cmocka_unit_test(test_a_stalled_transaction_is_ended),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_so_many_connections),
        cmocka_unit_test(test_one_folder),
        cmocka_unit_test(test_a_key_is_the_same_by_any_address),
        cmocka_unit_test(test_a_lost_key_is_not_anothers),
        cmocka_unit_test(test_nothing_changes_while_it_is_held),
        cmocka_unit_test(test_a_slow_lookup_delays_only_itself),
        cmocka_unit_test(test_no_connection_on_short_notice),
};

UNIT_TESTS("postgres_hold", tests)

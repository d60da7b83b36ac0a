/* Unit tests of the catalogue and the blob store: one upload once, pages, filters, deletion,
 * projects apart, and every allocation failing in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file/disk.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/ingest/upload_meta.h"
#include "server/storage/blob.h"
#include "server/storage/blob_piece.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

struct store {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_caller caller;
};

static const char sha_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char sha_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static void caller_of(struct tw_catalogue *c, const char *project, struct tw_caller *ret)
{
	bool is_new;

	*ret = (struct tw_caller){.scope = TW_SCOPE_INGEST};
	assert_int_equal(tw_catalogue_project(c, project, ret->project_id, &is_new, NULL), TW_OK);
}

static void open_store(struct store *s)
{

	memcpy(s->dir, "/tmp/tw-store-XXXXXX", sizeof "/tmp/tw-store-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->c = catalogue_in(s->dir);
	s->arena = tw_arena_new(64 << 20);
	caller_of(s->c, "one", &s->caller);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void close_store(struct store *s)
{
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static enum tw_status add(struct tw_catalogue *c, const struct tw_caller *who, const char *key,
        const char *app, const char *sha, char ret_id[TW_ID_BYTES], bool *ret_new)
{
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", sha, "", 1000};

	meta.app = app;
	meta.device = "Pixel";
	return tw_catalogue_trace_add(c,
	        &(struct tw_arrival){
	                .caller = who, .key = key, .meta = &meta, .parts = &part, .n_parts = 1},
	        ret_id, ret_new, NULL);
}

/* --- one upload, once (I10) --- */

enum { RACERS = 8, ROUNDS = 20 };

struct racer {
	pthread_t thread;
	struct store *s;
	pthread_barrier_t *start;
	char ids[ROUNDS][TW_ID_BYTES];
	unsigned made, failed, number;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	for (int i = 0; i < ROUNDS; i++) {
		char key[16];
		bool is_new = false;

		(void)snprintf(key, sizeof key, "key-%d", i);
		(void)pthread_barrier_wait(r->start);
		if (add(r->s->c, &r->s->caller, key, "app", sha_a, r->ids[i], &is_new) != TW_OK)
			r->failed++;
		r->made += is_new;
	}
	return NULL;
}

static void test_idempotency_race(void **state)
{
	static struct racer racers[RACERS];
	pthread_barrier_t start;
	struct store s;
	unsigned made = 0;

	(void)state;
	open_store(&s);
	assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.s = &s, .start = &start};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_int_equal(racers[i].failed, 0);
		made += racers[i].made;
		assert_memory_equal(racers[i].ids, racers[0].ids, sizeof racers[0].ids);
	}
	assert_int_equal(made, ROUNDS);
	(void)pthread_barrier_destroy(&start);
	close_store(&s);
}

/* Half of them send other content under the same key, and each sends another one with its own key.
 */
static void *quarrel(void *arg)
{
	struct racer *r = arg;
	bool odd = (r->number & 1) != 0;

	for (int i = 0; i < ROUNDS; i++) {
		enum tw_status st;
		char key[16], id[TW_ID_BYTES];
		bool is_new = false;

		(void)snprintf(key, sizeof key, "key-%d", i);
		(void)pthread_barrier_wait(r->start);
		st = add(r->s->c, &r->s->caller, key, "app", odd ? sha_b : sha_a, id, &is_new);
		r->made += is_new;
		r->failed += st == TW_CONFLICT;
		if (st != TW_OK && st != TW_CONFLICT)
			r->made += 1000;
		if (add(r->s->c, &r->s->caller, "", "app", sha_a, r->ids[i], &is_new) != TW_OK)
			r->made += 1000;
	}
	return NULL;
}

/* Uploads that come at once share a transaction: one that is refused leaves the others alone. */
static void test_refused_among_others(void **state)
{
	static struct racer racers[RACERS];
	pthread_barrier_t start;
	struct tw_trace_filter any = {.limit = 1};
	struct tw_trace_row *rows;
	struct store s;
	const char *cursor = "";
	uint64_t total;
	unsigned made = 0;
	unsigned refused = 0;
	size_t n;

	(void)state;
	open_store(&s);
	assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
	for (unsigned i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.s = &s, .start = &start, .number = i};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, quarrel, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		made += racers[i].made;
		refused += racers[i].failed;
	}
	assert_int_equal(made, ROUNDS);
	assert_int_equal(refused, ROUNDS * RACERS / 2);
	any.cursor = cursor;
	assert_int_equal(tw_catalogue_traces(s.c, s.caller.project_id, &any, s.arena, &rows, &n,
	                         &cursor, &total, NULL),
	        TW_OK);
	assert_int_equal(total, ROUNDS + ROUNDS * RACERS);
	(void)pthread_barrier_destroy(&start);
	close_store(&s);
}

static void test_idempotency(void **state)
{
	char first[TW_ID_BYTES], again[TW_ID_BYTES];
	struct tw_caller other;
	struct store s;
	bool is_new;

	(void)state;
	open_store(&s);
	caller_of(s.c, "two", &other);
	assert_int_equal(add(s.c, &s.caller, "k", "app", sha_a, first, &is_new), TW_OK);
	assert_true(is_new);
	assert_int_equal(add(s.c, &s.caller, "k", "app", sha_a, again, &is_new), TW_OK);
	assert_false(is_new);
	assert_string_equal(first, again);
	assert_int_equal(add(s.c, &s.caller, "k", "app", sha_b, again, &is_new), TW_CONFLICT);
	assert_int_equal(add(s.c, &other, "k", "app", sha_b, again, &is_new), TW_OK);
	assert_true(is_new); /* keys of another project are other keys */
	assert_int_equal(add(s.c, &s.caller, "", "app", sha_a, again, &is_new), TW_OK);
	assert_true(is_new); /* neither key nor uuid: nothing identifies it as the same */
	close_store(&s);
}

/* A recording of a device and time, without key; an uuid only where one is given. */
static enum tw_status add_recording(struct store *s, const char *device, int64_t started_ms,
        const char *uuid, const char *sha, char ret_id[TW_ID_BYTES], bool *ret_new)
{
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", sha, "", 1000};

	meta.device = device;
	meta.started_ms = started_ms;
	meta.uuid = uuid;
	return tw_catalogue_trace_add(s->c,
	        &(struct tw_arrival){.caller = &s->caller,
	                .key = "",
	                .meta = &meta,
	                .parts = &part,
	                .n_parts = 1},
	        ret_id, ret_new, NULL);
}

static void test_a_recording_is_once_a_day(void **state)
{
	static const struct {
		const char *device;
		int64_t started_ms;
		const char *uuid, *sha;
	} others[] = {{"Pixel", 1001, "", sha_a}, {"Galaxy", 1000, "", sha_a},
	        {"Pixel", 1000, "", sha_b}, {"Pixel", 1000, "u", sha_a}, {"", 1000, "", sha_a},
	        {"", 1000, "", sha_a}, {"Pixel", 0, "", sha_a}, {"Pixel", 0, "", sha_a}};
	char first[TW_ID_BYTES], again[TW_ID_BYTES], later[TW_ID_BYTES];
	struct tw_db *db;
	struct store s;
	bool is_new;

	(void)state;
	open_store(&s);
	assert_int_equal(add_recording(&s, "Pixel", 1000, "", sha_a, first, &is_new), TW_OK);
	assert_true(is_new);
	assert_int_equal(add_recording(&s, "Pixel", 1000, "", sha_a, again, &is_new), TW_OK);
	assert_false(is_new);
	assert_string_equal(first, again);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_int_equal(add_recording(&s, others[i].device, others[i].started_ms,
		                         others[i].uuid, others[i].sha, again, &is_new),
		        TW_OK);
		assert_true(is_new);
	}
	db = catalogue_connect(s.dir);
	catalogue_run(db, "UPDATE trace SET created_ms=created_ms-86300000");
	assert_int_equal(add_recording(&s, "Pixel", 1000, "", sha_a, again, &is_new), TW_OK);
	assert_false(is_new); /* not a day yet */
	catalogue_run(db, "UPDATE trace SET created_ms=created_ms-100000");
	assert_int_equal(add_recording(&s, "Pixel", 1000, "", sha_a, later, &is_new), TW_OK);
	assert_true(is_new);
	assert_int_equal(add_recording(&s, "Pixel", 1000, "", sha_a, again, &is_new), TW_OK);
	assert_false(is_new);
	assert_string_equal(later, again);
	tw_db_close(db);
	close_store(&s);
}

static void *race_recording(void *arg)
{
	struct racer *r = arg;

	for (int i = 0; i < ROUNDS; i++) {
		bool is_new = false;

		(void)pthread_barrier_wait(r->start);
		if (add_recording(r->s, "Pixel", 1 + i, "", sha_a, r->ids[i], &is_new) != TW_OK)
			r->failed++;
		r->made += is_new;
	}
	return NULL;
}

static void test_a_recording_is_once_in_a_race(void **state)
{
	static struct racer racers[RACERS];
	pthread_barrier_t start;
	struct store s;
	unsigned made = 0;

	(void)state;
	open_store(&s);
	assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.s = &s, .start = &start};
		assert_int_equal(
		        pthread_create(&racers[i].thread, NULL, race_recording, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_int_equal(racers[i].failed, 0);
		made += racers[i].made;
		assert_memory_equal(racers[i].ids, racers[0].ids, sizeof racers[0].ids);
	}
	assert_int_equal(made, ROUNDS);
	(void)pthread_barrier_destroy(&start);
	close_store(&s);
}

static void *add_second(void *arg)
{
	struct racer *r = arg;
	bool is_new = false;

	r->failed = add_recording(r->s, "Pixel", 2, "", sha_a, r->ids[0], &is_new) != TW_OK;
	r->made = is_new;
	return NULL;
}

/* Another server has written the same and not committed it yet. */
static void test_a_recording_is_once_over_servers(void **state)
{
	static struct racer other;
	char first[TW_ID_BYTES];
	struct tw_db *db;
	struct store s;
	bool is_new;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	open_store(&s);
	assert_int_equal(add_recording(&s, "Pixel", 1, "", sha_a, first, &is_new), TW_OK);
	db = catalogue_connect(s.dir);
	catalogue_run(db, "BEGIN IMMEDIATE");
	catalogue_run(db, "UPDATE trace SET started_ms=2");
	other = (struct racer){.s = &s};
	assert_int_equal(pthread_create(&other.thread, NULL, add_second, &other), 0);
	while (catalogue_number(db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
		(void)sched_yield();
	catalogue_run(db, "COMMIT");
	assert_int_equal(pthread_join(other.thread, NULL), 0);
	assert_int_equal(other.failed, 0);
	assert_int_equal(other.made, 0);
	assert_string_equal(other.ids[0], first);
	tw_db_close(db);
	close_store(&s);
}

/* --- pages, filters, projects --- */

static size_t walk_pages(struct store *s, struct tw_trace_filter f, uint64_t *ret_total)
{
	struct tw_trace_row *rows;
	char seen[64][TW_ID_BYTES];
	const char *cursor = "";
	size_t n, all = 0;

	do {
		f.cursor = cursor;
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, ret_total, NULL),
		        TW_OK);
		assert_true(n <= f.limit && all + n <= 64);
		for (size_t i = 0; i < n; i++) {
			for (size_t k = 0; k < all; k++)
				assert_string_not_equal(seen[k], rows[i].id);
			memcpy(seen[all++], rows[i].id, TW_ID_BYTES);
		}
	} while (cursor[0]);
	return all;
}

static void test_pages(void **state)
{
	char id[TW_ID_BYTES];
	struct tw_caller other;
	struct store s;
	uint64_t total;
	bool is_new;

	(void)state;
	open_store(&s);
	caller_of(s.c, "two", &other);
	for (int i = 0; i < 23; i++) {
		const char *app = i % 3 ? "many" : "f'ew; --%_";

		assert_int_equal(add(s.c, &s.caller, "", app, sha_a, id, &is_new), TW_OK);
		assert_int_equal(add(s.c, &other, "", "other", sha_a, id, &is_new), TW_OK);
	}
	for (int sort = TW_SORT_CREATED; sort <= TW_SORT_BYTES; sort++)
		for (int up = 0; up < 2; up++)
			for (uint32_t limit = 1; limit < 30; limit += 5) {
				struct tw_trace_filter f = {.sort = (enum tw_trace_sort)sort,
				        .ascending = up,
				        .limit = limit};

				assert_int_equal(walk_pages(&s, f, &total), 23);
				assert_int_equal(total, 23);
			}
	assert_int_equal(
	        walk_pages(&s, (struct tw_trace_filter){.of = {{TW_BY_app, "many"}}, .limit = 4},
	                &total),
	        15);
	assert_int_equal(
	        walk_pages(&s,
	                (struct tw_trace_filter){.of = {{TW_BY_app, "f'ew; --%_"}}, .limit = 4},
	                &total),
	        8);
	assert_int_equal(
	        walk_pages(&s, (struct tw_trace_filter){.of = {{TW_BY_q, "'ew; --%_"}}, .limit = 4},
	                &total),
	        8);
	assert_int_equal(/* % is a letter here, not a pattern */
	        walk_pages(
	                &s, (struct tw_trace_filter){.of = {{TW_BY_q, "m%y"}}, .limit = 4}, &total),
	        0);
	assert_int_equal(
	        walk_pages(&s, (struct tw_trace_filter){.of = {{TW_BY_state, "ready"}}, .limit = 4},
	                &total),
	        0);
	assert_int_equal(
	        walk_pages(&s,
	                (struct tw_trace_filter){.of = {{TW_BY_state, "queued"}}, .limit = 9},
	                &total),
	        23);
	close_store(&s);
}

static void test_projects_apart(void **state)
{
	char id[TW_ID_BYTES];
	struct tw_caller other;
	struct tw_trace_row row;
	struct tw_part *parts;
	struct tw_queue_stats queue;
	struct tw_blob_list unused;
	struct store s;
	size_t n;
	bool flag;

	(void)state;
	open_store(&s);
	caller_of(s.c, "two", &other);
	assert_int_equal(add(s.c, &s.caller, "", "app", sha_a, id, &flag), TW_OK);
	assert_int_equal(tw_catalogue_trace_get(s.c, other.project_id, id, s.arena, &row, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_trace_parts(s.c, other.project_id, id, s.arena, &parts, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(
	        tw_catalogue_trace_delete(s.c, other.project_id, id, s.arena, &unused, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_trace_requeue(s.c, other.project_id, id, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_queue_stats(s.c, &queue, NULL), TW_OK);
	assert_int_equal(queue.queued, 1); /* its own job and no other */
	assert_int_equal(
	        tw_catalogue_trace_get(s.c, s.caller.project_id, id, s.arena, &row, NULL), TW_OK);
	assert_string_equal(row.meta.app, "app");
	close_store(&s);
}

/* An upload whose project was deleted during it says nothing about the database. */
static void test_project_is_gone(void **state)
{
	const struct tw_caller nobody = {
	        .scope = TW_SCOPE_INGEST, .project_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"};
	char id[TW_ID_BYTES];
	struct store s;
	bool is_new;

	(void)state;
	open_store(&s);
	assert_int_equal(add(s.c, &nobody, "", "app", sha_a, id, &is_new), TW_BUSY);
	assert_int_equal(tw_catalogue_writes(s.c, NULL), TW_OK);
	close_store(&s);
}

/* A blob goes with the last trace of any project that holds it. */
static void test_shared_blob(void **state)
{
	char ids[2][TW_ID_BYTES];
	struct tw_caller other;
	struct tw_blob_list unused;
	struct store s;
	bool flag;

	(void)state;
	open_store(&s);
	caller_of(s.c, "two", &other);
	assert_int_equal(add(s.c, &s.caller, "", "app", sha_a, ids[0], &flag), TW_OK);
	assert_int_equal(add(s.c, &other, "", "app", sha_a, ids[1], &flag), TW_OK);
	assert_int_equal(
	        tw_catalogue_trace_delete(s.c, s.caller.project_id, ids[0], s.arena, &unused, NULL),
	        TW_OK);
	assert_int_equal(unused.n, 0);
	assert_int_equal(tw_catalogue_has_blob(s.c, sha_a, &flag, NULL), TW_OK);
	assert_true(flag);
	{
		const char *const blobs_of[] = {"x'y\"", "\xff", sha_a, "", sha_a, "{}"};
		const char *const traces[] = {"a", ids[1], ids[0], "b"};
		bool have[6];

		assert_int_equal(
		        tw_catalogue_have(s.c, TW_NAME_BLOB, blobs_of, 6, have, NULL), TW_OK);
		for (size_t i = 0; i < 6; i++)
			assert_int_equal(have[i], i == 2 || i == 4);
		for (int kind = TW_NAME_DECODED; kind <= TW_NAME_PIECE; kind++) {
			assert_int_equal(tw_catalogue_have(s.c, (enum tw_name_kind)kind, traces, 4,
			                         have, NULL),
			        TW_OK);
			for (size_t i = 0; i < 4; i++)
				assert_int_equal(have[i], i == 1 && kind != TW_NAME_PIECE);
		}
	}
	assert_int_equal(
	        tw_catalogue_trace_delete(s.c, other.project_id, ids[1], s.arena, &unused, NULL),
	        TW_OK);
	assert_int_equal(unused.n, 1);
	assert_string_equal(unused.sha256[0], sha_a);
	assert_int_equal(tw_catalogue_has_blob(s.c, sha_a, &flag, NULL), TW_OK);
	assert_false(flag);
	close_store(&s);
}

/* --- blobs --- */

static enum tw_status put_blob(struct tw_blobs *b, const char *text, char sha[TW_SHA256_HEX])
{
	struct tw_blob_writer *w = NULL;
	enum tw_status st = tw_blob_begin(b, 10, &w, NULL);

	if (st == TW_OK)
		st = tw_blob_write(w, text, strlen(text), NULL);
	if (st == TW_OK)
		st = tw_blob_commit(w, sha, NULL);
	if (st != TW_OK)
		tw_blob_discard(w);
	return st;
}

static void test_blobs(void **state)
{
	static const char abc[] =
	        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	char sha[TW_SHA256_HEX];
	struct tw_blobs *b;
	struct store s;
	char back[8];
	int fd;

	(void)state;
	open_store(&s);
	assert_int_equal(tw_blobs_open(s.dir, 0, &b, NULL), TW_OK);
	for (int i = 0; i < 2; i++) { /* equal content is one blob */
		assert_int_equal(put_blob(b, "abc", sha), TW_OK);
		assert_string_equal(sha, abc);
	}
	assert_int_equal(tw_blob_open(b, abc, &fd, NULL), TW_OK);
	assert_int_equal(read(fd, back, sizeof back), 3);
	assert_memory_equal(back, "abc", 3);
	(void)close(fd);
	assert_int_equal(put_blob(b, "0123456789", sha), TW_OK);
	assert_int_equal(put_blob(b, "0123456789+", sha), TW_TOO_LARGE);
	assert_int_equal(tw_blob_delete(b, abc, NULL), TW_OK);
	assert_int_equal(tw_blob_open(b, abc, &fd, NULL), TW_NOT_FOUND);
	assert_null(tw_blobs_close(b));
	close_store(&s);
}

/* A temporary file must leave the space below which uploads are refused. */
static void test_space_of_scratch(void **state)
{
	struct tw_blobs *b;
	struct tw_disk d;
	struct store s;
	int fd = -1;

	(void)state;
	open_store(&s);
	assert_true(tw_disk_of(s.dir, &d));
	assert_true(tw_disk_free_percent(&d) > 2);
	assert_int_equal(tw_blobs_open(s.dir, 2, &b, NULL), TW_OK);
	assert_int_equal(tw_piece_scratch(b, 0, &fd, NULL), TW_OK);
	(void)close(fd);
	assert_int_equal(
	        tw_piece_scratch(b, d.free_bytes - d.size_bytes / 100, &fd, NULL), TW_FULL);
	assert_null(tw_blobs_close(b));
	close_store(&s);
}

/* Whichever allocation fails, an upload is in the catalogue once or not at all, and the next try
 * goes through. */
static void test_no_memory(void **state)
{
	struct tw_trace_filter f = {.limit = 50};
	char id[TW_ID_BYTES];
	struct store s;
	uint64_t total;
	bool flag, finished = false;

	(void)state;
	open_store(&s);
	for (uint64_t n = 1; !finished; n++) {
		struct tw_trace_row *rows;
		const char *cursor;
		size_t n_rows;
		enum tw_status st;

		tw_mem_fail_at(n);
		st = add(s.c, &s.caller, "key", "app", sha_a, id, &flag);
		if (st == TW_OK) {
			tw_arena_reset(s.arena);
			st = tw_catalogue_traces(s.c, s.caller.project_id, &f, s.arena, &rows,
			        &n_rows, &cursor, &total, NULL);
		}
		finished = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || (!finished && st == TW_NOMEM));
		assert_in_range(n, 1, 1000);
	}
	assert_int_equal(walk_pages(&s, f, &total), 1);
	close_store(&s);
}

/* The hashing library's memory while it runs short: a place each, since it loses some itself. */
static struct {
	_Alignas(16) uint8_t bytes[2048];
} places[64];
static size_t n_places;
static int left; /* allocations until one fails */

static void *malloc_until(size_t n)
{
	assert_in_range(n, 0, sizeof *places);
	assert_in_range(n_places, 0, 63);
	memset(places[n_places].bytes, 0x5A, sizeof *places);
	return left-- > 0 ? places[n_places++].bytes : NULL;
}

static void keep(void *p)
{
	(void)p;
}

/* A hash for which the library had no memory is not finished. */
static void test_no_memory_to_hash(void **state)
{
	const gnutls_alloc_function real_malloc = gnutls_malloc;
	const gnutls_free_function real_free = gnutls_free;
	struct store s;
	struct tw_blobs *b = NULL;
	struct tw_blob_writer *w = NULL;

	(void)state;
	open_store(&s);
	assert_int_equal(tw_blobs_open(s.dir, 0, &b, NULL), TW_OK);
	gnutls_malloc = malloc_until;
	gnutls_free = keep;
	for (int n = 0; !w; n++) {
		enum tw_status st;

		left = n;
		st = tw_blob_begin(b, 10, &w, NULL);
		assert_int_equal(st, w ? TW_OK : TW_NOMEM);
		assert_true(n > 0 || !w);
	}
	assert_null(tw_blob_discard(w));
	gnutls_malloc = real_malloc;
	gnutls_free = real_free;
	assert_null(tw_blobs_close(b));
	close_store(&s);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idempotency_race),
        cmocka_unit_test(test_refused_among_others),
        cmocka_unit_test(test_idempotency),
        cmocka_unit_test(test_a_recording_is_once_a_day),
        cmocka_unit_test(test_a_recording_is_once_in_a_race),
        cmocka_unit_test(test_a_recording_is_once_over_servers),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_projects_apart),
        cmocka_unit_test(test_project_is_gone),
        cmocka_unit_test(test_shared_blob),
        cmocka_unit_test(test_blobs),
        cmocka_unit_test(test_space_of_scratch),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_to_hash),
};

UNIT_TESTS("store", tests)

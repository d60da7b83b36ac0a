/* Rows and their files become durable concurrently: no reader sees a row before both are, and after
 * a power cut the rows that may lack their files are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/thread/pool.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/jobs_store.h"
#include "server/derive/delete.h"
#include "server/ingest/commit_upload.h"
#include "server/ingest/upload_meta.h"
#include "server/storage/blob.h"
#include "server/storage/blob_int.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { PATH = 128, RACERS = 8, ROUNDS = 20 };

struct store {
	char dir[64];
	struct tw_commit_parts to;
	struct tw_store_job *store_job;
	struct tw_arena *arena;
	struct tw_caller caller;
	struct tw_trace_meta meta;
};

static void open_store(struct store *s)
{
	static const struct tw_storage storage = {.blobs = ""};
	bool is_new;

	*s = (struct store){.meta = tw_upload_meta_none()};
	memcpy(s->dir, "/tmp/tw-arrive-XXXXXX", sizeof "/tmp/tw-arrive-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->to.catalogue = catalogue_in(s->dir);
	assert_int_equal(tw_blobs_open(s->dir, 0, &s->to.blobs, NULL), TW_OK);
	assert_int_equal(tw_store_job_start(
	                         &(struct tw_store_job_parts){.claim = {.storage = &storage,
	                                                              .catalogue = s->to.catalogue,
	                                                              .blobs = s->to.blobs}},
	                         &s->store_job, NULL),
	        TW_OK);
	s->arena = tw_arena_new(64 << 20);
	assert_int_equal(
	        tw_catalogue_project(s->to.catalogue, "p", s->caller.project_id, &is_new, NULL),
	        TW_OK);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void close_store(struct store *s)
{
	s->store_job = tw_store_job_stop(s->store_job);
	s->to.catalogue = tw_catalogue_close(s->to.catalogue);
	s->to.blobs = tw_blobs_close(s->to.blobs);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Traces and jobs that anybody can see. */
static uint64_t seen(struct store *s, struct tw_catalogue *c)
{
	const struct tw_trace_filter f = {.limit = 50, .cursor = ""};
	struct tw_queue_stats stats;
	struct tw_trace_row *rows;
	const char *cursor;
	uint64_t total;
	size_t n;

	assert_int_equal(tw_catalogue_traces(c, s->caller.project_id, &f, s->arena, &rows, &n,
	                         &cursor, &total, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_queue_stats(c, &stats, NULL), TW_OK);
	assert_int_equal(stats.queued, total);
	return total;
}

static size_t unverified(struct store *s, struct tw_catalogue *c, struct tw_unverified **ret)
{
	size_t n;

	assert_int_equal(tw_catalogue_unverified(c, s->arena, ret, &n, NULL), TW_OK);
	return n;
}

static enum tw_status add(struct store *s, const char *key,
        enum tw_status (*durable)(void *, struct tw_err *), void *arg, bool *ret_new)
{
	const struct tw_part part = {"trace", "aa", "", 1};
	const struct tw_arrival up = {.caller = &s->caller,
	        .key = key,
	        .meta = &s->meta,
	        .parts = &part,
	        .n_parts = 1,
	        .durable = durable,
	        .arg = arg};
	char id[TW_ID_BYTES];
	struct tw_err err;

	return tw_catalogue_trace_add(s->to.catalogue, &up, id, ret_new, &err);
}

/* --- visible rows while files are synced --- */

static void copy_file(const char *from_dir, const char *to_dir, const char *name)
{
	char path[PATH], bytes[65536];
	ssize_t n;
	int from, to;

	(void)snprintf(path, sizeof path, "%s/%s", from_dir, name);
	from = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof path, "%s/%s", to_dir, name);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof bytes)) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	(void)close(from);
	(void)close(to);
}

struct waiting {
	struct store *s;
	char cut[64]; /* the data folder as it would be after a power cut now */
	uint64_t seen;
	enum tw_status say;
	int calls;
};

static enum tw_status while_synced(void *arg, struct tw_err *err)
{
	struct waiting *w = arg;
	struct tw_job_row job;

	w->calls++;
	w->seen = seen(w->s, w->s->to.catalogue);
	assert_int_equal(tw_catalogue_queue_claim(w->s->to.catalogue,
	                         &(struct tw_claim){.owner = "me", .lease_ms = 1000}, w->s->arena,
	                         &job, NULL),
	        w->seen ? TW_OK : TW_NOT_FOUND);
	if (catalogue_on_postgres()) /* its server's own power cuts are its own */
		return w->say == TW_OK ? TW_OK : tw_fail(err, w->say, "not durable");
	copy_file(w->s->dir, w->cut, "catalogue.db");
	copy_file(w->s->dir, w->cut, "catalogue.db-wal");
	return w->say == TW_OK ? TW_OK : tw_fail(err, w->say, "not durable");
}

static void begin_waiting(struct store *s, struct waiting *w, enum tw_status say)
{
	*w = (struct waiting){.s = s, .say = say};
	memcpy(w->cut, "/tmp/tw-cut-XXXXXX", sizeof "/tmp/tw-cut-XXXXXX");
	assert_non_null(mkdtemp(w->cut));
}

/* The state at the next start after a power cut during the sync of the files. */
static void check_cut(struct waiting *w)
{
	struct tw_catalogue *c = catalogue_on_postgres() ? NULL : catalogue_in(w->cut);
	struct tw_unverified *u;

	if (c)
		assert_int_equal(seen(w->s, c), 1);
	if (c)
		assert_int_equal(unverified(w->s, c, &u), 1);
	tw_catalogue_close(c);
	(void)nftw(w->cut, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void test_unseen_until_durable(void **state)
{
	struct waiting w;
	struct store s;
	bool is_new;

	(void)state;
	open_store(&s);
	begin_waiting(&s, &w, TW_OK);
	assert_int_equal(add(&s, "1", while_synced, &w, &is_new), TW_OK);
	assert_true(w.calls >= 1 && is_new);
	assert_int_equal(w.seen, 0);
	assert_int_equal(seen(&s, s.to.catalogue), 1);
	check_cut(&w); /* in the log, and known to need a look */

	w.calls = 0; /* again: no transaction waits for files that exist already */
	assert_int_equal(add(&s, "1", while_synced, &w, &is_new), TW_OK);
	assert_false(is_new);
	assert_true(catalogue_on_postgres() || w.calls == 0);
	close_store(&s);
}

static void test_not_durable(void **state)
{
	struct tw_unverified *u;
	struct waiting w;
	struct store s;
	bool is_new;

	(void)state;
	open_store(&s);
	begin_waiting(&s, &w, TW_IO);
	assert_int_equal(add(&s, "1", while_synced, &w, &is_new), TW_IO);
	assert_int_equal(w.calls, 1);
	assert_int_equal(seen(&s, s.to.catalogue), 0);
	assert_int_equal(unverified(&s, s.to.catalogue, &u), 0);
	check_cut(&w);

	assert_int_equal(add(&s, "1", NULL, NULL, &is_new), TW_OK); /* sent again */
	assert_true(is_new);
	assert_int_equal(add(&s, "2", NULL, NULL, &is_new), TW_OK);
	assert_int_equal(seen(&s, s.to.catalogue), 2);
	assert_int_equal(
	        unverified(&s, s.to.catalogue, &u), 1); /* the first is proven by the next */
	s.to.catalogue = tw_catalogue_close(s.to.catalogue);
	s.to.catalogue = catalogue_in(s.dir);
	assert_int_equal(unverified(&s, s.to.catalogue, &u), 1);
	assert_int_equal(add(&s, "3", NULL, NULL, &is_new), TW_OK); /* numbers go on */
	assert_int_equal(unverified(&s, s.to.catalogue, &u), 1);
	close_store(&s);
}

/* --- many at once --- */

static enum tw_status odd_fail(void *arg, struct tw_err *err)
{
	return *(int *)arg % 2 ? tw_fail(err, TW_IO, "not durable") : TW_OK;
}

struct racer {
	pthread_t thread;
	struct store *s;
	pthread_barrier_t *start;
	int number, wrong;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	for (int i = 0; i < ROUNDS; i++) {
		char key[32];
		bool is_new = false;
		enum tw_status st;

		(void)snprintf(key, sizeof key, "%d-%d", r->number, i);
		(void)pthread_barrier_wait(r->start);
		st = add(r->s, key, odd_fail, &r->number, &is_new);
		r->wrong += st != (r->number % 2 ? TW_IO : TW_OK);
		r->wrong += is_new != (r->number % 2 == 0);
	}
	return NULL;
}

static void test_each_answers_for_itself(void **state)
{
	struct racer racers[RACERS];
	pthread_barrier_t start;
	struct store s;

	(void)state;
	open_store(&s);
	assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.s = &s, .start = &start, .number = i};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_int_equal(racers[i].wrong, 0);
	}
	assert_int_equal(seen(&s, s.to.catalogue), RACERS / 2 * ROUNDS);
	(void)pthread_barrier_destroy(&start);
	close_store(&s);
}

/* --- the start after a power cut --- */

static void upload(struct store *s, const char *text, char ret_id[TW_ID_BYTES], char sha[65])
{
	struct tw_upload_part part = {"trace", "", NULL};
	const struct tw_upload up = {&s->caller, "", &s->meta, &part, 1};
	bool is_new;

	assert_int_equal(tw_blob_begin(s->to.blobs, 100, &part.writer, NULL), TW_OK);
	assert_int_equal(tw_blob_write(part.writer, text, strlen(text), NULL), TW_OK);
	assert_int_equal(tw_blob_bytes(part.writer), strlen(text));
	assert_int_equal(tw_commit_upload(&s->to, &up, ret_id, &is_new, NULL), TW_OK);
	assert_true(is_new);
	if (sha) {
		struct tw_unverified *u;

		assert_int_equal(unverified(s, s->to.catalogue, &u), 1);
		assert_string_equal(u->trace_id, ret_id);
		memcpy(sha, u->sha256, 65);
	}
}

enum damage {
	DAMAGE_NONE,
	DAMAGE_MISSING,
	DAMAGE_SHORT,
	DAMAGE_EMPTY,
	DAMAGE_OTHER,
	DAMAGE_LONG,
	DAMAGES
};

static void damage(struct store *s, const char *sha, enum damage how)
{
	char path[PATH + 64];

	(void)snprintf(path, sizeof path, "%s/blobs/%.2s/%s", s->dir, sha, sha);
	if (how == DAMAGE_MISSING)
		assert_int_equal(unlink(path), 0);
	if (how == DAMAGE_SHORT)
		assert_int_equal(truncate(path, 3), 0);
	if (how == DAMAGE_EMPTY)
		assert_int_equal(truncate(path, 0), 0);
	if (how == DAMAGE_LONG)
		assert_int_equal(truncate(path, 100), 0);
	if (how == DAMAGE_OTHER) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		assert_int_equal(pwrite(fd, "", 1, 2), 1);
		(void)close(fd);
	}
}

static void test_start_proves_the_last(void **state)
{
	for (enum damage how = DAMAGE_NONE; how < DAMAGES; how++) {
		char first[TW_ID_BYTES], last[TW_ID_BYTES], sha[65];
		struct tw_trace_row row;
		struct store s;
		int fd;

		(void)state;
		open_store(&s);
		upload(&s, "the first", first, NULL);
		upload(&s, "the last", last, sha);
		damage(&s, sha, how);
		assert_int_equal(tw_jobs_verify_uploads(
		                         &(struct tw_decode_parts){
		                                 .catalogue = s.to.catalogue, .blobs = s.to.blobs},
		                         NULL),
		        TW_OK);
		assert_int_equal(tw_catalogue_trace_get(s.to.catalogue, s.caller.project_id, first,
		                         s.arena, &row, NULL),
		        TW_OK);
		assert_int_equal(tw_catalogue_trace_get(s.to.catalogue, s.caller.project_id, last,
		                         s.arena, &row, NULL),
		        how == DAMAGE_NONE ? TW_OK : TW_NOT_FOUND);
		if (how == DAMAGE_NONE) {
			close_store(&s);
			continue;
		}
		assert_int_equal(tw_blob_open(s.to.blobs, sha, &fd, NULL), TW_NOT_FOUND);
		upload(&s, "the last", last, sha); /* sent again: whole */
		assert_int_equal(tw_blob_check(s.to.blobs, sha, 8, NULL), TW_OK);
		close_store(&s);
	}
}

/* --- a delete and uploads --- */

struct retiring {
	struct store *s;
	char id[TW_ID_BYTES];
	_Atomic pid_t tid;
	enum tw_status status;
};

static void *retire(void *arg)
{
	struct retiring *r = arg;

	r->tid = gettid();
	r->status = tw_delete_trace(
	        &(struct tw_deleter){.catalogue = r->s->to.catalogue, .store_job = r->s->store_job},
	        r->s->caller.project_id, r->id, TW_DELETE_FILES, r->s->arena, NULL);
	return NULL;
}

static bool waits_for_lock(pid_t tid)
{
	char path[64];
	long call = -1;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
	f = tid ? fopen(path, "re") : NULL;
	if (!f || fscanf(f, "%ld", &call) != 1)
		call = -1;
	if (f)
		(void)fclose(f);
	return call == SYS_futex;
}

/* Uploads are between tw_blob_use_begin and its end: a delete that waits for a writer, or for its
 * own commit, does not block them. */
static void test_a_delete_blocks_no_upload(void **state)
{
	const struct tw_part part = {"trace", "aa", "", 1};
	struct store s;
	struct retiring r = {.s = &s};
	const struct tw_arrival up = {
	        .caller = &s.caller, .meta = &s.meta, .parts = &part, .n_parts = 1};
	struct tw_db *w = NULL;
	pthread_t thread;
	bool is_new, used = true;

	(void)state;
	open_store(&s);
	assert_int_equal(tw_catalogue_trace_add(s.to.catalogue, &up, r.id, &is_new, NULL), TW_OK);
	assert_int_equal(tw_cat_begin(s.to.catalogue, TW_SUBJECT_NONE, "", &w, NULL), TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, retire, &r), 0);
	while (!waits_for_lock(r.tid))
		(void)usleep(1000);
	assert_int_equal(pthread_rwlock_tryrdlock(&s.to.blobs->use), 0);
	(void)pthread_rwlock_unlock(&s.to.blobs->use);
	assert_int_equal(tw_cat_end(s.to.catalogue, w, TW_OK, NULL), TW_OK);
	(void)pthread_join(thread, NULL);
	assert_int_equal(r.status, TW_OK);
	assert_int_equal(tw_catalogue_has_blob(s.to.catalogue, "aa", &used, NULL), TW_OK);
	assert_false(used);
	close_store(&s);
}

/* --- a file that another server deleted --- */

static enum tw_status is_gone(void *arg, const char *sha256, struct tw_err *err)
{
	assert_string_equal(sha256, "aa");
	return *(const bool *)arg ? tw_fail(err, TW_BUSY, "gone") : TW_OK;
}

static void test_deleted_elsewhere(void **state)
{
	struct store s;
	const struct tw_part part = {"trace", "aa", "", 1};
	bool gone = true, is_new = false, used = true;
	const struct tw_arrival up = {.caller = &s.caller,
	        .meta = &s.meta,
	        .parts = &part,
	        .n_parts = 1,
	        .present = is_gone,
	        .arg = &gone};
	char id[TW_ID_BYTES];

	(void)state;
	open_store(&s);
	assert_int_equal(tw_catalogue_trace_add(s.to.catalogue, &up, id, &is_new, NULL), TW_BUSY);
	assert_int_equal(tw_catalogue_has_blob(s.to.catalogue, "aa", &used, NULL), TW_OK);
	assert_false(used);
	gone = false;
	assert_int_equal(tw_catalogue_trace_add(s.to.catalogue, &up, id, &is_new, NULL), TW_OK);
	assert_true(is_new);
	assert_int_equal(tw_catalogue_has_blob(s.to.catalogue, "aa", &used, NULL), TW_OK);
	assert_true(used);
	close_store(&s);
}

/* --- a project that was deleted --- */

enum { GONE = 1, SENDERS = 4 };

struct sender {
	pthread_t thread;
	struct store *s;
	struct tw_caller caller;
	char key[2];
	enum tw_status status;
};

static void *send_one(void *arg)
{
	const struct tw_part part = {"trace", "aa", "", 1};
	struct sender *e = arg;
	const struct tw_arrival up = {.caller = &e->caller,
	        .key = e->key,
	        .meta = &e->s->meta,
	        .parts = &part,
	        .n_parts = 1};
	char id[TW_ID_BYTES];
	bool is_new;

	e->status = tw_catalogue_trace_add(e->s->to.catalogue, &up, id, &is_new, NULL);
	return NULL;
}

/* The queue grows while nothing is written. */
static void queue_one(struct sender *e)
{
	struct tw_cat_queue *q = &e->s->to.catalogue->arrivals;
	struct tw_cat_arrival **const last = q->last;
	bool queued = false;

	assert_int_equal(pthread_create(&e->thread, NULL, send_one, e), 0);
	while (!queued) {
		(void)usleep(1000);
		(void)pthread_mutex_lock(&q->lock);
		queued = q->last != last;
		(void)pthread_mutex_unlock(&q->lock);
	}
}

/* Only the upload of the deleted project fails, not those written with it. */
static void test_project_is_gone(void **state)
{
	struct store s;
	struct sender senders[SENDERS];
	struct tw_cat_queue *q;

	(void)state;
	open_store(&s);
	q = &s.to.catalogue->arrivals;
	q->writing = true; /* as during the transaction of earlier ones */
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){.s = &s, .caller = s.caller, .key = {(char)('a' + i)}};
		if (i == GONE)
			memcpy(senders[i].caller.project_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV",
			        TW_ID_BYTES);
		queue_one(&senders[i]);
	}
	(void)pthread_mutex_lock(&q->lock);
	q->writing = false;
	(void)pthread_cond_broadcast(&q->changed);
	(void)pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < SENDERS; i++) {
		(void)pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].status, i == GONE ? TW_BUSY : TW_OK);
	}
	assert_int_equal(seen(&s, s.to.catalogue), SENDERS - 1);
	close_store(&s);
}

/* --- turns --- */

enum { WRITERS = 6 };

struct writer {
	struct tw_pool_task task; /* first member: the pool returns it */
	struct tw_catalogue *catalogue;
	struct order *order;
	char name;
};

struct order { /* in which transactions began; protected by the catalogue's lock of writers */
	char names[WRITERS + 3];
	size_t n;
};

static void write_something(struct tw_pool_task *task, bool stopping)
{
	struct writer *w = (struct writer *)(void *)task;
	struct tw_db *db = NULL;

	(void)stopping;
	assert_int_equal(tw_cat_begin(w->catalogue, TW_SUBJECT_NONE, "", &db, NULL), TW_OK);
	w->order->names[w->order->n++] = w->name;
	assert_int_equal(tw_cat_end(w->catalogue, db, TW_OK, NULL), TW_OK);
}

static void await_waiting(struct tw_catalogue *c, unsigned n)
{
	while (tw_turn_waiting(&c->write_lock) < n)
		(void)usleep(1000);
}

struct uploader {
	struct store *s;
	struct order *order;
	int calls;
};

static enum tw_status note_upload(void *arg, struct tw_err *err)
{
	struct uploader *u = arg;

	(void)err;
	if (u->calls++ ==
	        catalogue_on_postgres()) /* there it is called before the transaction, too */
		u->order->names[u->order->n++] = 'u';
	return TW_OK;
}

static void *upload_one(void *arg)
{
	bool is_new;

	assert_int_equal(add(((struct uploader *)arg)->s, "", note_upload, arg, &is_new), TW_OK);
	return NULL;
}

/* A project with many waiting changes delays changes and uploads of another by only one of its own.
 */
static void test_projects_take_turns_at_writing(void **state)
{
	struct store s;
	struct order order = {.n = 0};
	struct uploader uploader = {&s, &order, 0};
	struct writer writers[WRITERS + 1];
	struct tw_pool *pool = NULL;
	struct tw_db *w = NULL;
	pthread_t uploads;

	(void)state;
	open_store(&s);
	assert_int_equal(tw_pool_start(WRITERS, &pool, NULL), TW_OK);
	assert_int_equal(tw_cat_begin(s.to.catalogue, TW_SUBJECT_NONE, "", &w, NULL), TW_OK);
	for (unsigned i = 0; i <= WRITERS; i++) {
		const bool last = i == WRITERS;

		writers[i] =
		        (struct writer){{.owner = last ? "beta" : "alpha", .run = write_something},
		                s.to.catalogue, &order, last ? 'b' : 'a'};
		assert_true(tw_pool_submit(pool, &writers[i].task));
		await_waiting(s.to.catalogue, i + 1);
	}
	assert_int_equal(pthread_create(&uploads, NULL, upload_one, &uploader), 0);
	await_waiting(s.to.catalogue, WRITERS + 2);
	assert_int_equal(tw_cat_end(s.to.catalogue, w, TW_OK, NULL), TW_OK);
	(void)pthread_join(uploads, NULL);
	pool = tw_pool_stop(pool);
	assert_string_equal(order.names, "abuaaaaa");
	close_store(&s);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_projects_take_turns_at_writing),
        cmocka_unit_test(test_a_delete_blocks_no_upload),
        cmocka_unit_test(test_unseen_until_durable),
        cmocka_unit_test(test_not_durable),
        cmocka_unit_test(test_each_answers_for_itself),
        cmocka_unit_test(test_deleted_elsewhere),
        cmocka_unit_test(test_project_is_gone),
        cmocka_unit_test(test_start_proves_the_last),
};

UNIT_TESTS("commit_upload", tests)

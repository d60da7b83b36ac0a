/*
 * Unit tests of resume.c, resume_file.c and resume_watermark.c: an upload in pieces while each
 * write, sync and rename fails in turn, each allocation too; limits at and past the limit; what
 * lies in the folder that belongs to nobody; headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/ingest/tus/resume.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { LENGTH = 5000, PIECE = 1250, FIELD_MOST = 1 << 16 };

/* --- operations that can be made to fail --- */

static unsigned ops_done, op_to_fail; /* counted from 1; 0: none fails */
static int fail_with;

static bool fails(void)
{
	if (op_to_fail == 0 || ++ops_done != op_to_fail)
		return false;
	errno = fail_with;
	return true;
}

/* In place of libc's, for the server's code and for the libraries it calls. */
ssize_t write(int fd, const void *p, size_t n)
{
	if (fd > 2 && fails()) {
		if (fail_with == ENOSPC && n > 1) { /* a full disk takes some, then nothing */
			op_to_fail++;
			return syscall(SYS_write, fd, p, n / 2);
		}
		return -1;
	}
	return syscall(SYS_write, fd, p, n);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	return fails() ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}

int fsync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	return fails() ? -1 : (int)syscall(SYS_rename, from, to);
}

/* --- uploads --- */

struct fixture {
	char dir[40];
	struct tw_blobs *blobs;
	struct tw_resumes *rs;
	struct tw_arena *arena;
};

static const struct tw_caller caller = {.project_id = "P", .key_id = "K"};
static const struct tw_resume_limits limits = {3, 3 * LENGTH, 1000};
static const char trace_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.arena = tw_arena_new(1 << 20)};
	memcpy(f.dir, "/dev/shm/tw-resume-XXXXXX", sizeof "/dev/shm/tw-resume-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	assert_int_equal(tw_blobs_open(f.dir, 0, &f.blobs, NULL), TW_OK);
	assert_int_equal(tw_resumes_open(f.blobs, &limits, &f.rs, NULL), TW_OK);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->rs = tw_resumes_close(f->rs);
	f->blobs = tw_blobs_close(f->blobs);
	tw_arena_free(f->arena);
	return nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void restart(struct fixture *f)
{
	f->rs = tw_resumes_close(f->rs);
	assert_int_equal(tw_resumes_open(f->blobs, &limits, &f->rs, NULL), TW_OK);
}

static const uint8_t *content(void)
{
	static uint8_t bytes[LENGTH];

	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	return bytes;
}

static enum tw_status begin(struct fixture *f, uint64_t length, char id[TW_ID_BYTES])
{
	struct tw_err err = {0};
	enum tw_status st = tw_resume_new(f->rs, &caller, length, "", "", id, &err);

	assert_true(st == TW_OK || err.msg[0]);
	return st;
}

/* Sends the next piece of the upload; returns the result. */
static enum tw_status send_piece(struct fixture *f, struct tw_resume *r, bool apart)
{
	uint64_t from = r->offset;
	struct tw_err err = {0};
	enum tw_status ended, st = tw_resume_begin_piece(f->rs, r, apart, &err);

	if (st == TW_OK)
		st = tw_resume_write(f->rs, r, content() + from, PIECE / 2, &err);
	if (st == TW_OK)
		st = tw_resume_write(
		        f->rs, r, content() + from + PIECE / 2, PIECE - PIECE / 2, &err);
	ended = tw_resume_end_piece(f->rs, r, st == TW_OK, &err);
	st = st == TW_OK ? ended : st;
	assert_true(st == TW_OK || err.msg[0]);
	return st;
}

static void check_content(struct fixture *f, struct tw_resume *r)
{
	uint8_t bytes[LENGTH + 1];
	int fd = -1;

	if (r->offset == 0)
		return;
	assert_int_equal(tw_resume_open(f->rs, r, &fd, NULL), TW_OK);
	assert_int_equal(read(fd, bytes, sizeof bytes), r->offset);
	assert_memory_equal(bytes, content(), r->offset);
	(void)close(fd);
}

/* Everything, stopping at the first failure. *ret_accepted: how many bytes were said to be kept. */
static enum tw_status upload(struct fixture *f, char id[TW_ID_BYTES], uint64_t *ret_accepted)
{
	struct tw_resume *r = NULL;
	enum tw_status st = begin(f, LENGTH, id);

	*ret_accepted = 0;
	if (st != TW_OK)
		return st;
	assert_int_equal(tw_resume_acquire(f->rs, "P", id, &r, NULL), TW_OK);
	for (int i = 0; st == TW_OK && i < LENGTH / PIECE; i++) {
		st = send_piece(f, r, i % 2);
		if (st == TW_OK)
			*ret_accepted = r->offset;
	}
	check_content(f, r);
	if (st == TW_OK)
		st = tw_resume_done(f->rs, r, trace_id, NULL);
	tw_resume_release(f->rs, r);
	return st;
}

/* After a failure, and after a start on its files, the upload has the acknowledged bytes and can be
 * completed. */
static void go_on(struct fixture *f, const char *id, uint64_t accepted)
{
	struct tw_resume *r = NULL;

	assert_int_equal(tw_resume_acquire(f->rs, "P", id, &r, NULL), TW_OK);
	assert_in_range(r->offset, accepted, LENGTH);
	check_content(f, r);
	while (r->offset < LENGTH) {
		uint64_t n = LENGTH - r->offset < 100 ? LENGTH - r->offset : 100;

		assert_int_equal(tw_resume_begin_piece(f->rs, r, false, NULL), TW_OK);
		assert_int_equal(tw_resume_write(f->rs, r, content() + r->offset, n, NULL), TW_OK);
		assert_int_equal(tw_resume_end_piece(f->rs, r, true, NULL), TW_OK);
	}
	check_content(f, r);
	tw_resume_drop(f->rs, r, NULL);
	tw_resume_release(f->rs, r);
}

/* An unacknowledged upload may exist or not, but must not interfere. */
static bool is_there(struct fixture *f, const char *id)
{
	struct tw_resume r;

	return tw_resume_progress_of(f->rs, "P", id, &r, f->arena, NULL) == TW_OK;
}

static unsigned fail_each(struct fixture *f, int with)
{
	char id[TW_ID_BYTES] = "";
	uint64_t accepted;
	unsigned op;

	for (op = 1;; op++) {
		enum tw_status st;

		ops_done = 0;
		fail_with = with;
		op_to_fail = op;
		st = upload(f, id, &accepted);
		op_to_fail = 0;
		if (st == TW_OK)
			break;
		assert_int_equal(st, with == ENOSPC ? TW_FULL : TW_IO);
		restart(f);
		if (accepted)
			assert_true(is_there(f, id));
		if (accepted < LENGTH && is_there(f, id))
			go_on(f, id, accepted);
		tw_arena_reset(f->arena);
		(void)teardown((void **)&f);
		assert_int_equal(setup((void **)&f), 0);
		assert_in_range(op, 1, 200);
	}
	return op - 1;
}

static void test_each_operation_fails(void **state)
{
	unsigned n = fail_each(*state, EIO);

	assert_in_range(n, 30, 200);
	assert_true(fail_each(*state, ENOSPC) >= n);
	print_message("%u operations, each failed once\n", n);
}

static void test_each_allocation_fails(void **state)
{
	struct fixture *f = *state;
	char id[TW_ID_BYTES];
	uint64_t accepted;
	enum tw_status st = TW_NOMEM;

	for (unsigned n = 1; st != TW_OK; n++) {
		tw_mem_fail_at(n);
		st = upload(f, id, &accepted);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || (st == TW_NOMEM && accepted == 0));
		assert_in_range(n, 1, 50);
	}
	/* one that cannot be read at start for want of memory is not thrown away for others' sake
	 */
	for (unsigned n = 1; n < 4; n++) {
		struct tw_resumes *rs = NULL;

		tw_mem_fail_at(n);
		if (tw_resumes_open(f->blobs, &limits, &rs, NULL) == TW_OK)
			(void)tw_resumes_close(rs);
		tw_mem_fail_at(0);
	}
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	char id[4][TW_ID_BYTES];
	struct tw_resume *r = NULL;

	assert_int_equal(begin(f, 3 * LENGTH + 1, id[0]), TW_RATE);
	assert_int_equal(begin(f, 3 * LENGTH, id[0]), TW_OK);
	assert_int_equal(begin(f, 1, id[1]), TW_RATE);
	assert_int_equal(tw_resume_acquire(f->rs, "P", id[0], &r, NULL), TW_OK);
	tw_resume_drop(f->rs, r, NULL);
	tw_resume_release(f->rs, r);
	for (int i = 0; i < 3; i++)
		assert_int_equal(begin(f, LENGTH, id[i]), TW_OK);
	assert_int_equal(begin(f, 1, id[3]), TW_RATE);
	restart(f); /* uploads on the disk count */
	assert_int_equal(begin(f, 1, id[3]), TW_RATE);
	assert_int_equal(tw_resume_acquire(f->rs, "Q", id[0], &r, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_resume_acquire(f->rs, "P", "nothing", &r, NULL), TW_NOT_FOUND);
}

static void test_a_piece_too_long(void **state)
{
	struct fixture *f = *state;
	char id[TW_ID_BYTES];
	struct tw_resume *r = NULL;

	assert_int_equal(begin(f, 10, id), TW_OK);
	assert_int_equal(tw_resume_acquire(f->rs, "P", id, &r, NULL), TW_OK);
	assert_int_equal(tw_resume_begin_piece(f->rs, r, false, NULL), TW_OK);
	assert_int_equal(tw_resume_write(f->rs, r, content(), 11, NULL), TW_TOO_LARGE);
	assert_int_equal(tw_resume_write(f->rs, r, content(), 10, NULL), TW_OK);
	assert_int_equal(tw_resume_write(f->rs, r, content(), 1, NULL), TW_TOO_LARGE);
	assert_int_equal(tw_resume_write(f->rs, r, content(), SIZE_MAX, NULL), TW_TOO_LARGE);
	assert_int_equal(tw_resume_end_piece(f->rs, r, true, NULL), TW_OK);
	assert_int_equal(tw_resume_end_piece(f->rs, r, true, NULL), TW_OK); /* none is open */
	check_content(f, r);
	tw_resume_release(f->rs, r);
}

static void put(struct fixture *f, const char *name, const char *text)
{
	char path[100];
	int fd;

	(void)snprintf(path, sizeof path, "%s/uploads/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static bool has(struct fixture *f, const char *name)
{
	char path[100];

	(void)snprintf(path, sizeof path, "%s/uploads/%s", f->dir, name);
	return access(path, F_OK) == 0;
}

static void test_files_without_an_upload_are_deleted(void **state)
{
	static const char *const broken[] = {"", "{}", "[]", "{\"metadata\":\"\",\"length\":-1}",
	        "{\"metadata\":\"\",\"length\":5,\"expires_ms\":9e99}"};
	struct fixture *f = *state;
	char id[TW_ID_BYTES], name[40];

	assert_int_equal(begin(f, LENGTH, id), TW_OK);
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		put(f, "01ARZ3NDEKTSV4RRFFQ69G5FAV.json", broken[i]);
		put(f, "01ARZ3NDEKTSV4RRFFQ69G5FAV.part", "bytes of nobody");
		put(f, "rubbish", "x");
		(void)snprintf(name, sizeof name, "%s.new", id);
		put(f, name, "a piece that nobody verified");
		restart(f);
		assert_false(has(f, "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"));
		assert_false(has(f, "01ARZ3NDEKTSV4RRFFQ69G5FAV.part"));
		assert_false(has(f, "rubbish") || has(f, name));
		assert_true(is_there(f, id));
	}
}

/* After a change of the project of all uploads. */
static void change_project(struct fixture *f, const char *sql)
{
	struct tw_catalogue *c = catalogue_in(f->dir);
	struct tw_db *db = catalogue_connect(f->dir);
	char project_id[TW_ID_BYTES];
	bool is_new;

	assert_int_equal(tw_catalogue_project(c, "p", project_id, &is_new, NULL), TW_OK);
	catalogue_run(db, "UPDATE project SET project_id='P'");
	catalogue_run(db, sql);
	tw_db_close(db);
	tw_resumes_expire(f->rs, c);
	assert_null(tw_catalogue_close(c));
}

static void test_of_a_deleted_project(void **state)
{
	struct fixture *f = *state;
	char id[TW_ID_BYTES], part[40];

	assert_int_equal(begin(f, LENGTH, id), TW_OK);
	(void)snprintf(part, sizeof part, "%s.part", id);
	put(f, part, "a piece");
	change_project(f, "UPDATE project SET deleted_ms=0");
	assert_true(is_there(f, id) && has(f, part));
	change_project(f, "UPDATE project SET deleted_ms=1");
	assert_false(is_there(f, id) || has(f, part));
}

static void test_old_ones_go(void **state)
{
	static const struct tw_resume_limits at_once = {3, LENGTH, 0};
	struct fixture *f = *state;
	char id[TW_ID_BYTES];
	struct tw_buf out;

	f->rs = tw_resumes_close(f->rs);
	assert_int_equal(tw_resumes_open(f->blobs, &at_once, &f->rs, NULL), TW_OK);
	assert_int_equal(begin(f, LENGTH, id), TW_OK);
	change_project(f, "UPDATE project SET deleted_ms=0");
	assert_false(is_there(f, id));
	tw_buf_init(&out, FIELD_MOST);
	tw_resumes_metrics(f->rs, &out);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(strstr((char *)out.data, "{step=\"expired\"} 1\n"));
	tw_buf_done(&out);
	assert_null(tw_resumes_close(NULL));
}

/* --- headers --- */

static void test_metadata(void **state)
{
	struct fixture *f = *state;
	struct tw_ingest_pair pairs[TW_RESUME_PAIRS];
	struct tw_err err;
	char many[TW_RESUME_PAIRS * 8 + 16] = "";
	size_t n = 9;

	assert_int_equal(tw_resume_read_metadata(f->arena, NULL, pairs, &n, &err), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(tw_resume_read_metadata(f->arena,
	                         "filename d29ybGQ=, title dGl0bGU= ,empty,", pairs, &n, &err),
	        TW_OK);
	assert_int_equal(n, 2);
	assert_string_equal(pairs[0].name, "title");
	assert_string_equal(pairs[0].value, "title");
	assert_string_equal(pairs[1].value, "");
	assert_int_equal(tw_resume_read_metadata(f->arena, "a AA==", pairs, &n, &err),
	        TW_BAD_REQUEST); /* NUL */
	assert_int_equal(tw_resume_read_metadata(f->arena, "a ?", pairs, &n, &err), TW_BAD_REQUEST);
	for (int i = 0; i < TW_RESUME_PAIRS; i++)
		(void)snprintf(many + strlen(many), 8, "k%d,", i);
	assert_int_equal(tw_resume_read_metadata(f->arena, many, pairs, &n, &err), TW_OK);
	assert_int_equal(n, TW_RESUME_PAIRS);
	(void)snprintf(many + strlen(many), 8, "more");
	assert_int_equal(tw_resume_read_metadata(f->arena, many, pairs, &n, &err), TW_BAD_REQUEST);
}

static void test_checksums(void **state)
{
	static const char *const bad[] = {"", "md5 AA==", "sha1", "sha1 AA==", "sha1 *",
	        "sha256 Lve95gjOVATpfV8EL5X4nxwjKHE="};
	struct fixture *f = *state;
	struct tw_resume_sum sum;
	struct tw_err err;

	assert_int_equal(
	        tw_resume_read_sum(f->arena, "sha1 Lve95gjOVATpfV8EL5X4nxwjKHE=", &sum, &err),
	        TW_OK);
	assert_true(sum.sha1 && sum.len == 20 && sum.bytes[0] == 0x2e && sum.bytes[19] == 0x71);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(tw_resume_read_sum(f->arena, bad[i], &sum, &err), TW_BAD_REQUEST);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(test_each_operation_fails),
        TEST(test_each_allocation_fails),
        TEST(test_limits),
        TEST(test_a_piece_too_long),
        TEST(test_files_without_an_upload_are_deleted),
        TEST(test_old_ones_go),
        TEST(test_of_a_deleted_project),
        TEST(test_metadata),
        TEST(test_checksums),
};

UNIT_TESTS("resume", tests)

/* Unit tests of quota.c and quota_file.c: limits at the limit and one past it, the pace after it,
 * what hostile ids can push out, restarts, damaged files, no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/http/limit/quota_int.h"
#include "tests/unit/unit.h"

enum { NOW = 1000000000, MINUTE = 60000, DAY = 86400000 };

static const struct tw_quota_limits limits = {{{6, 1000}, {4, 500}}};

static enum tw_status take(
        struct tw_quota *q, enum tw_quota_who who, const char *id, uint64_t bytes, int64_t at_ms)
{
	unsigned wait_s = 0;
	unsigned judged_s = 0;
	struct tw_err err;
	enum tw_status verified = tw_quota_check(q, who, id, bytes, at_ms, &judged_s, &err);
	enum tw_status st = tw_quota_take(q, who, id, bytes, at_ms, &wait_s, &err);

	assert_int_equal(st, verified);
	assert_int_equal(wait_s, judged_s);
	assert_int_equal(st == TW_RATE, wait_s > 0);
	return st;
}

static unsigned wait_of(struct tw_quota *q, uint64_t bytes, int64_t at_ms)
{
	unsigned wait_s = 0;

	assert_int_equal(tw_quota_take(q, TW_QUOTA_KEY, "k", bytes, at_ms, &wait_s, NULL), TW_RATE);
	return wait_s;
}

static uint64_t left(struct tw_quota *q, enum tw_quota_what what, const char *id, int64_t at_ms)
{
	struct tw_quota_left all[TW_QUOTA_WHAT];

	tw_quota_remaining(q, TW_QUOTA_KEY, id, at_ms, all);
	return all[what].left;
}

static void test_requests(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);

	(void)state;
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(left(q, TW_QUOTA_REQUESTS, "k", NOW), 6 - i);
		assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW), TW_OK);
	}
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW), TW_RATE);
	assert_int_equal(wait_of(q, 0, NOW), 20); /* for HEAD and PATCH of a tus client */
	assert_int_equal(take(q, TW_QUOTA_KEY, "other", 0, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "k", 0, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 9999), TW_RATE);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 10000), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 10000), TW_RATE);
	assert_int_equal(left(q, TW_QUOTA_REQUESTS, "k", NOW + 2 * MINUTE), 6);
	assert_null(tw_quota_free(q));
	assert_null(tw_quota_free(NULL));
}

static void test_bytes(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);

	(void)state;
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 999, NOW), TW_OK);
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 1);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 2, NOW), TW_RATE);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 1, NOW), TW_OK);
	assert_int_equal(wait_of(q, 100, NOW), 8640);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 100, NOW + 8640000), TW_OK);
	/* larger than a day's: when the bucket is empty, and then it is full */
	assert_int_equal(take(q, TW_QUOTA_KEY, "big", 1, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "big", 5000, NOW), TW_RATE);
	assert_int_equal(take(q, TW_QUOTA_KEY, "big", 5000, NOW + DAY), TW_OK);
	assert_int_equal(left(q, TW_QUOTA_BYTES, "big", NOW + DAY), 0);
	(void)tw_quota_free(q);
}

static void test_settling(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);

	(void)state;
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 600, NOW), TW_OK);
	tw_quota_adjust(q, TW_QUOTA_KEY, "k", -500, NOW); /* a body that was cut */
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 900);
	tw_quota_adjust(q, TW_QUOTA_KEY, "k", 300, NOW); /* one without a length */
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 600);
	tw_quota_adjust(q, TW_QUOTA_KEY, "k", 1 << 20, NOW);
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 0);
	assert_int_equal(wait_of(q, 1000, NOW), DAY / 1000); /* never longer than its window */
	assert_int_equal(left(q, TW_QUOTA_REQUESTS, "k", NOW), 5);
	(void)tw_quota_free(q);
}

static void test_no_limit(void **state)
{
	const struct tw_quota_limits none = {0};
	struct tw_quota *q = tw_quota_new(&none);

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_int_equal(take(q, TW_QUOTA_KEY, "k", UINT64_MAX, NOW), TW_OK);
	(void)tw_quota_free(q);
}

static int64_t clock_ms;

static int64_t read_clock(void)
{
	return clock_ms;
}

/* A clock that is set back by a year delays no caller longer than a window. */
static void test_clock_set_back(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);
	int64_t year = INT64_C(365) * DAY;

	(void)state;
	q->clock_ms = read_clock;
	clock_ms = NOW;
	for (int i = 0; i < 6; i++)
		assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + year), TW_OK);
	assert_int_equal(wait_of(q, 0, NOW), 20);
	assert_int_equal(take(q, TW_QUOTA_KEY, "other", 0, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 10000), TW_OK);
	assert_int_equal(wait_of(q, 0, NOW + 10000), 20);
	(void)tw_quota_free(q);
}

/* A thread that reads the clock and then waits does not set it back. */
static void test_late_thread(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);

	(void)state;
	q->clock_ms = read_clock;
	clock_ms = NOW + 5000;
	for (int i = 0; i < 6; i++)
		assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 5000), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "late", 0, NOW), TW_OK);
	assert_int_equal(wait_of(q, 0, NOW + 5000), 20);
	(void)tw_quota_free(q);
}

/* Millions of invented ids cost no memory, and do not free the one that is at its limit. */
static void test_hostile_ids(void **state)
{
	struct tw_quota *q = tw_quota_new(&limits);
	struct tw_buf out;
	char id[32];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(take(q, TW_QUOTA_DEVICE, "victim", 0, NOW), TW_OK);
	tw_mem_fail_at(1); /* no allocation from here */
	for (int i = 0; i < 1000000; i++) {
		(void)snprintf(id, sizeof id, "device-%d", i);
		assert_int_equal(take(q, TW_QUOTA_DEVICE, id, 10, NOW), TW_OK);
	}
	tw_mem_fail_at(0);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "victim", 0, NOW), TW_RATE);
	tw_buf_init(&out, 1 << 16);
	tw_quota_metrics(q, NOW, &out);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(strstr((char *)out.data, "{of=\"device\"} 65536\n"));
	assert_non_null(strstr((char *)out.data, "{limit=\"device-requests\"} 2\n"));
	tw_buf_done(&out);
	(void)tw_quota_free(q);
}

static void write_bytes(const char *path, const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static size_t read_bytes(const char *path, uint8_t *p, size_t cap)
{
	FILE *f = fopen(path, "re");
	size_t n;

	assert_non_null(f);
	n = fread(p, 1, cap, f);
	(void)fclose(f);
	return n;
}

struct files {
	char dir[40], path[64];
};

static int make_folder(void **state)
{
	static struct files f;

	memcpy(f.dir, "/tmp/tw-quota-XXXXXX", sizeof "/tmp/tw-quota-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.path, sizeof f.path, "%s/quota", f.dir);
	*state = &f;
	return 0;
}

static int remove_folder(void **state)
{
	struct files *f = *state;

	(void)unlink(f->path);
	return rmdir(f->dir); /* nothing else was left */
}

static void test_restart(void **state)
{
	struct files *f = *state;
	struct tw_quota *q = tw_quota_new(&limits);

	assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_NOT_FOUND);
	for (int i = 0; i < 6; i++)
		assert_int_equal(take(q, TW_QUOTA_KEY, "k", 100, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "d", 500, NOW), TW_OK);
	assert_int_equal(tw_quota_save(q, f->path, NOW, NULL), TW_OK);
	(void)tw_quota_free(q);
	q = tw_quota_new(&limits);
	assert_int_equal(tw_quota_load(q, f->path, NOW + 5000, NULL), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 0, NOW + 5000), TW_RATE);
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 400);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "d", 1, NOW + 5000), TW_RATE);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "e", 1, NOW + 5000), TW_OK);
	/* unused quotas are not stored */
	assert_int_equal(tw_quota_save(q, f->path, NOW + 3 * (int64_t)DAY, NULL), TW_OK);
	(void)tw_quota_free(q);
	q = tw_quota_new(&limits);
	assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_OK);
	assert_int_equal(left(q, TW_QUOTA_REQUESTS, "k", NOW), 6);
	(void)tw_quota_free(q);
}

/* Cut anywhere, or any byte changed: as if there were none. */
static void test_damaged_file(void **state)
{
	struct files *f = *state;
	struct tw_quota *q = tw_quota_new(&limits);
	uint8_t bytes[4096];
	size_t n;

	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 1000, NOW), TW_OK);
	assert_int_equal(take(q, TW_QUOTA_DEVICE, "d", 1, NOW), TW_OK);
	assert_int_equal(tw_quota_save(q, f->path, NOW, NULL), TW_OK);
	(void)tw_quota_free(q);
	n = read_bytes(f->path, bytes, sizeof bytes);
	q = tw_quota_new(&limits);
	for (size_t i = 0; i < n; i++) {
		write_bytes(f->path, bytes, i);
		assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_CORRUPT);
		bytes[i] ^= 0x20;
		write_bytes(f->path, bytes, n);
		assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_CORRUPT);
		bytes[i] ^= 0x20;
	}
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 1000);
	write_bytes(f->path, bytes, n);
	assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_OK);
	assert_int_equal(left(q, TW_QUOTA_BYTES, "k", NOW), 0);
	(void)tw_quota_free(q);
}

static void test_no_memory(void **state)
{
	struct files *f = *state;
	struct tw_quota *q = NULL;

	for (unsigned n = 1; !q; n++) {
		tw_mem_fail_at(n);
		q = tw_quota_new(&limits);
		tw_mem_fail_at(0);
		assert_in_range(n, 1, 10);
	}
	assert_int_equal(take(q, TW_QUOTA_KEY, "k", 1000, NOW), TW_OK);
	tw_mem_fail_at(1);
	assert_int_equal(tw_quota_save(q, f->path, NOW, NULL), TW_NOMEM);
	assert_int_equal(tw_quota_load(q, f->path, NOW, NULL), TW_NOMEM);
	tw_mem_fail_at(0);
	assert_int_equal(tw_quota_save(q, "/nowhere/at/all", NOW, NULL), TW_IO);
	(void)tw_quota_free(q);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_settling),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_clock_set_back),
        cmocka_unit_test(test_late_thread),
        cmocka_unit_test(test_hostile_ids),
        cmocka_unit_test_setup_teardown(test_restart, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, make_folder, remove_folder),
};

UNIT_TESTS("quota", tests)

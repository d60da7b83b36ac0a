/* The temporary file for the calls of a large trace leaves --min-free of its disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/decode/scratch_file.h"
#include "tests/unit/unit.h"

enum { FROM = 4096, PIECE = 1 << 20, FURTHER = 64 << 20 };

static const char piece[PIECE];

/* Free space is checked at first, and when scratch has grown by 64 MiB. */
static void test_min_free(void **state)
{
	FILE *file = tmpfile();
	struct tw_scratch_file f = {.fd = -1, .from = FROM, .max_bytes = UINT64_MAX};
	const struct tw_scratch s = tw_scratch_file(&f);
	struct tw_err err = {0};
	struct stat st;

	(void)state;
	assert_non_null(file);
	f.fd = fileno(file);
	f.min_free_bytes = UINT64_MAX;
	assert_int_equal(s.write(s.arg, 0, piece, PIECE, &err), TW_FULL);
	assert_non_null(strstr(err.msg, "--min-free"));
	assert_int_equal(fstat(f.fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	f.min_free_bytes = 0;
	assert_int_equal(s.write(s.arg, 0, piece, PIECE, &err), TW_OK);
	f.min_free_bytes = UINT64_MAX; /* others filled the disk */
	assert_int_equal(s.write(s.arg, FURTHER, piece, PIECE, &err), TW_OK);
	assert_int_equal(s.write(s.arg, FURTHER + PIECE, piece, PIECE, &err), TW_FULL);
	assert_int_equal(s.write(s.arg, 0, piece, PIECE, &err), TW_OK); /* it does not grow */
	assert_int_equal(tw_scratch_file_end(&f, FROM, &err), TW_OK);
	assert_int_equal(fstat(f.fd, &st), 0);
	assert_int_equal(st.st_size, FROM);
	(void)fclose(file);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_min_free),
};

UNIT_TESTS("scratch_file", tests)

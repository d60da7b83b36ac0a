/* Unit tests of catalogue_sums.c and its use in catalogue_vfs.c: a catalogue with flipped bytes is
 * either detected as damaged or returns the same data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/buf.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/db/catalogue_sqlite.h"
#include "server/db/catalogue_sums.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/unit.h"

enum {
	TRACES = 60,
	STEP = 1999,
	STEP_IN_FULL = 499,
	FILE_MOST = 4 << 20
}; /* steps: 2 and 8 bytes per page */

struct fixture {
	char dir[40], path[64];
	uint8_t *bytes; /* of the catalogue, whole */
	size_t n;
	char *reported; /* its content as text */
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void fill(const char *path)
{
	struct tw_catalogue *c = NULL;
	struct tw_caller caller = {.scope = TW_SCOPE_INGEST};
	struct tw_trace_meta meta = tw_upload_meta_none();
	char id[TW_ID_BYTES], name[32];
	bool is_new;

	assert_int_equal(tw_catalogue_open(path, &c, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project(c, "p", caller.project_id, &is_new, NULL), TW_OK);
	for (int i = 0; i < TRACES; i++) {
		const struct tw_part part = {"trace", "aa", "", 1000};
		const struct tw_arrival up = {.caller = &caller,
		        .key = name,
		        .meta = &meta,
		        .parts = &part,
		        .n_parts = 1};

		(void)snprintf(name, sizeof name, "the key of upload %d", i);
		meta.device = name;
		assert_int_equal(tw_catalogue_trace_add(c, &up, id, &is_new, NULL), TW_OK);
	}
	(void)tw_catalogue_close(c);
}

static uint8_t *read_file(const char *path, size_t *ret_n)
{
	uint8_t *p = tw_mem_alloc(FILE_MOST, 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, p, FILE_MOST);

	assert_in_range(n, TW_SUMS_PAGE, FILE_MOST - 1);
	(void)close(fd);
	*ret_n = (size_t)n;
	return p;
}

static void write_file(const char *path, const uint8_t *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, p, n), n);
	(void)close(fd);
}

static enum tw_status dump_rows(struct tw_db *db, const char *table, struct tw_buf *out)
{
	sqlite3_stmt *q = NULL;
	char sql[128];
	int rc;

	(void)snprintf(sql, sizeof sql, "SELECT * FROM \"%.64s\"", table);
	if (sqlite3_prepare_v2(tw_db_sqlite(db), sql, -1, &q, NULL) != SQLITE_OK)
		return tw_cat_fail(db, NULL);
	(void)tw_buf_printf(out, "%s\n", table);
	while ((rc = sqlite3_step(q)) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const unsigned char *text = sqlite3_column_text(q, i);

			(void)tw_buf_printf(out, "%s|", text ? (const char *)text : "NULL");
		}
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? TW_OK : tw_cat_fail(db, NULL);
}

/* All rows of all tables as text, the schema too; NULL when something cannot be read. */
static char *dump_all(struct tw_catalogue *c)
{
	struct tw_cat_query q;
	struct tw_buf out;
	struct tw_db *db;
	char *text;
	enum tw_status st;

	tw_buf_init(&out, FILE_MOST);
	assert_int_equal(tw_cat_reader(c, &db, NULL), TW_OK);
	st = dump_rows(db, "sqlite_schema", &out);
	if (st == TW_OK)
		st = tw_cat_query(&q, db, NULL,
		        "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name", "");
	if (st == TW_OK) {
		while (st == TW_OK && tw_cat_row(&q))
			st = dump_rows(db, tw_cat_str(&q, 0), &out);
		st = tw_cat_close_after(&q, st, NULL);
	}
	tw_cat_done(c, db);
	assert_int_equal(tw_buf_add(&out, "", 1), TW_OK);
	text = st == TW_OK ? strdup((const char *)out.data) : NULL;
	tw_buf_done(&out);
	return text;
}

static int setup(void **state)
{
	static struct fixture f;
	struct tw_catalogue *c = NULL;

	memcpy(f.dir, "/dev/shm/tw-sums-XXXXXX", sizeof "/dev/shm/tw-sums-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.path, sizeof f.path, "%s/catalogue.db", f.dir);
	fill(f.path);
	f.bytes = read_file(f.path, &f.n);
	assert_int_equal(tw_catalogue_open(f.path, &c, NULL), TW_OK);
	f.reported = dump_all(c);
	(void)tw_catalogue_close(c);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tw_mem_free(f->bytes);
	free(f->reported);
	return nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void count_one(void *arg, const char *text)
{
	assert_true(text[0]);
	++*(unsigned *)arg;
}

enum outcome { SEEN, HARMLESS, MISSED };

static enum outcome verify(const struct fixture *f, const char *path)
{
	struct tw_catalogue *c = NULL;
	struct tw_err err = {0};
	unsigned wrong = 0;
	enum outcome o = SEEN;
	char *reported;

	if (tw_catalogue_open(path, &c, &err) != TW_OK) {
		assert_true(err.msg[0]);
		return SEEN;
	}
	if (tw_catalogue_verify(c, count_one, &wrong, &err) == TW_OK && wrong == 0) {
		reported = dump_all(c);
		o = reported && strcmp(reported, f->reported) == 0 ? HARMLESS : MISSED;
		free(reported);
	}
	(void)tw_catalogue_close(c);
	return o;
}

/* Each under a separate name: state recorded for a file persists. */
static enum outcome flip(const struct fixture *f, size_t at, uint8_t bits)
{
	char path[96];
	enum outcome o;

	(void)snprintf(path, sizeof path, "%s/%zu-%d", f->dir, at, bits);
	f->bytes[at] ^= bits;
	write_file(path, f->bytes, f->n);
	f->bytes[at] ^= bits;
	o = verify(f, path);
	if (o == MISSED)
		print_error("byte %zu, bits %d: not seen\n", at, bits);
	(void)unlink(path);
	return o;
}

static void test_flipped_bytes_are_seen(void **state)
{
	const struct fixture *f = *state;
	const char *tier = getenv("TRACEWELL_TESTS");
	const size_t step = tier && strcmp(tier, "full") == 0 ? STEP_IN_FULL : STEP;
	unsigned n[3] = {0};

	for (size_t at = 0; at < TW_SUMS_HEADER; at++)
		n[flip(f, at, (uint8_t)(1 << at % 8))]++;
	for (size_t at = TW_SUMS_HEADER; at < f->n; at += step)
		n[flip(f, at, (uint8_t)(1 << at % 8))]++;
	print_message("%u flips: %u seen, %u harmless, %u missed\n",
	        n[SEEN] + n[HARMLESS] + n[MISSED], n[SEEN], n[HARMLESS], n[MISSED]);
	assert_int_equal(n[MISSED], 0);
	assert_true(n[SEEN] > 9 * n[HARMLESS]);
}

static void test_whole_is_whole(void **state)
{
	const struct fixture *f = *state;

	assert_int_equal(verify(f, f->path), HARMLESS);
}

static void every_page_fits(const uint8_t *p, size_t n)
{
	assert_true(tw_sums_are_stored(p));
	for (size_t at = 0; at < n; at += TW_SUMS_PAGE)
		assert_true(tw_sums_fit(p + at));
}

static void test_sums_are_in_the_file_and_its_copies(void **state)
{
	const struct fixture *f = *state;
	struct tw_catalogue *c = NULL;
	char copy[96];
	uint8_t *p;
	size_t n;

	every_page_fits(f->bytes, f->n);
	(void)snprintf(copy, sizeof copy, "%s/copy", f->dir);
	assert_int_equal(tw_catalogue_open(f->path, &c, NULL), TW_OK);
	assert_int_equal(tw_catalogue_copy(c, copy, NULL), TW_OK);
	(void)tw_catalogue_close(c);
	p = read_file(copy, &n);
	every_page_fits(p, n);
	tw_mem_free(p);
	assert_int_not_equal(verify(f, copy), SEEN); /* its pages are at other offsets */
}

static void test_any_changed_word_changes_the_sum(void **state)
{
	uint8_t page[TW_SUMS_PAGE] = {0};

	(void)state;
	assert_true(tw_sums_fit(page)); /* unwritten pages read as zeros */
	for (size_t i = 0; i < sizeof page; i++)
		page[i] = (uint8_t)(i * 31 >> 3);
	tw_sums_put(page);
	assert_true(tw_sums_fit(page));
	for (size_t at = 0; at < sizeof page; at++)
		for (int bit = 0; bit < 8; bit++) {
			page[at] ^= (uint8_t)(1 << bit);
			assert_false(tw_sums_fit(page));
			page[at] ^= (uint8_t)(1 << bit);
		}
}

static void note_page(void *arg, uint64_t page)
{
	*(uint64_t *)arg = page;
}

static void test_notes(void **state)
{
	uint64_t before = tw_sums_damaged();
	uint64_t page = 0;
	char name[600];

	(void)state;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	tw_sums_note(name, 7);
	tw_sums_note(name, 7);
	assert_int_equal(tw_sums_noted(name, note_page, &page), 1);
	assert_int_equal(page, 7);
	assert_int_equal(tw_sums_damaged(), before + 1);
	for (uint64_t i = 0; i < 1000; i++)
		tw_sums_note("many", i);
	assert_in_range(tw_sums_noted("many", note_page, &page), 100, 999);
	assert_int_equal(tw_sums_noted("none", note_page, &page), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_changed_word_changes_the_sum),
        cmocka_unit_test(test_sums_are_in_the_file_and_its_copies),
        cmocka_unit_test(test_whole_is_whole),
        cmocka_unit_test(test_flipped_bytes_are_seen),
        cmocka_unit_test(test_notes),
};

UNIT_TESTS_WITH("catalogue_sums", tests, setup, teardown)

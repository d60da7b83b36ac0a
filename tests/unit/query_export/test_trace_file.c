/* Unit tests of how a trace file is stored: small ones compressed, others as databases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "server/storage/blob.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_file_vfs.h"
#include "server/trace/trace_readers.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

enum { HEAD = 16, PACKED_HEAD = 12 };
static const char database[HEAD] = "SQLite format 3";

static uint64_t make(struct trace_fixture *f, uint32_t calls)
{
	const struct model_shape shape = {7, 1, calls, 10, false};
	struct model m;
	struct stat st;

	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(f, &m), TW_OK);
	assert_int_equal(stat(f->path, &st), 0);
	model_done(&m);
	return (uint64_t)st.st_size;
}

static void read_head(const char *path, char head[HEAD])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, head, HEAD), HEAD);
	(void)close(fd);
}

static void test_small(void **state)
{
	const struct tw_chunk_row *rows = NULL;
	struct trace_fixture f;
	char head[HEAD];
	uint32_t n = 0;

	(void)state;
	assert_in_range(make(&f, 50), 1, 4096);
	read_head(f.path, head);
	assert_true(tw_trace_file_is(head, HEAD));
	assert_memory_not_equal(head, database, HEAD);
	assert_false(tw_trace_file_is(head, HEAD - 1));
	assert_true(tw_trace_file_info(f.file)->slices >= 50);
	assert_int_equal(tw_trace_file_chunks(f.file, 1, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	trace_fixture_done(&f);
}

/* What began in memory is moved to the file once it is large. */
static void test_large(void **state)
{
	struct trace_fixture f;
	char head[HEAD];

	(void)state;
	assert_true(make(&f, 200000) > 256 << 10);
	read_head(f.path, head);
	assert_memory_equal(head, database, HEAD);
	assert_true(tw_trace_file_is(head, HEAD));
	assert_true(tw_trace_file_info(f.file)->slices >= 200000);
	trace_fixture_done(&f);
}

static enum tw_status opened(const char *path)
{
	struct tw_trace_file *f = NULL;
	const enum tw_status st = tw_trace_file_open(path, &f, NULL);

	tw_trace_file_close(f);
	return st;
}

/* Flipped bytes of the frame and cuts are found before the database is read. */
static void test_damaged(void **state)
{
	struct trace_fixture f;
	const uint64_t bytes = make(&f, 50);
	const int fd = open(f.path, O_RDWR | O_CLOEXEC);
	uint64_t same = 0;

	(void)state;
	for (uint64_t at = 12; at < bytes; at++) {
		uint8_t byte, other;

		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		other = byte ^ 0x01;
		assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
		same += opened(f.path) == TW_OK;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	assert_in_range(same, 0, 4); /* bits that zstd ignores */
	assert_int_equal(opened(f.path), TW_OK);
	for (uint64_t left = bytes; left-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)left), 0);
		assert_int_not_equal(opened(f.path), TW_OK);
	}
	(void)close(fd);
	trace_fixture_done(&f);
}

/* A frame that states more than a small file may have. */
static void test_claims_too_much(void **state)
{
	static const uint8_t frame[] = {0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 'T', 'W', 'T', 'R',
	        0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 0, 0x40, 1, 0, 0};
	struct trace_fixture f;
	int fd;

	(void)state;
	(void)make(&f, 50);
	fd = open(f.path, O_RDWR | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, frame, sizeof frame), sizeof frame);
	assert_int_equal(opened(f.path), TW_CORRUPT);
	(void)close(fd);
	trace_fixture_done(&f);
}

/* --- readers used for several files --- */

static struct tw_trace_file *reopened(const char *path, struct tw_trace_file *used)
{
	struct tw_trace_file *f = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(tw_trace_file_open_fd(fd, used, &f, NULL), TW_OK);
	return f;
}

/* All that a reader returns of methods, chunks and the tree of the first thread. */
static uint64_t sum_of(struct tw_trace_file *f)
{
	struct tw_arena *a = tw_arena_new(1 << 24);
	const struct tw_method_info *m = NULL;
	const struct tw_chunk_row *c = NULL;
	struct tw_tree t;
	uint64_t notes[TW_NOTE_COUNT], sum = tw_trace_file_info(f)->slices;
	uint32_t n = 0;

	assert_int_equal(tw_trace_file_methods(f, &m, &n, NULL), TW_OK);
	for (uint32_t i = 0; i < n; i++)
		sum = sum * 31 + m[i].count + (uint64_t)m[i].self_ns;
	assert_int_equal(tw_trace_file_chunks(f, 1, &c, &n, NULL), TW_OK);
	for (uint32_t i = 0; i < n; i++)
		sum = sum * 31 + c[i].stored_bytes + (uint64_t)c[i].info.end_ns;
	assert_int_equal(tw_trace_file_tree(f, 1, a, &t, NULL), TW_OK);
	assert_int_equal(tw_trace_file_tree_nodes(f, 1), t.n);
	assert_int_equal(tw_trace_file_tree_nodes(f, 99), 0);
	for (uint32_t i = 0; i < t.n; i++)
		sum = sum * 31 + t.nodes[i].method;
	assert_int_equal(tw_trace_file_note_counts(f, notes, NULL), TW_OK);
	tw_arena_free(a);
	return sum;
}

/* A reader returns the same of a file as a new one, whatever it has read before. */
static void test_reuse(void **state)
{
	static const uint32_t calls[] = {50, 3000, 51, 900, 50};
	enum { FILES = sizeof calls / sizeof *calls };
	struct trace_fixture f[FILES];
	struct tw_trace_file *used = NULL;

	(void)state;
	for (int i = 0; i < FILES; i++)
		(void)make(&f[i], calls[i]);
	assert_int_not_equal(sum_of(f[0].file), sum_of(f[2].file));
	for (int i = 0; i < 4 * FILES; i++) {
		const struct trace_fixture *of = &f[i * 3 % FILES];
		struct tw_trace_file *file = reopened(of->path, used);

		assert_true(!used || file == used);
		assert_int_equal(sum_of(file), sum_of(of->file));
		if (i % 2)
			assert_int_equal(sum_of(file), sum_of(of->file));
		used = tw_trace_file_reuse(file);
		assert_non_null(used);
	}
	tw_trace_file_close(used);
	for (int i = 0; i < FILES; i++)
		trace_fixture_done(&f[i]);
}

/* Changes a small file's database by a statement. */
static void change(const char *path, const char *sql)
{
	static uint8_t packed[1 << 20], plain[1 << 20];
	char copy[] = "/tmp/tw-test-change-XXXXXX";
	const int fd = open(path, O_RDWR | O_CLOEXEC), to = mkstemp(copy);
	const ssize_t len = read(fd, packed, sizeof packed);
	sqlite3 *db = NULL;
	size_t n;

	n = ZSTD_decompress(plain, sizeof plain, packed + PACKED_HEAD, (size_t)len - PACKED_HEAD);
	assert_false(ZSTD_isError(n));
	assert_int_equal(write(to, plain, n), n);
	assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
	n = (size_t)pread(to, plain, sizeof plain, 0);
	n = ZSTD_compress(packed + PACKED_HEAD, sizeof packed - PACKED_HEAD, plain, n, 1);
	assert_false(ZSTD_isError(n));
	assert_int_equal(pwrite(fd, packed, PACKED_HEAD + n, 0), PACKED_HEAD + n);
	assert_int_equal(ftruncate(fd, (off_t)(PACKED_HEAD + n)), 0);
	(void)close(fd);
	(void)close(to);
	(void)unlink(copy);
}

/* A file with another schema, or one that is refused, is read as by a new reader. */
static void test_reuse_other_schema(void **state)
{
	static const char *const other[] = {
	        "ALTER TABLE trace_method ADD COLUMN more INTEGER",
	        "CREATE TABLE more(more)",
	        /* two columns change places, but not the number of changes of the schema */
	        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(replace(replace("
	        "sql,'self_ns','x'),'max_ns','self_ns'),'x','max_ns') WHERE name='trace_method'",
	};
	struct trace_fixture same, f;
	struct tw_trace_file *file, *alone, *none = NULL;

	(void)state;
	(void)make(&same, 50);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		(void)make(&f, 60);
		change(f.path, other[i]);
		alone = reopened(f.path, NULL);
		file = reopened(same.path, NULL);
		(void)sum_of(file);
		file = reopened(f.path, tw_trace_file_reuse(file));
		assert_int_equal(sum_of(file), sum_of(alone));
		assert_int_equal(sum_of(alone) == sum_of(f.file), i < 2);
		tw_trace_file_close(alone);
		file = reopened(same.path, tw_trace_file_reuse(file));
		assert_int_equal(sum_of(file), sum_of(same.file));
		change(f.path, "PRAGMA user_version=77");
		assert_int_equal(tw_trace_file_open_fd(open(f.path, O_RDONLY | O_CLOEXEC),
		                         tw_trace_file_reuse(file), &none, NULL),
		        TW_UNSUPPORTED);
		trace_fixture_done(&f);
	}
	trace_fixture_done(&same);
}

static const char trace_id[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

static void publish(struct tw_blobs *b, uint32_t calls)
{
	struct trace_fixture f;

	(void)make(&f, calls);
	assert_int_equal(tw_trace_publish(b, f.path, trace_id, NULL), TW_OK);
	trace_fixture_done(&f);
}

static struct tw_trace_file *opened_by(struct tw_trace_readers *r, struct tw_blobs *b)
{
	struct tw_trace_file *f = NULL;

	assert_int_equal(tw_trace_readers_open(r, b, trace_id, &f, NULL), TW_OK);
	return f;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void test_readers(void **state)
{
	enum { MORE_THAN_KEPT = 20 };
	char folder[] = "/tmp/tw-test-readers-XXXXXX";
	struct tw_trace_readers *r = tw_trace_readers_new();
	struct tw_blobs *b = NULL;
	struct tw_trace_file *first, *second, *many[MORE_THAN_KEPT];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(tw_blobs_open(folder, 0, &b, NULL), TW_OK);
	publish(b, 50);
	first = opened_by(r, b);
	second = opened_by(r, b);
	assert_ptr_not_equal(first, second); /* one user each */
	assert_null(tw_trace_readers_close(r, second));
	assert_null(tw_trace_readers_close(r, first));

	publish(b, 70); /* decoded again */
	second = opened_by(r, b);
	assert_ptr_equal(first, second);
	assert_true(tw_trace_file_info(second)->slices >= 70);
	(void)tw_trace_readers_close(r, second);

	assert_int_equal(tw_trace_delete(b, trace_id, NULL), TW_OK);
	assert_int_equal(tw_trace_readers_open(r, b, trace_id, &first, NULL), TW_NOT_FOUND);
	publish(b, 200000); /* a large one is closed: its caches have no such limit */
	first = opened_by(r, b);
	assert_null(tw_trace_file_reuse(first));
	publish(b, 50);
	for (int i = 0; i < MORE_THAN_KEPT; i++)
		many[i] = opened_by(r, b);
	for (int i = 0; i < MORE_THAN_KEPT; i++)
		(void)tw_trace_readers_close(r, many[i]);
	assert_null(tw_trace_readers_free(r));
	(void)tw_blobs_close(b);
	(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- pages that are written together --- */

struct image_fixture {
	char path[64];
	int fd;
	struct tw_trace_image image;
	sqlite3 *db;
};

static void open_image(struct image_fixture *f, int flags)
{
	const int open_flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int fd;

	(void)snprintf(f->path, sizeof f->path, "/tmp/test_trace_file-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	(void)close(fd);
	f->fd = open(f->path, flags | O_CLOEXEC);
	tw_trace_image_begin(&f->image);
	f->image.fd = f->fd;
	assert_int_equal(tw_trace_vfs_open(&f->image, open_flags, &f->db), SQLITE_OK);
	/* few pages in memory, so that most are written before the commit and read again */
	assert_int_equal(
	        sqlite3_exec(f->db,
	                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=10;"
	                "BEGIN; CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)",
	                NULL, NULL, NULL),
	        SQLITE_OK);
}

static void close_image(struct image_fixture *f)
{
	(void)sqlite3_close(f->db);
	tw_trace_image_done(&f->image);
	(void)close(f->fd);
	(void)unlink(f->path);
}

#define INSERT_ROWS                                                                                \
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"            \
	"INSERT INTO t SELECT i, randomblob(1000 + i * 37) FROM n;"

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = sqlite3_column_int64(s, 0);
	(void)sqlite3_finalize(s);
	return n;
}

static void test_runs(void **state)
{
	static const char sums[] = "SELECT sum(id * length(b)) + sum(unicode(hex(b))) FROM t";
	struct image_fixture f;
	sqlite3 *read = NULL;
	uint64_t bytes = 0;
	struct stat st;
	int64_t sum;

	(void)state;
	open_image(&f, O_RDWR);
	assert_int_equal(sqlite3_exec(f.db,
	                         INSERT_ROWS "UPDATE t SET b = randomblob(2000) WHERE id % 7 = 0;"
	                                     "DELETE FROM t WHERE id % 5 = 0;"
	                                     "UPDATE t SET b = randomblob(9000) WHERE id % 3 = 0;",
	                         NULL, NULL, NULL),
	        SQLITE_OK);
	assert_false(f.image.in_memory);
	sum = number(f.db, sums);
	assert_int_equal(sqlite3_exec(f.db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(tw_trace_image_store(&f.image, NULL, &bytes, NULL), TW_OK);
	assert_int_equal(stat(f.path, &st), 0);
	assert_int_equal(bytes, st.st_size);
	assert_int_equal(sqlite3_open(f.path, &read), SQLITE_OK);
	assert_int_equal(number(read, sums), sum);
	assert_int_equal(
	        number(read, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
	(void)sqlite3_close(read);
	close_image(&f);
}

/* A full disk is reported at the latest when the file is complete. */
static void test_last_run_fails(void **state)
{
	struct image_fixture f;
	uint64_t bytes = 0;

	(void)state;
	open_image(&f, O_RDWR);
	assert_int_equal(sqlite3_exec(f.db, INSERT_ROWS "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_true(f.image.run.len > 0);
	f.image.fd = open(f.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(tw_trace_image_store(&f.image, NULL, &bytes, NULL), TW_IO);
	assert_int_equal(tw_trace_image_read(&f.image, &bytes, sizeof bytes, 0), -1);
	(void)close(f.image.fd);
	close_image(&f);
}

/* Pending pages are written before a page is read. */
static void test_full_before_read(void **state)
{
	struct image_fixture f;
	char b;

	(void)state;
	open_image(&f, O_RDWR);
	assert_int_equal(sqlite3_exec(f.db, INSERT_ROWS "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_true(f.image.run.len > 0);
	f.image.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_int_equal(
	        sqlite3_exec(f.db, "SELECT sum(length(b)) FROM t", NULL, NULL, NULL), SQLITE_FULL);
	errno = 0;
	assert_int_equal(tw_trace_image_read(&f.image, &b, 1, 0), -1);
	assert_int_equal(errno, ENOSPC);
	(void)close(f.image.fd);
	close_image(&f);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_claims_too_much),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_reuse_other_schema),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_last_run_fails),
        cmocka_unit_test(test_full_before_read),
};

UNIT_TESTS("trace_file", tests)

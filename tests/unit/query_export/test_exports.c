/* Exports in other tools' formats: the same bytes however they are pulled, given up at any moment,
 * without memory, of hostile names, of ranges that hold nothing, of very many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/clock.h"
#include "server/export/export.h"
#include "server/export/perfetto/export_perfetto.h"
#include "server/http/http_int.h"
#include "server/trace/trace_file_vfs.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

static const struct tw_export_facts facts = {
        .title = "a <b> \"c\" & \xff", .trace_id = "01ABC", .app = "=app()", .started_ms = 1};

/* A stream of whichever kind; NULL is a Perfetto file. */
struct stream {
	struct tw_export *other;
	struct tw_perfetto *perfetto;
};

static enum tw_status open_file(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	(void)arg, (void)bytes;
	*ret_fd = memfd_create("export", MFD_CLOEXEC);
	return *ret_fd < 0 ? tw_fail_errno(err, TW_IO, "memfd_create") : TW_OK;
}

static enum tw_status open_stream(const struct trace_fixture *f, const struct tw_export_kind *kind,
        const struct tw_selection *sel, struct stream *ret)
{
	const struct tw_export_query q = {.kind = kind, .sel = *sel, .open_file = open_file};
	const struct tw_perfetto_source source = {
	        .file = f->file, .sel = *sel, .facts = {.app = "=app()"}, .system_fd = -1};
	const struct tw_perfetto_options o = {0};

	*ret = (struct stream){NULL, NULL};
	return kind ? tw_export_open(f->file, NULL, &q, &facts, &ret->other, NULL)
	            : tw_perfetto_open(&source, 1, &o, &ret->perfetto, NULL);
}

static enum tw_status read_stream(const struct stream *s, uint8_t *out, size_t cap, size_t *ret_n)
{
	return s->other ? tw_export_read(s->other, out, cap, ret_n, NULL)
	                : tw_perfetto_read(s->perfetto, out, cap, ret_n, NULL);
}

static void close_stream(struct stream *s)
{
	s->other = tw_export_close(s->other);
	s->perfetto = tw_perfetto_close(s->perfetto);
}

/* All of it in pieces of step, at most `most` bytes. */
static enum tw_status pull(const struct trace_fixture *f, const struct tw_export_kind *kind,
        const struct tw_selection *sel, size_t step, size_t most, struct tw_buf *out)
{
	struct stream s;
	enum tw_status st = open_stream(f, kind, sel, &s);
	uint8_t *piece = malloc(step);
	size_t n = 1;

	assert_non_null(piece);
	while (st == TW_OK && n > 0 && out->len < most) {
		st = read_stream(&s, piece, step, &n);
		if (st == TW_OK) {
			assert_true(n <= step);
			(void)tw_buf_add(out, piece, n);
		}
	}
	close_stream(&s);
	free(piece);
	return st;
}

/* Each kind, and NULL for Perfetto's own at the end. */
#define EACH_KIND(i, kind)                                                                         \
	for (size_t i = 0, last = 0; !last; i++)                                                   \
		for (const struct tw_export_kind *kind = tw_export_kind_at(i), *once = NULL;       \
		        !once && ((last = !kind), true); once = (const void *)1)

static const struct tw_selection all = {.all_threads = true};

static void test_pieces(void **state)
{
	const struct model_shape shape = {3, 3, 500, 30, false};
	struct trace_fixture f;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	EACH_KIND(i, kind)
	{
		struct tw_buf whole, part;

		tw_buf_init(&whole, 64 << 20);
		tw_buf_init(&part, 64 << 20);
		assert_int_equal(pull(&f, kind, &all, 1 << 20, SIZE_MAX, &whole), TW_OK);
		assert_true(whole.len > 100);
		assert_int_equal(pull(&f, kind, &all, 7, SIZE_MAX, &part), TW_OK);
		assert_int_equal(part.len, whole.len);
		assert_memory_equal(part.data, whole.data, whole.len);
		/* a client that disconnects half-way leaks nothing: the sanitizers check it */
		for (size_t most = 0; most < whole.len; most += whole.len / 5 + 1) {
			tw_buf_clear(&part);
			assert_int_equal(pull(&f, kind, &all, 1000, most, &part), TW_OK);
		}
		tw_buf_done(&whole);
		tw_buf_done(&part);
	}
	trace_fixture_done(&f);
	model_done(&m);
}

static void test_no_memory(void **state)
{
	const struct model_shape shape = {4, 2, 60, 10, false};
	struct trace_fixture f;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	EACH_KIND(i, kind)
	{
		enum tw_status st = TW_NOMEM;

		for (uint64_t n = 1; st != TW_OK; n++) {
			struct tw_buf out;

			tw_buf_init(&out, 64 << 20);
			assert_int_equal(tw_buf_reserve(&out, 1 << 20), TW_OK);
			tw_mem_fail_at(n);
			st = pull(&f, kind, &all, 1 << 16, SIZE_MAX, &out);
			tw_mem_fail_at(0);
			assert_true(st == TW_OK || st == TW_NOMEM);
			assert_true(n < 5000);
			tw_buf_done(&out);
		}
	}
	trace_fixture_done(&f);
	model_done(&m);
}

/* Threads and ranges that are not there, or the wrong way round: refused, or a file without calls,
 * never more than was asked for. */
static void test_selections(void **state)
{
	static const int64_t ends[] = {
	        INT64_MIN, INT64_MIN + 1, -1, 0, 1, 777, INT64_MAX - 1, INT64_MAX};
	const struct model_shape shape = {5, 2, 100, 10, false};
	const uint64_t nobody = 1;
	const struct tw_selection stranger = {.tids = &nobody, .n_tids = 1};
	struct trace_fixture f;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	EACH_KIND(i, kind)
	{
		struct tw_buf out;

		tw_buf_init(&out, 64 << 20);
		assert_int_equal(pull(&f, kind, &stranger, 4096, SIZE_MAX, &out), TW_NOT_FOUND);
		for (size_t a = 0; a < sizeof ends / sizeof *ends; a++)
			for (size_t b = 0; b < sizeof ends / sizeof *ends; b++) {
				const struct tw_selection sel = {.all_threads = true,
				        .ranged = true,
				        .from_ns = ends[a],
				        .to_ns = ends[b]};
				enum tw_status st;

				tw_buf_clear(&out);
				st = pull(&f, kind, &sel, 1 << 16, SIZE_MAX, &out);
				assert_true(st == TW_OK || st == TW_BAD_REQUEST);
			}
		tw_buf_done(&out);
	}
	trace_fixture_done(&f);
	model_done(&m);
}

/* --- made by hand --- */

struct reported {
	struct tw_builder *b;
	struct tw_sink *sink;
	uint32_t tracks;
};

static void begin_reported(struct reported *t)
{
	struct tw_limits limits = tw_limits_default();

	limits.max_threads = 200000;
	t->b = tw_builder_new(&limits);
	assert_non_null(t->b);
	t->sink = tw_builder_sink(t->b);
	t->tracks = 0;
	t->sink->ops->clock(t->sink, &(struct tw_clock){MODEL_PID, 1000, 1000, 0, 0});
}

/* A thread with one call of a microsecond. */
static void emit_thread(struct reported *t, struct tw_str name, struct tw_str method)
{
	const uint64_t tid = MODEL_PID + t->tracks;
	const struct tw_event call = {.kind = TW_EV_SLICE,
	        .track = t->sink->ops->track(t->sink, MODEL_PID, tid, TW_TID_FULL),
	        .sym = t->sink->ops->name(t->sink, method),
	        .ts_ns = 1000 + (int64_t)t->tracks * 10,
	        .dur_ns = 1000,
	        .cpu_ns = -1};

	assert_true(call.track);
	t->sink->ops->thread_name(t->sink, MODEL_PID, tid, name);
	assert_int_equal(t->sink->ops->events(t->sink, &call, 1, NULL), TW_OK);
	t->tracks++;
}

static const struct tw_str hostile[] = {{"a\0b", 3}, {"\xff\xfe\xc3", 3}, {"<script>&\"']]>", 14},
        {"=1+1", 4}, {"@x;y z", 6}, {"\"\\\n\r\t\x01\x7f", 7}, {"\xed\xa0\x80", 3}, {"", 0},
        {"a;b c 5", 7}};

/* Text of each kind is valid UTF-8, and without control characters but in CSV's quoted cells. */
static void check_text(const struct tw_export_kind *kind, const struct tw_buf *out)
{
	char *clean = malloc(out->len * 3 + 1);

	assert_non_null(clean);
	for (size_t i = 0; i < out->len; i++)
		assert_true(strcmp(kind->name, "csv") == 0 || out->data[i] >= 0x20 ||
		            (out->data[i] && strchr("\t\r\n", out->data[i])));
	assert_int_equal(tw_utf8_clean(clean, out->len * 3 + 1,
	                         (struct tw_str){(const char *)out->data, out->len}),
	        out->len);
	assert_memory_equal(clean, out->data, out->len);
	if (strcmp(kind->name, "svg") == 0)
		assert_null(strstr(clean, "<script"));
	free(clean);
}

static void test_names(void **state)
{
	struct trace_fixture f;
	struct reported t;

	(void)state;
	begin_reported(&t);
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
		emit_thread(&t, hostile[i], hostile[i]);
	assert_int_equal(trace_fixture_write(&f, t.b), TW_OK);
	EACH_KIND(i, kind)
	{
		struct tw_buf out;

		tw_buf_init(&out, 64 << 20);
		assert_int_equal(pull(&f, kind, &all, 4096, SIZE_MAX, &out), TW_OK);
		if (kind && !kind->packed && strcmp(kind->name, "sqlite") != 0)
			check_text(kind, &out);
		tw_buf_done(&out);
	}
	trace_fixture_done(&f);
}

/* Far more threads than a recording has: each costs the same. */
static void test_many_threads(void **state)
{
	enum { MANY = 20000 };
	struct trace_fixture f;
	struct reported t;

	(void)state;
	begin_reported(&t);
	for (uint32_t i = 0; i < MANY; i++)
		emit_thread(&t, TW_STR("worker"), i % 3 ? TW_STR("x") : TW_STR("y"));
	assert_int_equal(trace_fixture_write(&f, t.b), TW_OK);
	assert_int_equal(tw_trace_file_info(f.file)->threads, MANY);
	EACH_KIND(i, kind)
	{
		struct tw_buf out;

		tw_buf_init(&out, (size_t)256 << 20);
		assert_int_equal(pull(&f, kind, &all, 1 << 20, SIZE_MAX, &out), TW_OK);
		assert_int_equal(tw_buf_status(&out), TW_OK);
		assert_true(out.len > 100);
		tw_buf_done(&out);
	}
	trace_fixture_done(&f);
}

/* --- the SQLite database, read by SQLite --- */

static void emit_edge(struct reported *t, enum tw_ev_kind kind, uint32_t thread, int64_t ts)
{
	const struct tw_event e = {.kind = kind,
	        .track = t->sink->ops->track(t->sink, MODEL_PID, MODEL_PID + thread, TW_TID_FULL),
	        .sym = kind == TW_EV_BEGIN ? t->sink->ops->name(t->sink, TW_STR("x")) : 0,
	        .ts_ns = ts,
	        .cpu_ns = -1};

	assert_int_equal(t->sink->ops->events(t->sink, &e, 1, NULL), TW_OK);
}

/* An answer of one number. */
static int64_t asked(const struct tw_buf *bytes, const char *sql)
{
	sqlite3_stmt *s;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_deserialize(db, "main", bytes->data, (sqlite3_int64)bytes->len,
	                         (sqlite3_int64)bytes->len, SQLITE_DESERIALIZE_READONLY),
	        SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = sqlite3_column_int64(s, 0);
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

/* A call of no length at the begin of the range is in it; the call around it, which ends there, is
 * not. */
static void test_parent_before_range(void **state)
{
	const struct tw_selection sel = {
	        .all_threads = true, .ranged = true, .from_ns = 1000, .to_ns = 5000};
	struct trace_fixture f;
	struct tw_buf out;
	struct reported t;

	(void)state;
	begin_reported(&t);
	for (uint32_t thread = 0; thread < 3; thread++) {
		emit_edge(&t, TW_EV_BEGIN, thread, 100);
		emit_edge(&t, TW_EV_BEGIN, thread, 500);
		emit_edge(&t, TW_EV_BEGIN, thread, 1000);
		emit_edge(&t, TW_EV_END, thread, 1000);
		emit_edge(&t, TW_EV_END, thread, 1000);
		emit_edge(&t, TW_EV_BEGIN, thread, 2000);
		emit_edge(&t, TW_EV_END, thread, 2500);
		emit_edge(&t, TW_EV_END, thread, 3000);
	}
	assert_int_equal(trace_fixture_write(&f, t.b), TW_OK);
	tw_buf_init(&out, 1 << 20);
	assert_int_equal(pull(&f, tw_export_kind("sqlite"), &sel, 4096, SIZE_MAX, &out), TW_OK);
	assert_int_equal(asked(&out, "SELECT count(*) FROM slice"), 9);
	assert_int_equal(asked(&out, "SELECT count(*) FROM slice WHERE depth=2 AND dur_ns=0"), 3);
	assert_int_equal(
	        asked(&out, "SELECT count(*) FROM slice WHERE depth=2 AND parent_id IS NULL"), 3);
	assert_int_equal(asked(&out, "SELECT count(*) FROM slice s JOIN slice p ON "
	                             "p.id=s.parent_id WHERE s.depth=1 AND p.depth=0 AND "
	                             "p.thread_id=s.thread_id"),
	        3);
	tw_buf_done(&out);
	trace_fixture_done(&f);
}

/* A database too large for memory is written to the unnamed file, in large pages. */
static void test_large_database(void **state)
{
	const struct model_shape shape = {6, 4, 50000, 30, false};
	struct trace_fixture f;
	struct tw_buf out;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	tw_buf_init(&out, 64 << 20);
	assert_int_equal(pull(&f, tw_export_kind("sqlite"), &all, 4096, SIZE_MAX, &out), TW_OK);
	assert_true(out.len > 2 * TW_TRACE_PACKED_BYTES);
	assert_int_equal(out.data[16] << 8 | out.data[17], 32768); /* page size */
	assert_int_equal(asked(&out, "SELECT count(*) FROM pragma_integrity_check WHERE "
	                             "integrity_check<>'ok'"),
	        0);
	assert_int_equal(
	        asked(&out, "SELECT count(*) FROM slice"), tw_trace_file_info(f.file)->slices);
	assert_int_equal(asked(&out, "SELECT count(*) FROM call WHERE name IS NULL"), 0);
	assert_int_equal(asked(&out, "SELECT min(id)=0 AND max(id)=count(*)-1 FROM slice"), 1);
	assert_int_equal(asked(&out, "SELECT count(*) FROM slice s LEFT JOIN slice p ON "
	                             "p.id=s.parent_id WHERE (s.depth=0)<>(s.parent_id IS NULL) OR "
	                             "(s.depth>0 AND (p.depth IS NOT s.depth-1 OR "
	                             "p.thread_id<>s.thread_id OR p.id>=s.id))"),
	        0);
	tw_buf_done(&out);
	trace_fixture_done(&f);
	model_done(&m);
}

static enum tw_status no_space(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	*(uint64_t *)arg = bytes;
	*ret_fd = -1;
	return tw_fail(err, TW_FULL, "no space");
}

static enum tw_status full_device(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	(void)arg;
	(void)bytes;
	*ret_fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	return *ret_fd < 0 ? tw_fail_errno(err, TW_IO, "/dev/full") : TW_OK;
}

/* A disk that is full before or while the database is written is reported as such. */
static void test_full_disk(void **state)
{
	const struct model_shape shape = {6, 4, 20000, 30, false};
	uint64_t bytes = 0;
	struct trace_fixture f;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	for (int i = 0; i < 2; i++) {
		const struct tw_export_query q = {.kind = tw_export_kind("sqlite"),
		        .sel = all,
		        .open_file = i ? full_device : no_space,
		        .file_arg = &bytes};
		struct tw_export *x = NULL;
		uint8_t piece[4096];
		size_t n;

		assert_int_equal(tw_export_open(f.file, NULL, &q, &facts, &x, NULL), TW_OK);
		assert_int_equal(tw_export_read(x, piece, sizeof piece, &n, NULL), TW_FULL);
		tw_export_close(x);
	}
	assert_true(bytes >= 24000);
	trace_fixture_done(&f);
	model_done(&m);
}

/* Returns the estimated size of the file. */
static uint64_t size_of_database(const struct trace_fixture *f, const struct tw_selection *sel)
{
	uint64_t bytes = 0;
	const struct tw_export_query q = {.kind = tw_export_kind("sqlite"),
	        .sel = *sel,
	        .open_file = no_space,
	        .file_arg = &bytes};
	struct tw_export *x = NULL;
	uint8_t piece[4096];
	size_t n;

	assert_int_equal(tw_export_open(f->file, NULL, &q, &facts, &x, NULL), TW_OK);
	assert_int_equal(tw_export_read(x, piece, sizeof piece, &n, NULL), TW_FULL);
	tw_export_close(x);
	return bytes;
}

/* The estimated size is that of the selection, with its events. */
static void test_size_of_selection(void **state)
{
	const struct model_shape shape = {6, 4, 20000, 30, false};
	struct tw_selection sel = {.n_tids = 1};
	const struct tw_thread_info *t;
	struct trace_fixture f;
	struct reported events;
	struct model m;
	uint64_t per_slice;
	uint32_t n;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	t = tw_trace_file_threads(f.file, &n);
	assert_true(n > 1);
	per_slice = size_of_database(&f, &all) / tw_trace_file_info(f.file)->slices;
	assert_true(per_slice >= 30);
	sel.tids = &t[0].tid;
	assert_int_equal(size_of_database(&f, &sel), per_slice * t[0].slices);
	sel.ranged = true;
	sel.from_ns = t[0].start_ns;
	sel.to_ns = t[0].end_ns + 1;
	assert_int_equal(size_of_database(&f, &sel), per_slice * t[0].slices);
	sel.from_ns = t[0].end_ns + 1;
	sel.to_ns = INT64_MAX;
	assert_int_equal(size_of_database(&f, &sel), 0);
	trace_fixture_done(&f);
	model_done(&m);

	begin_reported(&events);
	emit_thread(&events, TW_STR("main"), TW_STR("run"));
	for (int i = 0; i < 100; i++)
		assert_int_equal(events.sink->ops->note(events.sink,
		                         &(struct tw_note){.kind = TW_NOTE_message,
		                                 .text = TW_STR("text"),
		                                 .ts_ns = 1000 + i,
		                                 .dur_ns = -1},
		                         NULL),
		        TW_OK);
	assert_int_equal(trace_fixture_write(&f, events.b), TW_OK);
	assert_true(size_of_database(&f, &all) >= 100 * 60);
	trace_fixture_done(&f);
}

static enum tw_status space_for(void *arg, struct tw_err *err)
{
	int *checks = arg;

	return --*checks >= 0 ? TW_OK : tw_fail(err, TW_FULL, "no space");
}

/* The size of texts is not known before: 36 MB of them are checked twice. */
static void test_space_for_texts(void **state)
{
	enum { NOTES = 12000, CHECKS = 2 };
	static char text[3000];
	struct trace_fixture f;
	struct reported events;

	(void)state;
	memset(text, 'x', sizeof text);
	begin_reported(&events);
	emit_thread(&events, TW_STR("main"), TW_STR("run"));
	for (int i = 0; i < NOTES; i++)
		assert_int_equal(events.sink->ops->note(events.sink,
		                         &(struct tw_note){.kind = TW_NOTE_message,
		                                 .text = {text, sizeof text},
		                                 .ts_ns = 1000 + i,
		                                 .dur_ns = -1},
		                         NULL),
		        TW_OK);
	assert_int_equal(trace_fixture_write(&f, events.b), TW_OK);
	for (int enough_for = 0; enough_for <= CHECKS; enough_for++) {
		int checks = enough_for;
		const struct tw_export_query q = {.kind = tw_export_kind("sqlite"),
		        .sel = all,
		        .open_file = open_file,
		        .check_space = space_for,
		        .file_arg = &checks};
		struct tw_export *x = NULL;
		uint8_t piece[4096];
		size_t n;

		assert_int_equal(tw_export_open(f.file, NULL, &q, &facts, &x, NULL), TW_OK);
		assert_int_equal(tw_export_read(x, piece, sizeof piece, &n, NULL),
		        enough_for < CHECKS ? TW_FULL : TW_OK);
		assert_int_equal(checks, enough_for < CHECKS ? -1 : 0);
		tw_export_close(x);
	}
	trace_fixture_done(&f);
}

/* Writing the database sends nothing, and yet ends with the request. */
static void check_overdue(struct reported *t)
{
	_Atomic bool abandoned = true;
	struct trace_fixture f;
	struct stream s;
	uint8_t piece[4096];
	size_t n;

	assert_int_equal(trace_fixture_write(&f, t->b), TW_OK);
	assert_int_equal(open_stream(&f, tw_export_kind("sqlite"), &all, &s), TW_OK);
	tw_work_limit_set((struct tw_work_limit){.abandoned = &abandoned});
	assert_int_equal(read_stream(&s, piece, sizeof piece, &n), TW_DEADLINE);
	tw_work_limit_set((struct tw_work_limit){0});
	close_stream(&s);
	trace_fixture_done(&f);
}

static void test_overdue(void **state)
{
	enum { NOTES = 10000 };
	struct reported t;

	(void)state;
	begin_reported(&t);
	emit_thread(&t, TW_STR("main"), TW_STR("x"));
	check_overdue(&t);
	begin_reported(&t);
	for (uint32_t i = 0; i < NOTES; i++)
		assert_int_equal(t.sink->ops->note(t.sink,
		                         &(struct tw_note){.kind = TW_NOTE_counter,
		                                 .ts_ns = 1000 + i,
		                                 .dur_ns = -1,
		                                 .text = TW_STR("heap")},
		                         NULL),
		        TW_OK);
	check_overdue(&t);
}

/* A compressed stream's first bytes arrive as early as those of a plain one. */
static void test_first_bytes(void **state)
{
	static const enum tw_coding codings[] = {
	        TW_CODING_IDENTITY, TW_CODING_GZIP, TW_CODING_ZSTD};

	(void)state;
	for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
		struct tw_encoder *e = tw_encoder_new(codings[i]);
		struct tw_buf out;

		assert_non_null(e);
		tw_buf_init(&out, 1 << 20);
		assert_int_equal(tw_encoder_push(e, "first bytes", 11, false, &out, NULL), TW_OK);
		assert_true(out.len >= 11);
		assert_int_equal(tw_encoder_push(e, "", 0, true, &out, NULL), TW_OK);
		tw_encoder_free(e);
		tw_buf_done(&out);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_selections),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_parent_before_range),
        cmocka_unit_test(test_large_database),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_size_of_selection),
        cmocka_unit_test(test_space_for_texts),
        cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_first_bytes),
};

UNIT_TESTS("exports", tests)

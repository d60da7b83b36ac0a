/* Every file of the recordings next to the source tree: a trace yields the number of events of each
 * kind in its README, its expected file or a count of its lines, a mapping its number of lines;
 * other files are refused as uploads, with the right reason. A file without a row here fails.
 * Skipped with a message if the folder is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "decoder/symbols/method_map.h"
#include "decoder/symbols/retrace.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { MAX_BYTES = 48 << 20, PATH_BYTES = 1024 };

enum what {
	A_TRACE,  /* n: begins, ends, slices, named threads, repairs */
	METHODS,  /* n: lines */
	RETRACE,  /* n: classes, methods */
	NO_UPLOAD /* has the expected result of other samples, read by the test named */
};

struct row {
	const char *path;
	enum what what;
	const char *as; /* the format that must recognise it */
	int64_t n[5];
};

static const struct row rows[] = {
        {"README.md", NO_UPLOAD, "people", {0}},
        /* stacks: 96 frames in the JSON; 11 and 2 lines of stack; 103 lines of Java and 116 of
         * native code, in 30 threads; the last two are cut */
        {"anr/anr_one.json", A_TRACE, "anr_json", {96, 96, 0, 12, 0}},
        {"anr/anr_stacktrace_one.txt", A_TRACE, "anr", {11, 11, 0, 1, 0}},
        {"anr/jvm_anr_golden.json", A_TRACE, "anr_json", {3, 3, 0, 1, 0}},
        {"anr/jvm_anr_stacktrace_golden.txt", A_TRACE, "anr", {2, 2, 0, 1, 0}},
        {"anr/thread_dump.txt", A_TRACE, "anr", {103 + 116, 103 + 116, 0, 30, 0}},
        {"anr/thread_dump_no_stacktrace.txt", A_TRACE, "anr", {1, 1, 0, 2, 1}},
        {"anr/thread_dump_process_name_main.txt", A_TRACE, "anr", {3, 3, 0, 2, 1}},
        /* 39,377 records, 38 of nine methods that no line names; 52 threads with records, 61 in
         * the list; 23 records, three of them left by exceptions */
        {"art/art-trace-streaming.trace.gz", A_TRACE, "art", {19885, 39377 - 19885, 0, 113, 9}},
        {"art/basic-api10.trace", A_TRACE, "art", {5, 5, 0, 8, 1}},
        {"art/basic.trace", A_TRACE, "art", {4, 5, 0, 11, 0}},
        {"art/exception.trace", A_TRACE, "art", {11, 23 - 11, 0, 11, 0}},
        {"art/v1-streaming-wall.trace", A_TRACE, "art", {3, 3, 0, 2, 0}},
        {"art/v1-streaming-wall-truncated.trace", A_TRACE, "art", {3, 3, 0, 1, 1}},
        {"art/v2b-dual-split-block.trace", A_TRACE, "art", {3, 3, 0, 1, 0}},
        {"art/v2b-dual-streaming.trace", A_TRACE, "art", {3, 3, 0, 1, 0}},
        {"art/v2b-wall.trace", A_TRACE, "art", {3, 3, 0, 1, 0}},
        {"art/synthetic-expected.json", NO_UPLOAD, "test_art_samples", {0}},
        {"art/2246-trace-stream.expected-stdout.txt", NO_UPLOAD, "test_art_samples", {0}},
        /* records, and threads of the side file */
        {"btrace2/javac-single/rhea-atrace.bin.zst", A_TRACE, "btrace2", {0, 0, 320275, 0, 0}},
        {"btrace2/javac-single/methodMapping.txt.zst", METHODS, "", {8224}},
        {"btrace2/javac-single/threads.txt", A_TRACE, "threads", {0, 0, 0, 2, 0}},
        {"btrace2/javac-single/expected.json", NO_UPLOAD, "test_samples", {0}},
        {"btrace2/javac-parallel/rhea-atrace.bin.zst", A_TRACE, "btrace2", {0, 0, 1750778, 0, 0}},
        {"btrace2/javac-parallel/methodMapping.txt.zst", METHODS, "", {8270}},
        {"btrace2/javac-parallel/threads.txt", A_TRACE, "threads", {0, 0, 0, 5, 0}},
        {"btrace2/javac-parallel/expected.json", NO_UPLOAD, "test_samples", {0}},
        {"merge/javac-and-kernel/rhea-atrace.bin.zst", A_TRACE, "btrace2", {0, 0, 331894, 0, 0}},
        {"merge/javac-and-kernel/methodMapping.txt.zst", METHODS, "", {8228}},
        {"merge/javac-and-kernel/threads.txt", A_TRACE, "threads", {0, 0, 0, 4, 0}},
        {"merge/javac-and-kernel/system.perfetto-trace", A_TRACE, "perfetto", {0, 0, 0, 216, 0}},
        {"merge/javac-and-kernel/expected.json", NO_UPLOAD, "e2e/merged", {0}},
        /* class lines, and member lines with parentheses */
        {"mapping/adt-mapping.txt", RETRACE, "", {6, 30}},
        {"mapping/mapping-callback-extra-class.txt", RETRACE, "", {3, 116}},
        {"mapping/mapping-callback.txt", RETRACE, "", {3, 114}},
        {"mapping/mapping-inline-no-base.txt", RETRACE, "", {1, 4}},
        {"mapping/mapping-inlines.txt", RETRACE, "", {16, 186}},
        {"mapping/mapping-outline.txt", RETRACE, "", {2, 4}},
        {"mapping/mapping-r8-symbolicated_file_names.txt", RETRACE, "", {5, 16}},
        {"mapping/mapping-r8.txt.zst", RETRACE, "", {1167, 24076}},
        {"mapping/mapping-rewrite-complex.txt", RETRACE, "", {3, 7}},
        {"mapping/mapping-zero-line-info.txt", RETRACE, "", {9, 310}},
        {"mapping/mapping.txt.zst", RETRACE, "", {716, 5432}},
        {"mapping/mapping_basic.txt", RETRACE, "", {7, 5}},
        {"mapping/mapping_sqlite.txt", RETRACE, "", {1, 2}},
        /* test_profilo_log holds it to stacks.folded; 39 gaps between samples */
        {"profilo/override-main-23725-2018-1-16T12-52-49-GeHZavrJSAb.log", A_TRACE, "profilo",
                {-1, -1, -1, 15, 39}},
        /* 368 different beginnings of its lines; test_profilo_log compares the log with it */
        {"profilo/stacks.folded", A_TRACE, "folded", {368, 368, 0, 1, 0}},
        {"sentry/sentry-java-sentry_profile.json", A_TRACE, "sentry", {5, 5, 0, 1, 0}},
        /* as many as lines with B and E; eight spans end past the trace */
        {"systrace/android_systrace.txt", A_TRACE, "atrace", {0, 0, 0, 12, 0}},
        {"systrace/atrace_data", A_TRACE, "atrace", {0, 0, 0, 22, 0}},
        {"systrace/compressed_atrace_data.txt", A_TRACE, "atrace", {463, 463, 0, 1, 8}},
        {"systrace/decompressed_atrace_data.txt", A_TRACE, "atrace", {463, 463, 0, 1, 8}},
        {"systrace/trivial_systrace.html", A_TRACE, "systrace", {0, 0, 0, 3, 0}},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static char root[PATH_BYTES];
static uint8_t *bytes;
static bool seen[N_ROWS];

static size_t load(const char *path)
{
	FILE *f = fopen(unit_sample(path), "rbe");
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, MAX_BYTES, f);
	(void)fclose(f);
	assert_true(n < MAX_BYTES);
	return n;
}

static void hold(const struct row *r, const char *what, int64_t got, int64_t want)
{
	if (want >= 0 && got != want)
		fail_msg("%s: %lld %s, not %lld", r->path, (long long)got, what, (long long)want);
}

static int64_t count_events(const struct event_log *log, enum tw_ev_kind kind)
{
	int64_t n = 0;

	for (size_t i = 0; i < log->n; i++)
		n += log->events[i].kind == kind;
	return n;
}

/* Lines that begin with a number: names of threads. */
static int64_t count_threads(const struct event_log *log)
{
	struct tw_str rest = {(const char *)log->names.data, log->names.len};
	int64_t n = 0;

	while (rest.len) {
		struct tw_str line = tw_str_split(&rest, '\n');

		n += line.len && line.ptr[0] >= '0' && line.ptr[0] <= '9';
	}
	return n;
}

static void check_trace(const struct row *r)
{
	struct event_log log;
	size_t n = load(r->path);

	event_log_run(&log, bytes, n, 0, NULL);
	if (log.status != TW_OK)
		fail_msg("%s: %s", r->path, log.err.msg);
	assert_string_equal(log.format->name, r->as);
	assert_false(log.bad_json);
	hold(r, "begins", count_events(&log, TW_EV_BEGIN), r->n[0]);
	hold(r, "ends", count_events(&log, TW_EV_END) + count_events(&log, TW_EV_END_EARLIER),
	        r->n[1]);
	hold(r, "slices", count_events(&log, TW_EV_SLICE), r->n[2]);
	hold(r, "named threads", count_threads(&log), r->n[3]);
	hold(r, "repairs", (int64_t)event_log_repairs(&log), r->n[4]);
	event_log_done(&log);
}

/* The text of a mapping, packed or not; in `bytes`. */
static size_t load_text(const char *path)
{
	size_t n = load(path);
	uint8_t *packed;

	if (n < 4 || memcmp(bytes, "\x28\xB5\x2F\xFD", 4) != 0)
		return n;
	packed = malloc(n);
	assert_non_null(packed);
	memcpy(packed, bytes, n);
	n = ZSTD_decompress(bytes, MAX_BYTES, packed, n);
	free(packed);
	assert_false(ZSTD_isError(n));
	return n;
}

static void check_methods(const struct row *r)
{
	struct tw_map_writer *w = tw_map_writer_new(MAX_BYTES, 1 << 20);
	struct tw_map_stats stats;
	struct tw_buf image;
	size_t n = load_text(r->path);

	tw_buf_init(&image, MAX_BYTES);
	assert_int_equal(tw_map_writer_push(w, bytes, n, NULL), TW_OK);
	assert_int_equal(tw_map_writer_finish(w, &image, &stats, NULL), TW_OK);
	hold(r, "lines", (int64_t)stats.lines, r->n[0]);
	hold(r, "lines that fit nothing", (int64_t)stats.malformed, 0);
	tw_buf_done(&image);
	tw_map_writer_free(w);
}

static void check_retrace(const struct row *r)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(MAX_BYTES);
	struct tw_retrace_stats stats;
	struct tw_buf image;
	size_t n = load_text(r->path);

	tw_buf_init(&image, MAX_BYTES);
	assert_int_equal(tw_retrace_writer_push(w, bytes, n, NULL), TW_OK);
	assert_int_equal(tw_retrace_writer_finish(w, &image, &stats, NULL), TW_OK);
	hold(r, "classes", (int64_t)stats.classes, r->n[0]);
	hold(r, "methods", (int64_t)stats.methods, r->n[1]);
	hold(r, "lines that fit nothing", (int64_t)stats.malformed, 0);
	tw_buf_done(&image);
	tw_retrace_writer_free(w);
}

/* A mapping is not a trace either: the error names the path where it belongs. */
static void check_refusal(const struct row *r)
{
	struct tw_limits limits = tw_limits_default();
	const struct tw_format *found = NULL;
	struct tw_err err = {0};
	size_t n = load(r->path);

	if (tw_decoder_preflight(bytes, n, true, NULL, &limits, &found, &err) != TW_UNSUPPORTED)
		fail_msg("%s is taken for %s", r->path, found ? found->name : "something");
	assert_non_null(strstr(err.msg, "a trace in a known format"));
	assert_true((r->what == METHODS) == (strstr(err.msg, "/methods") != NULL));
	assert_true((r->what == RETRACE) == (strstr(err.msg, "/retrace") != NULL));
}

static void test_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		if (rows[i].what == A_TRACE)
			check_trace(&rows[i]);
		if (rows[i].what == METHODS)
			check_methods(&rows[i]);
		if (rows[i].what == RETRACE)
			check_retrace(&rows[i]);
		if (rows[i].what != A_TRACE)
			check_refusal(&rows[i]);
	}
}

static void walk(const char *folder)
{
	char path[2 * PATH_BYTES];
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof path, "%s/%s", root, folder);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d))) {
		char inner[PATH_BYTES];
		struct stat st;
		size_t i = 0;

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(
		        inner, sizeof inner, "%s%s%s", folder, *folder ? "/" : "", e->d_name);
		(void)snprintf(path, sizeof path, "%s/%s", root, inner);
		assert_int_equal(stat(path, &st), 0);
		if (S_ISDIR(st.st_mode)) {
			walk(inner);
			continue;
		}
		while (i < N_ROWS && strcmp(rows[i].path, inner) != 0)
			i++;
		if (i == N_ROWS)
			fail_msg("%s has no row in this test", inner);
		seen[i] = true;
	}
	(void)closedir(d);
}

static void test_all_are_here(void **state)
{
	(void)state;
	(void)snprintf(root, sizeof root, "%s", unit_sample("."));
	walk("");
	for (size_t i = 0; i < N_ROWS; i++)
		if (!seen[i])
			fail_msg("%s is not there", rows[i].path);
}

static int setup(void **state)
{
	(void)state;
	bytes = malloc(MAX_BYTES);
	return bytes ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(bytes);
	return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_all_are_here),
};

UNIT_TESTS_WITH("sample_files", tests, setup, teardown)

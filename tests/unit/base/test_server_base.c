/* Unit tests of what the server judges texts by: settings, Accept-Encoding, targets, cookies,
 * metadata, flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/auth/auth.h"
#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/file/io.h"
#include "server/base/ulid.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/cli/cli.h"
#include "server/http/http_int.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/unit.h"

static enum tw_status load(struct tw_arena *a, struct tw_config *c, struct tw_err *err, ...)
{
	char *argv[16];
	int argc = 0;
	va_list ap;

	va_start(ap, err);
	while ((argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	return tw_config_load(a, argc, argv, c, err);
}

/* A trace counts when it was recorded, as far as the device's clock can be believed. */
static void test_recorded(void **state)
{
	const int64_t now = INT64_C(1760000000000);
	struct tw_trace_meta m = tw_upload_meta_none();

	(void)state;
	assert_true(tw_upload_meta_recorded(&m, now) == now);
	m.started_ms = now - 3 * TW_DAY_MS;
	assert_true(tw_upload_meta_recorded(&m, now) == m.started_ms);
	m.started_ms = now - 31 * TW_DAY_MS;
	assert_true(tw_upload_meta_recorded(&m, now) == now);
	m.started_ms = now + 1;
	assert_true(tw_upload_meta_recorded(&m, now) == now);
	m.started_ms = 1000; /* a clock that begins at 1970 */
	m.sent_ms = 61000;
	assert_true(tw_upload_meta_recorded(&m, now) == now - 60000);
	m.started_ms = now + 5 * TW_DAY_MS; /* a clock that is six days fast */
	m.sent_ms = now + 6 * TW_DAY_MS;
	assert_true(tw_upload_meta_recorded(&m, now) == now - TW_DAY_MS);
	m.sent_ms = m.started_ms - 1; /* sent before it was recorded */
	assert_true(tw_upload_meta_recorded(&m, now) == now);
}

static void test_ulid_ms(void **state)
{
	const int64_t now = INT64_C(1760000000123);
	char id[TW_ID_BYTES], first[TW_ID_BYTES];

	(void)state;
	tw_ulid_new(now, id);
	assert_true(tw_ulid_ms(id) == now);
	tw_ulid_first(now, first);
	assert_true(tw_ulid_valid(first) && tw_ulid_ms(first) == now && strcmp(first, id) <= 0);
	tw_ulid_first(now + 1, first);
	assert_true(strcmp(first, id) > 0);
	assert_true(tw_ulid_ms("7ZZZZZZZZZ0000000000000000") == INT64_C(281474976710655));
}

static void test_config_defaults(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_config c;
	struct tw_err err;

	(void)state;
	assert_int_equal(load(a, &c, &err, NULL), TW_OK);
	assert_string_equal(c.listen, "127.0.0.1:8080");
	assert_true(c.max_body_bytes == (uint64_t)256 << 20);
	assert_true(c.limits.max_decoded_bytes == (uint64_t)4 << 30);
	assert_int_equal(c.limits.max_ratio, 200);
	assert_true(c.limits.max_memory_bytes == c.worker_memory_bytes);
	assert_true(c.query_threads > 0 && c.decode_workers > 0);
	tw_arena_free(a);
}

static void test_config_order(void **state)
{
	char path[] = "/tmp/tw-config-XXXXXX";
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_config c;
	struct tw_err err;
	int fd = mkstemp(path);

	(void)state;
	assert_true(
	        dprintf(fd, "# ours\n\n max-body = 1M \nmax_in_flight=7\nworker-cpu = 9\n") > 0);
	close(fd);
	assert_int_equal(setenv("TRACEWELL_MAX_IN_FLIGHT", "8", 1), 0);
	assert_int_equal(setenv("TRACEWELL_WORKER_CPU", "10", 1), 0);
	assert_int_equal(load(a, &c, &err, "--config", path, "--worker-cpu=11", NULL), TW_OK);
	assert_int_equal(c.max_body_bytes, 1 << 20);
	assert_int_equal(c.max_in_flight, 8);
	assert_int_equal(c.worker_cpu_s, 11);
	(void)unsetenv("TRACEWELL_MAX_IN_FLIGHT");
	(void)unsetenv("TRACEWELL_WORKER_CPU");
	(void)unlink(path);
	assert_int_equal(load(a, &c, &err, "--config", path, NULL), TW_IO);
	tw_arena_free(a);
}

static void test_config_refusals(void **state)
{
	static const char *const bad[][2] = {
	        {"--no-such", "1"},
	        {"--max-body", "12Q"},
	        {"--max-body", "99999999999999999999"},
	        {"--max-body", "1023"},
	        {"--min-free", "100"},
	        {"--worker-attempts", "-1"},
	        {"--worker-attempts", ""},
	        {"--listen", "127.0.0.1"},
	        {"--listen", "0.0.0.0:8080"},
	        {"--listen", "[::]:8080"},
	        {"--listen", "127.0.0.1:65536"},
	        {"--log-level", "loud"},
	        {"--log-format", "xml"},
	        {"--behind-proxy=maybe", NULL},
	        {"stray", NULL},
	        {"--data", NULL},
	};
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_config c;
	struct tw_err err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		enum tw_status st = load(a, &c, &err, bad[i][0], bad[i][1], NULL);

		if (st != TW_BAD_REQUEST)
			fail_msg("%s %s was taken", bad[i][0], bad[i][1] ? bad[i][1] : "");
	}
	assert_int_equal(
	        load(a, &c, &err, "--listen", "0.0.0.0:80", "--behind-proxy", NULL), TW_OK);
	assert_int_equal(
	        load(a, &c, &err, "--listen", "[::1]:0", "--max-body", "1024", NULL), TW_OK);
	assert_int_equal(load(a, &c, &err, "--min-free", "99", "--max-body", "16G", NULL), TW_OK);
	tw_arena_free(a);
}

static void test_listen_split(void **state)
{
	char host[16];
	uint16_t port;

	(void)state;
	assert_true(tw_listen_split("[::1]:65535", host, sizeof host, &port));
	assert_string_equal(host, "::1");
	assert_int_equal(port, 65535);
	assert_false(tw_listen_split(":80", host, sizeof host, &port));
	assert_true(tw_listen_split("abcdefghijklmno:1", host, sizeof host, &port));
	assert_false(tw_listen_split("abcdefghijklmnop:1", host, sizeof host, &port));
}

static void test_accept_encoding(void **state)
{
	static const struct {
		const char *accept;
		enum tw_coding want;
	} cases[] = {
	        {NULL, TW_CODING_IDENTITY},
	        {"", TW_CODING_IDENTITY},
	        {"gzip, deflate, br", TW_CODING_GZIP},
	        {"gzip, zstd", TW_CODING_ZSTD},
	        {"GZIP;q=1.0, zstd;q=0.5", TW_CODING_GZIP},
	        {"zstd ; q=0.001, gzip;q=0", TW_CODING_ZSTD},
	        {"zstd;q=0, gzip;q=0", TW_CODING_IDENTITY},
	        {"*", TW_CODING_ZSTD},
	        {"*;q=0.1, zstd;q=0", TW_CODING_GZIP},
	        {"identity", TW_CODING_IDENTITY},
	        {"identity;q=0.5, gzip;q=0.4", TW_CODING_IDENTITY},
	        {"zstd;q=1.5", TW_CODING_IDENTITY},
	        {"zstd;q=0.1234", TW_CODING_IDENTITY},
	        {"zstd;q=", TW_CODING_IDENTITY},
	        {"zstd;x=1", TW_CODING_IDENTITY},
	        {",,,;;gzip", TW_CODING_IDENTITY},
	        {"gzipzstd", TW_CODING_IDENTITY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (tw_coding_choose(cases[i].accept) != cases[i].want)
			fail_msg("%s gives %s", cases[i].accept ? cases[i].accept : "nothing",
			        tw_coding_name(tw_coding_choose(cases[i].accept)));
	assert_true(tw_coding_accepted(NULL, TW_CODING_IDENTITY));
	assert_false(tw_coding_accepted("identity;q=0", TW_CODING_IDENTITY));
	assert_false(tw_coding_accepted("*;q=0", TW_CODING_IDENTITY));
	assert_true(tw_coding_accepted("zstd;q=0.1, gzip", TW_CODING_ZSTD));
	assert_int_equal(tw_media_weight(NULL, "text/html"), 0);
	assert_int_equal(tw_media_weight("text/html,*/*;q=0.8", "text/html"), 1000);
	assert_int_equal(tw_media_weight("*/*;q=0.8", "text/html"), 0);
	assert_int_equal(tw_media_weight("a/b, Text/HTML;level=1; q=0.4", "text/html"), 400);
	assert_int_equal(tw_media_weight("text/html;q=2", "text/html"), 0);
	assert_int_equal(tw_media_weight("text/htmlx", "text/html"), 0);
}

static void test_targets(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_target t;
	struct tw_err err;
	char many[1024] = "/x?";
	size_t at = strlen(many);

	(void)state;
	assert_int_equal(
	        tw_target_parse(a, "/api/v1/traces/A/flame?a=1&a=2&&b&=c", &t, &err), TW_OK);
	assert_true(tw_target_matches(&t, "/api/v1/traces/{id}/flame"));
	assert_false(tw_target_matches(&t, "/api/v1/traces/{id}"));
	assert_false(tw_target_matches(&t, "/api/v1/traces/{id}/flame/{x}"));
	assert_true(tw_target_matches(&t, "/api/{*}"));
	assert_true(tw_target_matches(&t, "/{*}"));
	assert_string_equal(tw_target_piece(&t, "/api/v1/traces/{id}/flame", "id", a), "A");
	assert_string_equal(tw_target_piece(&t, "/api/{*}", "*", a), "v1/traces/A/flame");
	assert_null(tw_target_piece(&t, "/api/v1/traces/{id}/flame", "no", a));
	assert_int_equal(t.n_pairs, 3);
	assert_string_equal(t.pairs[2].value, "");
	assert_int_equal(tw_target_parse(a, "/", &t, &err), TW_OK);
	assert_true(tw_target_matches(&t, "/"));
	assert_true(tw_target_matches(&t, "/{*}"));
	assert_string_equal(tw_target_piece(&t, "/{*}", "*", a), "");
	assert_int_equal(tw_target_parse(a, "*", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/a%", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/a%4", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/a%g0", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/a%00", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/a?b=%c3", &t, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_target_parse(a, "/1/2/3/4/5/6/7/8/9/10/11/12", &t, &err), TW_OK);
	assert_int_equal(
	        tw_target_parse(a, "/1/2/3/4/5/6/7/8/9/10/11/12/13", &t, &err), TW_NOT_FOUND);
	for (int i = 0; i < TW_MAX_PAIRS; i++)
		at += (size_t)snprintf(many + at, sizeof many - at, "a=1&");
	assert_int_equal(tw_target_parse(a, many, &t, &err), TW_OK);
	(void)snprintf(many + at, sizeof many - at, "a=1");
	assert_int_equal(tw_target_parse(a, many, &t, &err), TW_BAD_REQUEST);
	tw_arena_free(a);
}

static void test_cookies(void **state)
{
	char out[8];

	(void)state;
	assert_true(tw_auth_cookie("a=1; tw_session=xyz; b=2", "tw_session", out, sizeof out));
	assert_string_equal(out, "xyz");
	assert_true(tw_auth_cookie("tw_session=\"q\"", "tw_session", out, sizeof out));
	assert_string_equal(out, "q");
	assert_false(tw_auth_cookie("xtw_session=1", "tw_session", out, sizeof out));
	assert_false(tw_auth_cookie("tw_session=", "tw_session", out, sizeof out));
	assert_true(tw_auth_cookie("tw_session=1234567", "tw_session", out, sizeof out));
	assert_false(tw_auth_cookie("tw_session=12345678", "tw_session", out, sizeof out));
	assert_false(tw_auth_cookie(NULL, "tw_session", out, sizeof out));
}

static void test_metadata_as_text(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_trace_meta m = tw_upload_meta_none();
	struct tw_err err;
	char longest[TW_MAX_TEXT + 2];

	(void)state;
	memset(longest, 'x', sizeof longest);
	longest[TW_MAX_TEXT] = '\0';
	assert_int_equal(tw_upload_meta_text(a, "app", longest, &m, &err), TW_OK);
	longest[TW_MAX_TEXT] = 'x';
	longest[TW_MAX_TEXT + 1] = '\0';
	assert_int_equal(tw_upload_meta_text(a, "app", longest, &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "device", "a\nb", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "device", "<img onerror>", &m, &err), TW_OK);
	assert_string_equal(m.device, "<img onerror>");
	assert_int_equal(tw_upload_meta_text(a, "buildid", "1", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "pid", "4294967295", &m, &err), TW_OK);
	assert_true(m.pid == UINT32_MAX);
	assert_int_equal(tw_upload_meta_text(a, "pid", "4294967296", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "pid", "-1", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "started_at", "253402300799999", &m, &err), TW_OK);
	assert_int_equal(
	        tw_upload_meta_text(a, "started_at", "253402300800000", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(
	        tw_upload_meta_text(a, "labels", "{\"k\":\"v\",\"n\":1}", &m, &err), TW_OK);
	assert_string_equal(m.labels, "{\"k\":\"v\",\"n\":1}");
	assert_int_equal(tw_upload_meta_text(a, "labels", "[1]", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_upload_meta_text(a, "labels", "{\"k\":{}}", &m, &err), TW_BAD_REQUEST);
	assert_int_equal(
	        tw_upload_meta_text(a, "labels", "{\"k\":\"a\\u0001\"}", &m, &err), TW_BAD_REQUEST);
	tw_arena_free(a);
}

static void test_metadata_as_json(void **state)
{
	static const struct {
		const char *text;
		enum tw_status want;
	} cases[] = {
	        {"{\"app\":\"a\",\"version_code\":42,\"pid\":7,\"labels\":{}}", TW_OK},
	        {"{\"app\":null}", TW_OK},
	        {"{\"pid\":\"7\"}", TW_BAD_REQUEST},
	        {"{\"pid\":7.5}", TW_BAD_REQUEST},
	        {"{\"pid\":-7}", TW_BAD_REQUEST},
	        {"{\"app\":[]}", TW_BAD_REQUEST},
	        {"{\"nonsense\":1}", TW_BAD_REQUEST},
	        {"{\"labels\":\"x\"}", TW_BAD_REQUEST},
	};
	struct tw_arena *a = tw_arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_trace_meta m = tw_upload_meta_none();
		json_t *json = json_loads(cases[i].text, 0, NULL);
		struct tw_err err;

		assert_non_null(json);
		if (tw_upload_meta_json(a, json, &m, &err) != cases[i].want)
			fail_msg("%s", cases[i].text);
		if (i == 0)
			assert_string_equal(m.version_code, "42");
		json_decref(json);
	}
	tw_arena_free(a);
}

enum { MOST_WORDS = 20 };

/* "x --a b" cut at the blanks into argv; text is changed. */
static int words_of(char *text, char *argv[MOST_WORDS])
{
	int argc = 0;

	for (char *at = text; at; argc++) {
		assert_true(argc < MOST_WORDS);
		argv[argc] = at;
		at = strchr(at, ' ');
		if (at)
			*at++ = '\0';
	}
	return argc;
}

struct flags_read {
	const char *name, *key;
	const char *list[2];
	size_t n;
	unsigned word;
	uint64_t number;
	bool on;
};

static bool is_upper(const char *text)
{
	return *text >= 'A' && *text <= 'Z';
}

/* Sets *ret_said to the text on stderr up to the synopsis; returns the result of tw_cli_flags. */
static int read_flags(
        const char *text, struct flags_read *f, char ret_said[256], char *argv[MOST_WORDS])
{
	static const char *const words[] = {"red", "green", "blue", NULL};
	static const struct tw_verb verbs[] = {{"make", "FILE...", "name"}, {"list", "", NULL},
	        {"ask", "FILE QUERY", NULL}, {NULL}};
	const struct tw_flag flags[] = {
	        {"name", .value = &f->name, .fits = is_upper, .form = "a capital"},
	        {"on", .on = &f->on},
	        {"list", .list = f->list, .max = 2, .n = &f->n},
	        {"colour", .choices = words, .choice = &f->word},
	        {"size", .number = &f->number, .least = 2, .most = 9},
	        {"key", .value = &f->key, .needed = true, .env = "TW_TEST_FLAG"},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, .verbs = verbs};
	static char copy[512];
	char path[] = "/tmp/tw-flags-XXXXXX";
	const int before = dup(STDERR_FILENO), to = mkstemp(path);
	int n;
	ssize_t got;

	assert_true(to >= 0 && dup2(to, STDERR_FILENO) >= 0);
	*f = (struct flags_read){.name = NULL};
	(void)snprintf(copy, sizeof copy, "%s", text);
	n = tw_cli_flags(&usage, words_of(copy, argv), argv);
	(void)fflush(stderr);
	(void)dup2(before, STDERR_FILENO);
	got = pread(to, ret_said, 255, 0);
	ret_said[got > 0 ? got : 0] = '\0';
	ret_said[strcspn(ret_said, "\n")] = '\0';
	(void)close(before);
	(void)close(to);
	(void)unlink(path);
	return n;
}

static void test_flags(void **state)
{
	char said[256], *argv[MOST_WORDS];
	struct flags_read f;

	(void)state;
	assert_int_equal(read_flags("x make one --name N --on --list=a two --list b --colour blue "
	                            "--size=9 --key k -- --x",
	                         &f, said, argv),
	        4);
	assert_string_equal(said, "");
	assert_string_equal(argv[2], "one");
	assert_string_equal(argv[3], "two");
	assert_string_equal(argv[4], "--x");
	assert_string_equal(f.name, "N");
	assert_true(f.on);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.list[1], "b");
	assert_int_equal(f.word, 2);
	assert_int_equal(f.number, 9);
}

/* Each kind of wrong usage reports the problem and the remedy. */
static void test_flags_refused(void **state)
{
	static const struct {
		const char *call, *says;
	} calls[] = {
	        {"x", "tracewell x: specify an action: make, list or ask"},
	        {"x lits --key k", "tracewell x: \"lits\" is unknown: use make, list or ask"},
	        {"x list", "tracewell x list: --key or TW_TEST_FLAG in the environment is missing"},
	        {"x list --key=",
	                "tracewell x list: --key or TW_TEST_FLAG in the environment is missing"},
	        {"x make a --key k", "tracewell x make: --name is missing"},
	        {"x make --key k", "tracewell x make: FILE is missing"},
	        {"x ask --key k a", "tracewell x ask: QUERY is missing"},
	        {"x ask --key k a b c", "tracewell x ask: unexpected argument \"c\""},
	        {"x list --key k a", "tracewell x list: unexpected argument \"a\""},
	        {"x list --naem N", "tracewell x: unknown flag --naem; did you mean --name?"},
	        {"x list -q", "tracewell x: unknown flag -q"},
	        {"x list --name", "tracewell x: --name needs a value"},
	        {"x list --name n", "tracewell x: --name must be a capital, not \"n\""},
	        {"x list --on=yes", "tracewell x: --on takes no value"},
	        {"x list --list 1 --list 2 --list 3",
	                "tracewell x: --list may be given at most 2 times"},
	        {"x list --colour pink",
	                "tracewell x: --colour must be red, green or blue, not \"pink\""},
	        {"x list --size 1", "tracewell x: --size must be a number from 2 to 9, not \"1\""},
	        {"x list --size 10",
	                "tracewell x: --size must be a number from 2 to 9, not \"10\""},
	        {"x list --size -3",
	                "tracewell x: --size must be a number from 2 to 9, not \"-3\""},
	        {"x list --size=", "tracewell x: --size must be a number from 2 to 9, not \"\""},
	        {"x list --colour \033[31m",
	                "tracewell x: --colour must be red, green or blue, not \"?[31m\""},
	};
	char said[256], *argv[MOST_WORDS];
	struct flags_read f;

	(void)state;
	(void)unsetenv("TW_TEST_FLAG");
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		assert_int_equal(read_flags(calls[i].call, &f, said, argv), -1);
		assert_string_equal(said, calls[i].says);
	}
	assert_int_equal(setenv("TW_TEST_FLAG", "e", 1), 0);
	assert_int_equal(read_flags("x list", &f, said, argv), 1);
	assert_string_equal(f.key, "e");
	assert_int_equal(read_flags("x list --key k", &f, said, argv), 1);
	assert_string_equal(f.key, "k");
	(void)unsetenv("TW_TEST_FLAG");
}

/* --- io.h --- */

enum { IO_BYTES = 300000 }; /* more than a pipe holds */

static void interrupt(int number)
{
	(void)number;
}

static void *write_to(void *arg)
{
	static uint8_t all[IO_BYTES];
	const int fd = *(int *)arg;

	for (size_t i = 0; i < sizeof all; i++)
		all[i] = (uint8_t)(i * 7);
	assert_true(tw_write_all(fd, all, sizeof all));
	(void)close(fd);
	return NULL;
}

/* A pipe transfers as much as fits, and a timer interrupts both sides all the time. */
static void test_io_complete(void **state)
{
	static uint8_t got[IO_BYTES + 1];
	const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	const struct sigaction act = {.sa_handler = interrupt}; /* no SA_RESTART */
	struct sigaction before;
	pthread_t writer;
	int fds[2], wrong = 0;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_to, &fds[1]), 0);
	assert_int_equal(tw_read_full(fds[0], got, sizeof got), IO_BYTES);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	for (size_t i = 0; i < IO_BYTES; i++)
		wrong += got[i] != (uint8_t)(i * 7);
	assert_int_equal(wrong, 0);
	(void)close(fds[0]);
}

static void test_io_copy(void **state)
{
	char from_path[] = "/tmp/tw-io-XXXXXX", to_path[] = "/tmp/tw-io-XXXXXX", got[16] = "";
	int from = mkstemp(from_path), to = mkstemp(to_path);
	uint64_t bytes = 0;
	bool reading = true;

	(void)state;
	assert_true(from >= 0 && to >= 0);
	assert_true(tw_pwrite_all(from, "0123456789", 10, 0));
	assert_true(tw_copy_fd_from(from, 4, to, &bytes, &reading));
	assert_int_equal(bytes, 6);
	assert_int_equal(tw_pread_full(to, got, sizeof got, 0), 6);
	assert_string_equal(got, "456789");
	assert_int_equal(tw_pread_full(to, got, sizeof got, 100), 0);
	assert_false(tw_copy_fd_from(-1, 0, to, NULL, &reading));
	assert_true(reading);
	assert_false(tw_copy_fd_from(from, 0, -1, NULL, &reading));
	assert_false(reading);
	(void)close(from);
	(void)close(to);
	(void)unlink(from_path);
	(void)unlink(to_path);
}

static void test_close_on_exec(void **state)
{
	const int fd = dup(0), other = dup(0);

	(void)state;
	tw_close_on_exec_from(fd);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(other, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(0, F_GETFD), 0);
	(void)close(fd);
	(void)close(other);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_ulid_ms),
        cmocka_unit_test(test_io_complete),
        cmocka_unit_test(test_io_copy),
        cmocka_unit_test(test_close_on_exec),
        cmocka_unit_test(test_config_defaults),
        cmocka_unit_test(test_config_order),
        cmocka_unit_test(test_config_refusals),
        cmocka_unit_test(test_listen_split),
        cmocka_unit_test(test_accept_encoding),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_cookies),
        cmocka_unit_test(test_metadata_as_text),
        cmocka_unit_test(test_metadata_as_json),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_flags_refused),
};

UNIT_TESTS("server_base", tests)

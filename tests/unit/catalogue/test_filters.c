/* The filters of the list of traces: the matches of each, on few rows and on more than a page;
 * refusals; and the API's description lists all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_annotation.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/http/http.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { MADE = 6 };

struct store {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_caller caller;
	char ids[MADE][TW_ID_BYTES];
};

static const struct {
	const char *code, *abi, *session, *labels;
	int64_t recorded_ms; /* 0: its arrival */
} made[MADE] = {
        {"803", "arm64-v8a", "s-1", "{\"user\":\"47\",\"wifi\":true,\"n\":5}", 1000},
        {"804", "arm64-v8a", "s-1", "{\"user\":\"471\",\"n\":\"5\",\"wifi\":false}", 2000},
        {"1001", "armeabi-v7a", "s-2", "{\"n\":55,\"a\\\"user\":\"47\",\"k=1\":\"v=2\"}", 3000},
        {"0805", "x86", "",
                "{\"user\":\"4,7\",\"note\":\"{\\\"n\\\":5}\",\"\xC3\xBC\":\"\xE4\xB8\xAD\"}", 0},
        {"8.1", "x86", "", "", 0},
        {"", "", "", "{}", 4000},
};

static const char *const devices[MADE] = {"Pixel 8", "PIXEL 9", "x_1", "x%1", "\xC3\x84", ""};

static void add(struct store *s, const struct tw_trace_meta *meta, char ret_id[TW_ID_BYTES])
{
	static const char sha[] =
	        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	const struct tw_part part = {"trace", sha, "", 1000};
	bool is_new;

	assert_int_equal(tw_catalogue_trace_add(s->c,
	                         &(struct tw_arrival){.caller = &s->caller,
	                                 .key = "",
	                                 .meta = meta,
	                                 .parts = &part,
	                                 .n_parts = 1},
	                         ret_id, &is_new, NULL),
	        TW_OK);
}

static int setup(void **state)
{
	static struct store s;
	bool is_new;

	memcpy(s.dir, "/tmp/tw-filters-XXXXXX", sizeof "/tmp/tw-filters-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	s.c = catalogue_in(s.dir);
	s.arena = tw_arena_new(64 << 20);
	s.caller.scope = TW_SCOPE_INGEST;
	assert_int_equal(tw_catalogue_project(s.c, "p", s.caller.project_id, &is_new, NULL), TW_OK);
	for (int i = 0; i < MADE; i++) {
		struct tw_trace_meta meta = tw_upload_meta_none();

		meta.app = "a";
		meta.version_code = made[i].code;
		meta.abi = made[i].abi;
		meta.device = devices[i];
		meta.session_id = made[i].session;
		meta.labels = made[i].labels;
		meta.recorded_ms = made[i].recorded_ms;
		add(&s, &meta, s.ids[i]);
	}
	*state = &s;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct store *s = *state;

	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* The query's pairs as a filter. */
static enum tw_status filter_of(
        struct store *s, const char *query, struct tw_trace_filter *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(query);
	enum tw_status st = TW_OK;

	*ret = (struct tw_trace_filter){.limit = 2, .cursor = ""};
	while (st == TW_OK && rest.len) {
		struct tw_str value = tw_str_split(&rest, '&');
		struct tw_str name = tw_str_split(&value, '=');

		st = tw_trace_filter_add(
		        ret, tw_arena_str(s->arena, name), tw_arena_str(s->arena, value), err);
	}
	return st;
}

/* Which of the traces that were made are listed, over all pages, in each order: "0 1 5". */
static void lets_through(struct store *s, const char *query, const char *expected)
{
	for (int sort = TW_SORT_CREATED; sort <= TW_SORT_BYTES; sort++) {
		struct tw_trace_filter f;
		bool seen[MADE] = {false};
		char text[3 * MADE] = "";
		size_t n, len = 0;
		uint64_t total, counted = 0;
		const char *cursor = "";

		assert_int_equal(filter_of(s, query, &f, NULL), TW_OK);
		f.sort = (enum tw_trace_sort)sort;
		do {
			struct tw_trace_row *rows = NULL;
			struct tw_err err = {.msg = ""};

			f.cursor = cursor;
			if (tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena, &rows, &n,
			            &cursor, &total, &err) != TW_OK)
				fail_msg("%s: %s", query, err.msg);
			for (size_t i = 0; i < n; i++, counted++)
				for (int k = 0; k < MADE; k++)
					seen[k] = seen[k] || strcmp(rows[i].id, s->ids[k]) == 0;
		} while (cursor[0]);
		for (int k = 0; k < MADE; k++)
			if (seen[k])
				len += (size_t)snprintf(
				        text + len, sizeof text - len, "%s%d", len ? " " : "", k);
		if (strcmp(text, expected) != 0)
			fail_msg("%s lets %s through, not %s", query, text, expected);
		assert_int_equal(total, counted);
	}
}

static void test_each_filter(void **state)
{
	static const struct {
		const char *query, *expected;
	} cases[] = {
	        {"", "0 1 2 3 4 5"},
	        {"app=a", "0 1 2 3 4 5"},
	        {"app=b", ""},
	        {"app=a&app=b", ""},
	        {"version_code=803", "0"},
	        {"version_code=8.1", "4"},
	        {"version_code_min=804", "1 2 3"}, /* a number, not a text: 1001 is more */
	        {"version_code_max=805", "0 1 3"},
	        {"version_code_min=804&version_code_max=805", "1 3"},
	        {"abi=x86", "3 4"},
	        {"session_id=s-1", "0 1"},
	        {"session_id=s-1&abi=arm64-v8a&version_code=804", "1"},
	        {"recorded_since=2000", "1 2 3 4 5"},
	        {"recorded_until=3000", "0 1"},
	        {"recorded_since=0", "0 1 2 3 4 5"},
	        {"recorded_since=1001&recorded_until=4000", "1 2"},
	        {"since=1&until=9000000000000", "0 1 2 3 4 5"},
	        {"until=1", ""},
	        {"state=queued", "0 1 2 3 4 5"},
	        {"state=failed", ""},
	        {"pinned=1", ""},
	        {"pinned=false", "0 1 2 3 4 5"},
	        {"label=user=47", "0"}, /* neither 471 nor a name that ends so */
	        {"label=user=471", "1"},
	        {"label=user=4,7", "3"},
	        {"label=n=5", "0 1"}, /* a number, a text; not within a text */
	        {"label=n=55", "2"},
	        {"label=wifi=true", "0"},
	        {"label=wifi=false", "1"},
	        {"label=a\"user=47", "2"},
	        {"label=\xC3\xBC=\xE4\xB8\xAD", "3"},
	        {"label=k=1=v=2", "2"},
	        {"label=k=1=v", ""},
	        {"label=user=47&label=n=5", "0"},
	        {"label=user=47&label=n=55", ""},
	        {"label=user=", "2 4 5"},
	        {"label=user=&abi=x86", "4"},
	        {"label=user=%", ""},
	        {"q=pixel", "0 1"}, /* in any column, in any case */
	        {"q=PiXeL a", "0 1"},
	        {"q=pixel9", ""},
	        {"q=x_1", "2"}, /* no wildcards */
	        {"q=x%1", "3"},
	        {"q=%", "3"},
	        {"q=\\", ""},
	        {"q=x\\_1", ""},
	        {"q=\xC3\x84", "4"},
	        {"q=pixel&abi=armeabi-v7a", ""},
	        {"q=9 pixel a 9", "1"},
	        {"q=pixel nothing", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		lets_through(*state, cases[i].query, cases[i].expected);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *query, *why;
	} cases[] = {
	        {"since=x", "since must be a number"},
	        {"recorded_until=-1", "recorded_until must be a number"},
	        {"version_code_min=8.1", "version_code_min must be a number"},
	        {"state=done", "state must be queued, decoding, ready, failed or archived"},
	        {"pinned=maybe", "pinned must be 0 or 1"},
	        {"label=user", "label must be KEY=VALUE"},
	        {"label==x", "label must be KEY=VALUE"},
	        {"tag=1,2,3,4,5,6,7,8,9", "more than 8 tags"},
	};
	struct store *s = *state;
	char many[1024] = "";
	struct tw_trace_filter f;
	struct tw_err err;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_trace_row *rows;
		const char *cursor;
		uint64_t total;
		size_t n;

		assert_int_equal(filter_of(s, cases[i].query, &f, &err), TW_OK);
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, &total, &err),
		        TW_BAD_REQUEST);
		assert_non_null(strstr(err.msg, cases[i].why));
	}
	for (int i = 0; i <= TW_TRACE_CONDITIONS_MAX; i++)
		(void)strcat(many, "app=a&");
	assert_int_equal(filter_of(s, many, &f, &err), TW_BAD_REQUEST);
}

static void facet(struct store *s, const char *column, const char *expected)
{
	struct tw_facet *rows;
	char text[512] = "";
	size_t n, len = 0;

	assert_int_equal(
	        tw_catalogue_facets(s->c, s->caller.project_id, column, s->arena, &rows, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s:%llu ", rows[i].value,
		        (unsigned long long)rows[i].count);
	assert_string_equal(text, expected);
}

static void test_facets(void **state)
{
	struct tw_facet *rows;
	struct store *s = *state;
	size_t n;

	facet(s, "abi", "arm64-v8a:2 x86:2 :1 armeabi-v7a:1 ");
	facet(s, "state", "queued:6 ");
	facet(s, "label",
	        "n=5:2 a\"user=47:1 k=1=v=2:1 n=55:1 note={\"n\":5}:1 user=4,7:1 user=47:1 "
	        "user=471:1 "
	        "wifi=false:1 wifi=true:1 \xC3\xBC=\xE4\xB8\xAD:1 ");
	assert_int_equal(
	        tw_catalogue_facets(s->c, s->caller.project_id, "since", s->arena, &rows, &n, NULL),
	        TW_BAD_REQUEST);
}

static const char *claim(struct store *s, struct tw_job_row *ret)
{
	static char text[MADE][4];
	int k = 0;

	assert_int_equal(tw_catalogue_queue_claim(s->c,
	                         &(struct tw_claim){.owner = "me", .lease_ms = 1000000}, s->arena,
	                         ret, NULL),
	        TW_OK);
	while (k < MADE && strcmp(ret->trace_id, s->ids[k]) != 0)
		k++;
	assert_in_range(k, 0, MADE - 1);
	(void)snprintf(text[k], sizeof text[k], "%d", k);
	return text[k];
}

/* Each state but ready is found without reading the traces in others. */
static void test_states(void **state)
{
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_err why = {.code = TW_CORRUPT, .msg = "no"};
	const struct tw_trace_edit pin = {.sets_pinned = true, .pinned = true};
	struct store *s = *state;
	struct tw_job_row done, failed, decoding;
	const char *k_done = claim(s, &done), *k_failed = claim(s, &failed);
	const char *k_decoding = claim(s, &decoding);

	assert_int_equal(tw_catalogue_job_publish(s->c, &done, &summary, NULL, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_failed(s->c, &failed, &why, NULL, NULL), TW_OK);
	lets_through(s, "state=ready", k_done);
	lets_through(s, "state=failed", k_failed);
	lets_through(s, "state=decoding", k_decoding);
	lets_through(s, "state=archived", "");
	facet(s, "state", "queued:3 decoding:1 failed:1 ready:1 ");
	assert_int_equal(
	        tw_catalogue_trace_edit(s->c, s->caller.project_id, failed.trace_id, &pin, NULL),
	        TW_OK);
	lets_through(s, "pinned=1", k_failed);
	lets_through(s, "pinned=1&state=failed", k_failed);
	assert_int_equal(
	        tw_catalogue_trace_requeue(s->c, failed.project_id, failed.trace_id, NULL), TW_OK);
	lets_through(s, "state=queued&pinned=1", k_failed);
	lets_through(s, "state=failed", "");
	/* the longest condition */
	lets_through(s,
	        "label=a=1&label=b=1&label=c=1&label=d=1&label=e=1&label=f=1&label=g=1&label=h=1&"
	        "label=i=1&label=j=1&q=a b c d e f g h",
	        "");
}

/* More match than are sorted: the page is read by the order's index. */
static void test_many(void **state)
{
	enum { MANY = 510 };
	struct tw_trace_meta meta = tw_upload_meta_none();
	struct store *s = *state;
	struct tw_trace_filter f;
	struct tw_trace_row *rows;
	const char *cursor = "";
	char id[TW_ID_BYTES], last[TW_ID_BYTES] = "~";
	uint64_t total, counted = 0;
	size_t n;

	meta.session_id = "many";
	meta.labels = "{\"k\":\"v\"}";
	for (int i = 0; i < MANY; i++)
		add(s, &meta, id);
	assert_int_equal(filter_of(s, "session_id=many&label=k=v", &f, NULL), TW_OK);
	f.limit = 100;
	do {
		f.cursor = cursor;
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, &total, NULL),
		        TW_OK);
		assert_int_equal(total, MANY);
		for (size_t i = 0; i < n; i++, counted++) {
			assert_true(strcmp(rows[i].id, last) < 0);
			memcpy(last, rows[i].id, TW_ID_BYTES);
		}
	} while (cursor[0]);
	assert_int_equal(counted, MANY);
}

/* Sets a title, which is searched, too. */
static void set_title(struct store *s, int k, const char *title)
{
	const struct tw_trace_edit m = {.title = title};

	assert_int_equal(
	        tw_catalogue_trace_edit(s->c, s->caller.project_id, s->ids[k], &m, NULL), TW_OK);
}

/* Titles change, ids are found by their beginning, and a value that no trace has any more finds
 * none. */
static void test_words(void **state)
{
	struct store *s = *state;
	struct tw_blob_list unused;
	char query[64], id[TW_ID_BYTES];
	struct tw_trace_meta meta = tw_upload_meta_none();

	set_title(s, 2, "Slow \"start\", {1,2} \\ A");
	lets_through(s, "q=slow a", "2");
	lets_through(s, "q=\"START\", {1,2}", "2");
	lets_through(s, "q=x_1 slow", "2");
	set_title(s, 2, "");
	set_title(s, 5, "Slow");
	lets_through(s, "q=slow", "5");
	for (int k = 0; k < MADE; k++) {
		char one[8];

		(void)snprintf(query, sizeof query, "q=%s", s->ids[k]);
		(void)snprintf(one, sizeof one, "%d", k);
		lets_through(s, query, one);
		for (char *c = query; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		lets_through(s, query, one);
	}
	(void)snprintf(query, sizeof query, "q=%.3s a", s->ids[0]);
	lets_through(s, query, "0 1 2 3 4 5");
	(void)snprintf(query, sizeof query, "q=%s", s->ids[0] + 10);
	lets_through(s, query, "");
	meta.device = "Gone";
	add(s, &meta, id);
	assert_int_equal(
	        tw_catalogue_trace_delete(s->c, s->caller.project_id, id, s->arena, &unused, NULL),
	        TW_OK);
	lets_through(s, "q=gone", "");
}

/* A word in more values than are looked up, and in some. */
static void test_words_in_many(void **state)
{
	enum { MANY = 320 };
	struct tw_trace_meta meta = tw_upload_meta_none();
	struct store *s = *state;
	struct tw_trace_filter f;
	struct tw_trace_row *rows;
	const char *cursor;
	char id[TW_ID_BYTES], device[32];
	uint64_t total;
	size_t n;

	meta.device = device;
	for (int i = 0; i < 2 * MANY; i++) {
		(void)snprintf(device, sizeof device, "Each%%%d", i / 2);
		add(s, &meta, id);
	}
	for (int sort = TW_SORT_CREATED; sort <= TW_SORT_BYTES; sort++) {
		assert_int_equal(filter_of(s, "q=each% h%2", &f, NULL), TW_OK);
		f.sort = (enum tw_trace_sort)sort;
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, &total, NULL),
		        TW_OK);
		assert_int_equal(total, 2 * (1 + 10 + 100)); /* 2, 20 to 29, 200 to 299 */
		assert_int_equal(filter_of(s, "q=each%", &f, NULL), TW_OK);
		f.sort = (enum tw_trace_sort)sort;
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, &total, NULL),
		        TW_OK);
		assert_int_equal(total, 2 * MANY);
		assert_int_equal(n, f.limit);
	}
}

static const struct tw_param *const *list_params(void)
{
	size_t n;
	const struct tw_route *routes = tw_routes(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(routes[i].method, "GET") == 0 &&
		        strcmp(routes[i].path, "/api/v1/traces") == 0)
			return routes[i].params;
	return NULL;
}

/* Undeclared parameters are refused earlier; a declared one that is not a filter would be ignored.
 * */
static void test_declared(void **state)
{
	static const char *const others[] = {"sort", "order", "limit", "cursor"};
	const struct tw_param *const *list = list_params();
	struct tw_err err;
	size_t n = 0;

	(void)state;
	for (; list && *list; list++)
		for (const struct tw_param *p = *list; p->name; p++, n++) {
			struct tw_trace_filter f = {.limit = 1};
			bool is_other = false;

			for (size_t i = 0; i < sizeof others / sizeof *others; i++)
				is_other = is_other || strcmp(p->name, others[i]) == 0;
			assert_int_equal(tw_trace_filter_add(&f, p->name, "x", &err), TW_OK);
			if (!f.of[0].value == !is_other)
				fail_msg("%s", p->name);
		}
	assert_int_equal(n, TW_TRACE_BYS + sizeof others / sizeof *others);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_filter),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_facets),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_in_many),
        cmocka_unit_test(test_declared),
};

UNIT_TESTS_WITH("filters", tests, setup, teardown)

/* How much of a build's traces is named: sums that follow every change of a trace, and a mapping
 * that marks any number of them a few at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/pipeline.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

struct session {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_caller caller;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct session s;
	bool is_new;

	s = (struct session){.dir = "/tmp/tw-names-XXXXXX", .caller = {.scope = TW_SCOPE_INGEST}};
	assert_non_null(mkdtemp(s.dir));
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.caller.project_id, &is_new, NULL), TW_OK);
	s.arena = tw_arena_new(256 << 20);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* A ready trace. */
static void add(
        struct session *s, const char *build_id, const char *mapping_id, char ret[TW_ID_BYTES])
{
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_part part = {"trace", "aa", "", 1000};
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_arrival up = {
	        .caller = &s->caller, .meta = &meta, .parts = &part, .n_parts = 1};
	struct tw_job_row job;
	bool is_new;

	meta.build_id = build_id;
	meta.mapping_id = mapping_id;
	assert_int_equal(tw_catalogue_trace_add(s->c, &up, ret, &is_new, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_job_publish(s->c, &job, &summary, NULL, NULL), TW_OK);
}

static size_t todo(struct session *s, uint32_t limit, struct tw_named_trace **ret)
{
	size_t n = 0;

	assert_int_equal(tw_catalogue_stage_todo(s->c, tw_stage_names.sql, s->caller.project_id,
	                         limit, s->arena, ret, &n, NULL),
	        TW_OK);
	return n;
}

static void set(struct session *s, const char *id, uint64_t ids, uint64_t resolved)
{
	const struct tw_name_counts counts = {ids, resolved, 10 * ids, 10 * resolved};

	const struct tw_trace_names of = {{s->caller.project_id, id, "", ""}, {"", ""}, &counts};

	assert_int_equal(tw_catalogue_names_set(s->c, &of, 1, NULL), TW_OK);
}

static void sums(struct session *s, const char *build_id, const uint64_t want[4])
{
	struct tw_build_row b;

	assert_int_equal(
	        tw_catalogue_build_get(s->c, s->caller.project_id, build_id, s->arena, &b, NULL),
	        TW_OK);
	assert_int_equal(b.names.traces, want[0]);
	assert_int_equal(b.names.lacking, want[1]);
	assert_int_equal(b.names.sum.ids, want[2]);
	assert_int_equal(b.names.sum.resolved, want[3]);
	assert_int_equal(b.names.sum.slices, 10 * want[2]);
	assert_int_equal(b.names.sum.resolved_slices, 10 * want[3]);
}

#define SUMS(s, build, ...) sums(s, build, (const uint64_t[4]){__VA_ARGS__})

static void test_sums_follow(void **state)
{
	struct session *s = *state;
	struct tw_named_trace *rows;
	char one[TW_ID_BYTES], two[TW_ID_BYTES], no_build[TW_ID_BYTES];
	struct tw_blob_list unused;

	add(s, "b", "", one);
	add(s, "b", "", two);
	add(s, "", "b", no_build);
	assert_int_equal(todo(s, 10, &rows), 2); /* what names no build has no sums */
	assert_string_equal(rows[0].build_id, "b");
	SUMS(s, "b", 0, 0, 0, 0);
	set(s, one, 10, 4);
	set(s, two, 5, 5);
	SUMS(s, "b", 2, 1, 15, 9);
	assert_int_equal(todo(s, 10, &rows), 0);
	set(s, one, 10, 10); /* counted again */
	SUMS(s, "b", 2, 0, 15, 15);
	set(s, one, 3, 0); /* another decoder found fewer */
	SUMS(s, "b", 2, 1, 8, 5);
	set(s, no_build, 9, 9);
	set(s, "01ARZ3NDEKTSV4RRFFQ69G5FAV", 9, 9); /* none such: nothing */
	SUMS(s, "b", 2, 1, 8, 5);
	/* decoded again: not counted until then */
	assert_int_equal(tw_catalogue_trace_requeue(s->c, s->caller.project_id, two, NULL), TW_OK);
	SUMS(s, "b", 1, 1, 3, 0);
	assert_int_equal(todo(s, 10, &rows), 0);
	assert_int_equal(
	        tw_catalogue_trace_delete(s->c, s->caller.project_id, one, s->arena, &unused, NULL),
	        TW_OK);
	SUMS(s, "b", 0, 0, 0, 0);
}

static void test_a_mapping_marks_all(void **state)
{
	enum { TRACES = 600 };
	struct session *s = *state;
	const struct tw_build_row row = {
	        .build_id = "big", .map_sha256 = "m", .source_sha256 = "s", .map_version = "1"};
	struct tw_named_trace *rows;
	char id[TW_ID_BYTES];
	unsigned steps = 0;
	bool more = true;

	for (int i = 0; i < TRACES; i++) {
		add(s, i % 2 ? "big" : "other", i % 2 ? "" : i % 4 ? "big" : "none", id);
		set(s, id, 1, 0);
	}
	assert_int_equal(todo(s, TRACES, &rows), 0);
	catalogue_set_mapping(s->c, s->caller.project_id, TW_MAPPING_METHODS, &row, s->arena);
	while (more && ++steps < 100)
		assert_int_equal(tw_catalogue_names_mark_stale(s->c, s->arena, &more, NULL), TW_OK);
	/* its own traces and those that name it as their mapping, 256 at a time */
	assert_int_equal(steps, 4);
	assert_int_equal(todo(s, TRACES, &rows), TRACES * 3 / 4);
	SUMS(s, "big", TRACES / 2, TRACES / 2, TRACES / 2, 0); /* remains until counted again */
	for (size_t n; (n = todo(s, 16, &rows)) > 0;)
		for (size_t i = 0; i < n; i++)
			set(s, rows[i].trace_id, 1, 1);
	SUMS(s, "big", TRACES / 2, 0, TRACES / 2, TRACES / 2);
	SUMS(s, "other", TRACES / 2, TRACES / 4, TRACES / 2, TRACES / 4);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sums_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_mapping_marks_all, setup, teardown),
};

UNIT_TESTS("catalogue_names", tests)

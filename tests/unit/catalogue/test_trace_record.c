/* Records of traces: each is written once, also if the trace is decoded before its first record is
 * due.  A record is removed once it was seen, so that a second one would be found. */
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

#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/ingest/upload_meta.h"
#include "server/storage/blob.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { RECORD_BYTES = 1 << 16, DEADLINE_MS = 120000 };

/* Only decoded traces have a format. */
static const char decoded[] = "btrace2";

struct session {
	char dir[64];
	struct tw_catalogue *c;
	struct tw_blobs *blobs;
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

	s = (struct session){.dir = "/tmp/tw-record-XXXXXX", .arena = tw_arena_new(1 << 20)};
	assert_non_null(mkdtemp(s.dir));
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_blobs_open(s.dir, 0, &s.blobs, NULL), TW_OK);
	s.caller.scope = TW_SCOPE_INGEST;
	assert_int_equal(tw_catalogue_project(s.c, "p", s.caller.project_id, &is_new, NULL), TW_OK);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	s->blobs = tw_blobs_close(s->blobs);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	return nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct tw_recorder *start(struct session *s)
{
	struct tw_recorder *r = NULL;

	assert_int_equal(tw_recorder_start(s->c, s->blobs, &r, NULL), TW_OK);
	return r;
}

static void upload(struct session *s, char ret_id[TW_ID_BYTES])
{
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", "aa", "", 1000};
	bool is_new;

	assert_int_equal(tw_catalogue_trace_add(s->c,
	                         &(struct tw_arrival){.caller = &s->caller,
	                                 .key = "",
	                                 .meta = &meta,
	                                 .parts = &part,
	                                 .n_parts = 1},
	                         ret_id, &is_new, NULL),
	        TW_OK);
	assert_true(is_new);
}

static void decode(struct session *s, const char *id)
{
	const struct tw_trace_summary summary = {.slices = 1, .format = decoded};
	struct tw_job_row job;

	assert_int_equal(tw_catalogue_queue_claim(s->c,
	                         &(struct tw_claim){.owner = "me", .lease_ms = 1000000}, s->arena,
	                         &job, NULL),
	        TW_OK);
	assert_string_equal(job.trace_id, id);
	assert_int_equal(tw_catalogue_job_publish(s->c, &job, &summary, NULL, NULL), TW_OK);
}

static void path_of(const struct session *s, const char *id, char ret[256])
{
	char key[TW_STORE_KEY];

	tw_record_key(id, key);
	(void)snprintf(ret, 256, "%s/%s", s->dir, key);
}

/* Whether a record was written that contains the text. */
static bool has(const struct session *s, const char *id, const char *text)
{
	static char bytes[RECORD_BYTES];
	char path[256];
	size_t n = 0;
	FILE *f;

	path_of(s, id, path);
	f = fopen(path, "r");
	if (f) {
		n = fread(bytes, 1, sizeof bytes - 1, f);
		(void)fclose(f);
	}
	bytes[n] = '\0';
	return n && strstr(bytes, text);
}

static void test_decoded_before_it_is_due(void **state)
{
	struct session *s = *state;
	struct tw_recorder *r = start(s);
	const int64_t until = tw_monotonic_ms() + DEADLINE_MS;
	char id[TW_ID_BYTES], path[256];

	upload(s, id);
	tw_record_new_trace(r, s->caller.project_id, id);
	decode(s, id);
	tw_record_trace(r, s->caller.project_id, id);
	while (!has(s, id, decoded) && tw_monotonic_ms() < until)
		(void)usleep(1000);
	path_of(s, id, path);
	assert_int_equal(unlink(path), 0);
	(void)tw_recorder_stop(r); /* writes what is pending */
	assert_false(has(s, id, ""));
}

/* As by another server: the end of the decode wrote the record. */
static void test_decoded_elsewhere(void **state)
{
	struct session *s = *state;
	struct tw_recorder *r = start(s);
	char id[TW_ID_BYTES];

	upload(s, id);
	tw_record_new_trace(r, s->caller.project_id, id);
	decode(s, id);
	(void)tw_recorder_stop(r);
	assert_false(has(s, id, decoded));
}

static void test_still_waiting(void **state)
{
	struct session *s = *state;
	struct tw_recorder *r = start(s);
	char id[TW_ID_BYTES];

	upload(s, id);
	tw_record_new_trace(r, s->caller.project_id, id);
	(void)tw_recorder_stop(r);
	assert_true(has(s, id, id));
	assert_false(has(s, id, decoded));
}

/* Waits until the log has that event. */
static void await_event(const char *log, const char *event)
{
	static char text[RECORD_BYTES];
	const int64_t until = tw_monotonic_ms() + DEADLINE_MS;

	do {
		FILE *f = fopen(log, "r");

		assert_non_null(f);
		text[fread(text, 1, sizeof text - 1, f)] = '\0';
		(void)fclose(f);
		(void)usleep(1000);
	} while (!strstr(text, event) && tw_monotonic_ms() < until);
}

/* Its folder is missing at first. */
static void test_missing_ones_are_attempted_again(void **state)
{
	struct session *s = *state;
	const int64_t until = tw_monotonic_ms() + DEADLINE_MS;
	const int before = dup(STDERR_FILENO);
	struct tw_recorder *r = start(s);
	char id[TW_ID_BYTES], path[256], away[256], log[256];

	upload(s, id);
	path_of(s, id, path);
	*strrchr(path, '/') = '\0';
	(void)snprintf(away, sizeof away, "%s/away", s->dir);
	assert_int_equal(rename(path, away), 0);
	(void)snprintf(log, sizeof log, "%s/log", s->dir);
	assert_non_null(freopen(log, "w", stderr));
	tw_records_complete(r);
	await_event(log, "event=records_not_complete");
	(void)dup2(before, STDERR_FILENO);
	(void)close(before);
	assert_int_equal(rename(away, path), 0);
	while (!has(s, id, id) && tw_monotonic_ms() < until)
		(void)usleep(1000);
	assert_true(has(s, id, id));
	(void)tw_recorder_stop(r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoded_before_it_is_due),
        cmocka_unit_test(test_decoded_elsewhere),
        cmocka_unit_test(test_still_waiting),
        cmocka_unit_test(test_missing_ones_are_attempted_again),
};

UNIT_TESTS_WITH("trace_record", tests, setup, teardown)

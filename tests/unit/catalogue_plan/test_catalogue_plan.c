/*
 * The plans of the catalogue's statements on both engines: every statement that a session over all
 * its functions runs is explained, and none may walk through a table that grows with traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_annotation.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/db/catalogue_sqlite.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/catalogue_plan/plan_anr.h"
#include "tests/unit/catalogue_plan/plan_commit.h"
#include "tests/unit/catalogue_plan/plan_found.h"
#include "tests/unit/catalogue_plan/plan_hook.h"
#include "tests/unit/catalogue_plan/plan_identity.h"
#include "tests/unit/catalogue_plan/plan_literals.h"
#include "tests/unit/catalogue_plan/plan_postgres.h"
#include "tests/unit/catalogue_plan/plan_resumable.h"
#include "tests/unit/catalogue_plan/plan_retention.h"
#include "tests/unit/catalogue_plan/plan_rollup.h"
#include "tests/unit/catalogue_plan/plan_tasks.h"
#include "tests/unit/unit.h"

static char statements[PLAN_STATEMENTS][PLAN_SQL];
static size_t n_statements;

static void note(const char *sql)
{
	for (size_t i = 0; i < n_statements; i++)
		if (strcmp(statements[i], sql) == 0)
			return;
	assert_true(strlen(sql) < PLAN_SQL);
	assert_true(n_statements < PLAN_STATEMENTS);
	(void)snprintf(statements[n_statements++], PLAN_SQL, "%s", sql);
}

static int on_statement(unsigned kind, void *arg, void *statement, void *unused)
{
	const char *sql = sqlite3_sql(statement);

	(void)kind, (void)arg, (void)unused;
	if (sql)
		note(sql);
	return 0;
}

/* The linker directs PostgreSQL's connections here. */
enum tw_status __real_tw_postgres_sql(const char *sql, struct tw_buf *out, int *n);
enum tw_status __wrap_tw_postgres_sql(const char *sql, struct tw_buf *out, int *n);
static bool watches_postgres;

enum tw_status __wrap_tw_postgres_sql(const char *sql, struct tw_buf *out, int *n)
{
	if (watches_postgres)
		note(sql);
	return __real_tw_postgres_sql(sql, out, n);
}

/* Called for every connection to SQLite that is opened from now on. */
static int watch(sqlite3 *db, const char **message, const struct sqlite3_api_routines *api)
{
	(void)message, (void)api;
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_statement, NULL);
}

struct session {
	char dir[64], path[100];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_caller caller;
};

static void use_people(struct session *s, const char *key_id)
{
	struct tw_caller caller;
	struct tw_user_row *rows;
	struct tw_project_row *projects;
	struct tw_user user;
	char id[TW_ID_BYTES];
	size_t n;

	assert_int_equal(tw_catalogue_user_add(s->c, "ann", "", false, id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_user_get(s->c, "ann", &user, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_member_set(s->c, s->caller.project_id, id, TW_SCOPE_READ, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_users(s->c, s->caller.project_id, "", s->arena, &rows, &n, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_users(s->c, "", "", s->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_projects_after(s->c, id, "", 9, s->arena, &projects, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(
	        tw_catalogue_project_get(s->c, id, projects[0].id, s->arena, &projects[0], NULL),
	        TW_OK);
	plan_use_sessions(s->c, s->caller.project_id, id, key_id);
	assert_int_equal(tw_catalogue_user_caller(s->c, "ann", "", &caller, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_user_change(s->c, id, &(struct tw_user_change){.password = "x"}, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_user_change(s->c, id,
	                &(struct tw_user_change){.sets_admin = true, .is_admin = true}, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_user_change(
	                         s->c, id, &(struct tw_user_change){.sets_disabled = true}, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_member_set(s->c, s->caller.project_id, id, TW_SCOPE_PUBLIC, NULL),
	        TW_OK);
	use_identities(s->c, id);
	assert_int_equal(tw_catalogue_user_remove(s->c, id, NULL), TW_OK);
}

static void use_keys(struct session *s)
{
	const uint8_t hash[32] = {1};
	struct tw_caller found;
	struct tw_key_row *keys, row;
	struct tw_project_row *projects;
	struct tw_key_new key = {.project_id = s->caller.project_id,
	        .name = "k",
	        .scope = TW_SCOPE_INGEST,
	        .hash = hash};
	char id[TW_ID_BYTES];
	size_t n;
	bool is_new;

	assert_int_equal(
	        tw_catalogue_project(s->c, "p", s->caller.project_id, &is_new, NULL), TW_OK);
	assert_int_equal(tw_catalogue_projects(s->c, s->arena, &projects, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_key_add(s->c, &key, id, NULL), TW_OK);
	key.hash = (const uint8_t[32]){9};
	assert_int_equal(tw_catalogue_key_find(s->c, hash, "::1", &found, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_key_get(s->c, key.project_id, id, s->arena, &row, NULL), TW_OK);
	assert_int_equal(tw_catalogue_key_rotate(s->c, &key, id, INT64_MAX, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_keys(s->c, s->caller.project_id, "", 1, s->arena, &keys, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_keys(s->c, s->caller.project_id, keys[0].id, 1, s->arena,
	                         &keys, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 0);
	use_people(s, id);
	assert_int_equal(tw_catalogue_key_revoke(s->c, s->caller.project_id, id, NULL), TW_OK);
}

static void upload(struct session *s, const char *key, const char *uuid, char ret_id[TW_ID_BYTES])
{
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", "aa", "", 1000};
	const struct tw_arrival up = {
	        .caller = &s->caller, .key = key, .meta = &meta, .parts = &part, .n_parts = 1};
	bool is_new;

	meta.device = "Pixel";
	meta.uuid = uuid;
	meta.build_id = "b";
	for (int i = 0; i < 2; i++)
		assert_int_equal(tw_catalogue_trace_add(s->c, &up, ret_id, &is_new, NULL), TW_OK);
	assert_false(is_new);
	assert_int_equal(tw_catalogue_part_found(s->c, s->caller.project_id, ret_id,
	                         &(struct tw_part){"system", "bb", "", 5}, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_part_found(s->c, s->caller.project_id, "none",
	                         &(struct tw_part){"system", "bb", "", 5}, NULL),
	        TW_NOT_FOUND);
}

/* A decoder died on the trace once: the list contains it with its facts. */
static void use_quarantine(struct session *s, const struct tw_job_row *job)
{
	struct tw_quarantined *rows, one;
	const char *cursor;
	uint64_t traces, bytes;
	size_t n;

	assert_int_equal(tw_catalogue_quarantine(
	                         s->c, job->project_id, "", 1, s->arena, &rows, &n, &cursor, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(cursor, "");
	assert_int_equal(tw_catalogue_quarantine_get(
	                         s->c, job->project_id, job->trace_id, s->arena, &one, NULL),
	        TW_OK);
	assert_string_equal(one.reason, "crash");
	assert_string_equal(one.format, "btrace2");
	assert_int_equal(one.signal, 11);
	assert_int_equal(one.deaths, job->attempts);
	assert_int_equal(one.bytes, 1000);
	assert_int_equal(one.state, TW_TRACE_FAILED);
	assert_int_equal(
	        tw_catalogue_quarantine_get(s->c, "none", job->trace_id, s->arena, &one, NULL),
	        TW_NOT_FOUND);
	for (int all = 0; all < 2; all++) {
		assert_int_equal(tw_catalogue_quarantine_size(
		                         s->c, all ? "" : job->project_id, &traces, &bytes, NULL),
		        TW_OK);
		assert_int_equal(traces, 1);
		assert_int_equal(bytes, 1000);
	}
}

static void use_jobs(struct session *s)
{
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_err why = {.code = TW_CORRUPT, .msg = "no"};
	const struct tw_death_note death = {"crash", 11, "btrace2", 3};
	struct tw_queue_stats stats;
	struct tw_unverified *unverified;
	struct tw_waiting *waiting;
	struct tw_job_row job;
	const struct tw_job_row *const renewed = &job;
	bool held;
	size_t n;

	assert_int_equal(tw_catalogue_unverified(s->c, s->arena, &unverified, &n, NULL), TW_OK);
	assert_int_equal(n, 2); /* of the last upload, and what was found in it */
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_jobs_recover(s->c, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_retry(s->c, &job, NULL), TW_CONFLICT);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_jobs_renew(s->c, &renewed, 1, 1000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_held(s->c, &job, 0, &held, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_wait(s->c, &job, &why, NULL), TW_OK);
	assert_int_equal(tw_catalogue_jobs_recover(s->c, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(job.attempts, 1); /* waiting cost none */
	assert_int_equal(tw_catalogue_job_retry(s->c, &job, NULL), TW_OK);
	assert_int_equal(tw_catalogue_jobs_recover(s->c, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_job_publish(s->c, &job, &summary, NULL, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_wait(s->c, &job, &why, NULL), TW_CONFLICT);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &(struct tw_claim){.owner = "me", .lease_ms = 1000},
	                s->arena, &job, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_job_failed(s->c, &job, &why, &death, NULL), TW_OK);
	use_quarantine(s, &job);
	assert_int_equal(
	        tw_catalogue_trace_requeue(s->c, job.project_id, job.trace_id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_queue_stats(s->c, &stats, NULL), TW_OK);
	assert_int_equal(tw_catalogue_waiting(s->c, s->arena, &waiting, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(waiting[0].traces, 1);
	assert_int_equal(waiting[0].bytes, 1000);
}

static void list(struct session *s, struct tw_trace_filter f)
{
	struct tw_trace_row *rows;
	const char *cursor = "";
	uint64_t total;
	size_t n;

	f.limit = 1;
	for (int pages = 0; pages < 2; pages++) {
		f.cursor = cursor;
		assert_int_equal(tw_catalogue_traces(s->c, s->caller.project_id, &f, s->arena,
		                         &rows, &n, &cursor, &total, NULL),
		        TW_OK);
	}
}

static void use_audit(struct session *s)
{
	struct tw_audit_query of = {
	        .project_id = s->caller.project_id, .action = "", .by = "", .target = ""};
	struct tw_audit_entry *entries;
	bool more = true;
	size_t n = 0;

	of.limit = 3;
	assert_int_equal(tw_catalogue_audit(s->c, &of, s->arena, &entries, &n, NULL), TW_OK);
	assert_int_equal(n, 3);
	assert_true(entries[0].id > entries[2].id);
	of.project_id = NULL;
	assert_int_equal(tw_catalogue_audit(s->c, &of, s->arena, &entries, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_audit_expire(s->c, 1, &more, NULL), TW_OK);
	assert_false(more);
}

static void use_lists(struct session *s)
{
	static const char *const columns[] = {"app", "version_name", "version_code", "build_id",
	        "device", "os", "abi", "scenario", "process", "state", "tag", "label"};
	struct tw_facet *facets;
	size_t n;

	for (int sort = TW_SORT_CREATED; sort <= TW_SORT_BYTES; sort++)
		for (int ascending = 0; ascending < 2; ascending++)
			list(s, (struct tw_trace_filter){
			                .sort = (enum tw_trace_sort)sort, .ascending = ascending});
	list(s, (struct tw_trace_filter){
	                .of = {{TW_BY_app, "a"}, {TW_BY_device, "Pixel"}, {TW_BY_state, "ready"}}});
	for (int by = 0; by < TW_TRACE_BYS; by++)
		list(s, (struct tw_trace_filter){
		                .of = {{(enum tw_trace_by)by, by == TW_BY_state   ? "ready"
		                                              : by == TW_BY_label ? "k=v"
		                                                                  : "1"}}});
	list(s, (struct tw_trace_filter){.of = {{TW_BY_q, "pixel"}}});
	list(s, (struct tw_trace_filter){.of = {{TW_BY_tag, "slow,seen"}, {TW_BY_label, "a=1"},
	                                         {TW_BY_label, "b="}}});
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		assert_int_equal(tw_catalogue_facets(s->c, s->caller.project_id, columns[i],
		                         s->arena, &facets, &n, NULL),
		        TW_OK);
}

/* A mapping that is put off, replaced, tried again, refused and failed. */
static void use_mapping_jobs(struct session *s)
{
	const struct tw_claim claim = {TW_QUEUE_MAPPINGS, "me", 1000, 1};
	const struct tw_err why = {.code = TW_CORRUPT, .msg = "no"};
	const struct tw_build_row row = {"b", "image", "source", "1"};
	struct tw_mapping_sent sent = {
	        s->caller.project_id, "b", TW_MAPPING_METHODS, "first", 10, true, "", 15};
	struct tw_build_row build;
	struct tw_blob_list unused;
	char id[TW_ID_BYTES], again[TW_ID_BYTES];
	struct tw_job_row job, other;
	const struct tw_job_row *const renewed = &job;
	bool held;

	assert_int_equal(tw_catalogue_mapping_add(s->c, &sent, s->arena, id, &unused, NULL), TW_OK);
	sent.build_id = "c";
	assert_int_equal(
	        tw_catalogue_mapping_add(s->c, &sent, s->arena, again, &unused, NULL), TW_BUSY);
	sent.build_id = "b";
	sent.may_replace = false;
	assert_int_equal(
	        tw_catalogue_mapping_add(s->c, &sent, s->arena, again, &unused, NULL), TW_OK);
	assert_string_equal(id, again);
	sent.source_sha256 = "second";
	assert_int_equal(
	        tw_catalogue_mapping_add(s->c, &sent, s->arena, again, &unused, NULL), TW_DENIED);
	assert_int_equal(tw_catalogue_queue_claim(s->c, &claim, s->arena, &job, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(s->c, &claim, s->arena, &other, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_jobs_renew(s->c, &renewed, 1, 1000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_held(s->c, &job, 0, &held, NULL), TW_OK);
	assert_true(held);
	assert_int_equal(tw_catalogue_job_wait(s->c, &job, &why, NULL), TW_OK);
	assert_int_equal(tw_catalogue_jobs_recover(s->c, NULL), TW_OK);
	assert_int_equal(tw_catalogue_queue_claim(s->c, &claim, s->arena, &job, NULL), TW_OK);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(tw_catalogue_job_wait(s->c, &job, &why, NULL), TW_OK);
	sent.may_replace = true;
	assert_int_equal(
	        tw_catalogue_mapping_add(s->c, &sent, s->arena, again, &unused, NULL), TW_OK);
	assert_string_not_equal(id, again);
	assert_int_equal(unused.n, 1);
	assert_string_equal(unused.sha256[0], "first");
	assert_int_equal(tw_catalogue_job_held(s->c, &job, 0, &held, NULL), TW_OK);
	assert_false(held);
	assert_int_equal(tw_catalogue_job_retry(s->c, &job, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_queue_claim(s->c, &claim, s->arena, &job, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_mapping_failed(s->c, &job, &sent, &why, s->arena, &unused, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_build_get(s->c, s->caller.project_id, "b", s->arena, &build, NULL),
	        TW_OK);
	assert_int_equal(build.upload.state, TW_MAPPING_FAILED);
	assert_string_equal(build.upload.error_message, "no");
	assert_string_equal(build.map_sha256, "mm");
	sent.may_replace = false;
	assert_int_equal(tw_catalogue_mapping_add(s->c, &sent, s->arena, id, &unused, NULL), TW_OK);
	assert_int_equal(tw_catalogue_queue_claim(s->c, &claim, s->arena, &job, NULL), TW_OK);
	assert_int_equal(tw_catalogue_mapping_get(s->c, &job, s->arena, &sent, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_mapping_done(s->c, &job, &sent, &row, s->arena, &unused, NULL),
	        TW_DENIED);
	assert_int_equal(
	        tw_catalogue_mapping_failed(s->c, &job, &sent, &why, s->arena, &unused, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_mapping_expire(s->c, 1, NULL), TW_OK);
	sent.source_sha256 = "ss";
	sent.known_image = "mm";
	assert_int_equal(tw_catalogue_mapping_add(s->c, &sent, s->arena, id, &unused, NULL), TW_OK);
	assert_string_equal(id, "");
	assert_int_equal(
	        tw_catalogue_build_get(s->c, s->caller.project_id, "b", s->arena, &build, NULL),
	        TW_OK);
	assert_int_equal(build.upload.state, TW_MAPPING_READY);
}

static void use_builds(struct session *s)
{
	const struct tw_build_row row = {
	        "b", "mm", "ss", "1", .entries = 1, .retrace = {"rr", "tt", "id"}};
	struct tw_build_row found, *builds;
	const char *cursor = "";
	size_t n;

	catalogue_set_mapping(s->c, s->caller.project_id, TW_MAPPING_METHODS, &row, s->arena);
	catalogue_set_mapping(s->c, s->caller.project_id, TW_MAPPING_RETRACE, &row, s->arena);
	use_mapping_jobs(s);
	assert_int_equal(
	        tw_catalogue_build_get(s->c, s->caller.project_id, "b", s->arena, &found, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_build_of(s->c, s->caller.project_id,
	                         &(struct tw_release){"", "1.0", ""}, s->arena, &cursor, NULL),
	        TW_OK);
	plan_use_commits(s->c, s->caller.project_id);
	plan_use_resumables(s->c, s->caller.project_id);
	cursor = "";
	for (int pages = 0; pages < 2; pages++)
		assert_int_equal(tw_catalogue_builds(s->c, s->caller.project_id, 1, cursor,
		                         s->arena, &builds, &n, &cursor, NULL),
		        TW_OK);
}

static void use_names(struct session *s, const char *id)
{
	const struct tw_name_counts counts = {1, 1, 1, 1};
	const struct tw_trace_names of = {{s->caller.project_id, id, "", ""}, {"", ""}, &counts};
	bool more = true;

	assert_int_equal(tw_catalogue_names_set(s->c, &of, 1, NULL), TW_OK);
	while (more)
		assert_int_equal(tw_catalogue_names_mark_stale(s->c, s->arena, &more, NULL), TW_OK);
}

static void wrong(void *arg, const char *text)
{
	(void)arg;
	fail_msg("%s", text);
}

static void use_check(struct session *s)
{
	static const tw_stored_page_fn pages[] = {tw_catalogue_stored_parts,
	        tw_catalogue_stored_mappings, tw_catalogue_stored_traces};
	struct tw_stored_file *files;
	char copy[100];
	size_t n;

	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		assert_int_equal(pages[i](s->c, NULL, 4, s->arena, &files, &n, NULL), TW_OK);
		if (n)
			assert_int_equal(
			        pages[i](s->c, &files[n - 1], 4, s->arena, &files, &n, NULL),
			        TW_OK);
	}
	assert_int_equal(tw_catalogue_verify(s->c, wrong, NULL, NULL), TW_OK);
	if (catalogue_on_postgres()) /* PostgreSQL's programs copy it */
		return;
	(void)snprintf(copy, sizeof copy, "%s/copy.db", s->dir);
	assert_int_equal(tw_catalogue_copy(s->c, copy, NULL), TW_OK);
	assert_int_not_equal(tw_catalogue_copy(s->c, copy, NULL), TW_OK); /* it is there */
}

static void use_traces(struct session *s, const char *id)
{
	struct tw_trace_row row;
	struct tw_part *parts;
	struct tw_blob_list unused;
	size_t n;
	bool there;

	assert_int_equal(
	        tw_catalogue_trace_get(s->c, s->caller.project_id, id, s->arena, &row, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_trace_parts(
	                         s->c, s->caller.project_id, id, s->arena, &parts, &n, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_has_blob(s->c, "aa", &there, NULL), TW_OK);
	assert_int_equal(tw_catalogue_has_trace(s->c, id, &there, NULL), TW_OK);
	assert_int_equal(tw_catalogue_has_decoded(s->c, id, &there, NULL), TW_OK);
	for (int kind = TW_NAME_BLOB; kind <= TW_NAME_PIECE; kind++)
		assert_int_equal(
		        tw_catalogue_have(s->c, (enum tw_name_kind)kind, &id, 1, &there, NULL),
		        TW_OK);
	assert_int_equal(
	        tw_catalogue_trace_delete(s->c, s->caller.project_id, id, s->arena, &unused, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_ping(s->c, NULL), TW_OK);
}

static void use_marks(struct session *s, const char *id)
{
	static const char *const tags[] = {"slow", "seen", "slow"};
	const struct tw_trace_edit marks = {
	        "title", true, true, true, {tags, 3}, {tags, 1}, {tags, 1}};
	const struct tw_annotation note = {.author = "me",
	        .text = "here",
	        .ts_ns = 1,
	        .tid = -1,
	        .method_index = -1,
	        .method_key = ""};
	const char *project = s->caller.project_id;
	struct tw_annotation *notes;
	struct tw_trace_row row;
	char note_id[TW_ID_BYTES];
	size_t n;

	assert_int_equal(tw_catalogue_trace_edit(s->c, project, id, &marks, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_annotation_add(s->c, project, id, &note, note_id, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_annotation_edit(s->c, project, id, note_id, "there", NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_annotations(s->c, project, id, s->arena, &notes, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(notes[0].text, "there");
	assert_int_equal(tw_catalogue_trace_get(s->c, project, id, s->arena, &row, NULL), TW_OK);
	assert_non_null(strstr(row.tags, "\"seen\""));
	assert_true(row.pinned);
	assert_int_equal(row.annotations, 1);
	assert_int_equal(tw_catalogue_annotation_delete(s->c, project, id, note_id, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_annotation_delete(s->c, project, id, note_id, NULL), TW_NOT_FOUND);
}

static void use_filters(struct session *s)
{
	const struct tw_filter_row row = {"mine", "app=a", "me", 0};
	const char *project = s->caller.project_id;
	struct tw_filter_row *rows;
	size_t n;

	for (int i = 0; i < 2; i++)
		assert_int_equal(tw_catalogue_filter_set(s->c, project, &row, NULL), TW_OK);
	assert_int_equal(tw_catalogue_filters(s->c, project, s->arena, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_filter_delete(s->c, project, "mine", NULL), TW_OK);
	assert_int_equal(tw_catalogue_filter_delete(s->c, project, "mine", NULL), TW_NOT_FOUND);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void use_all(struct session *s)
{
	char one[TW_ID_BYTES], two[TW_ID_BYTES];
	const size_t before = n_statements;

	s->c = catalogue_in(s->dir);
	s->caller.scope = TW_SCOPE_INGEST;
	n_statements = before; /* not the migrations */
	use_keys(s);
	upload(s, "key", "", one);
	upload(s, "", "uuid", two);
	use_jobs(s);
	use_lists(s);
	use_audit(s);
	use_builds(s);
	use_names(s, one);
	use_check(s);
	use_marks(s, one);
	use_filters(s);
	plan_use_rollups(s->c, s->dir, s->caller.project_id, one);
	plan_use_found(s->c, s->caller.project_id, one);
	plan_use_anrs(s->c, s->caller.project_id, one);
	plan_use_hooks(s->c, s->caller.project_id);
	plan_use_tasks(s->c, s->caller.project_id, one);
	plan_use_retention(s->c, s->caller.project_id, one);
	plan_use_project_delete(s->c);
	use_traces(s, one);
	s->c = tw_catalogue_close(s->c);
}

/* --- statements that no session runs --- */

static bool sqlite_takes(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q = NULL;
	const bool takes = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK;

	(void)sqlite3_finalize(q);
	return takes;
}

struct engines {
	struct tw_db *sqlite, *postgres; /* postgres NULL: there is none */
};

static bool is_run(void *arg, const char *text)
{
	(void)arg;
	for (size_t i = 0; i < n_statements; i++)
		if (strstr(statements[i], text))
			return true;
	return false;
}

static bool take(void *arg, const char *sql)
{
	const struct engines *e = arg;
	const bool taken = sqlite_takes(tw_db_sqlite(e->sqlite), sql) ||
	                   (e->postgres && plan_postgres_takes(e->postgres, sql));

	if (taken)
		note(sql);
	return taken || !e->postgres;
}

static void add_literals(struct session *s)
{
	struct engines e = {NULL, catalogue_on_postgres() ? catalogue_connect(s->dir) : NULL};
	const struct plan_literals l = {is_run, take, &e};
	size_t n, bad;

	assert_int_equal(tw_db_sqlite_open(s->path, TW_DB_READ_ONLY, &e.sqlite, NULL, NULL), TW_OK);
	bad = plan_read_literals(&l, &n);
	tw_db_close(e.sqlite);
	tw_db_close(e.postgres);
	assert_int_equal(bad, 0);
	assert_true(n > 500);
}

/* On SQLite, then also on PostgreSQL if there is one: some statements are of one engine. */
static int setup(void **state)
{
	static struct session s;
	int (*entry)(sqlite3 *, const char **, const struct sqlite3_api_routines *) = watch;
	void (*any)(void);
	char *postgres = getenv("TRACEWELL_TEST_POSTGRES");

	memcpy(&any, &entry, sizeof any);
	memcpy(s.dir, "/tmp/tw-plan-XXXXXX", sizeof "/tmp/tw-plan-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	(void)snprintf(s.path, sizeof s.path, "%s/catalogue.db", s.dir);
	s.arena = tw_arena_new(64 << 20);
	postgres = postgres ? strdup(postgres) : NULL;
	(void)unsetenv("TRACEWELL_TEST_POSTGRES");
	assert_int_equal(sqlite3_auto_extension(any), SQLITE_OK);
	use_all(&s);
	(void)sqlite3_cancel_auto_extension(any);
	if (postgres) {
		(void)setenv("TRACEWELL_TEST_POSTGRES", postgres, 1);
		watches_postgres = true;
		use_all(&s);
		watches_postgres = false;
	}
	add_literals(&s);
	free(postgres);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* --- judging --- */

/* Tables that remain small: jobs are undecoded traces, renames are builds with a new mapping,
 * quarantines are bounded by retention, the others have a handful of rows per user. A check of the
 * database reads all of it. */
static bool may_be_scanned(const char *step)
{
	static const char *const small[] = {"SCAN project", "SCAN session", "SCAN signin_link",
	        "SCAN job", "SCAN build_rename", "SCAN fleet_engine" /* a row */,
	        "SCAN e VIRTUAL TABLE" /* labels of a row */,
	        "SCAN n VIRTUAL TABLE" /* names to look up */, "SCAN exemplar" /* a page of them */,
	        "SCAN quarantine", "SCAN signin_used" /* 4096 */, "SCAN signin_try" /* 16384 */,
	        "SCAN resumable USING INDEX resumable_open" /* as many as keys may have open */,
	        "SCAN capture_device" /* two days */, "SCAN webhook",
	        "SCAN outbox USING INDEX outbox_until",
	        "SCAN h USING INDEX anr_trace_uncopied" /* a page of them */,
	        "SCAN count_delta" /* empty in SQLite */, "SCAN clock" /* a row */,
	        "SCAN r VIRTUAL TABLE" /* rules of a setting */, "SCAN sqlite_",
	        "SCAN of_" /* what a query within found */, "SCAN (", "SCAN pragma_",
	        "SCAN CONSTANT", "SCAN 2 CONSTANT"};

	for (size_t i = 0; i < sizeof small / sizeof *small; i++)
		if (strncmp(step, small[i], strlen(small[i])) == 0)
			return true;
	return false;
}

/* Results of subqueries, or rows of parameters (tw_cat_rows). */
static bool is_within(const char *step)
{
	static const char *const names[] = {"r", "g", "s", "taken", "waiting", "oldest"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(step + strlen("SCAN "), names[i]) == 0)
			return true;
	return false;
}

/* Statements of a start that has found files without a row or settings of small files, of
 * `rebuild`, of `check`, and of `doctor`, which reads each build. */
static bool is_of_start(const char *sql)
{
	static const char *const parts[] = {"SELECT (SELECT count(*) FROM trace)+",
	        "FROM audit WHERE action='trace.delete' AND target=?",
	        "(SELECT 1 FROM small_file LIMIT 1)", "SELECT (SELECT count(*) FROM project)+",
	        "UPDATE build SET traces=(SELECT count(*) FROM trace t WHERE t.project_id=build.",
	        "UPDATE build SET app=(SELECT app FROM trace t",
	        "FROM build WHERE map_sha256='' AND retrace_sha256=''",
	        "invalid trace id: ", "SELECT 'setting "};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(sql, parts[i]))
			return true;
	return false;
}

/* Steps of the plan that walk a whole table, or with `sorts` that sort; printed and counted. */
static unsigned verify(sqlite3 *db, const char *sql, bool sorts)
{
	char explain[PLAN_SQL + 32];
	sqlite3_stmt *q = NULL;
	unsigned bad = 0;

	(void)snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(sqlite3_prepare_v2(db, explain, -1, &q, NULL), SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(q, 3);
		bool scan = strncmp(step, "SCAN ", 5) == 0 && !may_be_scanned(step) &&
		            !is_within(step) && !is_of_start(sql);
		bool sort = sorts && strstr(step, "USE TEMP B-TREE");

		if (scan || sort) {
			print_message("%s\n  in %s\n", step, sql);
			bad++;
		}
	}
	(void)sqlite3_finalize(q);
	return bad;
}

static bool has_step(struct tw_db *db, const char *sql, const char *one, const char *other)
{
	char explain[PLAN_SQL + 32];
	sqlite3_stmt *q = NULL;
	bool has = false;

	(void)snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(sqlite3_prepare_v2(tw_db_sqlite(db), explain, -1, &q, NULL), SQLITE_OK);
	while (!has && sqlite3_step(q) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(q, 3);

		has = strstr(step, one) && strstr(step, other);
	}
	(void)sqlite3_finalize(q);
	return has;
}

/* The count of a narrow range of recordings, or of a word that few traces have, reads no other
 * traces. */
static void test_few_are_counted_by_an_index(void **state)
{
	static const struct {
		const char *condition, *one, *other;
	} counts[] = {{"recorded_ms>=?", "trace_by_recorded", "recorded_ms"},
	        {"recorded_ms<?", "trace_by_recorded", "recorded_ms"},
	        {" trace_id IN (SELECT trace_id FROM trace", "project_id=?", "trace_id=?"}};
	struct session *s = *state;
	struct tw_db *db = NULL;

	assert_int_equal(tw_db_sqlite_open(s->path, TW_DB_READ_ONLY, &db, NULL, NULL), TW_OK);
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		unsigned found = 0;

		for (size_t i = 0; i < n_statements; i++)
			if (strstr(statements[i], "count(*),") &&
			        strstr(statements[i], counts[k].condition)) {
				assert_true(has_step(
				        db, statements[i], counts[k].one, counts[k].other));
				found++;
			}
		assert_in_range(found, 1, 3);
	}
	tw_db_close(db);
}

static void test_nothing_is_scanned(void **state)
{
	struct session *s = *state;
	struct tw_db *db = NULL;
	unsigned bad = 0, explained = 0;

	/* as the server does: with its functions */
	assert_int_equal(tw_db_sqlite_open(s->path, TW_DB_READ_ONLY, &db, NULL, NULL), TW_OK);
	for (size_t i = 0; i < n_statements; i++) {
		const char *sql = statements[i];

		if (!plan_is_statement(sql) || !sqlite_takes(tw_db_sqlite(db), sql))
			continue; /* PostgreSQL's alone */
		bad += verify(tw_db_sqlite(db), sql, false);
		explained++;
	}
	tw_db_close(db);
	assert_int_equal(bad, 0);
	assert_in_range(explained, 50, PLAN_STATEMENTS - 1);
}

/* A page of an unfiltered list is read in the order of an index, from where the last one ended. */
static void test_pages_are_not_sorted(void **state)
{
	struct session *s = *state;
	sqlite3 *db = NULL;
	unsigned bad = 0, pages = 0;

	assert_int_equal(sqlite3_open(s->path, &db), SQLITE_OK);
	for (size_t i = 0; i < n_statements; i++) {
		const char *where =
		        strncmp(statements[i], "SELECT trace_id,", 16) == 0
		                ? strstr(statements[i], "FROM trace WHERE project_id=? ORDER BY")
		                : NULL;
		const char *next = strstr(statements[i], "FROM trace WHERE project_id=? AND (");
		const char *builds = strstr(statements[i], "FROM build WHERE project_id=?");

		if (!where && !next && !(builds && strstr(statements[i], "LIMIT")))
			continue;
		bad += verify(db, statements[i], true);
		pages++;
	}
	(void)sqlite3_close(db);
	assert_int_equal(bad, 0);
	assert_in_range(pages, 8, 64);
}

/* Plans with a scan, to prove that the two tests above can fail. */
static void test_a_scan_is_seen(void **state)
{
	struct session *s = *state;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(s->path, &db), SQLITE_OK);
	assert_int_equal(verify(db, "SELECT 1 FROM trace WHERE os='x'", false), 1);
	assert_int_equal(verify(db, "SELECT 1 FROM part WHERE bytes=1", false), 1);
	assert_int_equal(
	        verify(db, "SELECT 1 FROM trace WHERE project_id='' ORDER BY os", true), 1);
	(void)sqlite3_close(db);
}

static void test_the_other_engine_takes_them(void **state)
{
	const struct session *s = *state;

	plan_on_postgres(s->dir, statements, n_statements);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_other_engine_takes_them),
        cmocka_unit_test(test_few_are_counted_by_an_index),
        cmocka_unit_test(test_nothing_is_scanned),
        cmocka_unit_test(test_pages_are_not_sorted),
        cmocka_unit_test(test_a_scan_is_seen),
};

UNIT_TESTS_WITH("catalogue_plan", tests, setup, teardown)

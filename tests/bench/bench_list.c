/*
 * bench_list.c - the cost of a page of the list of traces, by filter and order, as traces grow.
 *
 * usage: bench_list FOLDER [ROWS...]     (30000 300000 when none are given)
 *
 * Traces of one project with five labels each, eight to a session, 5,000 to a build, of 200
 * devices.  Rows are written directly into the catalogue; the server's own code queries them: the
 * count of matches and the first page.  Prints the best CPU time of this process of three runs.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "sizes.h"

enum { ARENA = 64 << 20 };

#define MIXED(n) "(i*104729%1000003*7919%1000003%" #n ")"

static const char load_sql[] =
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i+1<?2)"
        " INSERT INTO trace(project_id,trace_id,key_id,idempotency_key,content,state,created_ms,"
        "upload_bytes,app,version_name,version_code,build_id,mapping_id,device,os,abi,process,"
        "scenario,session_id,uuid,labels,pid,started_ms,recorded_ms,slices,duration_ns,"
        "rollup_state,anr_state,named)"
        " SELECT ?1,printf('01SIM%021d',i),'01SIMKEY','','trace='||hex(randomblob(32)),2,"
        "1760000000000+i*20000," MIXED(
                1000000) ",'com.shop','8.'||(i/20000),8030000+i/5000,"
                         "'b'||(i/5000),'','device '||" MIXED(200) ",10+" MIXED(
                                 5) ",'arm64-v8a','com.shop',"
                                    "'scenario '||" MIXED(
                                            4) ",'s-'||(i/8),hex(randomblob(16)),"
                                               "printf('{\"user\":\"%d\",\"group\":\"%d\","
                                               "\"network\":\"wifi\",\"class\":\"mid\","
                                               "\"ram_mb\":%d}'," MIXED(100000) "," MIXED(2) "," MIXED(
                                                       3) "*2048),1,"
                                                          "0,1759999940000+i*20000," MIXED(
                                                                  900000) "," MIXED(800000) ",1,1,"
                                                                                            "1 "
                                                                                            "FROM "
                                                                                            "n";

static const struct {
	const char *name;
	enum tw_trace_sort sort;
	enum tw_trace_by by;
	const char *value;
	bool many; /* more match than a page has */
} rows[] = {
        {"all", TW_SORT_CREATED, TW_BY_app, "", true},
        {"a scenario", TW_SORT_CREATED, TW_BY_scenario, "scenario 1", true},
        {"a device", TW_SORT_CREATED, TW_BY_device, "device 7", true},
        {"a build", TW_SORT_CREATED, TW_BY_build_id, "b1", true},
        {"codes from", TW_SORT_CREATED, TW_BY_version_code_min, "8030002", true},
        {"recorded until", TW_SORT_CREATED, TW_BY_recorded_until, "1760002000000", true},
        {"recorded since", TW_SORT_CREATED, TW_BY_recorded_since, "1760590000000", true},
        {"a session", TW_SORT_CREATED, TW_BY_session_id, "s-77", false},
        {"a session by duration", TW_SORT_DURATION, TW_BY_session_id, "s-77", false},
        {"words", TW_SORT_CREATED, TW_BY_q, "shop scenario 1", true},
        {"words of none", TW_SORT_CREATED, TW_BY_q, "shop nothing like it", false},
        {"words of a device", TW_SORT_CREATED, TW_BY_q, "shop device 77", true},
        {"an id of none", TW_SORT_CREATED, TW_BY_q, "4711xyz", false},
        {"a common label", TW_SORT_CREATED, TW_BY_label, "group=1", true},
        {"a number", TW_SORT_CREATED, TW_BY_label, "ram_mb=4096", true},
        {"a rare label", TW_SORT_CREATED, TW_BY_label, "user=4711", false},
        {"a rare label by duration", TW_SORT_DURATION, TW_BY_label, "user=4711", false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void load(const char *path, const char *project, uint64_t n)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;

	bench_must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "tracewell") == SQLITE_OK,
	        "a second connection");
	bench_must(sqlite3_exec(db, "PRAGMA cache_size=-1000000", NULL, NULL, NULL) == SQLITE_OK,
	        "memory for the indexes");
	bench_must(sqlite3_prepare_v2(db, load_sql, -1, &s, NULL) == SQLITE_OK, sqlite3_errmsg(db));
	(void)sqlite3_bind_text(s, 1, project, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 2, (int64_t)n);
	bench_must(sqlite3_step(s) == SQLITE_DONE, "rows");
	(void)sqlite3_finalize(s);
	(void)sqlite3_close(db);
}

static double best_of_3(struct tw_catalogue *c, const char *project, int k)
{
	const struct tw_trace_filter f = {.of = {{rows[k].by, rows[k].value}},
	        .sort = rows[k].sort,
	        .limit = 50,
	        .cursor = ""};
	double best = 1e9;

	for (int i = 0; i < 3; i++) {
		struct tw_arena *a = tw_arena_new(ARENA);
		const double start = bench_cpu_ms();
		struct tw_trace_row *found;
		const char *cursor;
		uint64_t total;
		double ms;
		size_t n;

		bench_must(a != NULL, "memory");
		bench_must(tw_catalogue_traces(
		                   c, project, &f, a, &found, &n, &cursor, &total, NULL) == TW_OK,
		        "a page");
		bench_must(rows[k].many ? n == f.limit : n == total, rows[k].name);
		ms = bench_cpu_ms() - start;
		best = ms < best ? ms : best;
		tw_arena_free(a);
	}
	return best;
}

static void measure(const char *folder, uint64_t n, struct bench_took *took)
{
	struct tw_catalogue *c;
	char path[1000], project[TW_ID_BYTES];
	bool is_new;

	(void)mkdir(folder, 0700);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", folder);
	bench_must(tw_catalogue_open(path, &c, NULL) == TW_OK, "opening the catalogue");
	bench_must(tw_catalogue_project(c, "p", project, &is_new, NULL) == TW_OK, "a project");
	if (is_new)
		load(path, project, n);
	(void)printf("%8llu traces\n", (unsigned long long)n);
	for (int k = 0; k < ROWS; k++)
		bench_print(rows[k].name, best_of_3(c, project, k), &took[k]);
	(void)fflush(stdout);
	c = tw_catalogue_close(c);
}

int main(int argc, char **argv)
{
	struct bench_took took[ROWS] = {{0}};
	const struct bench_plan plan = {10000000, {30000, 300000}, measure, took};

	return bench_sizes(argc, argv, &plan);
}

/*
 * bench_anr.c - what lists of ANRs and locks cost as their number grows.
 *
 * usage: bench_anr FOLDER [ROWS...]     (20000 200000 when none are given)
 *
 * ROWS traces, each with an ANR and three locks, over 14 days: 300 groups, most
 * reports in few of them, 400 locks, four versions, 40 devices, a fifth as many users
 * as reports.  Rows are written directly into the catalogue; the server's own code
 * queries them.  Prints the best CPU time of this process of three runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "sizes.h"

enum { DAY0 = 20000, DAYS = 14, ARENA = 64 << 20 };

struct bench {
	struct tw_catalogue *c;
	char project[TW_ID_BYTES];
	const struct tw_rollup_filter *filter;
	struct tw_arena *arena;
};

/* One statement each.  g is the product of two even numbers, so that few groups have most. */
static const char *const load_sql[] = {"BEGIN",
        "CREATE TEMP TABLE sim AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n"
        " WHERE i+1<(SELECT rows FROM ask)) SELECT i, (SELECT project FROM ask) AS project,"
        " printf('01SIM%021d',i) AS id, 20000+i*14/(SELECT rows FROM ask) AS day,"
        " (i*31337%1000003*7919%1000003%1000)*(i*104729%1000003*7919%1000003%1000)*300/1000000"
        " AS g, i*65537%1000003*7919%1000003%((SELECT rows FROM ask)/5)+1 AS who FROM n",
        "INSERT INTO trace(project_id,trace_id,app,version_name,build_id,scenario,os,created_ms,"
        "recorded_ms,duration_ns,key_id,idempotency_key,content,state,upload_bytes,version_code,"
        "mapping_id,"
        "device,abi,process,session_id,uuid,labels,pid,started_ms,rollup_state,anr_state,anr) "
        "SELECT"
        " project,id,'app','1.'||(i%4),'b'||(i%4),'','14',day*86400000+i,day*86400000+i,1,'','','',"
        "2,1,'','',"
        "'d'||(i%40),'','','','','',1,0,1,1,'g'||g FROM sim",
        "INSERT INTO "
        "anr_trace(project_id,trace_id,recorded_ms,day,app,version_name,build_id,mapping_id,"
        "scenario,device,device_class,os,labels,who,anr,keyed,key,kind) SELECT project,id,"
        "day*86400000+i,day,'app','1.'||(i%4),'b'||(i%4),'',iif(i%3,'page',''),'d'||(i%40),"
        "'mid','14','{}',who,1,1,'g'||g,iif(g%3,'path','deadlock') FROM sim",
        "INSERT INTO anr(project_id,trace_id,brief,base,key,kind,name,title,verdict,detail) SELECT"
        " project,id,zeroblob(3000),'g'||g,'g'||g,iif(g%3,'path','deadlock'),'com.app.C'||g||"
        "'.run','main waits in com.app.C'||g||'.run','verdict','{}' FROM sim",
        "INSERT INTO lock_wait(project_id,trace_id,seq,dump,is_main,raw_monitor,raw_owner,source,"
        "monitor,owner,holder,waits,timed,total_ns,max_ns) SELECT project,id,k,k%2,k<2,'m','o',"
        "'A.java:1','com.app.Lock'||((g+k*7)%400),'com.app.Owner'||((g+k*7)%400)||'.take',"
        "'pool-1',1+i%3,1,1000000+i%997*1000,1000000+i%997*1000 FROM sim, (SELECT 0 AS k"
        " UNION ALL SELECT 1 UNION ALL SELECT 2)",
        /* the inbox's other items: a decision for each group, 1,000 regressions, 1,000 alerts */
        "INSERT INTO anr_state(project_id,key,status,owner,author,changed_ms) SELECT DISTINCT"
        " project,'g'||g,g%3,'ann','ann',1 FROM sim",
        "INSERT INTO regression(project_id,regression_id,app,scenario,method,descriptor,base,head,"
        "day,percent,before_ns,after_ns,change_ppm,low_ppm,high_ppm,score_milli,n_before,n_after,"
        "before_trace,after_trace,status,first_ms,last_ms) SELECT project,'r'||i,'app','page',"
        "'com.app.C'||i||'.run','','1.0','1.1',20000+i%14,50,1000000,1500000,500000,400000,600000,"
        "9000,40,40,id,id,i%4,1,day*86400000+i FROM sim LIMIT 1000",
        "INSERT INTO alert_rule(project_id,rule_id,name,kind,app,scenario,version_name,method,"
        "percentile,limit_micro,min_traces,days,mail,author,created_ms,changed_ms) SELECT "
        "project,'rule','slow',0,'','','','',95,1,1,7,0,'ann',1,1 FROM ask",
        "INSERT INTO alert(project_id,alert_id,rule_id,app,subject,title,trace_id,value_micro,"
        "traces,is_over,status,first_ms,last_ms) SELECT project,'a'||i,'rule','app','1.'||i,'',id,"
        "5,40,1,i%4,1,day*86400000+i FROM sim LIMIT 1000",
        "INSERT INTO anr_day(project_id,day) SELECT DISTINCT project, day FROM sim", "COMMIT"};

static void load(struct bench *b, const char *path, uint64_t rows)
{
	char ask[200];
	sqlite3 *db = NULL;

	bench_must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "tracewell") == SQLITE_OK,
	        "a second connection");
	(void)snprintf(ask, sizeof ask,
	        "CREATE TEMP TABLE ask AS SELECT '%s' AS project, %llu AS rows", b->project,
	        (unsigned long long)rows);
	bench_must(sqlite3_exec(db, ask, NULL, NULL, NULL) == SQLITE_OK, "a table");
	for (size_t i = 0; i < sizeof load_sql / sizeof load_sql[0]; i++)
		bench_must(
		        sqlite3_exec(db, load_sql[i], NULL, NULL, NULL) == SQLITE_OK, load_sql[i]);
	(void)sqlite3_close(db);
}

/* Milliseconds of CPU for each report that is counted in the sums of its day, many at a time. */
static double count(struct bench *b, uint64_t rows)
{
	const struct tw_anr_rollup_due due = {
	        b->project, 1, (DAY0 + DAYS) * TW_DAY_MS, TW_ANR_ROLLUP_REPORTS_MIN};
	const double start = bench_cpu_ms();
	struct tw_anr_rollup_done done = {.more = true};

	while (done.more)
		bench_must(tw_catalogue_anr_rollup(b->c, &due, &done, NULL) == TW_OK, "counting");
	return (bench_cpu_ms() - start) / (double)rows;
}

static void ask_groups(struct bench *b)
{
	struct tw_anr_group *groups;
	size_t n;

	bench_must(tw_catalogue_anr_groups(
	                   b->c, b->project, b->filter, b->arena, &groups, &n, NULL) == TW_OK,
	        "groups");
	bench_must(n > 50, "many groups");
	n = n < 100 ? n : 100; /* a page */
	bench_must(
	        tw_catalogue_anr_groups_name(b->c, b->project, b->arena, groups, &n, NULL) == TW_OK,
	        "names");
}

/* As GET /api/v1/inbox reads it (server/api/fleet/api_inbox.c). */
static void ask_inbox(struct bench *b)
{
	const struct tw_inbox_query page = {"", "", INT64_C(1) << 40,
	        (1U << TW_REGRESS_STATUSES) - 1, TW_INBOX_ANY, {INT64_MAX, ""}, 201};
	struct tw_inbox_counts counts[2];
	struct tw_regression *regressions;
	struct tw_anr_state *states;
	struct tw_alert *alerts;
	size_t n_regressions, n_states, n_alerts;

	ask_groups(b);
	bench_must(tw_catalogue_inbox_count_regressions(
	                   b->c, b->project, &page, &counts[0], NULL) == TW_OK &&
	                   tw_catalogue_inbox_regressions(b->c, b->project, &page, b->arena,
	                           &regressions, &n_regressions, NULL) == TW_OK &&
	                   tw_catalogue_anr_states(b->c, b->project, "", b->arena, &states,
	                           &n_states, NULL) == TW_OK &&
	                   tw_catalogue_inbox_count_alerts(
	                           b->c, b->project, &page, &counts[1], NULL) == TW_OK &&
	                   tw_catalogue_inbox_alerts(b->c, b->project, &page, b->arena, &alerts,
	                           &n_alerts, NULL) == TW_OK,
	        "the inbox");
	bench_must(n_regressions == 201 && n_states > 50 && n_alerts == 201, "its items");
}

static void ask_sums(struct bench *b)
{
	struct tw_anr_sums sums;

	bench_must(tw_catalogue_anr_sums(b->c, b->project, b->filter, 1, &sums, NULL) == TW_OK,
	        "sums");
	bench_must(sums.traces > 0 && sums.pending == 0, "keyed");
}

static void ask_days(struct bench *b)
{
	struct tw_anr_group *groups;
	struct tw_anr_slice *slices;
	size_t n;

	bench_must(tw_catalogue_anr_groups(
	                   b->c, b->project, b->filter, b->arena, &groups, &n, NULL) == TW_OK,
	        "groups");
	bench_must(tw_catalogue_anr_days(b->c, b->project, b->filter, groups, n, b->arena, &slices,
	                   &n, NULL) == TW_OK,
	        "days");
	bench_must(n > 50, "many days");
}

/* The queries of a group's page; for a group in the middle. */
static void ask_group(struct bench *b)
{
	struct tw_anr_exemplar *exemplars;
	struct tw_anr_slice *slices;
	struct tw_anr_group group;
	enum tw_status st;
	size_t n;

	st = tw_catalogue_anr_group(b->c, b->project, b->filter, "g80", b->arena, &group, NULL);
	bench_must(st == TW_OK, "a group");
	for (int by = TW_ANR_BY_VERSION; by <= TW_ANR_BY_KIND; by++)
		bench_must(tw_catalogue_anr_slices(b->c, b->project, b->filter, "g80",
		                   (enum tw_anr_by)by, b->arena, &slices, &n, NULL) == TW_OK,
		        "slices");
	st = tw_catalogue_anr_exemplars(
	        b->c, b->project, b->filter, "g80", b->arena, &exemplars, &n, NULL);
	bench_must(st == TW_OK && n > 0, "exemplars");
}

static void ask_locks_named(struct bench *b, const char *name)
{
	const struct tw_lock_query q = {.filter = b->filter, .name = name};
	struct tw_lock_row *rows;
	size_t n;

	bench_must(tw_catalogue_locks(b->c, b->project, &q, b->arena, &rows, &n, NULL) == TW_OK,
	        "locks");
	bench_must(n > 0, "any locks");
	if (name[0])
		bench_must(tw_catalogue_lock_series(
		                   b->c, b->project, &q, true, b->arena, &rows, &n, NULL) == TW_OK,
		        "a series");
}

static void ask_locks(struct bench *b)
{
	ask_locks_named(b, "");
}

static void ask_lock(struct bench *b)
{
	ask_locks_named(b, "com.app.Owner80.take");
}

static void ask_firsts(struct bench *b)
{
	const struct tw_old_query of = {
	        b->project, (int64_t)(DAY0 + DAYS) * TW_DAY_MS, 1000, true, INT64_MAX};
	int64_t since_ms;

	bench_must(tw_catalogue_firsts_since(
	                   b->c, &of, (uint64_t)4 << 30, b->arena, &since_ms, NULL) == TW_OK,
	        "firsts");
	bench_must(since_ms != INT64_MAX, "any firsts");
}

typedef void (*ask_fn)(struct bench *b);

static double best_of_3(struct bench *b, ask_fn ask)
{
	double best = 1e9;

	for (int i = 0; i < 3; i++) {
		double start, ms;

		b->arena = tw_arena_new(ARENA);
		bench_must(b->arena != NULL, "memory");
		start = bench_cpu_ms();
		ask(b);
		ms = bench_cpu_ms() - start;
		best = ms < best ? ms : best;
		tw_arena_free(b->arena);
	}
	return best;
}

static const struct {
	const char *name;
	ask_fn ask;
	int64_t days; /* the last ones; 0: all */
	const char *version;
} rows[] = {{"groups, 14 days", ask_groups, 0, ""}, {"groups, one day", ask_groups, 1, ""},
        {"groups of a version", ask_groups, 0, "1.1"}, {"how many, 14 days", ask_sums, 0, ""},
        {"by day, 14 days", ask_days, 0, ""}, {"a group's page", ask_group, 0, ""},
        {"locks, 14 days", ask_locks, 0, ""}, {"locks of a version", ask_locks, 0, "1.1"},
        {"a lock's page", ask_lock, 0, ""}, {"kept firsts", ask_firsts, 0, ""},
        {"the inbox", ask_inbox, 0, ""}};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_numbers(const char *path)
{
	static const char *const reported[][2] = {
	        {"sums of groups by day",
	                "SELECT count(*) FROM anr_rollup WHERE what=0 AND fine=0"},
	        {"sums of groups by all",
	                "SELECT count(*) FROM anr_rollup WHERE what=0 AND fine=1"},
	        {"sums of locks by day", "SELECT count(*) FROM anr_rollup WHERE what=1 AND fine=0"},
	        {"sums of locks by all", "SELECT count(*) FROM anr_rollup WHERE what=1 AND fine=1"},
	        {"bytes a sum of a group by day",
	                "SELECT avg(length(data)) FROM anr_rollup WHERE what=0 AND fine=0"},
	        {"bytes a sum of a lock by day",
	                "SELECT avg(length(data)) FROM anr_rollup WHERE what=1 AND fine=0"},
	        {"users", "SELECT count(DISTINCT who) FROM anr_trace"},
	        {"reports of the group that is asked for",
	                "SELECT count(*) FROM anr_trace WHERE key='g80'"}};
	sqlite3 *db = NULL;

	bench_must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "tracewell") == SQLITE_OK,
	        "a second connection");
	for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
		bench_print_number(db, reported[i][0], reported[i][1]);
	(void)sqlite3_close(db);
}

static void measure(const char *folder, uint64_t n, struct bench_took *took)
{
	struct bench b = {0};
	char path[1000];
	bool is_new;

	(void)mkdir(folder, 0700);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", folder);
	bench_must(tw_catalogue_open(path, &b.c, NULL) == TW_OK, "opening the catalogue");
	bench_must(tw_catalogue_project(b.c, "p", b.project, &is_new, NULL) == TW_OK, "a project");
	if (is_new)
		load(&b, path, n);
	(void)printf("%8llu ANRs with 3 locks each\n", (unsigned long long)n);
	if (is_new)
		bench_print("counting a report", count(&b, n), &took[ROWS]);
	for (int k = 0; k < ROWS; k++) {
		const int64_t from = rows[k].days ? DAY0 + DAYS - rows[k].days : DAY0;
		const struct tw_rollup_filter f = {
		        "", rows[k].version, "", "", "", "", "", from, DAY0 + DAYS};

		b.filter = &f;
		bench_print(rows[k].name, best_of_3(&b, rows[k].ask), &took[k]);
	}
	print_numbers(path);
	(void)fflush(stdout);
	b.c = tw_catalogue_close(b.c);
}

int main(int argc, char **argv)
{
	struct bench_took took[ROWS + 1] = {{0}};
	const struct bench_plan plan = {1000000, {20000, 200000}, measure, took};

	return bench_sizes(argc, argv, &plan);
}

#include "server/catalogue/catalogue.h"

#include <stdio.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"
#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_sqlite.h"

/* The first column of the first row into *ret, the second into text (may be NULL). */
static enum tw_status query_row(struct tw_db *db, const char *sql, int64_t arg, int64_t *ret,
        char *text, size_t cap, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, sql, "i", arg);

	if (st != TW_OK)
		return st;
	*ret = 0;
	if (tw_cat_row(&q)) {
		*ret = tw_cat_int(&q, 0);
		if (text && tw_cat_str(&q, 1))
			(void)snprintf(text, cap, "%s", tw_cat_str(&q, 1));
	}
	return tw_cat_close(&q, err);
}

struct fact_query {
	const char *sql; /* selects a number and perhaps a text; ?1 is a time */
	int64_t *number;
	char *text;
	size_t cap;
};

/* Both queries name each project so that the index on (project_id, created_ms) is used. */
#define NEWEST                                                                                     \
	"SELECT (SELECT max(created_ms) FROM trace WHERE project_id=project.project_id)"           \
	" AS ms FROM project"
#define LAST_DAY                                                                                   \
	" FROM trace WHERE project_id IN (SELECT project_id FROM project) AND"                     \
	" created_ms>?1-86400000 AND state"

/* Builds with traces and without a mapping. */
#define UNMAPPED " FROM build WHERE map_sha256='' AND retrace_sha256='' AND traces>0 AND ?1>0"

static enum tw_status query_all(
        struct tw_db *db, int64_t now_ms, struct tw_catalogue_facts *f, struct tw_err *err)
{
	int64_t recent = 0;
	int64_t failed = 0;
	int64_t unnamed = 0;
	int64_t readable = 0;
	int64_t quarantined = 0;
	int64_t unused = 0;
	const struct fact_query all[] = {
	        {"SELECT max((SELECT coalesce(max(ms),0) FROM (" NEWEST ") of_traces),"
	         " (SELECT coalesce(max(created_ms),0) FROM api_key)) WHERE ?1>0",
	                &f->newest_ms, NULL, 0},
	        {"SELECT coalesce(min(queued_ms),0) FROM job WHERE claimed=0 AND ?1>0",
	                &f->oldest_job_ms, NULL, 0},
	        {"SELECT count(*)" LAST_DAY ">=2", &recent, NULL, 0},
	        {"SELECT count(*)" LAST_DAY "=3", &failed, NULL, 0},
	        {"SELECT count(*), error_message" LAST_DAY "=3 GROUP BY 2 ORDER BY 1 DESC LIMIT 1",
	                &unused, f->recent_why, sizeof f->recent_why},
	        {"SELECT count(*)" UNMAPPED " AND names_lacking>0", &unnamed, NULL, 0},
	        {"SELECT traces, build_id" UNMAPPED
	         " AND names_lacking>0 ORDER BY traces DESC LIMIT 1",
	                &unused, f->unnamed_build, sizeof f->unnamed_build},
	        {"SELECT count(*)" UNMAPPED " AND names_lacking=0 AND names_traces>0", &readable,
	                NULL, 0},
	        {"SELECT count(*) FROM quarantine WHERE ?1>0", &quarantined, NULL, 0},
	};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof all / sizeof *all; i++)
		st = query_row(db, all[i].sql, now_ms, all[i].number, all[i].text, all[i].cap, err);
	f->recent = (uint64_t)recent;
	f->recent_failed = (uint64_t)failed;
	f->unnamed_builds = (uint64_t)unnamed;
	f->readable_builds = (uint64_t)readable;
	f->quarantined = (uint64_t)quarantined;
	return st;
}

static enum tw_status check_columns(
        struct tw_db *db, struct tw_catalogue_facts *f, struct tw_err *err)
{
	enum tw_status st = tw_cat_check_columns(db, err);

	if (st != TW_UNSUPPORTED)
		return st;
	(void)snprintf(f->differs, sizeof f->differs, "%s", err->msg);
	return TW_OK;
}

enum tw_status tw_cat_inspect(const char *path, struct tw_db **ret, struct tw_err *err)
{
	return tw_db_is_postgres(path) ? tw_db_postgres_open(path, ret, err)
	                               : tw_db_sqlite_open(path, TW_DB_READ_ONLY, ret, NULL, err);
}

enum tw_status tw_catalogue_read_facts(
        const char *path, int64_t now_ms, struct tw_catalogue_facts *ret, struct tw_err *err)
{
	struct tw_catalogue_facts f = {.known_schema = tw_cat_last_schema(tw_catalogue_schema)};
	struct tw_db *db = NULL;
	int64_t schema = 0;
	enum tw_status st = tw_cat_inspect(path, &db, err);

	if (st == TW_OK)
		st = query_row(db,
		        "SELECT " TW_EITHER("user_version FROM pragma_user_version",
		                "version FROM catalogue_schema") " WHERE ?1>0",
		        now_ms, &schema, NULL, 0, err);
	f.schema = (int)schema;
	if (st == TW_OK && f.schema == f.known_schema)
		st = check_columns(db, &f, err);
	if (st == TW_OK && f.schema == f.known_schema && !f.differs[0])
		st = query_all(db, now_ms, &f, err);
	tw_db_close(db);
	if (st == TW_OK)
		*ret = f;
	return st;
}

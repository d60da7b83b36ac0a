#include "tests/unit/catalogue_fixture.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/db/catalogue_postgres.h"
#include "server/db/catalogue_sqlite.h"

enum { SCHEMA_BYTES = 64 };

static const char *server(void)
{
	return getenv("TRACEWELL_TEST_POSTGRES");
}

bool catalogue_on_postgres(void)
{
	return server() != NULL;
}

/* Named as the folder is. */
static void schema_of(const char *folder, char ret[SCHEMA_BYTES])
{
	const char *slash = strrchr(folder, '/');
	size_t n = 0;

	for (const char *p = slash ? slash + 1 : folder; *p && n < SCHEMA_BYTES - 1; p++)
		ret[n++] = (char)(isalnum((unsigned char)*p) ? tolower((unsigned char)*p) : '_');
	ret[n] = '\0';
}

static void make_schema(const char *schema)
{
	char sql[SCHEMA_BYTES + 40];
	struct tw_db *db = NULL;

	(void)snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS %s", schema);
	assert_int_equal(tw_db_postgres_open(server(), &db, NULL), TW_OK);
	catalogue_run(db, sql);
	tw_db_close(db);
}

void catalogue_address(const char *folder, char ret[CATALOGUE_ADDRESS])
{
	char schema[SCHEMA_BYTES];

	if (!server()) {
		(void)snprintf(ret, CATALOGUE_ADDRESS, "%s/catalogue.db", folder);
		return;
	}
	schema_of(folder, schema);
	make_schema(schema);
	(void)snprintf(ret, CATALOGUE_ADDRESS, "%s%soptions=-csearch_path%%3D%s", server(),
	        strchr(server(), '?') ? "&" : "?", schema);
}

struct tw_catalogue *catalogue_in(const char *folder)
{
	char address[CATALOGUE_ADDRESS];
	struct tw_catalogue *c = NULL;
	struct tw_err err = {.msg = ""};

	catalogue_address(folder, address);
	if (tw_catalogue_open(address, &c, &err) != TW_OK)
		fail_msg("%s", err.msg);
	return c;
}

struct tw_db *catalogue_connect(const char *folder)
{
	char address[CATALOGUE_ADDRESS];
	struct tw_db *db = NULL;
	int room = 0;
	enum tw_status st;

	catalogue_address(folder, address);
	st = server() ? tw_db_postgres_open(address, &db, NULL)
	              : tw_db_sqlite_open(address, TW_DB_WRITE, &db, &room, NULL);
	assert_int_equal(st, TW_OK);
	return db;
}

void catalogue_run(struct tw_db *db, const char *sql)
{
	struct tw_err err = {.msg = ""};

	if (tw_db_run(db, sql, &err) != TW_OK)
		fail_msg("%s in %s", err.msg, sql); /* which may be longer than cmocka shows */
}

static void first_row(struct tw_cat_query *q, struct tw_db *db, const char *sql)
{
	struct tw_err err = {.msg = ""};

	if (tw_cat_query(q, db, &err, sql, "") != TW_OK || !tw_cat_row(q)) {
		(void)tw_cat_fail(db, &err);
		fail_msg("%s: %s", sql, err.msg);
	}
}

int64_t catalogue_number(struct tw_db *db, const char *sql)
{
	struct tw_cat_query q;
	int64_t v;

	first_row(&q, db, sql);
	v = tw_cat_int(&q, 0);
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	return v;
}

char *catalogue_text(struct tw_db *db, const char *sql)
{
	struct tw_cat_query q;
	char *text;

	first_row(&q, db, sql);
	text = strdup(tw_cat_str(&q, 0) ? tw_cat_str(&q, 0) : "");
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	return text;
}

void catalogue_set_mapping(struct tw_catalogue *c, const char *project_id,
        enum tw_mapping_kind kind, const struct tw_build_row *row, struct tw_arena *a)
{
	const bool retrace = kind == TW_MAPPING_RETRACE;
	struct tw_mapping_sent sent = {.project_id = project_id,
	        .build_id = row->build_id,
	        .kind = kind,
	        .source_sha256 = retrace ? row->retrace.source_sha256 : row->source_sha256,
	        .may_replace = true,
	        .known_image = ""};
	const struct tw_claim claim = {TW_QUEUE_MAPPINGS, "compiler", 1000, 1};
	struct tw_blob_list unused;
	char id[TW_ID_BYTES];
	struct tw_job_row job;

	assert_int_equal(tw_catalogue_mapping_add(c, &sent, a, id, &unused, NULL), TW_OK);
	assert_int_equal(tw_catalogue_queue_claim(c, &claim, a, &job, NULL), TW_OK);
	assert_string_equal(job.trace_id, id);
	assert_int_equal(tw_catalogue_mapping_get(c, &job, a, &sent, NULL), TW_OK);
	assert_int_equal(tw_catalogue_mapping_done(c, &job, &sent, row, a, &unused, NULL), TW_OK);
}

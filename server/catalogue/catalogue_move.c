/*
 * catalogue_move.c - copies one project's rows from one catalogue into another.
 *
 * The source is attached as `src`.  temp.move lists the traces to copy, with their new ids.
 * Columns are taken from our own schema, so that those of later migrations are included; tables are
 * listed here, so that no table with secrets is copied by accident.
 */
#include "server/catalogue/catalogue_move.h"

#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_digest.h"
#include "server/db/catalogue_sqlite.h"

enum {
	SQL_BYTES = 8192,
	ID_TIME = 10, /* characters of an id that encode its time */
	PAUSE_MS = 30 /* between batches: longer than the sleep of waiting writers */
};

enum tw_status tw_catalogue_project_find(
        struct tw_catalogue *c, const char *name, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	enum tw_status st = tw_catalogue_project_named(c, name, ret_id, err);

	return st == TW_NOT_FOUND ? tw_fail(err, st, "there is no project \"%.100s\"", name) : st;
}

/* --- selection of traces --- */

/* Deterministic for a trace and project, and random enough. */
static void derive_id(const char *old_id, const char *project_id, char ret[TW_ID_BYTES])
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	char text[2 * TW_ID_BYTES];
	uint8_t hash[32];

	(void)snprintf(text, sizeof text, "%.26s %.26s", old_id, project_id);
	tw_secret_hash(text, hash);
	memcpy(ret, old_id, ID_TIME);
	for (int i = ID_TIME; i < TW_ID_BYTES - 1; i++)
		ret[i] = digits[hash[i] & 31];
	ret[TW_ID_BYTES - 1] = '\0';
}

static enum tw_status rename_one(
        struct tw_db *db, const char *old_id, const char *project_id, struct tw_err *err)
{
	char new_id[TW_ID_BYTES];

	derive_id(old_id, project_id, new_id);
	return tw_cat_exec(
	        db, NULL, err, "UPDATE temp.move SET new=? WHERE old=?", "tt", new_id, old_id);
}

/* Trace files are named by the id only, so two projects cannot share one. */
static enum tw_status rename_taken(
        struct tw_db *db, const char *project_id, uint64_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        "SELECT old FROM temp.move WHERE new=old AND EXISTS(SELECT 1 FROM main.trace t"
	        " WHERE t.trace_id=old AND t.project_id<>?)",
	        "t", project_id);

	*ret_n = 0;
	if (st != TW_OK)
		return st;
	while (st == TW_OK && tw_cat_row(&q)) {
		char old_id[TW_ID_BYTES];

		(void)snprintf(old_id, sizeof old_id, "%s", tw_cat_str(&q, 0));
		st = rename_one(db, old_id, project_id, err);
		++*ret_n;
	}
	return tw_cat_close_after(&q, st, err);
}

/* Skips traces that exist by id, Idempotency-Key or content. */
static enum tw_status skip_existing(
        struct tw_db *db, const struct tw_project_move *m, uint64_t *ret_n, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err,
	        "DELETE FROM temp.move WHERE EXISTS(SELECT 1 FROM main.trace t WHERE"
	        " t.project_id=?1 AND t.trace_id=new) OR EXISTS(SELECT 1 FROM src.trace s JOIN"
	        " main.trace t ON t.project_id=?1 AND ((s.idempotency_key<>'' AND"
	        " t.idempotency_key=s.idempotency_key) OR (s.idempotency_key='' AND"
	        " t.idempotency_key='' AND s.device<>'' AND s.uuid<>'' AND t.device=s.device AND"
	        " t.uuid=s.uuid AND t.content=s.content) OR (s.once=1 AND t.once=1 AND"
	        " t.device=s.device AND t.started_ms=s.started_ms AND t.content=s.content))"
	        " WHERE s.project_id=?2 AND s.trace_id=old)",
	        "tt", m->to_id, m->from_id);

	*ret_n = (uint64_t)changed;
	return st;
}

struct turn {                    /* a batch */
	char after[TW_ID_BYTES]; /* the last trace of the previous batch, "" none */
	bool is_last;
	struct tw_project_sums sums; /* of this batch */
};

static enum tw_status plan(
        struct tw_db *db, const struct tw_project_move *m, struct turn *t, struct tw_err *err)
{
	const int64_t most = m->decode ? TW_MOVE_AT_ONCE : -1;
	char last[TW_ID_BYTES] = "";
	int all = 0;
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "CREATE TEMP TABLE IF NOT EXISTS move(old TEXT PRIMARY KEY, new TEXT NOT NULL)",
	        "");

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "DELETE FROM temp.move", "");
	if (st == TW_OK)
		st = tw_cat_exec(db, &all, err, /* primary key */
		        "INSERT INTO temp.move SELECT trace_id, trace_id FROM src.trace"
		        " WHERE project_id=? AND trace_id>? ORDER BY trace_id LIMIT ?",
		        "tti", m->from_id, t->after, most);
	if (st == TW_OK)
		st = tw_cat_get_text(
		        db, last, sizeof last, err, "SELECT max(old) FROM temp.move", "");
	if (last[0])
		memcpy(t->after, last, sizeof last);
	if (st == TW_OK)
		st = rename_taken(db, m->to_id, &t->sums.renamed, err);
	if (st == TW_OK)
		st = skip_existing(db, m, &t->sums.existing, err);
	t->sums.traces = (uint64_t)all - t->sums.existing;
	t->is_last = most < 0 || all < most;
	return st;
}

/* --- rows --- */

/* The columns of a table that are copied unchanged, each preceded by a comma. */
static enum tw_status columns_of(
        struct tw_db *db, const char *table, char *out, size_t cap, struct tw_err *err)
{
	struct tw_cat_query q;
	size_t used = 0;
	enum tw_status st = tw_cat_query(&q, db, err,
	        "SELECT name FROM pragma_table_info(?) WHERE name NOT IN"
	        " ('project_id','trace_id','named','detected','install') AND name NOT LIKE"
	        " 'names\\_%' ESCAPE '\\' AND name NOT LIKE '%\\_state' ESCAPE '\\'",
	        "t", table);

	out[0] = '\0';
	if (st != TW_OK)
		return st;
	while (tw_cat_row(&q) && used < cap)
		used += (size_t)snprintf(out + used, cap - used, ",%s", tw_cat_str(&q, 0));
	if (used >= cap)
		st = tw_fail(err, TW_BUG, "too many columns in %s", table);
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status copy_rows(struct tw_db *db, const char *table, bool of_trace,
        const struct tw_project_move *m, struct tw_err *err)
{
	char columns[SQL_BYTES / 4];
	char sql[SQL_BYTES];
	enum tw_status st = columns_of(db, table, columns, sizeof columns, err);

	if (st != TW_OK)
		return st;
	if (of_trace)
		(void)snprintf(sql, sizeof sql,
		        "INSERT INTO main.%s(project_id,trace_id%s) SELECT ?1,new%s FROM src.%s"
		        " JOIN temp.move ON old=trace_id WHERE project_id=?2",
		        table, columns, columns, table);
	else
		(void)snprintf(sql, sizeof sql,
		        "INSERT OR IGNORE INTO main.%s(project_id%s) SELECT ?1%s FROM src.%s"
		        " WHERE project_id=?2",
		        table, columns, columns, table);
	return tw_cat_exec(db, NULL, err, sql, "tt", m->to_id, m->from_id);
}

/* The key that uploaded a trace does not exist here, counts of names are computed again, and traces
 * with an upload are decoded again. */
static enum tw_status adjust_traces(
        struct tw_db *db, const struct tw_project_move *m, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "UPDATE main.trace SET key_id='' WHERE project_id=? AND trace_id IN"
	        " (SELECT new FROM temp.move)",
	        "t", m->to_id);

	if (st != TW_OK || !m->decode)
		return st;
	st = tw_cat_exec(db, NULL, err,
	        "UPDATE main.trace SET state=0, attempts=0, error_status='', error_message='',"
	        " error_offset=-1 WHERE project_id=? AND has_upload=1 AND trace_id IN"
	        " (SELECT new FROM temp.move)",
	        "t", m->to_id);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO main.job(project_id,trace_id,due_ms,queued_ms,bytes) SELECT"
		        " project_id,trace_id,?2,?2,upload_bytes FROM main.trace WHERE"
		        " project_id=?1 AND has_upload=1 AND trace_id IN (SELECT new FROM"
		        " temp.move)",
		        "ti", m->to_id, tw_unix_ms());
	return st;
}

#define MAPPING                                                                                    \
	"map_sha256,source_sha256,map_version,entries,malformed,duplicates,updated_ms,"            \
	"retrace_sha256,retrace_source_sha256,retrace_id,retrace_classes,retrace_methods,"         \
	"retrace_malformed,retrace_ms,first_malformed,retrace_first_malformed"

/* An existing build keeps its mapping; if it has none it gets the copied one. */
static enum tw_status move_builds(struct tw_db *db, const struct tw_project_move *m,
        struct tw_project_sums *ret, struct tw_err *err)
{
	int before = sqlite3_total_changes(tw_db_sqlite(db));
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "UPDATE main.build SET (" MAPPING ")=(SELECT " MAPPING " FROM src.build s WHERE"
	        " s.project_id=?2 AND s.build_id=main.build.build_id) WHERE project_id=?1 AND"
	        " map_sha256='' AND retrace_sha256='' AND EXISTS(SELECT 1 FROM src.build s WHERE"
	        " s.project_id=?2 AND s.build_id=main.build.build_id AND"
	        " (s.map_sha256<>'' OR s.retrace_sha256<>''))",
	        "tt", m->to_id, m->from_id);

	if (st == TW_OK)
		st = copy_rows(db, "build", false, m, err);
	ret->builds = (uint64_t)(sqlite3_total_changes(tw_db_sqlite(db)) - before);
	if (st == TW_OK) /* those not compiled yet are queued, and replace none */
		st = tw_cat_exec(db, NULL, err,
		        "INSERT OR IGNORE INTO main.mapping_job(project_id,job_id,build_id,kind,"
		        "source_sha256,may_replace,due_ms,queued_ms,bytes) SELECT ?1,job_id,"
		        "build_id,kind,source_sha256,0,?3,?3,bytes FROM src.mapping_job"
		        " WHERE project_id=?2 AND claimed<2",
		        "tti", m->to_id, m->from_id, tw_unix_ms());
	if (st == TW_OK && ret->builds)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO main.build_rename(project_id,build_id,stage,generation)"
		        " SELECT ?1,build_id,column1,random() FROM src.build,"
		        " (VALUES('names'),('rollup')) WHERE project_id=?2"
		        " ON CONFLICT DO UPDATE SET after_id='', generation=excluded.generation",
		        "tt", m->to_id, m->from_id);
	return st;
}

static enum tw_status publish_decoded(
        struct tw_db *db, const struct tw_project_move *m, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        "SELECT old, new FROM temp.move JOIN src.trace ON project_id=? AND trace_id=old"
	        " WHERE has_upload=0",
	        "t", m->from_id);

	while (st == TW_OK && tw_cat_row(&q))
		st = m->decoded(m->arg, tw_cat_str(&q, 0), tw_cat_str(&q, 1), err);
	return tw_cat_close_after(&q, st, err);
}

/* A kind of rules is copied only if the target has none of it: interleaving the versions of two
 * histories would give rules that no user wrote. */
static enum tw_status move_rules(
        struct tw_db *db, const struct tw_project_move *m, struct tw_err *err)
{
	char columns[SQL_BYTES / 4];
	char sql[SQL_BYTES];
	enum tw_status st = columns_of(db, "ruleset", columns, sizeof columns, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(sql, sizeof sql,
	        "INSERT INTO main.ruleset(project_id%s) SELECT ?1%s FROM src.ruleset"
	        " WHERE project_id=?2 AND kind NOT IN (SELECT kind FROM main.ruleset"
	        " WHERE project_id=?1)",
	        columns, columns);
	return tw_cat_exec(db, NULL, err, sql, "tt", m->to_id, m->from_id);
}

/* Rows of the project that belong to no trace. */
static enum tw_status move_project(struct tw_db *db, const struct tw_project_move *m,
        struct tw_project_sums *ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT OR IGNORE INTO main.project(project_id,name,created_ms) VALUES(?,?,?)",
	        "tti", m->to_id, m->name, tw_unix_ms());

	if (st == TW_OK)
		st = move_builds(db, m, ret, err);
	if (st == TW_OK)
		/* Except the digest's addresses: the copy would send mail to them too. */
		st = tw_cat_exec(db, NULL, err,
		        "INSERT OR IGNORE INTO main.project_setting"
		        "(project_id,key,value,updated_ms) SELECT ?1,key,value,updated_ms FROM"
		        " src.project_setting WHERE project_id=?2 AND key<>'" TW_SETTING_DIGEST "'",
		        "tt", m->to_id, m->from_id);
	if (st == TW_OK)
		st = move_rules(db, m, err);
	return st == TW_OK ? copy_rows(db, "saved_filter", false, m, err) : st;
}

/* Plans the same batch again, without traces that arrived in the meantime. */
static enum tw_status plan_again(
        struct tw_db *db, const struct tw_project_move *m, struct turn *t, struct tw_err *err)
{
	uint64_t there = 0;
	enum tw_status st = skip_existing(db, m, &there, err);

	t->sums.existing += there;
	t->sums.traces -= there;
	return st;
}

static enum tw_status move_traces(
        struct tw_db *db, const struct tw_project_move *m, struct turn *t, struct tw_err *err)
{
	static const char *const of_trace[] = {"trace", "part", "trace_tag", "annotation"};
	enum tw_status st = m->decoded_first ? plan_again(db, m, t, err) : plan(db, m, t, err);

	for (size_t i = 0; st == TW_OK && i < sizeof of_trace / sizeof *of_trace; i++)
		st = copy_rows(db, of_trace[i], true, m, err);
	if (st == TW_OK)
		st = adjust_traces(db, m, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE main.build SET traces=(SELECT count(*) FROM main.trace t WHERE"
		        " t.project_id=?1 AND t.build_id=main.build.build_id) WHERE project_id=?1",
		        "t", m->to_id);
	return st == TW_OK && m->decoded && !m->decoded_first ? publish_decoded(db, m, err) : st;
}

/* --- source catalogue --- */

static enum tw_status text_of(
        struct tw_db *db, const char *sql, struct tw_arena *a, const char **ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, sql, "");

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? tw_cat_text(&q, 0, a) : "";
	return tw_cat_close(&q, err);
}

/* A different schema with the same version could contain views and triggers that run when read. */
static enum tw_status check_schema(struct tw_db *db, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	const char *ours = NULL, *theirs = NULL;
	enum tw_status st =
	        a ? text_of(db,
	                    "SELECT group_concat(x,';') FROM (SELECT type||name||ifnull(sql,'')"
	                    " AS x FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
	                    " ORDER BY type,name)",
	                    a, &ours, err)
	          : tw_oom(err);

	if (st == TW_OK)
		st = text_of(db,
		        "SELECT group_concat(x,';') FROM (SELECT type||name||ifnull(sql,'') AS x"
		        " FROM src.sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
		        " ORDER BY type,name)",
		        a, &theirs, err);
	if (st == TW_OK && (!ours || !theirs || strcmp(ours, theirs) != 0))
		st = tw_fail(err, TW_CORRUPT, "its catalogue is not one that tracewell wrote");
	tw_arena_free(a);
	return st;
}

static enum tw_status attach(struct tw_catalogue *c, const char *path, struct tw_err *err)
{
	struct tw_db *w;
	enum tw_status st;

	w = tw_cat_writer_take(c);
	st = tw_cat_exec(w, NULL, err, "ATTACH ? AS src", "t", path);
	tw_cat_writer_give(c, w);
	return st;
}

static void detach(struct tw_catalogue *c)
{
	struct tw_db *w = tw_cat_writer_take(c);

	(void)tw_db_run(w, "DROP TABLE IF EXISTS temp.move", NULL);
	(void)tw_db_run(w, "DETACH src", NULL);
	tw_cat_writer_give(c, w);
}

static enum tw_status audit_move(struct tw_db *db, const struct tw_project_move *move,
        const struct tw_project_sums *sums, struct tw_err *err)
{
	char traces[TW_NUMBER_BYTES], builds[TW_NUMBER_BYTES];

	return tw_cat_audit(db,
	        &(struct tw_change){"project.import", move->to_id, move->name,
	                .facts = {{"traces", tw_cat_number((int64_t)sums->traces, traces)},
	                        {"builds", tw_cat_number((int64_t)sums->builds, builds)}}},
	        err);
}

/* The source is only read, in a read transaction: its writers continue. */
static enum tw_status begin(struct tw_catalogue *to, const struct tw_project_move *move,
        struct tw_db **ret, struct tw_err *err)
{
	return move->decode ? tw_cat_begin(to, TW_SUBJECT_ACCESS, "", ret, err)
	                    : tw_cat_begin_as(to, "BEGIN", ret, err);
}

struct placing { /* decoded files of a batch */
	struct tw_arena *arena;
	size_t n;
	struct {
		const char *old, *new;
	} of[TW_MOVE_AT_ONCE];
};

/* Lists the traces that publish_decoded handles, completely. */
static enum tw_status list_decoded(
        struct tw_db *db, const struct tw_project_move *m, struct placing *p, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        "SELECT old, new FROM temp.move JOIN src.trace ON project_id=? AND trace_id=old"
	        " WHERE has_upload=0",
	        "t", m->from_id);

	for (; p->n < TW_MOVE_AT_ONCE && tw_cat_row(&q); p->n++) {
		p->of[p->n].old = tw_cat_text(&q, 0, p->arena);
		p->of[p->n].new = tw_cat_text(&q, 1, p->arena);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status plan_first(struct tw_catalogue *to, const struct tw_project_move *m,
        struct turn *t, struct placing *p, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = begin(to, m, &w, err);

	if (st != TW_OK)
		return st;
	st = check_schema(w, err);
	if (st == TW_OK)
		st = plan(w, m, t, err);
	if (st == TW_OK)
		st = list_decoded(w, m, p, err);
	return tw_cat_end(to, w, st, err);
}

/* Plans, and writes files to a store before their rows: a store is slow, and no other writer can
 * use the catalogue during our transaction. */
static enum tw_status put_first(struct tw_catalogue *to, const struct tw_project_move *m,
        struct turn *t, struct tw_err *err)
{
	struct placing p = {.arena = tw_arena_new(1 << 20)};
	enum tw_status st = p.arena ? plan_first(to, m, t, &p, err) : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < p.n; i++)
		st = p.of[i].old && p.of[i].new ? m->decoded(m->arg, p.of[i].old, p.of[i].new, err)
		                                : tw_oom(err);
	(void)tw_arena_free(p.arena);
	return st;
}

static enum tw_status move_turn(struct tw_catalogue *to, const struct tw_project_move *m,
        struct turn *t, struct tw_err *err)
{
	bool is_first = !t->after[0];
	struct tw_db *w = NULL;
	enum tw_status st = TW_OK;

	t->sums = (struct tw_project_sums){0};
	if (m->decoded_first)
		st = put_first(to, m, t, err);
	if (st == TW_OK)
		st = begin(to, m, &w, err);
	if (st != TW_OK)
		return st;
	st = check_schema(w, err);
	if (st == TW_OK && is_first)
		st = move_project(w, m, &t->sums, err);
	if (st == TW_OK)
		st = move_traces(w, m, t, err);
	if (st == TW_OK && m->decode &&
	        (is_first || t->sums.traces)) /* otherwise it is a copy for a file */
		st = audit_move(w, m, &t->sums, err);
	return tw_cat_end(to, w, st, err);
}

enum tw_status tw_catalogue_must_be_file(const struct tw_catalogue *c, struct tw_err *err)
{
	if (tw_cat_is_sqlite(c))
		return TW_OK;
	return tw_fail(err, TW_UNSUPPORTED,
	        "projects are exported from and imported into a catalogue in the data folder;"
	        " this one is in PostgreSQL");
}

enum tw_status tw_catalogue_project_move(struct tw_catalogue *to,
        const struct tw_project_move *move, struct tw_project_sums *ret, struct tw_err *err)
{
	struct tw_project_sums sums = {0};
	struct turn t = {.after = ""};
	enum tw_status st = tw_catalogue_must_be_file(to, err);

	if (st == TW_OK)
		st = attach(to, move->path, err);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && !t.is_last) {
		if (t.after[0])
			tw_sleep_ms(PAUSE_MS); /* for waiting writers: the lock alone would
			                        * return to this thread */
		st = move_turn(to, move, &t, err);
		sums.traces += t.sums.traces;
		sums.builds += t.sums.builds;
		sums.existing += t.sums.existing;
		sums.renamed += t.sums.renamed;
	}
	detach(to);
	if (st == TW_OK)
		*ret = sums;
	return st;
}

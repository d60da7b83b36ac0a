#include "server/catalogue/traces/catalogue_record.h"

#include <string.h>

#include "server/base/text/json.h"
#include "server/base/text/json_write.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { SQL_BYTES = 1 << 14, AT_ONCE = 500 };

/* In the order in which rows refer to each other. */
static const char *const tables_of_trace[] = {
        "project", "trace", "part", "quarantine", "trace_tag", "annotation"};
static const char *const tables_of_build[] = {"project", "build", "mapping_job"};

enum {
	N_TRACE = sizeof tables_of_trace / sizeof *tables_of_trace,
	N_BUILD = sizeof tables_of_build / sizeof *tables_of_build
};

/* Recomputed from the files, or a key that a rebuilt catalogue does not have. */
static bool is_derived(const char *column)
{
	static const char *const names[] = {
	        "key_id", "attempts", "named", "detected", "once", "exempt_reason", "traces"};
	const size_t len = strlen(column);

	if (strncmp(column, "names_", 6) == 0 ||
	        (len > 6 && strcmp(column + len - 6, "_state") == 0))
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(column, names[i]) == 0)
			return true;
	return false;
}

/* One of the tables above. */
static const struct tw_table *table_of(const char *name)
{
	const struct tw_table *t = tw_tables;

	while (strcmp(t->name, name) != 0)
		t++;
	return t;
}

/* A trace whose upload is in rows is lost with them: no record could bring it back. */
#define NOT_SMALL                                                                                  \
	" AND NOT EXISTS(SELECT 1 FROM small_file f WHERE f.trace_id=trace.trace_id"               \
	" AND f.part<>'" TW_SMALL_DECODED "')"

/* --- rows to record --- */

/* The rows of all tables of a trace or build by one statement, and so in one snapshot: the number
 * of the table, then the row's columns as text, filled up to the widest table's. */
struct source {
	const char *const *tables; /* the second is that of the trace or build itself */
	unsigned n;
	struct columns {
		unsigned n;
		const struct tw_column *of[TW_COLUMNS_MAX];
	} columns[N_TRACE]; /* stored in a record */
	char *sql;
	struct tw_stmt *prepared;
};

struct tw_record_reader {
	struct tw_catalogue *catalogue;
	pthread_mutex_t lock; /* of the fields below */
	struct tw_db *db;     /* NULL: not open yet */
	struct source trace, build;
};

static void find_columns(struct source *s, unsigned of)
{
	const struct tw_table *t = table_of(s->tables[of]);

	for (unsigned i = 0; i < t->n; i++)
		if (!is_derived(t->columns[i].name))
			s->columns[of].of[s->columns[of].n++] = &t->columns[i];
}

static void write_select(const struct source *s, unsigned of, unsigned width, const char *id_column,
        struct tw_buf *out)
{
	const struct columns *c = &s->columns[of];

	(void)tw_buf_printf(out, "%sSELECT %u", of ? " UNION ALL " : "", of);
	for (unsigned i = 0; i < width; i++)
		if (i < c->n)
			(void)tw_buf_printf(out, ",CAST(%s AS TEXT)", c->of[i]->name);
		else
			(void)tw_buf_printf(out, ",NULL");
	(void)tw_buf_printf(out, " FROM \"%s\" WHERE project_id=?1", s->tables[of]);
	(void)tw_buf_printf(out, of ? " AND %s=?2" : " AND ?2=?2 AND ?3=?3", id_column);
	if (strcmp(s->tables[of], "trace") == 0)
		(void)tw_buf_printf(out, NOT_SMALL " AND (?3=0 OR state<%d)", TW_TRACE_READY);
}

static enum tw_status make_source(struct source *s, const char *const *tables, unsigned n,
        const char *id_column, struct tw_err *err)
{
	struct tw_buf sql;
	unsigned width = 0;

	s->tables = tables;
	s->n = n;
	for (unsigned i = 0; i < n; i++) {
		find_columns(s, i);
		width = s->columns[i].n > width ? s->columns[i].n : width;
	}
	tw_buf_init(&sql, SQL_BYTES);
	for (unsigned i = 0; i < n; i++)
		write_select(s, i, width, id_column, &sql);
	(void)tw_buf_printf(&sql, " ORDER BY 1");
	(void)tw_buf_add_u8(&sql, 0);
	s->sql = tw_buf_status(&sql) == TW_OK ? tw_mem_alloc(sql.len, 1) : NULL;
	if (s->sql)
		memcpy(s->sql, sql.data, sql.len);
	tw_buf_done(&sql);
	return s->sql ? TW_OK : tw_oom(err);
}

enum tw_status tw_record_reader_new(
        struct tw_catalogue *c, struct tw_record_reader **ret, struct tw_err *err)
{
	struct tw_record_reader *r = tw_mem_zalloc(1, sizeof *r);
	enum tw_status st;

	if (!r)
		return tw_oom(err);
	r->catalogue = c;
	(void)pthread_mutex_init(&r->lock, NULL);
	st = make_source(&r->trace, tables_of_trace, N_TRACE, "trace_id", err);
	if (st == TW_OK)
		st = make_source(&r->build, tables_of_build, N_BUILD, "build_id", err);
	if (st == TW_OK)
		*ret = r;
	else
		(void)tw_record_reader_free(r);
	return st;
}

static void disconnect(struct tw_record_reader *r)
{
	tw_stmt_drop(r->trace.prepared);
	tw_stmt_drop(r->build.prepared);
	r->trace.prepared = r->build.prepared = NULL;
	tw_db_close(r->db);
	r->db = NULL;
}

struct tw_record_reader *tw_record_reader_free(struct tw_record_reader *r)
{
	if (!r)
		return NULL;
	disconnect(r);
	tw_mem_free(r->trace.sql);
	tw_mem_free(r->build.sql);
	(void)pthread_mutex_destroy(&r->lock);
	tw_mem_free(r);
	return NULL;
}

static void write_row(
        struct tw_json *j, const struct columns *columns, const struct tw_cat_query *q)
{
	tw_json_open(j, '{');
	for (unsigned i = 0; i < columns->n; i++) {
		const char *const text = tw_cat_str(q, (int)i + 1);
		const struct tw_str value = tw_str_of(text ? text : "");
		int64_t number = 0;

		tw_json_key(j, columns->of[i]->name);
		if (columns->of[i]->kind != TW_COLUMN_INT) {
			tw_json_str(j, value);
			continue;
		}
		(void)tw_str_i64(value, &number);
		tw_json_int(j, number);
	}
	tw_json_close(j, '}');
}

/* ret_rows: of each table. */
static void write_rows(struct tw_cat_query *q, const struct source *s, struct tw_json *j,
        uint64_t ret_rows[N_TRACE])
{
	unsigned at = s->n; /* no array is open */

	while (tw_cat_row(q)) {
		const unsigned of = (unsigned)tw_cat_int(q, 0);

		if (of >= s->n)
			continue;
		if (at != of) {
			if (at < s->n)
				tw_json_close(j, ']');
			tw_json_key_open(j, s->tables[of], '[');
		}
		at = of;
		ret_rows[of]++;
		write_row(j, &s->columns[of], q);
	}
	if (at < s->n)
		tw_json_close(j, ']');
}

static enum tw_status write_record(struct tw_record_reader *r, struct source *s,
        const char *project_id, const char *id, bool waits, struct tw_buf *out, struct tw_err *err)
{
	uint64_t rows[N_TRACE] = {0};
	struct tw_json j = tw_json_to(out);
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_prepared(&q, r->db, &s->prepared, err, s->sql, "tti",
	        project_id, id, (int64_t)waits); /* primary keys */

	if (st != TW_OK)
		return st;
	tw_json_open(&j, '{');
	tw_json_key_int(&j, "tracewell_record", 1);
	write_rows(&q, s, &j, rows);
	tw_json_close(&j, '}');
	st = tw_cat_close(&q, err);
	if (st == TW_OK && (rows[0] == 0 || rows[1] == 0))
		st = tw_fail(err, TW_NOT_FOUND, "no such %s", s->tables[1]);
	if (st == TW_OK && tw_buf_status(out) != TW_OK)
		st = tw_fail(err, tw_buf_status(out), "no memory for a record");
	return st;
}

static enum tw_status read_record(struct tw_record_reader *r, struct source *s,
        const char *project_id, const char *id, bool waits, struct tw_buf *out, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	(void)pthread_mutex_lock(&r->lock);
	if (!r->db)
		st = tw_cat_reader_new(r->catalogue, &r->db, err);
	if (st == TW_OK)
		st = write_record(r, s, project_id, id, waits, out, err);
	if (st != TW_OK && st != TW_NOT_FOUND)
		disconnect(r);
	(void)pthread_mutex_unlock(&r->lock);
	return st;
}

enum tw_status tw_record_of_trace(struct tw_record_reader *r, const char *project_id,
        const char *trace_id, bool waits, struct tw_buf *out, struct tw_err *err)
{
	return read_record(r, &r->trace, project_id, trace_id, waits, out, err);
}

enum tw_status tw_record_of_build(struct tw_record_reader *r, const char *project_id,
        const char *build_id, struct tw_buf *out, struct tw_err *err)
{
	return read_record(r, &r->build, project_id, build_id, false, out, err);
}

/* --- lists --- */

#define ID_FIELDS(id_)                                                                             \
	TW_FIELDS_OF(TW_FIELD(struct tw_stored_file, project_id, "project_id", NULL),              \
	        TW_FIELD(struct tw_stored_file, id, id_, NULL))
static const struct tw_fields trace_id_fields = ID_FIELDS("trace_id");
static const struct tw_fields build_id_fields = ID_FIELDS("build_id");

enum tw_status tw_catalogue_recorded_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &trace_id_fields, ret, ret_n), err,
	        /* primary key */
	        "SELECT {columns} FROM trace WHERE (project_id, trace_id) > (?1, ?2)" NOT_SMALL
	        " ORDER BY project_id, trace_id LIMIT ?3",
	        "tti", after ? after->project_id : "", after ? after->id : "", (int64_t)limit);
}

enum tw_status tw_catalogue_recorded_builds(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &build_id_fields, ret, ret_n), err,
	        /* primary key */
	        "SELECT {columns} FROM build WHERE (project_id, build_id) > (?1, ?2)"
	        " AND (source_sha256 || retrace_source_sha256 || commit_id <> '' OR EXISTS(SELECT 1"
	        " FROM mapping_job m WHERE m.project_id=build.project_id AND"
	        " m.build_id=build.build_id))"
	        " ORDER BY project_id, build_id LIMIT ?3",
	        "tti", after ? after->project_id : "", after ? after->id : "", (int64_t)limit);
}

enum tw_status tw_catalogue_record_rows(struct tw_catalogue *c, uint64_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(
	        c, &n, err, "SELECT (SELECT count(*) FROM trace)+(SELECT count(*) FROM build)", "");

	*ret = (uint64_t)n;
	return st;
}

enum tw_status tw_catalogue_trace_was_deleted(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	int64_t found = 0;
	enum tw_status st = tw_cat_read_int(c, &found, err,
	        "SELECT 1 FROM audit WHERE action='trace.delete' AND target=? LIMIT 1", "t",
	        trace_id);

	*ret = found != 0;
	return st;
}

/* --- record to rows --- */

json_t *tw_record_row(const json_t *record, const char *table)
{
	return json_array_get(json_object_get(record, table), 0);
}

struct tw_record_adder {
	struct tw_catalogue *catalogue;
	struct tw_db *to; /* of the open transaction */
	unsigned open;    /* records in the open transaction; 0: none */
	uint64_t added;
};

enum tw_status tw_record_adder_new(
        struct tw_catalogue *c, struct tw_record_adder **ret, struct tw_err *err)
{
	struct tw_record_adder *r;
	int64_t rows = 0;
	enum tw_status st = tw_cat_read_int(c, &rows, err,
	        "SELECT (SELECT count(*) FROM project)+(SELECT count(*) FROM \"user\")+"
	        "(SELECT count(*) FROM build)+(SELECT count(*) FROM trace)",
	        "");

	if (st == TW_OK && rows)
		st = tw_fail(err, TW_CONFLICT,
		        "the catalogue is not empty: it has %lld projects, accounts, builds and"
		        " traces; move it away first",
		        (long long)rows);
	if (st != TW_OK)
		return st;
	r = tw_mem_zalloc(1, sizeof *r);
	if (!r)
		return tw_oom(err);
	r->catalogue = c;
	*ret = r;
	return TW_OK;
}

struct column_value {
	const struct tw_column *column;
	const json_t *value; /* NULL: the schema's default */
};

/* The columns of a row that this version knows.  A column missing in a record gets the schema's
 * default, except for those that have none. */
static unsigned values_of(
        const struct tw_table *t, const json_t *row, struct column_value out[TW_COLUMNS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n; i++) {
		const char *name = t->columns[i].name;
		const json_t *v = is_derived(name) ? NULL : json_object_get(row, name);

		if (v || strcmp(name, "key_id") == 0)
			out[n++] = (struct column_value){&t->columns[i], v};
	}
	return n;
}

static void write_insert(
        struct tw_buf *sql, const struct tw_table *t, const struct column_value *values, unsigned n)
{
	(void)tw_buf_printf(sql, "INSERT INTO \"%s\"(", t->name);
	for (unsigned i = 0; i < n; i++)
		(void)tw_buf_printf(sql, "%s%s", i ? "," : "", values[i].column->name);
	for (unsigned i = 0; i < n; i++)
		(void)tw_buf_printf(sql, "%s?%u", i ? "," : ") VALUES(", i + 1);
	(void)tw_buf_printf(sql, ") ON CONFLICT DO NOTHING");
	(void)tw_buf_add_u8(sql, 0);
}

static enum tw_status insert_row(
        struct tw_db *db, const struct tw_table *t, const json_t *row, struct tw_err *err)
{
	struct column_value values[TW_COLUMNS_MAX];
	const unsigned n = values_of(t, row, values);
	struct tw_cat_query q;
	struct tw_buf sql;
	enum tw_status st;

	tw_buf_init(&sql, SQL_BYTES);
	write_insert(&sql, t, values, n);
	st = tw_buf_status(&sql) == TW_OK ? tw_cat_query(&q, db, err, (const char *)sql.data, "")
	                                  : tw_oom(err);
	tw_buf_done(&sql);
	if (st != TW_OK)
		return st;
	for (unsigned i = 0; i < n; i++) {
		const char *s = json_string_value(values[i].value);

		if (values[i].column->kind == TW_COLUMN_INT)
			tw_cat_bind_int(&q, (int)i + 1, json_integer_value(values[i].value));
		else
			tw_cat_bind_text(&q, (int)i + 1, s ? s : "");
	}
	while (tw_cat_row(&q))
		continue;
	return tw_cat_close(&q, err);
}

static enum tw_status insert_rows(
        struct tw_db *db, const char *table, const json_t *record, struct tw_err *err)
{
	const json_t *rows = json_object_get(record, table);
	const struct tw_table *t = table_of(table);
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < json_array_size(rows); i++)
		st = insert_row(db, t, json_array_get(rows, i), err);
	return st;
}

static enum tw_status add_trace(
        struct tw_db *db, const json_t *record, bool queue, struct tw_err *err)
{
	const json_t *trace = tw_record_row(record, "trace");
	const char *project_id = tw_json_text(trace, "project_id");
	const char *build_id = tw_json_text(trace, "build_id");
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && i < N_TRACE; i++)
		st = insert_rows(db, tables_of_trace[i], record, err);
	if (st == TW_OK && build_id[0])
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO build(project_id,build_id,created_ms) VALUES(?1,?2,?3) ON"
		        " CONFLICT(project_id,build_id) DO UPDATE SET"
		        " created_ms=min(build.created_ms,excluded.created_ms)",
		        "tti", project_id, build_id,
		        (int64_t)json_integer_value(json_object_get(trace, "created_ms")));
	if (st == TW_OK && queue)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO job(project_id,trace_id,due_ms,queued_ms,bytes)"
		        " SELECT project_id, trace_id, " TW_CAT_BY_NOW(
		                "?3") ", ?3, upload_bytes FROM trace"
		                      " WHERE project_id=?1 AND trace_id=?2",
		        "tti", project_id, tw_json_text(trace, "trace_id"), tw_unix_ms());
	return st;
}

/* A build added earlier by a trace has only its time. */
static enum tw_status add_build(struct tw_db *db, const json_t *record, struct tw_err *err)
{
	const json_t *build = tw_record_row(record, "build");
	enum tw_status st =
	        tw_cat_exec(db, NULL, err, "DELETE FROM build WHERE project_id=? AND build_id=?",
	                "tt", tw_json_text(build, "project_id"), tw_json_text(build, "build_id"));

	for (int i = 0; st == TW_OK && i < N_BUILD; i++)
		st = insert_rows(db, tables_of_build[i], record, err);
	return st;
}

static enum tw_status add_rows(
        struct tw_db *db, const json_t *record, bool queue, struct tw_err *err)
{
	if (tw_record_row(record, "trace"))
		return add_trace(db, record, queue, err);
	return add_build(db, record, err);
}

static enum tw_status add_apart(
        struct tw_db *db, const json_t *record, bool queue, struct tw_err *err)
{
	enum tw_status added, st = tw_db_run(db, "SAVEPOINT record", err);

	if (st != TW_OK)
		return st;
	added = add_rows(db, record, queue, err);
	if (added != TW_OK && tw_db_run(db, "ROLLBACK TO record", NULL) != TW_OK)
		return added;
	st = tw_db_run(db, "RELEASE record", added == TW_OK ? err : NULL);
	return added == TW_OK ? st : added;
}

enum tw_status tw_record_add(
        struct tw_record_adder *r, const json_t *record, bool queue, struct tw_err *err)
{
	enum tw_status st =
	        r->open ? TW_OK : tw_cat_begin(r->catalogue, TW_SUBJECT_ACCESS, "", &r->to, err);

	if (st != TW_OK)
		return st;
	r->open++;
	r->added++;
	st = add_apart(r->to, record, queue, err);
	if (r->open < AT_ONCE)
		return st;
	r->open = 0;
	if (st != TW_OK) {
		(void)tw_cat_end(r->catalogue, r->to, TW_OK, NULL);
		return st;
	}
	return tw_cat_end(r->catalogue, r->to, TW_OK, err);
}

#define LATEST(column)                                                                             \
	"(SELECT " column " FROM trace t WHERE t.project_id=build.project_id AND"                  \
	" t.build_id=build.build_id ORDER BY created_ms DESC, trace_id DESC LIMIT 1)"

static enum tw_status sum_up(struct tw_db *db, uint64_t records, struct tw_err *err)
{
	char number[TW_NUMBER_BYTES];
	enum tw_status st = tw_cat_exec(db, NULL, err, /* trace_by_build */
	        "UPDATE build SET traces=(SELECT count(*) FROM trace t WHERE"
	        " t.project_id=build.project_id AND t.build_id=build.build_id)",
	        "");

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE build SET app=" LATEST("app") ", version_name=" LATEST(
		                "version_name") " WHERE traces>0",
		        "");
	return st == TW_OK ? tw_cat_audit(db,
	                             &(struct tw_change){"catalogue.rebuild", "", "",
	                                     .facts = {{"records",
	                                             tw_cat_number((int64_t)records, number)}}},
	                             err)
	                   : st;
}

enum tw_status tw_record_adder_end(struct tw_record_adder *r, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && !r->open)
		st = tw_cat_begin(r->catalogue, TW_SUBJECT_ACCESS, "", &r->to, err);
	if (st == TW_OK) {
		st = tw_cat_end(r->catalogue, r->to, sum_up(r->to, r->added, err), err);
	} else if (r->open) {
		(void)tw_cat_end(r->catalogue, r->to, TW_OK, NULL);
	}
	tw_mem_free(r);
	return st;
}

/* `tracewell sql`: queries one trace, from a file or a server's data folder. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/text/json_write.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"
#include "server/decode/local_trace.h"
#include "server/export/export.h"
#include "server/query/view.h"
#include "server/storage/blob.h"
#include "server/trace/trace_readers.h"
#include "server/trace/trace_sql.h"

enum { PATH_BYTES = 1500 };

struct printer {
	const char *const *names; /* for JSON; the statement has copies */
	struct tw_buf line;
	bool first;
};

/* --- table: tab separated, csv, json --- */

static enum tw_status put_line(struct printer *p)
{
	bool ok = tw_buf_status(&p->line) == TW_OK &&
	          fwrite(p->line.data, 1, p->line.len, stdout) == p->line.len;

	tw_buf_clear(&p->line);
	return ok ? TW_OK : TW_IO;
}

static void put_plain(struct printer *p, const struct tw_sql_value *v)
{
	if (v->type == TW_SQL_INT)
		(void)tw_buf_printf(&p->line, "%lld", (long long)v->number);
	else if (v->type == TW_SQL_REAL)
		(void)tw_buf_printf(&p->line, "%.15g", v->real);
	else if (v->type == TW_SQL_TEXT || v->type == TW_SQL_BLOB)
		tw_term_text(&p->line, v->text, 0);
}

static enum tw_status table_head(void *arg, const char *const *names, int n)
{
	struct printer *p = arg;

	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&p->line, '\t');
		tw_term_text(&p->line, tw_str_of(names[i]), 0);
	}
	(void)tw_buf_add_u8(&p->line, '\n');
	return put_line(p);
}

static enum tw_status table_row(void *arg, const struct tw_sql_value *v, int n)
{
	struct printer *p = arg;

	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&p->line, '\t');
		put_plain(p, &v[i]);
	}
	(void)tw_buf_add_u8(&p->line, '\n');
	return put_line(p);
}

static enum tw_status csv_head(void *arg, const char *const *names, int n)
{
	struct printer *p = arg;

	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&p->line, ',');
		tw_csv_text(&p->line, tw_str_of(names[i]));
	}
	(void)tw_buf_add(&p->line, "\r\n", 2);
	return put_line(p);
}

static enum tw_status csv_row(void *arg, const struct tw_sql_value *v, int n)
{
	struct printer *p = arg;

	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&p->line, ',');
		if (v[i].type == TW_SQL_TEXT || v[i].type == TW_SQL_BLOB)
			tw_csv_text(&p->line, v[i].text);
		else
			put_plain(p, &v[i]);
	}
	(void)tw_buf_add(&p->line, "\r\n", 2);
	return put_line(p);
}

static enum tw_status json_head(void *arg, const char *const *names, int n)
{
	(void)n;
	((struct printer *)arg)->names = names;
	return TW_OK;
}

static enum tw_status json_row(void *arg, const struct tw_sql_value *v, int n)
{
	struct printer *p = arg;
	struct tw_json j = tw_json_to(&p->line);

	(void)tw_buf_printf(&p->line, p->first ? "[" : ",\n");
	p->first = false;
	tw_json_open(&j, '{');
	for (int i = 0; i < n; i++) {
		tw_json_str_key(&j, tw_str_of(p->names[i]));
		tw_sql_json(&j, &v[i]);
	}
	tw_json_close(&j, '}');
	return put_line(p);
}

static enum tw_status run(struct tw_trace_file *f, const struct tw_names *names, const char *format,
        const char *sql, struct tw_err *err)
{
	struct printer p = {.first = true};
	struct tw_sql_out out = {table_head, table_row, &p};
	struct tw_trace_sql *s = NULL;
	bool json = strcmp(format, "json") == 0;
	enum tw_status st;

	if (strcmp(format, "csv") == 0)
		out = (struct tw_sql_out){csv_head, csv_row, &p};
	else if (json)
		out = (struct tw_sql_out){json_head, json_row, &p};
	tw_buf_init(&p.line, SIZE_MAX / 2);
	st = tw_trace_sql_open(f, names, &s, err);
	if (st == TW_OK)
		st = tw_trace_sql_run(s, sql, &out, err);
	if (st == TW_OK && json)
		(void)fputs(p.first ? "[]\n" : "]\n", stdout);
	tw_trace_sql_close(s);
	tw_buf_done(&p.line);
	if (fflush(stdout) != 0 && st == TW_OK)
		st = tw_fail(err, TW_IO, "the output cannot be written");
	return st;
}

/* --- a trace of a data folder: its file, and its build's mappings --- */

struct stored {
	struct tw_trace_file *file;
	char project[TW_ID_BYTES];
	char map_sha256[TW_SHA256_HEX], retrace_sha256[TW_SHA256_HEX]; /* "": none */
};

static enum tw_status find_in(struct tw_catalogue *c, struct tw_blobs *b, const char *project,
        const char *id, struct stored *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_trace_row row = {.meta.build_id = ""};
	struct tw_build_row build;
	enum tw_status st = a ? tw_catalogue_trace_get(c, project, id, a, &row, err) : tw_oom(err);

	if (st == TW_OK && row.state != TW_TRACE_READY)
		st = tw_fail(err, TW_CONFLICT, "this trace is %s", tw_trace_state_name(row.state));
	if (st == TW_OK)
		st = tw_trace_stored_open(b, id, &ret->file, err);
	(void)snprintf(ret->project, sizeof ret->project, "%s", project);
	if (st == TW_OK && row.meta.build_id[0] &&
	        tw_catalogue_build_get(c, project, row.meta.build_id, a, &build, NULL) == TW_OK) {
		(void)snprintf(ret->map_sha256, sizeof ret->map_sha256, "%s", build.map_sha256);
		(void)snprintf(ret->retrace_sha256, sizeof ret->retrace_sha256, "%s",
		        build.retrace.sha256);
	}
	tw_arena_free(a);
	return st;
}

static enum tw_status find_stored(struct tw_catalogue *c, struct tw_blobs *b, const char *id,
        struct stored *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_project_row *projects = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_projects(c, a, &projects, &n, err) : tw_oom(err);
	enum tw_status found = TW_NOT_FOUND;

	for (size_t i = 0; st == TW_OK && found == TW_NOT_FOUND && i < n; i++)
		found = find_in(c, b, projects[i].id, id, ret, err);
	if (st == TW_OK && found == TW_NOT_FOUND)
		found = tw_fail(err, TW_NOT_FOUND, "no trace %.40s in this data folder", id);
	tw_arena_free(a);
	return st == TW_OK ? found : st;
}

static enum tw_status read_image(
        struct tw_blobs *b, const char *sha256, struct tw_buf *out, struct tw_err *err)
{
	uint8_t piece[65536];
	int fd = -1;
	ssize_t n;
	enum tw_status st = tw_blob_open(b, sha256, &fd, err);

	if (st != TW_OK)
		return st;
	while ((n = tw_read_some(fd, piece, sizeof piece)) > 0)
		(void)tw_buf_add(out, piece, (size_t)n);
	(void)close(fd);
	if (n < 0 || tw_buf_status(out) != TW_OK)
		return tw_fail(err, TW_IO, "the mapping cannot be read");
	return TW_OK;
}

/* The symbols that the trace's project has of its native libraries. */
static enum tw_status read_symbols(struct tw_catalogue *c, struct tw_blobs *b,
        const struct stored *of, struct tw_local_names *names, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_libraries libraries = {0};
	size_t n = 0;
	enum tw_status st = a ? tw_natives_libraries(of->file, a, &libraries, err) : tw_oom(err);

	if (st == TW_OK && libraries.n)
		st = tw_catalogue_library_images(c, of->project, a, &libraries, err);
	for (size_t i = 0; st == TW_OK && i < libraries.n && n < TW_LOCAL_SYMBOLS; i++)
		if (*libraries.images[i])
			st = read_image(b, libraries.images[i], &names->symbols[n++], err);
	tw_arena_free(a);
	return st;
}

static enum tw_status open_stored(const char *data, const char *id, struct tw_trace_file **ret,
        struct tw_local_names *names, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	struct tw_blobs *b = NULL;
	struct stored found = {.file = NULL};
	enum tw_status st = tw_cli_data_open(data, &c, &b, err);

	if (st == TW_OK)
		st = find_stored(c, b, id, &found, err);
	*ret = found.file;
	if (st == TW_OK && found.map_sha256[0])
		st = read_image(b, found.map_sha256, &names->images[0], err);
	if (st == TW_OK && found.retrace_sha256[0])
		st = read_image(b, found.retrace_sha256, &names->images[1], err);
	if (st == TW_OK)
		st = read_symbols(c, b, &found, names, err);
	if (st == TW_OK)
		st = tw_local_names_open(names, err);
	tw_catalogue_close(c);
	tw_blobs_close(b);
	return st;
}

struct request {
	const char *what, *sql, *data, *format;
	struct tw_local_files files;
};

static enum tw_status answer(const struct request *r, struct tw_err *err)
{
	struct tw_trace_file *f = NULL;
	struct tw_local_names names;
	enum tw_status st;

	tw_local_names_init(&names);
	if (tw_ulid_valid(r->what) && access(r->what, F_OK) != 0)
		st = open_stored(r->data, r->what, &f, &names, err);
	else
		st = tw_local_open(r->what, NULL, &f, err);
	if (st == TW_OK)
		st = tw_local_names_read(&names, &r->files, err);
	if (st == TW_OK)
		st = run(f, &names.names, r->format, r->sql, err);
	tw_trace_file_close(f);
	tw_local_names_done(&names);
	return st;
}

int tw_cli_sql(int argc, char **argv)
{
	struct request r = {.data = "./data", .format = "table"};
	static const char *const formats[] = {"table", "csv", "json", NULL};
	bool json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &r.data},
	        TW_CLI_LOCAL_FILES(r.files),
	        {.name = "format", .value = &r.format, .choices = formats},
	        {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE-OR-ID QUERY"};
	struct tw_err err;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	r.what = argv[1];
	r.sql = argv[2];
	if (json) /* as for other commands */
		r.format = "json";
	return answer(&r, &err) == TW_OK ? TW_EXIT_OK : tw_cli_failed("sql", &err);
}

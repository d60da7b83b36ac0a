/* `tracewell migrate`: a data folder and its catalogue brought to another engine, and back. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit.h"
#include "base/arena.h"
#include "catalogue_tables.h"
#include "cli.h"
#include "data_catalogue.h"
#include "json_write.h"
#include "migrate.h"
#include "storage_mark.h"

static const char synopsis[] =
        "migrate --from DIR --data NEWDIR [--to-catalog postgres://USER@HOST/DATABASE] [--hold] "
        "[--verify] [--json]";

enum { JSON_BYTES = 1 << 20, LOOK_S = 1 };

static const char *const states[] = {[TW_MIGRATE_DONE] = "done",
        [TW_MIGRATE_COPIED] = "copied",
        [TW_MIGRATE_COMPARED] = "compared",
        [TW_MIGRATE_DIFFERENT] = "different"};

struct asked {
	const char *from, *data, *to_catalog;
	bool hold, verify, json;
};

/* --- while it goes on --- */

static void tell_progress(void *arg, const char *doing, const char *table, uint64_t rows)
{
	(void)arg;
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r\033[K%s %s: %" PRIu64, doing, table, rows);
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
}

static void tell_lost(void *arg, const char *id, const char *why)
{
	(void)arg;
	(void)fprintf(stderr, "%s: %s, in the source too\n", id, why);
}

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

/* Until SIGINT or SIGTERM, or until the source's database lets go. */
static void stay_held(void *arg)
{
	struct tw_migrate *m = arg;
	const struct sigaction on_end = {.sa_handler = end};
	const struct timespec look = {.tv_sec = LOOK_S};

	end_progress();
	m->rows.to = tw_catalogue_close(m->rows.to); /* for its server to have */
	(void)sigaction(SIGINT, &on_end, NULL);
	(void)sigaction(SIGTERM, &on_end, NULL);
	(void)fputs(
	        "Both are alike.  The source answers what is read, and refuses what is changed, "
	        "until this command is ended: start the server of the new folder, send "
	        "everybody to it, stop the old server, then end this with Ctrl-C.\n",
	        stderr);
	while (!ended && tw_catalogue_still_held(m->rows.from, NULL) == TW_OK)
		(void)nanosleep(&look, NULL);
}

/* --- what came of it --- */

struct outcome {
	struct tw_migrate_rows rows;
	struct tw_migrate_files files;
	enum tw_migrate_state state;
	const char *from, *to; /* engines */
};

static void write_side(struct tw_json *j, const char *name, const struct tw_migrate_side *s)
{
	tw_json_key(j, name);
	tw_json_open(j, '{');
	tw_json_key_int(j, "rows", (int64_t)s->rows);
	tw_json_key_str(j, "sha256", tw_str_of(s->sha256));
	tw_json_close(j, '}');
}

static void write_tables(struct tw_json *j, const struct tw_migrate_rows *rows)
{
	tw_json_key(j, "tables");
	tw_json_open(j, '[');
	for (size_t i = 0; i < rows->n; i++) {
		const struct tw_migrate_table *t = &rows->tables[i];

		if (!t->name)
			continue;
		tw_json_open(j, '{');
		tw_json_key_str(j, "name", tw_str_of(t->name));
		tw_json_key_int(j, "put", (int64_t)t->put);
		tw_json_key_int(j, "dropped", (int64_t)t->dropped);
		tw_json_key_int(j, "mended", (int64_t)t->mended);
		tw_json_key_int(j, "differ", (int64_t)t->differ);
		write_side(j, "from", &t->from);
		write_side(j, "to", &t->to);
		tw_json_close(j, '}');
	}
	tw_json_close(j, ']');
}

static void tell_json(const struct outcome *o, const char *why)
{
	struct tw_buf out;
	struct tw_json j;

	tw_buf_init(&out, JSON_BYTES);
	j = tw_json_to(&out);
	tw_json_open(&j, '{');
	tw_json_key_str(&j, "state", tw_str_of(why ? "failed" : states[o->state]));
	if (why)
		tw_json_key_str(&j, "error", tw_str_of(why));
	tw_json_key_str(&j, "from", tw_str_of(o->from));
	tw_json_key_str(&j, "to", tw_str_of(o->to));
	write_tables(&j, &o->rows);
	tw_json_key(&j, "files");
	tw_json_open(&j, '{');
	tw_json_key_int(&j, "files", (int64_t)o->files.files);
	tw_json_key_int(&j, "linked", (int64_t)o->files.linked);
	tw_json_key_int(&j, "copied", (int64_t)o->files.copied);
	tw_json_key_int(&j, "bytes", (int64_t)o->files.bytes);
	tw_json_key_int(&j, "lost", (int64_t)o->files.lost);
	tw_json_close(&j, '}');
	tw_json_close(&j, '}');
	(void)printf("%.*s\n", (int)out.len, (const char *)out.data);
	tw_buf_done(&out);
}

static void tell_sums(const struct outcome *o)
{
	uint64_t rows = 0, put = 0, mended = 0;

	for (size_t i = 0; i < o->rows.n; i++) {
		rows += o->rows.tables[i].from.rows;
		put += o->rows.tables[i].put;
		mended += o->rows.tables[i].mended;
	}
	(void)printf("%s: %" PRIu64 " rows put; %" PRIu64 " files, %" PRIu64 " linked, %" PRIu64
	             " copied (%.1f MB), %" PRIu64 " lost\n",
	        states[o->state], put, o->files.files, o->files.linked, o->files.copied,
	        (double)o->files.bytes / 1e6, o->files.lost);
	if (o->state == TW_MIGRATE_DONE || o->state == TW_MIGRATE_COMPARED)
		(void)printf("%zu tables with %" PRIu64 " rows are alike by count and SHA-256\n",
		        o->rows.n, rows);
	if (mended)
		(void)printf("%" PRIu64 " texts had bytes that are no UTF-8: U+FFFD stands in "
		             "their place\n",
		        mended);
	if (o->state == TW_MIGRATE_COPIED)
		(void)fputs("A server has the source, and writes to it: stop it and run this once "
		            "more, which only does what is left, or run it with --hold.  Until "
		            "then the new folder is not served.\n",
		        stderr);
}

/* --- the command --- */

static bool is_same_folder(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static enum tw_status judge(const struct asked *a, struct tw_err *err)
{
	if (is_same_folder(a->from, a->data))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "--data is --from itself: the copy needs a folder of its own");
	if (!tw_data_catalogue_is_there(a->from))
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "%.120s is no data folder of a server: it has no catalogue.db nor "
		        "catalogue.url",
		        a->from);
	if (a->verify && !tw_data_catalogue_is_there(a->data))
		return tw_fail(
		        err, TW_NOT_FOUND, TW_NO_OFFSET, "%.120s has no catalogue yet", a->data);
	if (tw_data_catalogue_in_use(a->data) && !a->verify)
		return tw_fail(err, TW_BUSY, TW_NO_OFFSET,
		        "another process has the catalogue of %.120s open", a->data);
	return TW_OK;
}

/* What is in a store is not brought from there, nor to there. */
static enum tw_status judge_files(const char *dir, struct tw_err *err)
{
	return tw_storage_is_kept(dir)
	               ? tw_fail(err, TW_UNSUPPORTED, TW_NO_OFFSET,
	                         "the files of %.120s are in a store (--blobs): only those of data "
	                         "folders are migrated",
	                         dir)
	               : TW_OK;
}

static enum tw_status open_source(struct tw_migrate *m, const struct asked *a, struct tw_err *err)
{
	enum tw_status st = judge_files(a->from, err);

	m->served = tw_data_catalogue_in_use(a->from); /* before it is opened here */
	if (st == TW_OK)
		st = tw_data_catalogue_open(a->from, "", "", &m->rows.from, err);
	if (st == TW_OK && !m->served)
		st = tw_catalogue_is_served(m->rows.from, &m->served, err);
	return st == TW_OK ? tw_blobs_open(a->from, 0, &m->from, err) : st;
}

/* Nobody else fills it meanwhile. */
static enum tw_status open_target(struct tw_migrate *m, const struct asked *a, struct tw_err *err)
{
	enum tw_status st = tw_folder_make(a->data, err);

	if (st == TW_OK)
		st = judge_files(a->data, err);
	if (st == TW_OK)
		st = tw_data_catalogue_open_target(
		        a->data, a->to_catalog ? a->to_catalog : "", &m->rows.to, err);
	if (st == TW_OK && !a->verify)
		st = tw_catalogue_serve(m->rows.to, false, err);
	return st == TW_OK ? tw_blobs_open(a->data, 0, &m->to, err) : st;
}

static enum tw_status run(const struct asked *a, struct outcome *ret, struct tw_err *err)
{
	struct tw_migrate m = {.rows = ret->rows,
	        .hold = a->hold,
	        .only_compare = a->verify,
	        .held = a->hold ? stay_held : NULL,
	        .lost = tell_lost};
	enum tw_status st;

	m.rows.progress = tell_progress;
	m.arg = &m;
	tw_actor_set_cli();
	(void)umask(077);
	st = judge(a, err);
	if (st == TW_OK)
		st = open_source(&m, a, err);
	if (st == TW_OK)
		st = open_target(&m, a, err);
	if (st == TW_OK) {
		ret->from = tw_catalogue_engine(m.rows.from);
		ret->to = tw_catalogue_engine(m.rows.to);
		st = tw_migrate_run(&m, &ret->files, &ret->state, err);
	}
	end_progress();
	tw_catalogue_close(m.rows.from);
	tw_catalogue_close(m.rows.to);
	tw_blobs_close(m.from);
	tw_blobs_close(m.to);
	return st;
}

static int run_and_tell(const struct asked *a)
{
	struct outcome o = {.state = TW_MIGRATE_COPIED, .from = "", .to = ""};
	struct tw_err err = {.msg = "out of memory"};
	enum tw_status st;

	(void)tw_tables(&o.rows.n);
	o.rows.tables = tw_mem_zalloc(o.rows.n, sizeof *o.rows.tables);
	if (!o.rows.tables)
		return tw_cli_failed("migrate", &err);
	st = run(a, &o, &err);
	if (a->json)
		tell_json(&o, st == TW_OK ? NULL : err.msg);
	else if (st == TW_OK)
		tell_sums(&o);
	tw_mem_free(o.rows.tables);
	if (st != TW_OK)
		return tw_cli_failed("migrate", &err);
	return o.files.lost ? TW_EXIT_FAILED : TW_EXIT_OK;
}

int tw_cli_migrate(int argc, char **argv)
{
	struct asked a = {.from = NULL};
	const struct tw_flag flags[] = {{.name = "from", .value = &a.from},
	        {.name = "data", .value = &a.data}, {.name = "to-catalog", .value = &a.to_catalog},
	        {.name = "hold", .on = &a.hold}, {.name = "verify", .on = &a.verify},
	        {.name = "json", .on = &a.json}};
	int n = tw_cli_flags(synopsis, flags, sizeof flags / sizeof *flags, argc, argv);

	if (n != 0 || !a.from || !a.data) {
		if (n >= 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	return run_and_tell(&a);
}

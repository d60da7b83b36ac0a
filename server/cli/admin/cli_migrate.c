/* `tracewell migrate`: copies a server's files and catalogue to other engines. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/storage.h"
#include "server/base/text/json_write.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_tables.h"
#include "server/catalogue/data_catalogue.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/storage/storage_owner.h"
#include "server/catalogue/storage/storage_record.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"
#include "server/ops/migrate.h"
#include "server/ops/migrate_each.h"
#include "server/storage/blob_store.h"
#include "server/storage/s3/s3_http.h"

/* --- source and target --- */

struct tw_migrate_options { /* values of flags; NULL: not set */
	const char *from, *data, *to_catalog, *to_blobs;
	const char *endpoint, *region, *ca_file, *credentials_file, *timeout, *part;
	bool virtual_host, adopt;
	bool hold, verify, json;
};

struct tw_migrate_sides {
	struct tw_arena *arena;
	struct tw_storage from, to; /* texts are in the arena */
};

enum { ARENA_BYTES = 2 << 20, SETTINGS = 9 };

/* --- the command line --- */

static bool has_store_flags(const struct tw_migrate_options *a)
{
	return a->endpoint || a->region || a->ca_file || a->credentials_file || a->timeout ||
	       a->part || a->virtual_host || a->adopt;
}

static enum tw_status check_flags(const struct tw_migrate_options *a, struct tw_err *err)
{
	if (tw_cli_same_folder(a->from, a->data))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--data is the folder of --from: the copy needs a separate folder");
	if (!tw_data_catalogue_is_there(a->from))
		return tw_fail(err, TW_NOT_FOUND,
		        "%.120s is not a data folder: it has neither catalogue.db nor "
		        "catalogue.url",
		        a->from);
	if (a->verify && !tw_data_catalogue_is_there(a->data))
		return tw_fail(err, TW_NOT_FOUND, "%.120s has no catalogue yet", a->data);
	if (tw_data_catalogue_in_use(a->data) && !a->verify)
		return tw_fail(
		        err, TW_BUSY, "another process has the catalogue of %.120s open", a->data);
	if (has_store_flags(a) && !a->to_blobs)
		return tw_fail(err, TW_BAD_REQUEST,
		        "--s3-endpoint and similar options belong to the store of --to-blobs; the "
		        "source's store is recorded in its folder");
	return TW_OK;
}

/* Reads the flags as `serve` does. */
static enum tw_status read_store(const struct tw_migrate_options *a, struct tw_arena *arena,
        struct tw_storage *ret, struct tw_err *err)
{
	const struct {
		const char *name, *value;
	} given[SETTINGS] = {{"blobs", a->to_blobs}, {"s3-endpoint", a->endpoint},
	        {"s3-region", a->region}, {"s3-ca-file", a->ca_file},
	        {"s3-credentials-file", a->credentials_file}, {"s3-timeout", a->timeout},
	        {"s3-part", a->part}, {"s3-virtual-host", a->virtual_host ? "true" : NULL},
	        {"s3-adopt", a->adopt ? "true" : NULL}};
	struct tw_config config;
	char *args[SETTINGS];
	int n = 0;
	enum tw_status st;

	for (size_t i = 0; i < SETTINGS; i++) {
		if (!given[i].value)
			continue;
		args[n] = tw_arena_printf(arena, "--%s=%s", given[i].name, given[i].value);
		if (!args[n++])
			return tw_oom(err);
	}
	st = tw_config_load(arena, n, args, &config, err);
	if (st == TW_OK)
		*ret = config.storage;
	return st;
}

/* Two catalogues must not share a prefix. */
static enum tw_status check_stores(const struct tw_migrate_sides *s, struct tw_err *err)
{
	const struct tw_s3_endpoint from = {.where = s->from.blobs,
	                                    .endpoint = s->from.endpoint,
	                                    .region = s->from.region},
	                            to = {.where = s->to.blobs,
	                                    .endpoint = s->to.endpoint,
	                                    .region = s->to.region};

	if (!s->to.blobs[0] || !s->from.blobs[0] || !tw_s3_is_same(&from, &to))
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "%.100s has the files of the source, and a prefix belongs to one catalogue: use "
	        "another with --to-blobs",
	        s->to.blobs);
}

static enum tw_status find_stores(
        const struct tw_migrate_options *a, struct tw_migrate_sides *s, struct tw_err *err)
{
	enum tw_status st = tw_storage_of(a->from, s->arena, &s->from, err);

	if (st == TW_OK) /* the environment may have other settings */
		st = tw_storage_check(a->from, &s->from, err);
	if (st == TW_OK)
		st = a->to_blobs ? read_store(a, s->arena, &s->to, err)
		                 : tw_storage_of(a->data, s->arena, &s->to, err);
	if (st == TW_OK)
		st = tw_storage_check(a->data, &s->to, err);
	return st == TW_OK ? check_stores(s, err) : st;
}

/* --- opening --- */

static enum tw_status open_files(const char *data, const struct tw_storage *storage,
        struct tw_blobs **ret, struct tw_err *err)
{
	enum tw_status st = tw_blobs_open_at(
	        &(struct tw_store_endpoint){.data_dir = data, .storage = storage}, ret, err);

	return st == TW_OK ? tw_cli_data_probe(*ret, err) : st;
}

static enum tw_status open_source(const struct tw_migrate_options *a, struct tw_migrate *m,
        const struct tw_migrate_sides *s, struct tw_err *err)
{
	bool names_files;
	enum tw_status st;

	m->served = tw_data_catalogue_in_use(a->from); /* checked before it is opened here */
	st = open_files(a->from, &s->from, &m->from, err);
	if (st == TW_OK)
		st = tw_data_catalogue_open(a->from, "", s->from.blobs, false, &m->rows.from, err);
	if (st == TW_OK)
		tw_small_files_use(m->from, m->rows.from, 0);
	if (st == TW_OK && !m->served)
		st = tw_catalogue_is_served(m->rows.from, &m->served, err);
	return st == TW_OK ? tw_storage_verify(m->rows.from, m->from, &names_files, err) : st;
}

/* The owner file identifies a store that is reached by a different name. */
static enum tw_status claim_target(const struct tw_migrate_options *a, struct tw_migrate *m,
        const struct tw_migrate_sides *s, struct tw_err *err)
{
	const struct tw_storage_claim from = {.data_dir = a->from,
	        .storage = &s->from,
	        .catalogue = m->rows.from,
	        .blobs = m->from};
	struct tw_storage_claim to = {a->data, &s->to, m->rows.to, m->to, .fresh = true};
	enum tw_status st = TW_OK;

	if (!s->to.blobs[0])
		return TW_OK;
	if (s->from.blobs[0])
		st = tw_storage_id(&from, to.never, err);
	return st == TW_OK ? tw_storage_claim(&to, err) : st;
}

/* Prevents other migrations from filling the target, and servers from using it before it is
 * complete. */
static enum tw_status reserve_target(const struct tw_migrate_options *a, struct tw_migrate *m,
        const struct tw_migrate_sides *s, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_serve(m->rows.to, false, err);

	if (st == TW_OK)
		st = tw_migrate_begin(m, err);
	if (st == TW_OK)
		st = claim_target(a, m, s, err);
	return st == TW_OK ? tw_storage_record(a->data, &s->to, err) : st;
}

static enum tw_status open_target(const struct tw_migrate_options *a, struct tw_migrate *m,
        const struct tw_migrate_sides *s, struct tw_err *err)
{
	enum tw_status st = tw_folder_make(a->data, err);

	if (st == TW_OK)
		st = open_files(a->data, &s->to, &m->to, err);
	if (st == TW_OK)
		st = tw_data_catalogue_open_target(a->data, a->to_catalog ? a->to_catalog : "",
		        s->to.blobs, !a->verify, &m->rows.to, err);
	return st == TW_OK && !a->verify ? reserve_target(a, m, s, err) : st;
}

/* Sets m's sides and m->served, after checking that both are permitted.  The caller frees with
 * tw_migrate_sides_close and tw_arena_free, also after a failure. */
static enum tw_status tw_migrate_sides_open(const struct tw_migrate_options *a,
        struct tw_migrate *m, struct tw_migrate_sides *ret, struct tw_err *err)
{
	enum tw_status st = check_flags(a, err);

	ret->arena = tw_arena_new(ARENA_BYTES);
	if (st == TW_OK && !ret->arena)
		st = tw_oom(err);
	if (st == TW_OK)
		st = find_stores(a, ret, err);
	if (st == TW_OK)
		st = open_source(a, m, ret, err);
	return st == TW_OK ? open_target(a, m, ret, err) : st;
}

static void tw_migrate_sides_close(struct tw_migrate *m)
{
	m->rows.from = tw_catalogue_close(m->rows.from);
	m->rows.to = tw_catalogue_close(m->rows.to);
	m->from = tw_blobs_close(m->from);
	m->to = tw_blobs_close(m->to);
}

enum { JSON_BYTES = 1 << 20, CHECK_MS = 1000 };

static const char *const states[] = {[TW_MIGRATE_DONE] = "done",
        [TW_MIGRATE_COPIED] = "copied",
        [TW_MIGRATE_COMPARED] = "compared",
        [TW_MIGRATE_DIFFERENT] = "different"};

/* --- progress --- */

struct watch { /* the callbacks' argument */
	struct tw_migrate m;
	struct tw_progress bar; /* counts files */
};

static void print_progress(void *arg, const char *doing, const char *table, uint64_t rows)
{
	struct watch *w = arg;

	tw_progress_clear(&w->bar);
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r\033[K%s %s: %" PRIu64, doing, table, rows);
}

static void count_file(void *arg, const struct tw_migrate_files *so_far)
{
	tw_progress_at(&((struct watch *)arg)->bar, so_far->files, so_far->bytes);
}

static void end_progress(struct watch *w)
{
	tw_progress_clear(&w->bar);
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
}

static void print_lost(void *arg, const char *id, const char *why)
{
	tw_progress_clear(&((struct watch *)arg)->bar);
	(void)fprintf(stderr, "%s: %s, in the source too\n", id, why);
}

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

/* Blocks writes until SIGINT or SIGTERM, or until the source's database releases the lock. */
static void block_writes(void *arg)
{
	struct watch *w = arg;
	struct tw_migrate *m = &w->m;
	const struct sigaction on_end = {.sa_handler = end};

	end_progress(w);
	m->to = tw_blobs_close(m->to);
	m->rows.to = tw_catalogue_close(m->rows.to); /* so that its server can open it */
	(void)signal(SIGHUP, SIG_IGN); /* writes remain blocked if the terminal is closed */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigaction(SIGINT, &on_end, NULL);
	(void)sigaction(SIGTERM, &on_end, NULL);
	(void)fputs("Source and target are equal.  The source serves reads and refuses changes "
	            "until this command ends: start the server of the new folder, redirect clients "
	            "to it, stop the old server, then press Ctrl-C.\n",
	        stderr);
	while (!ended && tw_catalogue_still_held(m->rows.from, NULL) == TW_OK)
		tw_sleep_ms(CHECK_MS);
	(void)fputs("The source accepts changes again; from now on they are missing in the copy.  "
	            "If the copy is not in use yet, delete it and repeat the migration with an "
	            "empty target (a prefix of a store with --s3-adopt).\n",
	        stderr);
}

/* --- the result --- */

struct outcome {
	struct tw_migrate_rows rows;
	struct tw_migrate_files files;
	enum tw_migrate_state state;
	const char *from, *to; /* engines */
	struct tw_migrate_sides sides;
};

static void write_side(struct tw_json *j, const char *name, const struct tw_migrate_side *s)
{
	tw_json_key_open(j, name, '{');
	TW_JSON_MEMBERS(j, s, rows, sha256);
	tw_json_close(j, '}');
}

static void write_tables(struct tw_json *j, const struct tw_migrate_rows *rows)
{
	tw_json_key_open(j, "tables", '[');
	for (size_t i = 0; i < rows->n; i++) {
		const struct tw_migrate_table *t = &rows->tables[i];

		if (!t->name)
			continue;
		tw_json_open(j, '{');
		tw_json_key_text(j, "name", t->name);
		tw_json_key_int(j, "written", (int64_t)t->put);
		TW_JSON_MEMBERS(j, t, dropped, repaired);
		tw_json_key_int(j, "different", (int64_t)t->differ);
		write_side(j, "from", &t->from);
		write_side(j, "to", &t->to);
		tw_json_close(j, '}');
	}
	tw_json_close(j, ']');
}

/* "": the folder. */
static const char *storage_name(const struct tw_storage *s)
{
	return s->blobs ? s->blobs : "";
}

static void print_json(const struct outcome *o, const char *why)
{
	struct tw_buf out;
	struct tw_json j;

	tw_buf_init(&out, JSON_BYTES);
	j = tw_json_to(&out);
	tw_json_open(&j, '{');
	tw_json_key_text(&j, "state", why ? "failed" : states[o->state]);
	if (why)
		tw_json_key_text(&j, "error", why);
	TW_JSON_MEMBERS(&j, o, from, to);
	tw_json_key_text(&j, "from_blobs", storage_name(&o->sides.from));
	tw_json_key_text(&j, "to_blobs", storage_name(&o->sides.to));
	write_tables(&j, &o->rows);
	tw_json_key_open(&j, "files", '{');
	TW_JSON_MEMBERS(&j, &o->files, files, linked, copied, bytes, lost);
	tw_json_close(&j, '}');
	tw_json_close(&j, '}');
	(void)printf("%.*s\n", (int)out.len, (const char *)out.data);
	tw_buf_done(&out);
}

static void print_sums(const struct outcome *o)
{
	uint64_t rows = 0, put = 0, repaired = 0;

	for (size_t i = 0; i < o->rows.n; i++) {
		rows += o->rows.tables[i].from.rows;
		put += o->rows.tables[i].put;
		repaired += o->rows.tables[i].repaired;
	}
	(void)printf("%s: %" PRIu64 " rows written; %" PRIu64 " files, %" PRIu64 " linked, %" PRIu64
	             " copied (%.1f MB), %" PRIu64 " lost\n",
	        states[o->state], put, o->files.files, o->files.linked, o->files.copied,
	        (double)o->files.bytes / 1e6, o->files.lost);
	if (o->state == TW_MIGRATE_DONE || o->state == TW_MIGRATE_COMPARED)
		(void)printf("%zu tables with %" PRIu64 " rows are equal by count and SHA-256\n",
		        o->rows.n, rows);
	if (repaired)
		(void)printf("%" PRIu64 " texts had bytes that are not UTF-8, replaced by U+FFFD\n",
		        repaired);
	if (o->state == TW_MIGRATE_COPIED)
		(void)fputs("A server is writing to the source: stop it and repeat the command, "
		            "which copies only the rest, or run it with --hold.  Until then no "
		            "server can use the new folder.\n",
		        stderr);
}

/* --- the command --- */

static enum tw_status run(
        const struct tw_migrate_options *a, struct outcome *ret, struct tw_err *err)
{
	struct watch w = {.m = {.rows = ret->rows,
	                          .hold = a->hold,
	                          .only_compare = a->verify,
	                          .held = a->hold ? block_writes : NULL,
	                          .lost = print_lost,
	                          .step = count_file},
	        .bar = tw_progress_of(a->verify ? "comparing files" : "copying files")};
	enum tw_status st;

	w.m.rows.progress = print_progress;
	w.m.rows.arg = w.m.arg = &w;
	tw_actor_set_cli();
	(void)umask(077);
	st = tw_migrate_sides_open(a, &w.m, &ret->sides, err);
	if (st == TW_OK && w.bar.what)
		w.bar.total = tw_migrate_count(w.m.rows.from);
	if (st == TW_OK) {
		ret->from = tw_catalogue_engine(w.m.rows.from);
		ret->to = tw_catalogue_engine(w.m.rows.to);
		st = tw_migrate_run(&w.m, &ret->files, &ret->state, err);
	}
	end_progress(&w);
	tw_migrate_sides_close(&w.m);
	return st;
}

static int run_and_print(const struct tw_migrate_options *a)
{
	struct outcome o = {.state = TW_MIGRATE_COPIED, .from = "", .to = ""};
	struct tw_err err = {.msg = "out of memory"};
	enum tw_status st;

	o.rows.n = tw_tables_n;
	o.rows.tables = tw_mem_zalloc(o.rows.n, sizeof *o.rows.tables);
	if (!o.rows.tables)
		return tw_cli_failed("migrate", &err);
	st = run(a, &o, &err);
	if (a->json)
		print_json(&o, st == TW_OK ? NULL : err.msg);
	else if (st == TW_OK)
		print_sums(&o);
	tw_mem_free(o.rows.tables);
	(void)tw_arena_free(o.sides.arena);
	if (st != TW_OK)
		return tw_cli_failed("migrate", &err);
	return o.files.lost ? TW_EXIT_FAILED : TW_EXIT_OK;
}

int tw_cli_migrate(int argc, char **argv)
{
	struct tw_migrate_options a = {.from = NULL};
	const struct tw_flag flags[] = {{.name = "from", .value = &a.from, .needed = true},
	        {.name = "data", .value = &a.data, .needed = true},
	        {.name = "to-catalog", .value = &a.to_catalog},
	        {.name = "to-blobs", .value = &a.to_blobs},
	        {.name = "s3-endpoint", .value = &a.endpoint},
	        {.name = "s3-region", .value = &a.region},
	        {.name = "s3-virtual-host", .on = &a.virtual_host},
	        {.name = "s3-ca-file", .value = &a.ca_file},
	        {.name = "s3-credentials-file", .value = &a.credentials_file},
	        {.name = "s3-timeout", .value = &a.timeout}, {.name = "s3-part", .value = &a.part},
	        {.name = "s3-adopt", .on = &a.adopt}, {.name = "hold", .on = &a.hold},
	        {.name = "verify", .on = &a.verify}, {.name = "json", .on = &a.json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	return run_and_print(&a);
}

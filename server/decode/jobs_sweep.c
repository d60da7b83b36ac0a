/*
 * jobs_sweep.c - makes the data folder and the catalogue agree after a crash.
 *
 * A file without a row was never accepted, or its deletion was interrupted.  It is moved to lost/
 * (lost.h), because an older or another catalogue would look the same.  Where the catalogue
 * lacks more than crashes leave, the server refuses to start.  A record (trace_record.h) is written
 * after its row was committed and removed before the row, so one without a row is never left by a
 * crash of the server: unknown records that outnumber the rows of the catalogue, or more than
 * UNKNOWN_FEW, show that the catalogue was lost or replaced.  In folders that have no records yet,
 * decoded traces are counted instead; an interrupted import leaves at most UNKNOWN_FEW of them.
 * Uploads continue during the sweep; tw_blob_drop_begin is in effect for each move, because an
 * upload's blob exists for a moment before its row does.  Where servers share the folder, only
 * files that are a day old are moved.
 */
#include "server/decode/jobs_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_move.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_record.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"
#include "server/storage/lost.h"

enum { PATH_BYTES = 1500, PAGE = 500, DAY_S = 86400, UNKNOWN_FEW = TW_MOVE_AT_ONCE };

/* Names with a dot are temporary files of a running backup, export or import: left until nothing
 * was written for a day. */
static bool is_forgotten(int dir, const char *name)
{
	struct stat s;

	return fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) &&
	       tw_age_ms() / 1000 - s.st_mtim.tv_sec > DAY_S;
}

/* Deletes files that are a day old, and with `all` also younger ones without a dot. */
static enum tw_status clear(const char *path, bool all, struct tw_err *err)
{
	struct dirent *e;
	DIR *d = opendir(path);

	if (!d)
		return tw_fail_errno(err, TW_IO, "spool/ cannot be read");
	while ((e = readdir(d)))
		if ((all && e->d_name[0] != '.') || is_forgotten(dirfd(d), e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)closedir(d);
	return TW_OK;
}

/* Each of several servers has a subfolder of spool/, deleted once that server has ended. */
static enum tw_status clear_shared(struct tw_blobs *b, struct tw_err *err)
{
	char path[PATH_BYTES], below[PATH_BYTES];
	enum tw_status st = TW_OK;
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof path, "%s/spool", tw_blobs_dir(b));
	st = clear(path, false, err);
	d = st == TW_OK ? opendir(path) : NULL;
	while (d && (e = readdir(d)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		        snprintf(below, sizeof below, "%s/%s", path, e->d_name) <
		                (int)sizeof below &&
		        tw_spool_is_dead(below) && clear(below, true, NULL) == TW_OK)
			(void)rmdir(below);
	if (d)
		(void)closedir(d);
	return st;
}

enum tw_status tw_jobs_clear_spool(const struct tw_decode_parts *parts, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (tw_catalogue_is_shared(parts->catalogue))
		return clear_shared(parts->blobs, err);
	tw_spool_path(parts->blobs, ".", path, sizeof path);
	return clear(path, true, err);
}

/* --- names in the catalogue --- */

static const char *name_of(const char *key)
{
	return strrchr(key, '/') + 1;
}

static enum tw_status blob_known(
        const struct tw_decode_parts *parts, const char *key, bool *ret, struct tw_err *err)
{
	return tw_catalogue_has_blob(parts->catalogue, name_of(key), ret, err);
}

/* false: not the name of a trace file */
static bool trace_id_of(const char *key, char ret[TW_ID_CHARS + 1])
{
	const char *name = name_of(key);

	(void)snprintf(ret, TW_ID_CHARS + 1, "%s", name);
	return strlen(name) == TW_ID_CHARS + 3 && strcmp(name + TW_ID_CHARS, ".db") == 0;
}

static enum tw_status trace_known(
        const struct tw_decode_parts *parts, const char *key, bool *ret, struct tw_err *err)
{
	char id[TW_ID_CHARS + 1];

	*ret = false;
	return trace_id_of(key, id) ? tw_catalogue_has_decoded(parts->catalogue, id, ret, err)
	                            : TW_OK;
}

static enum tw_status piece_known(
        const struct tw_decode_parts *parts, const char *key, bool *ret, struct tw_err *err)
{
	const char *name = name_of(key);
	char object[TW_STORE_KEY];
	size_t len = strlen(name);

	*ret = true; /* not a file of this kind: left alone */
	if (len != 2 * TW_ID_CHARS + 1)
		return TW_OK;
	(void)snprintf(object, sizeof object, "pieces/%.2s/%s", name + TW_ID_CHARS - 2, name);
	return tw_catalogue_resumable_refers_to(parts->catalogue, object, ret, err);
}

static enum tw_status record_known(
        const struct tw_decode_parts *parts, const char *key, bool *ret, struct tw_err *err)
{
	return tw_record_known(parts->catalogue, parts->blobs, key, ret, err);
}

/* --- moving unknown files to lost/ --- */

enum { NAMES_AT_ONCE = 256 };

typedef enum tw_status known_fn(
        const struct tw_decode_parts *, const char *key, bool *ret, struct tw_err *);

struct folder {
	const char *name;
	known_fn *known;
	enum tw_name_kind names;
};

struct sweep {
	const struct tw_decode_parts *parts;
	const _Atomic bool *stop;
	const struct folder *folder;
	uint64_t taken;
	size_t n; /* files looked up by one statement */
	char keys[NAMES_AT_ONCE][TW_STORE_KEY];
};

struct taking {
	struct sweep *sweep;
	const char *key;
};

static enum tw_status take(struct sweep *s, const char *key, struct tw_err *err)
{
	enum tw_status st = tw_lost_take(tw_blobs_dir(s->parts->blobs), key, err);

	s->taken += st == TW_OK;
	return st;
}

static enum tw_status take_unused(void *arg, const char *sha256, struct tw_err *err)
{
	const struct taking *t = arg;

	(void)sha256;
	return take(t->sweep, t->key, err);
}

/* A younger file may belong to an upload in progress at another server, or to a trace that was just
 * decoded. */
static enum tw_status sweep_shared(
        struct sweep *s, const struct tw_store_file *f, struct tw_err *err)
{
	struct taking t = {s, f->key};
	struct tw_store_file now;
	bool known = true;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->parts->blobs, &store);
	enum tw_status st = engine->stat_file(store, f->key, &now, err); /* lists have no times */

	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	if (tw_age_ms() - now.modified_ms <= TW_DAY_MS)
		return TW_OK;
	if (s->folder->known == blob_known)
		return tw_catalogue_unless_used(
		        s->parts->catalogue, name_of(f->key), take_unused, &t, err);
	st = s->folder->known(s->parts, f->key, &known, err);
	return st == TW_OK && !known ? take(s, f->key, err) : st;
}

static enum tw_status sweep_own(struct sweep *s, const struct tw_store_file *f, struct tw_err *err)
{
	bool known = true;
	enum tw_status st;

	tw_blob_drop_begin(s->parts->blobs);
	/* its row may have been added since */
	st = s->folder->known(s->parts, f->key, &known, err);
	if (st == TW_OK && !known)
		st = take(s, f->key, err);
	tw_blob_drop_end(s->parts->blobs);
	return st;
}

/* A file that the lookup of many did not find. */
static void sweep_one(struct sweep *s, const char *key)
{
	const struct tw_store_file f = {.key = key};
	bool known = true;
	struct tw_err why;
	enum tw_status st = s->folder->known(s->parts, key, &known, &why);

	if (st == TW_OK && !known)
		st = tw_catalogue_is_shared(s->parts->catalogue) ? sweep_shared(s, &f, &why)
		                                                 : sweep_own(s, &f, &why);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "sweep", name_of(key), &why);
}

/* The name under which the catalogue has it, if the file has the form of such a name. */
static void row_name(const struct folder *folder, const char *key, char ret[TW_STORE_KEY])
{
	char id[TW_ID_CHARS + 1];

	if (folder->names == TW_NAME_PIECE)
		(void)snprintf(ret, TW_STORE_KEY, "%s", key);
	else if (folder->names == TW_NAME_DECODED && trace_id_of(key, id))
		(void)snprintf(ret, TW_STORE_KEY, "%s", id);
	else
		(void)snprintf(ret, TW_STORE_KEY, "%s", name_of(key));
}

/* One statement per file would take most of a sweep's time. */
static void sweep_gathered(struct sweep *s)
{
	static const char none[1];
	char(*text)[TW_STORE_KEY] = tw_mem_alloc(NAMES_AT_ONCE, sizeof *text);
	const char *names[NAMES_AT_ONCE];
	bool known[NAMES_AT_ONCE] = {false};

	for (size_t i = 0; i < s->n; i++) {
		names[i] = text ? text[i] : none;
		if (text)
			row_name(s->folder, s->keys[i], text[i]);
	}
	if (text && s->n && /* otherwise each is looked up */
	        tw_catalogue_have(
	                s->parts->catalogue, s->folder->names, names, s->n, known, NULL) != TW_OK)
		memset(known, 0, sizeof known);
	tw_mem_free(text);
	for (size_t i = 0; i < s->n && !atomic_load(s->stop); i++)
		if (!known[i])
			sweep_one(s, s->keys[i]);
	s->n = 0;
}

static enum tw_status sweep_file(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct sweep *s = arg;

	if (atomic_load(s->stop))
		return tw_fail(err, TW_BUSY, "the server is shutting down");
	if (s->n == NAMES_AT_ONCE)
		sweep_gathered(s);
	if (strlen(f->key) >= TW_STORE_KEY) { /* not a name of this server */
		sweep_one(s, f->key);
		return TW_OK;
	}
	(void)snprintf(s->keys[s->n++], TW_STORE_KEY, "%s", f->key);
	return TW_OK;
}

static const struct folder folders[] = {{"blobs", blob_known, TW_NAME_BLOB},
        {"traces", trace_known, TW_NAME_DECODED}, {"records", record_known, TW_NAME_TRACE},
        {"pieces", piece_known, TW_NAME_PIECE}};

enum { FOLDERS = sizeof folders / sizeof *folders };

static void take_all(const struct tw_decode_parts *parts, const _Atomic bool *stop)
{
	struct sweep *s = tw_mem_zalloc(1, sizeof *s);
	uint64_t taken[FOLDERS] = {0}, all = 0;
	struct tw_err err;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(parts->blobs, &store);

	for (int i = 0; s && i < FOLDERS; i++) {
		*s = (struct sweep){.parts = parts, .stop = stop, .folder = &folders[i]};
		if (engine->list(store, folders[i].name, sweep_file, s, &err) != TW_OK)
			tw_log_err(TW_LOG_WARN, "sweep_incomplete", folders[i].name, &err);
		sweep_gathered(s);
		taken[i] = s->taken;
		all += s->taken;
	}
	if (!s)
		tw_log(TW_LOG_WARN, "sweep_incomplete", tw_log_text("reason", "no memory"));
	tw_mem_free(s);
	if (all)
		tw_log(TW_LOG_WARN, "swept", tw_log_number("blobs", (int64_t)taken[0]),
		        tw_log_number("traces", (int64_t)taken[1]),
		        tw_log_number("records", (int64_t)taken[2]),
		        tw_log_number("pieces", (int64_t)taken[3]), tw_log_text("to", "lost"));
}

/* --- moving files back --- */

struct returning {
	const struct tw_decode_parts *parts;
	const _Atomic bool *stop;
	uint64_t returned, failed;
};

static enum tw_status return_known(void *arg, const struct tw_lost_file *f, struct tw_err *err)
{
	struct returning *s = arg;
	enum tw_status st = TW_OK;
	bool known = false;
	struct tw_err why;

	if (atomic_load(s->stop))
		return tw_fail(err, TW_BUSY, "the server is shutting down");
	for (int i = 0; i < FOLDERS; i++) {
		const size_t len = strlen(folders[i].name);

		if (strncmp(f->key, folders[i].name, len) == 0 && f->key[len] == '/' &&
		        folders[i].known != piece_known &&
		        (folders[i].known != record_known || tw_record_is_of_trace(f->key)))
			st = folders[i].known(s->parts, f->key, &known, &why);
	}
	if (st == TW_OK && known)
		st = tw_lost_return(tw_blobs_dir(s->parts->blobs), f, &why);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "sweep", f->key, &why);
	s->returned += st == TW_OK && known;
	s->failed += st != TW_OK;
	return TW_OK;
}

/* After the restore of a newer catalogue: it has rows for files that the older one lacked.
 * False: some of them may be left. */
static bool return_all(const struct tw_decode_parts *parts, const _Atomic bool *stop)
{
	struct returning s = {parts, stop, 0, 0};
	struct tw_err err;
	enum tw_status st = tw_lost_each(tw_blobs_dir(parts->blobs), return_known, &s, &err);

	if (st != TW_OK && !atomic_load(stop))
		tw_log_err(TW_LOG_WARN, "sweep", "lost", &err);
	if (s.returned)
		tw_log(TW_LOG_INFO, "lost_returned", tw_log_number("files", (int64_t)s.returned));
	return st == TW_OK && s.failed == 0;
}

void tw_jobs_expire_lost(const struct tw_decode_parts *parts)
{
	struct tw_err err;
	uint64_t files = 0;

	if (tw_lost_expire(tw_blobs_dir(parts->blobs), parts->config->lost_days, tw_age_ms(),
	            &files, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "lost_not_expired", "lost", &err);
	if (files)
		tw_log(TW_LOG_INFO, "lost_expired", tw_log_number("files", (int64_t)files));
}

/* --- does the catalogue belong to this folder? --- */

struct census {
	struct tw_catalogue *catalogue; /* NULL: none is open */
	struct tw_blobs *blobs;
	uint64_t records, traces, blobs_n;        /* numbers of files */
	uint64_t unknown_records, unknown_traces; /* without a row */
	struct tw_buf ids; /* of all traces of the catalogue, sorted, TW_ID_CHARS each */
};

static enum tw_status add_id(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	(void)a;
	return strlen(f->id) == TW_ID_CHARS && tw_buf_add(arg, f->id, TW_ID_CHARS) == TW_OK
	               ? TW_OK
	               : tw_oom(err);
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, TW_ID_CHARS);
}

/* Reads all ids with one query: one query per file would take 5 seconds of CPU per 100,000 traces
 * at each start. Without memory each file is looked up. */
static void read_ids(struct census *c)
{
	if (tw_stored_each(c->catalogue, tw_catalogue_recorded_traces, add_id, &c->ids, NULL) !=
	        TW_OK)
		c->ids.len = 0;
	if (c->ids.len)
		qsort(c->ids.data, c->ids.len / TW_ID_CHARS, TW_ID_CHARS, compare_ids);
}

/* Another server may have added the trace since. */
static enum tw_status has_trace(
        const struct census *c, const char *id, bool *ret, struct tw_err *err)
{
	*ret = c->ids.len &&
	       bsearch(id, c->ids.data, c->ids.len / TW_ID_CHARS, TW_ID_CHARS, compare_ids);
	return *ret ? TW_OK : tw_catalogue_has_trace(c->catalogue, id, ret, err);
}

/* Another server may have deleted the trace since it was listed. */
static bool is_there(const struct census *c, const char *key)
{
	struct tw_store_file f;
	void *store;

	return tw_blobs_engine(c->blobs, &store)->stat_file(store, key, &f, NULL) != TW_NOT_FOUND;
}

/* A power failure may undo the removal of a record, but not the later deletion of its row. */
static enum tw_status was_deleted(struct census *c, const char *key, bool *ret, struct tw_err *err)
{
	*ret = false;
	return tw_record_is_of_trace(key) && c->unknown_records <= UNKNOWN_FEW
	               ? tw_catalogue_trace_was_deleted(c->catalogue, name_of(key), ret, err)
	               : TW_OK;
}

static enum tw_status count_record(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct census *c = arg;
	bool known = false;
	enum tw_status st = TW_OK;

	c->records++;
	if (c->catalogue)
		st = tw_record_is_of_trace(f->key)
		             ? has_trace(c, name_of(f->key), &known, err)
		             : tw_record_known(c->catalogue, c->blobs, f->key, &known, err);
	if (st == TW_OK && !known && c->catalogue)
		st = was_deleted(c, f->key, &known, err);
	c->unknown_records += st == TW_OK && !known && is_there(c, f->key);
	return st;
}

static enum tw_status count_trace(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct census *c = arg;
	char id[TW_ID_CHARS + 1];
	bool known = false;
	enum tw_status st = TW_OK;

	if (!trace_id_of(f->key, id))
		return TW_OK;
	c->traces++;
	if (c->catalogue)
		st = has_trace(c, id, &known, err);
	c->unknown_traces += st == TW_OK && !known && is_there(c, f->key);
	return st;
}

static enum tw_status count_blob(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct census *c = arg;

	(void)f;
	(void)err;
	c->blobs_n++;
	return TW_OK;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static enum tw_status list_all(struct census *c, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(c->blobs, &store);
	enum tw_status st = engine->list(store, "records", count_record, c, err);

	if (st == TW_OK)
		st = engine->list(store, "traces", count_trace, c, err);
	if (st == TW_OK && !c->catalogue)
		st = engine->list(store, "blobs", count_blob, c, err);
	return st;
}

/* The spool is cleared at each start.  Other programs also have a folder of that name, as /var. */
static enum tw_status require_empty_spool(struct tw_blobs *b, struct tw_err *err)
{
	char path[PATH_BYTES];
	bool empty = true;
	struct dirent *e;
	DIR *d;

	tw_spool_path(b, ".", path, sizeof path);
	d = opendir(path);
	if (!d)
		return tw_fail_errno(err, TW_IO, "spool/ cannot be read");
	while (empty && (e = readdir(d)))
		empty = e->d_name[0] == '.';
	(void)closedir(d);
	if (empty)
		return TW_OK;
	return tw_fail(err, TW_CONFLICT,
	        "%.60s has no catalogue, but has files in spool/, which a start would delete: "
	        "check --data, or start once with --adopt",
	        tw_blobs_dir(b));
}

enum tw_status tw_jobs_refuse_without_catalogue(
        struct tw_blobs *b, bool in_postgres, struct tw_err *err)
{
	struct census c = {.blobs = b};
	enum tw_status st = require_empty_spool(b, err);

	if (st == TW_OK && !in_postgres && !tw_blobs_remote(b))
		st = list_all(&c, err);
	if (st != TW_OK || c.records + c.traces + c.blobs_n == 0)
		return st;
	return tw_fail(err, TW_CONFLICT,
	        "%.40s has %llu uploads and %llu decoded traces, but no catalogue: restore it,"
	        " or run `tracewell check --rebuild`, or start once with --adopt (moves them to"
	        " lost/)",
	        tw_blobs_dir(b), (unsigned long long)c.blobs_n, (unsigned long long)c.traces);
}

enum tw_status tw_jobs_refuse_other_catalogue(
        struct tw_blobs *b, struct tw_catalogue *catalogue, struct tw_err *err)
{
	struct census c = {.catalogue = catalogue, .blobs = b};
	enum tw_status st = TW_OK;
	uint64_t unknown, rows = 0;

	if (!tw_blobs_remote(b)) {
		tw_buf_init(&c.ids, (size_t)1 << 30);
		read_ids(&c);
		st = list_all(&c, err);
		tw_buf_done(&c.ids);
	}
	unknown = most(c.unknown_records, c.unknown_traces);
	if (st == TW_OK && unknown)
		st = tw_catalogue_record_rows(catalogue, &rows, err);
	if (st != TW_OK || (unknown <= UNKNOWN_FEW && c.unknown_records <= rows))
		return st;
	return tw_fail(err, TW_CONFLICT,
	        "the catalogue lacks %llu of %llu traces in %.40s: restore it, or move it away"
	        " and run `tracewell check --rebuild`, or start once with --adopt (moves them to"
	        " lost/)",
	        (unsigned long long)unknown, (unsigned long long)most(c.records, c.traces),
	        tw_blobs_dir(b));
}

/* --- rows without a file --- */

enum { CURSOR_BYTES = 128 };

struct file_check {
	const struct tw_decode_parts *parts;
	const _Atomic bool *stop;
	uint64_t checked; /* traces */
};

static void requeue_missing(const struct file_check *k, const struct tw_trace_row *rows, size_t n)
{
	for (size_t i = 0; i < n && !atomic_load(k->stop); i++) {
		struct tw_err err;
		uint64_t bytes;

		if (tw_trace_stat(k->parts->blobs, rows[i].id, &bytes, NULL) != TW_NOT_FOUND)
			continue;
		tw_log(TW_LOG_WARN, "trace_file_missing", tw_log_text("trace", rows[i].id),
		        tw_log_text("action", "decoding it again"));
		if (tw_catalogue_trace_requeue(
		            k->parts->catalogue, rows[i].project_id, rows[i].id, &err) != TW_OK)
			tw_log_err(TW_LOG_ERROR, "requeue", rows[i].id, &err);
	}
}

static enum tw_status check_page(
        struct file_check *k, const char *project_id, char cursor[CURSOR_BYTES], struct tw_err *err)
{
	const struct tw_trace_filter f = {
	        .of = {{TW_BY_state, "ready"}}, .limit = PAGE, .cursor = cursor};
	struct tw_arena *a = tw_arena_new((size_t)64 << 20);
	struct tw_trace_row *rows = NULL;
	const char *next = "";
	uint64_t total;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_traces(k->parts->catalogue, project_id, &f, a, &rows,
	                                &n, &next, &total, err)
	                      : tw_oom(err);

	if (st == TW_OK) {
		requeue_missing(k, rows, n);
		k->checked += n;
		(void)snprintf(cursor, CURSOR_BYTES, "%s", n ? next : "");
	}
	tw_arena_free(a);
	return st;
}

static enum tw_status check_project(
        struct file_check *k, const char *project_id, struct tw_err *err)
{
	char cursor[CURSOR_BYTES] = "";
	enum tw_status st;

	do
		st = check_page(k, project_id, cursor, err);
	while (st == TW_OK && cursor[0] && !atomic_load(k->stop));
	return st;
}

static enum tw_status check_projects(struct file_check *k, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new((size_t)16 << 20);
	struct tw_project_row *projects = NULL;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_projects(k->parts->catalogue, a, &projects, &n, err) : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n && !atomic_load(k->stop); i++)
		st = check_project(k, projects[i].id, err);
	tw_arena_free(a);
	return st;
}

/* Its end is logged, so that an incomplete check is noticed. */
static void check_trace_files(const struct tw_decode_parts *parts, const _Atomic bool *stop)
{
	struct file_check k = {.parts = parts, .stop = stop};
	struct tw_err err = {.msg = ""};
	enum tw_status st = check_projects(&k, &err);

	if (st == TW_OK && atomic_load(stop))
		st = tw_fail(&err, TW_BUSY, "the server is shutting down");
	tw_log(st == TW_OK ? TW_LOG_INFO : TW_LOG_WARN, "start_check",
	        tw_log_text("state", st == TW_OK ? "complete" : "incomplete"),
	        tw_log_number("traces", (int64_t)k.checked), tw_log_text("reason", err.msg));
}

bool tw_jobs_sweep(const struct tw_decode_parts *parts, const _Atomic bool *stop)
{
	bool may_expire;

	if (tw_blobs_remote(parts->blobs))
		return true; /* jobs_store.c does that */
	may_expire = return_all(parts, stop);
	take_all(parts, stop);
	if (may_expire)
		tw_jobs_expire_lost(parts);
	check_trace_files(parts, stop);
	return may_expire;
}

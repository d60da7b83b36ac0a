/*
 * jobs_sweep.c - the data folder and the catalogue agree again after a crash.
 *
 * A file without a row is removed: it was never accepted, or its deletion was
 * cut short.  Uploads go on meanwhile; blob_use is held for writing around each
 * removal, because an upload's blob exists for a moment before its row does.
 * Where other servers have the same folder, only what is a day old is looked at.
 */
#include "jobs_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blob_store.h"
#include "blob_use.h"
#include "catalogue.h"
#include "catalogue_resumable.h"
#include "clock.h"
#include "jobs_store.h"
#include "log.h"
#include "spool.h"

enum { PATH_BYTES = 1500, PAGE = 500, DAY_S = 86400 };

/* Names with a dot are of backups, exports and imports beside a server: theirs until nothing was
 * written for a day. */
static bool is_forgotten(int dir, const char *name)
{
	struct stat s;

	return fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) &&
	       tw_unix_ms() / 1000 - s.st_mtim.tv_sec > DAY_S;
}

/* Which files: all but those with a dot, or only what is forgotten. */
static enum tw_status clear(const char *path, bool all, struct tw_err *err)
{
	struct dirent *e;
	DIR *d = opendir(path);

	if (!d)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "spool/ cannot be read (errno %d)", errno);
	while ((e = readdir(d)))
		if ((all && e->d_name[0] != '.') || is_forgotten(dirfd(d), e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)closedir(d);
	return TW_OK;
}

/* Servers that share a data folder have a folder each in spool/, which goes when they are dead. */
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

enum tw_status tw_jobs_clear_spool(struct tw_app *app, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (tw_catalogue_is_shared(app->catalogue))
		return clear_shared(app->blobs, err);
	tw_spool_path(app->blobs, ".", path, sizeof path);
	return clear(path, true, err);
}

enum tw_status tw_jobs_copy_file(const char *path, struct tw_blob_writer *w, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (fd < 0)
		return tw_fail(
		        err, TW_IO, TW_NO_OFFSET, "%s cannot be read (errno %d)", path, errno);
	st = tw_blob_write_fd(w, fd, err);
	(void)close(fd);
	return st;
}

struct sweep {
	struct tw_app *app;
	const _Atomic bool *stop;
	/* Is this file name known to the catalogue? */
	enum tw_status (*known)(struct tw_app *, const char *name, bool *ret, struct tw_err *);
	uint64_t removed;
};

static enum tw_status blob_known(
        struct tw_app *app, const char *name, bool *ret, struct tw_err *err)
{
	return tw_catalogue_has_blob(app->catalogue, name, ret, err);
}

static enum tw_status trace_known(
        struct tw_app *app, const char *name, bool *ret, struct tw_err *err)
{
	char id[64];
	size_t len = strlen(name);

	*ret = false;
	if (len != TW_ID_CHARS + 3 || strcmp(name + TW_ID_CHARS, ".db") != 0)
		return TW_OK; /* nothing of ours */
	(void)snprintf(id, sizeof id, "%.26s", name);
	return tw_catalogue_has_decoded(app->catalogue, id, ret, err);
}

static enum tw_status piece_known(
        struct tw_app *app, const char *name, bool *ret, struct tw_err *err)
{
	char object[TW_STORE_KEY];
	size_t len = strlen(name);

	*ret = true; /* what is not ours is left alone */
	if (len != 2 * TW_ID_CHARS + 1)
		return TW_OK;
	(void)snprintf(object, sizeof object, "pieces/%.2s/%s", name + TW_ID_CHARS - 2, name);
	return tw_catalogue_resumable_names(app->catalogue, object, ret, err);
}

/* An upload under way at another server, or a trace file just put in place, is younger. */
static enum tw_status sweep_shared(
        struct sweep *s, const struct tw_store_file *f, const char *name, struct tw_err *err)
{
	struct tw_store_file now;
	bool known = true;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->app->blobs, &store);
	enum tw_status st = engine->look(store, f->key, &now, err); /* lists tell no times */

	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	if (tw_unix_ms() - now.modified_ms <= TW_DAY_MS)
		return TW_OK;
	if (s->known == blob_known)
		tw_store_drop_blobs(s->app, &name, 1);
	else
		st = s->known(s->app, name, &known, err);
	if (st == TW_OK && !known && engine->remove(store, f->key, err) != TW_OK)
		return TW_OK;
	s->removed += st == TW_OK && (!known || s->known == blob_known);
	return st;
}

static enum tw_status sweep_own(
        struct sweep *s, const struct tw_store_file *f, const char *name, struct tw_err *err)
{
	bool known = true;
	enum tw_status st;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->app->blobs, &store);

	tw_blob_drop_begin(s->app);
	st = s->known(s->app, name, &known, err); /* its row may have come meanwhile */
	if (st == TW_OK && !known && engine->remove(store, f->key, err) == TW_OK)
		s->removed++;
	tw_blob_drop_end(s->app);
	return st;
}

static enum tw_status sweep_file(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct sweep *s = arg;
	const char *name = strrchr(f->key, '/') + 1;
	bool known = true;
	struct tw_err why;
	enum tw_status st;

	if (atomic_load(s->stop))
		return tw_fail(err, TW_BUSY, TW_NO_OFFSET, "the server is being stopped");
	st = s->known(s->app, name, &known, &why);
	if (st == TW_OK && !known)
		st = tw_catalogue_is_shared(s->app->catalogue) ? sweep_shared(s, f, name, &why)
		                                               : sweep_own(s, f, name, &why);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "sweep", name, &why);
	return TW_OK;
}

static void sweep_folder(struct sweep *s, const char *name)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(s->app->blobs, &store);

	(void)engine->list(store, name, sweep_file, s, NULL); /* ends early when it is stopped */
}

static void requeue_missing(
        struct tw_app *app, const char *project_id, const struct tw_trace_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct tw_err err;
		uint64_t bytes;

		if (tw_trace_look(app->blobs, rows[i].id, &bytes, NULL) != TW_NOT_FOUND)
			continue;
		tw_log(TW_LOG_WARN, "trace_file_missing", tw_log_text("trace", rows[i].id),
		        tw_log_text("then", "decoding it again"));
		if (tw_catalogue_trace_requeue(app->catalogue, project_id, rows[i].id, &err) !=
		        TW_OK)
			tw_log_err(TW_LOG_ERROR, "requeue", rows[i].id, &err);
	}
}

static void check_project(struct tw_app *app, const char *project_id, const _Atomic bool *stop)
{
	struct tw_trace_filter f = {.state = "ready", .limit = PAGE, .cursor = ""};
	char cursor[128] = "";

	do {
		struct tw_arena *a = tw_arena_new((size_t)64 << 20);
		struct tw_trace_row *rows = NULL;
		const char *next = "";
		uint64_t total;
		size_t n = 0;

		f.cursor = cursor;
		if (!a || tw_catalogue_traces(app->catalogue, project_id, &f, a, &rows, &n, &next,
		                  &total, NULL) != TW_OK)
			n = 0;
		requeue_missing(app, project_id, rows, n);
		(void)snprintf(cursor, sizeof cursor, "%s", n ? next : "");
		tw_arena_free(a);
	} while (cursor[0] && !atomic_load(stop));
}

static void check_trace_files(struct tw_app *app, const _Atomic bool *stop)
{
	struct tw_arena *a = tw_arena_new((size_t)16 << 20);
	struct tw_project_row *projects = NULL;
	size_t n = 0;

	if (a && tw_catalogue_projects(app->catalogue, a, &projects, &n, NULL) == TW_OK)
		for (size_t i = 0; i < n && !atomic_load(stop); i++)
			check_project(app, projects[i].id, stop);
	tw_arena_free(a);
}

void tw_jobs_sweep(struct tw_app *app, const _Atomic bool *stop)
{
	struct sweep blobs = {app, stop, blob_known, 0};
	struct sweep traces = {app, stop, trace_known, 0};
	struct sweep pieces = {app, stop, piece_known, 0};

	if (tw_blobs_remote(app->blobs))
		return; /* jobs_store.c's business: it takes its time */
	sweep_folder(&blobs, "blobs");
	sweep_folder(&traces, "traces");
	sweep_folder(&pieces, "pieces");
	check_trace_files(app, stop);
	if (blobs.removed || traces.removed || pieces.removed)
		tw_log(TW_LOG_INFO, "swept", tw_log_number("blobs", (int64_t)blobs.removed),
		        tw_log_number("traces", (int64_t)traces.removed),
		        tw_log_number("pieces", (int64_t)pieces.removed));
}

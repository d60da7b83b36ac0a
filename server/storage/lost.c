#include "server/storage/lost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1600, DAY_BYTES = sizeof "2026-11-23", LEVELS = 6, DAY_S = 86400 };

static void day_of(int64_t ms, char out[DAY_BYTES])
{
	const time_t s = (time_t)(ms / 1000);
	struct tm tm;

	(void)gmtime_r(&s, &tm);
	(void)strftime(out, DAY_BYTES, "%Y-%m-%d", &tm);
}

static bool is_day(const char *name)
{
	const size_t digits = strspn(name, "0123456789-");

	return digits == DAY_BYTES - 1 && name[digits] == '\0' && name[4] == '-' && name[7] == '-';
}

/* Creates the folders of a path after `base`. */
static enum tw_status make_folders(char *path, size_t base, struct tw_err *err)
{
	for (char *at = path + base; (at = strchr(at, '/')); at++) {
		int made;

		*at = '\0';
		made = mkdir(path, 0700);
		if (made != 0 && errno != EEXIST)
			return tw_file_fail("create", path, err);
		*at = '/';
	}
	return TW_OK;
}

enum tw_status tw_lost_take(const char *data, const char *key, struct tw_err *err)
{
	char from[PATH_BYTES], to[PATH_BYTES], day[DAY_BYTES];
	enum tw_status st;

	day_of(tw_unix_ms(), day);
	(void)snprintf(from, sizeof from, "%s/%s", data, key);
	(void)snprintf(to, sizeof to, "%s/lost/%s/%s", data, day, key);
	if (rename(from, to) == 0)
		return TW_OK;
	st = make_folders(to, strlen(data) + 1, err);
	if (st != TW_OK)
		return st;
	return rename(from, to) == 0 || errno == ENOENT ? TW_OK : tw_file_fail("move", from, err);
}

enum tw_status tw_lost_return(const char *data, const struct tw_lost_file *f, struct tw_err *err)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(from, sizeof from, "%s/lost/%s/%s", data, f->day, f->key);
	(void)snprintf(to, sizeof to, "%s/%s", data, f->key);
	if (access(to, F_OK) == 0)
		return TW_OK;
	st = make_folders(to, strlen(data) + 1, err);
	if (st == TW_OK && rename(from, to) != 0)
		st = tw_file_fail("move", from, err);
	return st;
}

/* --- iteration --- */

struct walk {
	const char *data;
	char day[DAY_BYTES];
	const char *returns; /* moves this key back, instead of calling `each`; NULL: none */
	bool removes;        /* deletes each file and folder, instead of calling `each` */
	uint64_t removed;
	tw_lost_each_fn *each;
	void *arg;
};

static enum tw_status report_file(
        struct walk *w, const char *key, const struct stat *s, struct tw_err *err)
{
	struct tw_lost_file f = {.key = key, .bytes = (uint64_t)s->st_size};

	memcpy(f.day, w->day, sizeof w->day);
	return w->each(w->arg, &f, err);
}

static enum tw_status visit(
        struct walk *w, const char *path, const char *key, const struct stat *s, struct tw_err *err)
{
	if (!w->removes)
		return S_ISREG(s->st_mode) ? report_file(w, key, s, err) : TW_OK;
	if (unlink(path) != 0 && errno != ENOENT)
		return tw_file_fail("delete", path, err);
	w->removed++;
	return TW_OK;
}

/* key "": the day's folder itself. */
/* NOLINTNEXTLINE(misc-no-recursion) as deep as LEVELS allows */
static enum tw_status walk(struct walk *w, const char *key, int levels, struct tw_err *err)
{
	char path[PATH_BYTES], below[TW_STORE_KEY + 256];
	const int len = snprintf(
	        path, sizeof path, "%s/lost/%s%s%s", w->data, w->day, key[0] ? "/" : "", key);
	enum tw_status st = TW_OK;
	struct dirent *e;
	struct stat s;
	DIR *d = opendir(path);

	while (d && st == TW_OK && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		        snprintf(below, sizeof below, "%s%s%s", key, key[0] ? "/" : "",
		                e->d_name) >= (int)sizeof below ||
		        snprintf(path + len, sizeof path - (size_t)len, "/%s", e->d_name) >=
		                (int)sizeof path - len ||
		        lstat(path, &s) != 0)
			continue;
		if (!S_ISDIR(s.st_mode))
			st = visit(w, path, below, &s, err);
		else if (levels > 0)
			st = walk(w, below, levels - 1, err);
	}
	if (d)
		(void)closedir(d);
	path[len] = '\0';
	if (w->removes && st == TW_OK)
		(void)rmdir(path);
	return st;
}

static enum tw_status return_one(const struct walk *w, struct tw_err *err)
{
	struct tw_lost_file f = {.key = w->returns};
	char path[PATH_BYTES];

	memcpy(f.day, w->day, sizeof w->day);
	(void)snprintf(path, sizeof path, "%s/lost/%s/%s", w->data, f.day, f.key);
	return access(path, F_OK) == 0 ? tw_lost_return(w->data, &f, err) : TW_OK;
}

/* The days up to `last`; "": all. */
static enum tw_status walk_days(struct walk *w, const char *last, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st = TW_OK;
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof path, "%s/lost", w->data);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? TW_OK : tw_file_fail("read", path, err);
	while (st == TW_OK && (e = readdir(d))) {
		if (!is_day(e->d_name) || (last[0] && strcmp(e->d_name, last) > 0))
			continue;
		memcpy(w->day, e->d_name, sizeof w->day);
		st = w->returns ? return_one(w, err) : walk(w, "", LEVELS, err);
	}
	(void)closedir(d);
	return st;
}

enum tw_status tw_lost_return_key(const char *data, const char *key, struct tw_err *err)
{
	struct walk w = {.data = data, .returns = key};

	return walk_days(&w, "", err);
}

enum tw_status tw_lost_each(const char *data, tw_lost_each_fn *each, void *arg, struct tw_err *err)
{
	struct walk w = {.data = data, .each = each, .arg = arg};

	return walk_days(&w, "", err);
}

enum tw_status tw_lost_expire(
        const char *data, unsigned days, int64_t now_ms, uint64_t *ret_files, struct tw_err *err)
{
	struct walk w = {.data = data, .removes = true};
	char last[DAY_BYTES] = "";
	enum tw_status st;

	if (days) /* a file moved at the end of a day is kept that many full days */
		day_of(now_ms - ((int64_t)days + 1) * DAY_S * 1000, last);
	st = walk_days(&w, last, err);
	*ret_files = w.removed;
	return st;
}

#include "server/cli/admin/cli_data.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/caller.h"
#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/text/find.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/data_catalogue.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/storage/storage_record.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1500, LOOKS = 100, LOOK_MS = 30 };

/* The setting applies if no server has recorded an address in the folder. */
static const char *address(void)
{
	const char *given = getenv("TRACEWELL_CATALOG");

	return given ? given : "";
}

enum tw_status tw_cli_data_probe(struct tw_blobs *b, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);

	return engine->probe ? engine->probe(store, err) : TW_OK;
}

struct data_files { /* where a data folder's files are, with the arena of its settings */
	struct tw_arena *arena;
	struct tw_storage storage;
};

static enum tw_status find_files(const char *data, struct data_files *p, struct tw_err *err)
{
	p->arena = tw_arena_new(1 << 20);
	return p->arena ? tw_storage_of(data, p->arena, &p->storage, err) : tw_oom(err);
}

static enum tw_status open_catalogue(
        const char *data, const struct data_files *p, struct tw_catalogue **ret, struct tw_err *err)
{
	return tw_data_catalogue_open(data, address(), p->storage.blobs, false, ret, err);
}

static enum tw_status open_files(const char *data, const struct data_files *p,
        unsigned min_free_percent, struct tw_blobs **ret, struct tw_err *err)
{
	enum tw_status st = tw_blobs_open_at(&(struct tw_store_endpoint){.data_dir = data,
	                                             .storage = &p->storage,
	                                             .min_free_percent = min_free_percent},
	        ret, err);

	return st == TW_OK ? tw_cli_data_probe(*ret, err) : st;
}

enum tw_status tw_cli_data_files(
        const char *data, unsigned min_free_percent, struct tw_blobs **ret, struct tw_err *err)
{
	struct data_files p = {.arena = NULL};
	enum tw_status st = find_files(data, &p, err);

	if (st == TW_OK)
		st = open_files(data, &p, min_free_percent, ret, err);
	(void)tw_arena_free(p.arena);
	return st;
}

/* --- a missing folder --- */

static bool exists(const char *dir, const char *name)
{
	char path[PATH_BYTES];

	return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
	       access(path, F_OK) == 0;
}

static bool has_files(const char *data)
{
	return exists(data, "records") || exists(data, "blobs") || exists(data, "traces");
}

/* A server that starts for the first time makes its other files shortly before the catalogue. */
static bool has_catalogue(const char *data)
{
	for (int i = 0; i < LOOKS; i++) {
		if (tw_data_catalogue_is_there(data))
			return true;
		if (!has_files(data))
			return false;
		tw_sleep_ms(LOOK_MS);
	}
	return false;
}

struct nearest {
	char path[PATH_BYTES]; /* "": none */
	unsigned distance;
};

/* Compares `word` with each folder in `dir`; a similar one gives the path dir/FOLDER/rest. */
static void compare_folders(struct nearest *n, const char *dir, const char *word, const char *rest)
{
	DIR *d = opendir(dir[0] ? dir : ".");
	char path[PATH_BYTES];
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const unsigned distance = tw_near_distance(word, e->d_name);

		if (e->d_name[0] == '.' || (n->path[0] && distance >= n->distance) ||
		        snprintf(path, sizeof path, "%s%s%s%s", dir,
		                dir[0] && strcmp(dir, "/") != 0 ? "/" : "", e->d_name,
		                rest) >= (int)sizeof path ||
		        !tw_data_catalogue_is_there(path))
			continue;
		n->distance = distance;
		(void)snprintf(n->path, sizeof n->path, "%s", path);
	}
	if (d)
		(void)closedir(d);
}

static void copy_without_slashes(char out[PATH_BYTES], const char *data)
{
	(void)snprintf(out, PATH_BYTES, "%s", data);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
}

/* Moves the last name of a path to *word; the path is then "/" or "" above its first name. */
static void take_last(char path[PATH_BYTES], char word[PATH_BYTES])
{
	char *slash = strrchr(path, '/');

	(void)snprintf(word, PATH_BYTES, "%s", slash ? slash + 1 : path);
	if (slash)
		slash[slash == path] = '\0';
	else
		path[0] = '\0';
}

/* Suggests a correction for the first missing folder of the path. */
static void find_nearest(const char *data, struct nearest *n)
{
	char dir[PATH_BYTES], rest[PATH_BYTES] = "", word[PATH_BYTES];

	copy_without_slashes(dir, data);
	compare_folders(n, dir, "data", "");
	while (dir[0] && !n->path[0]) {
		char longer[PATH_BYTES];

		take_last(dir, word);
		compare_folders(n, dir, word, rest);
		if (strcmp(dir, "/") == 0 ||
		        snprintf(longer, sizeof longer, "/%s%s", word, rest) >= (int)sizeof longer)
			break;
		(void)snprintf(rest, sizeof rest, "%s", longer);
	}
	if (!n->path[0] && tw_data_catalogue_is_there("data"))
		(void)snprintf(n->path, sizeof n->path, "data");
}

static char last_of(const char *s)
{
	return *s ? s[strlen(s) - 1] : '\0';
}

enum tw_status tw_cli_data_check_new(const char *data, struct tw_err *err)
{
	char dir[PATH_BYTES], word[PATH_BYTES];
	struct nearest n = {.path = ""};

	if (access(data, F_OK) == 0)
		return TW_OK;
	copy_without_slashes(dir, data);
	take_last(dir, word);
	compare_folders(&n, dir, word, "");
	if (!n.path[0] || n.distance != 1 || last_of(word) != last_of(n.path))
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "%.60s does not exist, but %.60s is a data folder: correct --data, or create the "
	        "folder to start with an empty one",
	        data, n.path);
}

static enum tw_status fail_no_folder(const char *data, struct tw_err *err)
{
	struct nearest n = {.path = ""};

	if (has_files(data))
		return tw_fail(err, TW_NOT_FOUND,
		        "%.60s has files but no catalogue: restore catalogue.db (or "
		        "catalogue.url), "
		        "or run `tracewell check --rebuild --data %.60s`",
		        data, data);
	find_nearest(data, &n);
	if (n.path[0])
		return tw_fail(err, TW_NOT_FOUND,
		        "%.70s is not a data folder of a server; the nearest one is %.70s", data,
		        n.path);
	return tw_fail(err, TW_NOT_FOUND,
	        "%.70s is not a data folder of a server: `tracewell serve --data %.70s` makes one",
	        data, data);
}

/* ret_blobs NULL: does not open the files. */
static enum tw_status open_there(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	struct data_files p = {.arena = NULL};
	enum tw_status st;

	if (!has_catalogue(data))
		return fail_no_folder(data, err);
	tw_actor_set_cli();
	st = find_files(data, &p, err);
	if (st == TW_OK && ret_blobs)
		st = open_files(data, &p, 0, ret_blobs, err);
	if (st == TW_OK)
		st = open_catalogue(data, &p, ret_catalogue, err);
	if (st == TW_OK && ret_blobs)
		tw_small_files_use(*ret_blobs, *ret_catalogue, 0);
	(void)tw_arena_free(p.arena);
	return st;
}

enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	return open_there(data, ret_catalogue, ret_blobs, err);
}

enum tw_status tw_cli_data_open_catalogue(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	return open_there(data, ret_catalogue, NULL, err);
}

enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	struct data_files p = {.arena = NULL};
	enum tw_status st;

	tw_actor_set_cli();
	(void)umask(077);
	st = tw_cli_data_check_new(data, err);
	if (st == TW_OK)
		st = tw_folder_make(data, err);
	if (st == TW_OK)
		st = find_files(data, &p, err);
	if (st == TW_OK)
		st = open_catalogue(data, &p, ret_catalogue, err);
	(void)tw_arena_free(p.arena);
	return st;
}

/* --- a catalogue to be rebuilt --- */

static enum tw_status read_settings(const struct tw_cli_rebuild *of, struct tw_arena *a,
        struct tw_config *ret, struct tw_err *err)
{
	const struct {
		const char *name, *value;
	} given[] = {{"config", of->config}, {"catalog", of->catalog}, {"blobs", of->blobs},
	        {"s3-endpoint", of->endpoint}, {"s3-region", of->region},
	        {"s3-ca-file", of->ca_file}, {"s3-credentials-file", of->credentials_file},
	        {"s3-virtual-host", of->virtual_host ? "true" : NULL}};
	char *args[sizeof given / sizeof *given];
	int n = 0;

	for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
		if (!given[i].value)
			continue;
		args[n] = tw_arena_printf(a, "--%s=%s", given[i].name, given[i].value);
		if (!args[n++])
			return tw_oom(err);
	}
	return tw_config_load(a, n, args, ret, err);
}

/* The rebuilt catalogue gets its name when it is complete, so that no server starts on a part of
 * it. */
static enum tw_status open_new(const char *data, struct tw_cli_rebuilt *r, struct tw_err *err)
{
	static const char *const tails[] = {"", "-wal", "-shm"};
	char path[sizeof r->made + 8];

	(void)snprintf(r->made, sizeof r->made, "%s/catalogue.rebuild.db", data);
	(void)snprintf(r->path, sizeof r->path, "%s/catalogue.db", data);
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		(void)snprintf(path, sizeof path, "%s%s", r->made, tails[i]);
		(void)unlink(path); /* left by an interrupted rebuild */
	}
	return tw_catalogue_open(r->made, &r->catalogue, err);
}

static enum tw_status open_empty(const struct tw_cli_rebuild *of, const struct tw_config *c,
        const struct data_files *p, struct tw_cli_rebuilt *r, struct tw_err *err)
{
	if (tw_data_catalogue_in_use(of->data))
		return tw_fail(err, TW_BUSY,
		        "another process has the catalogue of %.120s open: stop the server first",
		        of->data);
	if (!c->catalog[0] && !tw_data_catalogue_is_there(of->data))
		return open_new(of->data, r, err);
	return tw_data_catalogue_open(
	        of->data, c->catalog, p->storage.blobs, false, &r->catalogue, err);
}

enum tw_status tw_cli_rebuild_open(
        const struct tw_cli_rebuild *of, struct tw_cli_rebuilt *ret, struct tw_err *err)
{
	struct data_files p = {.arena = NULL};
	struct tw_config config;
	enum tw_status st;

	*ret = (struct tw_cli_rebuilt){.catalogue = NULL};
	tw_actor_set_cli();
	(void)umask(077);
	st = find_files(of->data, &p, err);
	if (st == TW_OK)
		st = read_settings(of, p.arena, &config, err);
	if (st == TW_OK && !p.storage.blobs[0])
		p.storage = config.storage;
	if (st == TW_OK && !p.storage.blobs[0] && !has_files(of->data))
		st = fail_no_folder(of->data, err);
	if (st == TW_OK)
		st = tw_folder_make(of->data, err);
	if (st == TW_OK)
		st = open_files(of->data, &p, 0, &ret->blobs, err);
	if (st == TW_OK)
		st = open_empty(of, &config, &p, ret, err);
	if (st == TW_OK) /* for commands that run before the next start of a server */
		st = tw_storage_record(of->data, &p.storage, err);
	(void)tw_arena_free(p.arena);
	return st;
}

enum tw_status tw_cli_rebuild_close(struct tw_cli_rebuilt *r, enum tw_status st, struct tw_err *err)
{
	r->catalogue = tw_catalogue_close(r->catalogue);
	r->blobs = tw_blobs_close(r->blobs);
	if (!r->made[0])
		return st;
	if (st != TW_OK)
		(void)unlink(r->made);
	else if (rename(r->made, r->path) != 0)
		st = tw_fail_errno(err, TW_IO, "cannot rename %.140s", r->made);
	return st;
}

bool tw_cli_same_folder(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

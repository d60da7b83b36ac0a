#include "server/catalogue/data_catalogue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_migrate.h"
#include "server/catalogue/storage/file_drop.h"
#include "server/db/catalogue_postgres.h"

enum {
	PATH_BYTES = 1500,
	ADDRESS_BYTES = 1200,
	IDENTITY_BYTES = 64,
	LOCK_BYTE = 128 /* of catalogue.db-shm, locked while any process has it open */
};

struct binding { /* contents of catalogue.url, one line each; the last is the folder's own id */
	char address[ADDRESS_BYTES], identity[IDENTITY_BYTES], folder[IDENTITY_BYTES];
	const char *store; /* location of the files, "" in the folder; not from catalogue.url */
};

static bool path_of(const char *data, const char *name, char out[PATH_BYTES])
{
	return snprintf(out, PATH_BYTES, "%s/%s", data, name) < PATH_BYTES;
}

static void take_line(struct tw_str *rest, char *out, size_t cap)
{
	struct tw_str line = tw_str_trim(tw_str_split(rest, '\n'));

	(void)snprintf(out, cap, "%.*s", (int)(line.len < cap ? line.len : cap - 1), line.ptr);
}

static enum tw_status read_binding(const char *data, struct binding *ret, struct tw_err *err)
{
	char path[PATH_BYTES], text[ADDRESS_BYTES + 2 * IDENTITY_BYTES];
	struct tw_str rest;

	*ret = (struct binding){.store = ""};
	if (!path_of(data, "catalogue.url", path))
		return tw_fail(err, TW_BAD_REQUEST, "--data is too long");
	if (!tw_file_text(path, text, sizeof text) && errno != ENOENT)
		return tw_fail_errno(err, TW_IO, "%s cannot be read", path);
	rest = tw_str_of(text);
	take_line(&rest, ret->address, sizeof ret->address);
	take_line(&rest, ret->identity, sizeof ret->identity);
	take_line(&rest, ret->folder, sizeof ret->folder);
	return TW_OK;
}

static enum tw_status write_binding(const char *data, const struct binding *t, struct tw_err *err)
{
	char path[PATH_BYTES], text[sizeof *t + 4];
	const int n =
	        snprintf(text, sizeof text, "%s\n%s\n%s\n", t->address, t->identity, t->folder);

	if (!path_of(data, "catalogue.url", path))
		return tw_fail(err, TW_BAD_REQUEST, "--data is too long");
	return tw_file_replace(path, text, (size_t)n, err);
}

static enum tw_status check_address(const char *data, const char *address, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (!tw_db_is_postgres(address))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--catalog is the address of a PostgreSQL database, like "
		        "postgres://tracewell@db.example.com/tracewell");
	if (strlen(address) >= ADDRESS_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "--catalog is too long");
	if (path_of(data, "catalogue.db", path) && access(path, F_OK) == 0)
		return tw_fail(err, TW_CONFLICT,
		        "the data folder already has a catalogue (catalogue.db): use an empty "
		        "folder with --catalog, or run `tracewell migrate`");
	return TW_OK;
}

static enum tw_status save_binding(
        const char *data, const struct binding *had, struct binding *now, struct tw_err *err)
{
	if (had->folder[0])
		(void)snprintf(now->folder, sizeof now->folder, "%s", had->folder);
	else
		tw_ulid_new(tw_unix_ms(), now->folder);
	return had->folder[0] && strcmp(had->address, now->address) == 0
	               ? TW_OK
	               : write_binding(data, now, err);
}

/* Verifies that catalogue and folder (or store) belong together.  The folder is written first: if
 * this is interrupted in between, the next start continues. */
static enum tw_status check_binding(const char *data, const struct binding *had,
        struct binding *now, struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_identity(c, now->identity, sizeof now->identity, err);

	if (st != TW_OK)
		return st;
	if (had->identity[0] && strcmp(had->identity, now->identity) != 0)
		return tw_fail(err, TW_CONFLICT,
		        "the data folder belongs to another catalogue than the one at this "
		        "address: its files would be moved to lost/");
	st = tw_catalogue_may_have_folder(c, now->store, had->folder, err);
	if (st == TW_OK)
		st = save_binding(data, had, now, err);
	if (st != TW_OK)
		return st;
	return now->store[0] ? tw_catalogue_take_folder(c, now->store, now->folder, err)
	                     : tw_catalogue_take_folder(c, now->folder, "", err);
}

static enum tw_status open_bound(const char *data, const struct binding *had, const char *address,
        bool serves, struct tw_catalogue **ret, struct tw_err *err)
{
	struct binding now = {.store = had->store};
	struct tw_catalogue *c = NULL;
	enum tw_status st = check_address(data, address, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(now.address, sizeof now.address, "%s", address);
	st = serves ? tw_catalogue_open_to_serve(address, &c, err)
	            : tw_catalogue_open_current(address, &c, err);
	if (st == TW_OK)
		st = check_binding(data, had, &now, c, err);
	if (st == TW_OK)
		*ret = c;
	else
		tw_catalogue_close(c);
	return st;
}

static enum tw_status open_any(const char *data, const char *address, const char *store,
        bool serves, struct tw_catalogue **ret, struct tw_err *err)
{
	struct binding had;
	char path[PATH_BYTES];
	enum tw_status st = read_binding(data, &had, err);

	if (st != TW_OK)
		return st;
	had.store = store;
	if (address[0] || had.address[0])
		return open_bound(data, &had, address[0] ? address : had.address, serves, ret, err);
	if (!path_of(data, "catalogue.db", path))
		return tw_fail(err, TW_BAD_REQUEST, "--data is too long");
	return serves ? tw_catalogue_open_to_serve(path, ret, err)
	              : tw_catalogue_open_current(path, ret, err);
}

enum tw_status tw_data_catalogue_open_target(const char *data, const char *address,
        const char *store, bool serves, struct tw_catalogue **ret, struct tw_err *err)
{
	return open_any(data, address, store, serves, ret, err);
}

enum tw_status tw_data_catalogue_open(const char *data, const char *address, const char *store,
        bool serves, struct tw_catalogue **ret, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	bool migrating = false;
	enum tw_status st = open_any(data, address, store, serves, &c, err);

	if (st == TW_OK)
		st = tw_catalogue_migrating(c, &migrating, err);
	if (st == TW_OK && migrating)
		st = tw_fail(err, TW_CONFLICT,
		        "this catalogue is an incomplete copy of another: run `tracewell migrate` "
		        "again until it reports completion");
	if (st == TW_OK && store[0])
		tw_catalogue_add_drops(c);
	if (st == TW_OK)
		*ret = c;
	else
		tw_catalogue_close(c);
	return st;
}

bool tw_data_catalogue_in_use(const char *data)
{
	struct flock lock = {
	        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
	char path[PATH_BYTES];
	bool held;
	int fd = path_of(data, "catalogue.db-shm", path) ? open(path, O_RDWR | O_CLOEXEC) : -1;

	held = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (fd >= 0)
		(void)close(fd);
	return held;
}

bool tw_data_catalogue_is_there(const char *data)
{
	char path[PATH_BYTES];

	return (path_of(data, "catalogue.db", path) && access(path, F_OK) == 0) ||
	       (path_of(data, "catalogue.url", path) && access(path, F_OK) == 0);
}

enum tw_status tw_data_catalogue_address(
        const char *data, char *ret, size_t cap, struct tw_err *err)
{
	struct binding t;
	enum tw_status st = read_binding(data, &t, err);

	(void)snprintf(ret, cap, "%s", st == TW_OK ? t.address : "");
	return st;
}

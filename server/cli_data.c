#include "cli_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "audit.h"
#include "blob_store.h"
#include "data_catalogue.h"
#include "storage_mark.h"

/* Where no server has told the folder yet, the setting of one does. */
static const char *address(void)
{
	const char *given = getenv("TRACEWELL_CATALOG");

	return given ? given : "";
}

enum tw_status tw_cli_data_ask(struct tw_blobs *b, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);

	return engine->probe ? engine->probe(store, err) : TW_OK;
}

struct place { /* of a data folder's files, and what it was read into */
	struct tw_arena *arena;
	struct tw_storage storage;
};

static enum tw_status find_place(const char *data, struct place *p, struct tw_err *err)
{
	p->arena = tw_arena_new(1 << 20);
	return p->arena ? tw_storage_of(data, p->arena, &p->storage, err)
	                : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
}

static enum tw_status open_catalogue(
        const char *data, const struct place *p, struct tw_catalogue **ret, struct tw_err *err)
{
	return tw_data_catalogue_open(data, address(), p->storage.blobs, ret, err);
}

static enum tw_status open_files(const char *data, const struct place *p, unsigned min_free_percent,
        struct tw_blobs **ret, struct tw_err *err)
{
	enum tw_status st = tw_blobs_open_at(
	        &(struct tw_store_place){data, &p->storage, min_free_percent, false}, ret, err);

	return st == TW_OK ? tw_cli_data_ask(*ret, err) : st;
}

enum tw_status tw_cli_data_files(
        const char *data, unsigned min_free_percent, struct tw_blobs **ret, struct tw_err *err)
{
	struct place p = {.arena = NULL};
	enum tw_status st = find_place(data, &p, err);

	if (st == TW_OK)
		st = open_files(data, &p, min_free_percent, ret, err);
	(void)tw_arena_free(p.arena);
	return st;
}

/* ret_blobs NULL: its files are not asked for. */
static enum tw_status open_there(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	struct place p = {.arena = NULL};
	enum tw_status st;

	if (!tw_data_catalogue_is_there(data))
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "%.120s is no data folder of a server: it has no catalogue.db nor "
		        "catalogue.url",
		        data);
	tw_actor_set_cli();
	st = find_place(data, &p, err);
	if (st == TW_OK && ret_blobs)
		st = open_files(data, &p, 0, ret_blobs, err);
	if (st == TW_OK)
		st = open_catalogue(data, &p, ret_catalogue, err);
	(void)tw_arena_free(p.arena);
	return st;
}

enum tw_status tw_cli_data_open(const char *data, struct tw_catalogue **ret_catalogue,
        struct tw_blobs **ret_blobs, struct tw_err *err)
{
	return open_there(data, ret_catalogue, ret_blobs, err);
}

enum tw_status tw_cli_data_look(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	return open_there(data, ret_catalogue, NULL, err);
}

enum tw_status tw_cli_data_make(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	struct place p = {.arena = NULL};
	enum tw_status st;

	tw_actor_set_cli();
	(void)umask(077);
	st = tw_folder_make(data, err);
	if (st == TW_OK)
		st = find_place(data, &p, err);
	if (st == TW_OK)
		st = open_catalogue(data, &p, ret_catalogue, err);
	(void)tw_arena_free(p.arena);
	return st;
}

enum tw_status tw_cli_data_make_told(
        const char *data, struct tw_catalogue **ret_catalogue, struct tw_err *err)
{
	bool is_new = !tw_data_catalogue_is_there(data);
	enum tw_status st = tw_cli_data_make(data, ret_catalogue, err);

	if (st == TW_OK && is_new)
		(void)fprintf(stderr, "made a new data folder: %s\n", data);
	return st;
}

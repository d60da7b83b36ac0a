#include "server/cli/admin/cli_migrate_sides.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/config.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/data_catalogue.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/storage/storage_mark.h"
#include "server/catalogue/storage/storage_owner.h"
#include "server/cli/admin/cli_data.h"
#include "server/storage/blob_store.h"
#include "server/storage/s3/s3_http.h"

enum { ARENA_BYTES = 2 << 20, SETTINGS = 9 };

/* --- the command line --- */

static bool is_same_folder(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool has_store_flags(const struct tw_migrate_options *a)
{
	return a->endpoint || a->region || a->ca_file || a->credentials_file || a->timeout ||
	       a->part || a->virtual_host || a->adopt;
}

static enum tw_status check_flags(const struct tw_migrate_options *a, struct tw_err *err)
{
	if (is_same_folder(a->from, a->data))
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
	} said[SETTINGS] = {{"blobs", a->to_blobs}, {"s3-endpoint", a->endpoint},
	        {"s3-region", a->region}, {"s3-ca-file", a->ca_file},
	        {"s3-credentials-file", a->credentials_file}, {"s3-timeout", a->timeout},
	        {"s3-part", a->part}, {"s3-virtual-host", a->virtual_host ? "true" : NULL},
	        {"s3-adopt", a->adopt ? "true" : NULL}};
	struct tw_config config;
	char *args[SETTINGS];
	int n = 0;
	enum tw_status st;

	for (size_t i = 0; i < SETTINGS; i++) {
		if (!said[i].value)
			continue;
		args[n] = tw_arena_printf(arena, "--%s=%s", said[i].name, said[i].value);
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
		st = tw_storage_agree(a->from, &s->from, err);
	if (st == TW_OK)
		st = a->to_blobs ? read_store(a, s->arena, &s->to, err)
		                 : tw_storage_of(a->data, s->arena, &s->to, err);
	if (st == TW_OK)
		st = tw_storage_agree(a->data, &s->to, err);
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
		st = tw_data_catalogue_open(a->from, "", s->from.blobs, &m->rows.from, err);
	if (st == TW_OK)
		tw_small_files_use(m->from, m->rows.from, 0);
	if (st == TW_OK && !m->served)
		st = tw_catalogue_is_served(m->rows.from, &m->served, err);
	return st == TW_OK ? tw_storage_prove(m->rows.from, m->from, &names_files, err) : st;
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
		st = tw_migrate_mark(m, err);
	if (st == TW_OK)
		st = claim_target(a, m, s, err);
	return st == TW_OK ? tw_storage_keep(a->data, &s->to, err) : st;
}

static enum tw_status open_target(const struct tw_migrate_options *a, struct tw_migrate *m,
        const struct tw_migrate_sides *s, struct tw_err *err)
{
	enum tw_status st = tw_folder_make(a->data, err);

	if (st == TW_OK)
		st = open_files(a->data, &s->to, &m->to, err);
	if (st == TW_OK)
		st = tw_data_catalogue_open_target(
		        a->data, a->to_catalog ? a->to_catalog : "", s->to.blobs, &m->rows.to, err);
	return st == TW_OK && !a->verify ? reserve_target(a, m, s, err) : st;
}

enum tw_status tw_migrate_sides_open(const struct tw_migrate_options *a, struct tw_migrate *m,
        struct tw_migrate_sides *ret, struct tw_err *err)
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

void tw_migrate_sides_close(struct tw_migrate *m)
{
	m->rows.from = tw_catalogue_close(m->rows.from);
	m->rows.to = tw_catalogue_close(m->rows.to);
	m->from = tw_blobs_close(m->from);
	m->to = tw_blobs_close(m->to);
}

/*
 * cli_migrate_sides.h - source and target of `tracewell migrate`: a data folder each, its
 * catalogue, and the folder or store of its files.  Thread: one.
 */
#ifndef TW_CLI_MIGRATE_SIDES_H
#define TW_CLI_MIGRATE_SIDES_H

#include "decoder/base/arena.h"
#include "server/base/storage.h"
#include "server/ops/migrate.h"

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

/* Sets m's sides and m->served, after checking that both are permitted.  The caller frees with
 * tw_migrate_sides_close and tw_arena_free, also after a failure. */
enum tw_status tw_migrate_sides_open(const struct tw_migrate_options *a, struct tw_migrate *m,
        struct tw_migrate_sides *ret, struct tw_err *err) TW_MUST_USE;
void tw_migrate_sides_close(struct tw_migrate *m);

#endif

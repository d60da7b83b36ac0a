/*
 * storage_owner.h - records which catalogue owns a prefix of a store.
 *
 * Files there are deleted according to one catalogue, so a prefix belongs to one: the object
 * owner/<id> in the store, and data/storage_owner with that id locally.
 * Thread: one.
 */
#ifndef TW_STORAGE_OWNER_H
#define TW_STORAGE_OWNER_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/base/storage.h"

struct tw_blobs;
struct tw_catalogue;

enum { TW_STORAGE_OWNER = 64 };

struct tw_storage_claim {
	const char *data_dir;
	const struct tw_storage *storage;
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	bool fresh;                   /* the catalogue's files are not copied there yet */
	char never[TW_STORAGE_OWNER]; /* an owner whose prefix s3-adopt does not take over; "":
	                               * none */
};

/* "" if there is none yet. */
enum tw_status tw_storage_id(const struct tw_storage_claim *c, char out[TW_STORAGE_OWNER],
        struct tw_err *err) TW_MUST_USE;

/* Verifies that the catalogue's files are there and the prefix is its own; takes an unowned prefix.
 * After that the store is not held (blob_store.h).  TW_CONFLICT with a message if the prefix
 * belongs to another catalogue, if it is unowned and has files unknown to this catalogue, or if the
 * catalogue's files are missing. */
enum tw_status tw_storage_claim(const struct tw_storage_claim *c, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * storage_owner.h - whose catalogue a prefix of a store is.
 *
 * Files there are deleted by what one catalogue says, so a prefix belongs to one: the object
 * owner/<id> there, and data/storage_owner with that id here.
 * Thread: one.
 */
#ifndef TW_STORAGE_OWNER_H
#define TW_STORAGE_OWNER_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/base/storage.h"

struct tw_app;
struct tw_blobs;
struct tw_catalogue;

enum { TW_STORAGE_OWNER = 64 };

struct tw_storage_claim {
	const char *data_dir;
	const struct tw_storage *storage;
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	bool fresh;                   /* the catalogue's files are only to come there */
	char never[TW_STORAGE_OWNER]; /* whose prefix is not taken over by s3-adopt; "": anybody's
	                               */
};

/* "" none yet. */
enum tw_status tw_storage_id(const struct tw_storage_claim *c, char out[TW_STORAGE_OWNER],
        struct tw_err *err) TW_MUST_USE;

/* Are the catalogue's files there, and is the prefix its own?  Takes one that is nobody's; from
 * then on the store is not held (blob_store.h).  TW_CONFLICT with a sentence when it is another's,
 * when it is nobody's and has files of which this catalogue knows nothing, or when the catalogue's
 * are not there. */
enum tw_status tw_storage_claim(const struct tw_storage_claim *c, struct tw_err *err) TW_MUST_USE;
/* A server's own. */
enum tw_status tw_storage_own(struct tw_app *app, struct tw_err *err) TW_MUST_USE;

#endif

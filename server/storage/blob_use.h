/*
 * blob_use.h - prevents the deletion of a blob before its row exists, with the lock in app.h.
 *
 * In an object store each blob is claimed individually instead (store_claims.h), because a put can
 * take arbitrarily long.
 */
#ifndef TW_BLOB_USE_H
#define TW_BLOB_USE_H

#include "server/base/app.h"
#include "server/storage/blob.h"

static inline void tw_blob_use_begin(struct tw_app *app)
{
	if (!tw_blobs_remote(app->blobs))
		(void)pthread_rwlock_rdlock(&app->blob_use);
}

static inline void tw_blob_use_end(struct tw_app *app)
{
	if (!tw_blobs_remote(app->blobs))
		(void)pthread_rwlock_unlock(&app->blob_use);
}

/* Held while blobs without a row are deleted. */
static inline void tw_blob_drop_begin(struct tw_app *app)
{
	if (!tw_blobs_remote(app->blobs))
		(void)pthread_rwlock_wrlock(&app->blob_use);
}

static inline void tw_blob_drop_end(struct tw_app *app)
{
	tw_blob_use_end(app);
}

#endif

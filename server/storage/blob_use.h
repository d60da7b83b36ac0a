/*
 * blob_use.h - between a blob and its row nobody deletes it: app.h's lock, where it is needed.
 *
 * Of a store elsewhere each blob is claimed by itself (store_claims.h), because putting one takes
 * as long as the store likes.
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

/* While blobs without a row are deleted. */
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

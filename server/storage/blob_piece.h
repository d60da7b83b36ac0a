/*
 * blob_piece.h - pieces of uploads that are not whole, in the storage, where any server reads them.
 *
 * pieces/xy/<upload>-<id>, each put once under a name of its own and never changed; rows say which
 * count (catalogue_resumable.h).  Thread: any; put and open may wait for the store.
 */
#ifndef TW_BLOB_PIECE_H
#define TW_BLOB_PIECE_H

#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

/* Puts what was written, and says how it is called and what it is; durable when it is TW_OK.  Ends
 * the writer. */
enum tw_status tw_piece_put(struct tw_blobs *b, struct tw_blob_writer *w, const char *upload_id,
        char ret_object[TW_STORE_KEY], char ret_sha256[TW_SHA256_HEX],
        struct tw_err *err) TW_MUST_USE;
/* O_RDONLY at its start; TW_NOT_FOUND when it is not there. */
enum tw_status tw_piece_open(
        struct tw_blobs *b, const char *object, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* One that is not there is fine. */
enum tw_status tw_piece_remove(struct tw_blobs *b, const char *object, struct tw_err *err);
/* A file of this server alone that has no name and ends with its descriptor. */
enum tw_status tw_piece_scratch(struct tw_blobs *b, int *ret_fd, struct tw_err *err) TW_MUST_USE;

#endif

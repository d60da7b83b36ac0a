/*
 * blob_piece.h - pieces of incomplete uploads, in the storage, readable by any server.
 *
 * pieces/xy/<upload>-<id>, each written once under a unique name and never changed; rows list the
 * valid ones (catalogue_resumable.h).
 * Thread: any; put and open may wait for the store.
 */
#ifndef TW_BLOB_PIECE_H
#define TW_BLOB_PIECE_H

#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

/* Stores the written bytes and returns their name and hash; durable on TW_OK.  Ends the writer. */
enum tw_status tw_piece_put(struct tw_blobs *b, struct tw_blob_writer *w, const char *upload_id,
        char ret_object[TW_STORE_KEY], char ret_sha256[TW_SHA256_HEX],
        struct tw_err *err) TW_MUST_USE;
/* O_RDONLY at its start; TW_NOT_FOUND if missing. */
enum tw_status tw_piece_open(
        struct tw_blobs *b, const char *object, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Succeeds if the piece is missing. */
enum tw_status tw_piece_remove(struct tw_blobs *b, const char *object, struct tw_err *err);
/* An unnamed local file that is deleted when its descriptor is closed.  TW_FULL if the disk has no
 * space for that many bytes. */
enum tw_status tw_piece_scratch(
        struct tw_blobs *b, uint64_t bytes, int *ret_fd, struct tw_err *err) TW_MUST_USE;

#endif

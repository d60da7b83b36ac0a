/*
 * need_blobs.h - commits rows that refer to files only while those files exist, as another server
 * may delete a file that no row refers to yet.
 *
 * Thread: the same for both calls.
 */
#ifndef TW_NEED_BLOBS_H
#define TW_NEED_BLOBS_H

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

struct tw_needed_blobs {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	const char *sha256[2]; /* NULL: none */
	bool lost;
};
void tw_need_blobs(struct tw_needed_blobs *n);
/* Returns st, or TW_BUSY with a message if a file was deleted. */
enum tw_status tw_end_need_blobs(
        struct tw_needed_blobs *n, enum tw_status st, struct tw_err *err) TW_MUST_USE;

#endif

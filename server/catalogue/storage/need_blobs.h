/*
 * need_blobs.h - rows that name files are written only while those files are there, as another
 * server may delete a file that no row names yet.
 *
 * Thread: between the two calls, one.
 */
#ifndef TW_NEED_BLOBS_H
#define TW_NEED_BLOBS_H

#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

struct tw_needed_blobs {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	const char *sha256[2]; /* NULL: none */
	bool lost;
};
void tw_need_blobs(struct tw_needed_blobs *n);
/* Gives st, or TW_BUSY in words where a file is gone. */
enum tw_status tw_end_need_blobs(
        struct tw_needed_blobs *n, enum tw_status st, struct tw_err *err) TW_MUST_USE;

#endif

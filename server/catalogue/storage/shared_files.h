/*
 * shared_files.h - servers that share a catalogue delete no file that another one is about to use.
 *
 * In a data folder, rows that refer to files are committed only while those files exist.  In a
 * store, a writer holds the lock of a key shared until the store confirmed the object; a deleter
 * holds it exclusively, and skips recently written objects, as their rows may not be committed yet.
 */
#ifndef TW_SHARED_FILES_H
#define TW_SHARED_FILES_H

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

struct tw_needed_blobs {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	const char *sha256[2]; /* NULL: none */
	bool lost;
};
/* Call both in the same thread. */
void tw_need_blobs(struct tw_needed_blobs *n);
/* Returns st, or TW_BUSY with a message if a file was deleted. */
enum tw_status tw_end_need_blobs(
        struct tw_needed_blobs *n, enum tw_status st, struct tw_err *err) TW_MUST_USE;

/* Call at start.  Does nothing for a single server, or if files are in its folder. */
void tw_store_peers_use(struct tw_blobs *b, struct tw_catalogue *c);

#endif

/*
 * small_file.h - small uploads and decoded traces in rows of PostgreSQL instead of objects of a
 * store (--small-files).
 *
 * A row is added by the transaction that accepts the upload or makes the trace ready, and deleted
 * with the trace's rows, so that no object is written, listed or deleted for it.  Readers look for
 * a row first; in a server that adds none and found none at its start, only if the store lacks the
 * file.  Thread: any.
 */
#ifndef TW_SMALL_FILE_H
#define TW_SMALL_FILE_H

#include <stdint.h>

struct tw_blobs;
struct tw_catalogue;

#define TW_SMALL_DECODED "decoded" /* the part under which a trace file has its row */

/* From now on, files are read from rows, if the catalogue is in PostgreSQL and the files in a
 * store; new files up to most_bytes are to be in rows. */
void tw_small_files_use(struct tw_blobs *b, struct tw_catalogue *c, uint64_t most_bytes);

#endif

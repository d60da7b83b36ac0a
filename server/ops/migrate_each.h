/*
 * migrate_each.h - calls a function for every file that a catalogue references, several in
 * parallel.
 *
 * Object storage serves many requests in parallel; sequential requests would mostly wait.  Names
 * are read in pages, so memory does not grow with their number.  Thread: the caller's.
 */
#ifndef TW_MIGRATE_EACH_H
#define TW_MIGRATE_EACH_H

#include "decoder/base/err.h"
#include "server/storage/blob_store.h"

struct tw_catalogue;

enum { TW_MIGRATE_THREADS = 8, TW_MIGRATE_NAME = 200 };

struct tw_migrate_file {
	char key[TW_STORE_KEY];     /* blob_store.h; "" invalid name */
	char sha256[TW_SHA256_HEX]; /* "" unknown: a decoded file that a rebuild found */
	uint64_t bytes;             /* 0 unknown */
	unsigned thread_index;      /* below TW_MIGRATE_THREADS, unique among concurrent calls */
	char id[TW_MIGRATE_NAME], what[TW_MIGRATE_NAME]; /* for messages */
};

/* Called by several threads in parallel. */
typedef enum tw_status (*tw_migrate_one)(
        void *arg, const struct tw_migrate_file *f, struct tw_err *err);

/* Mappings, uploads and decoded files.  Stops at the first failure, after running calls ended. */
enum tw_status tw_migrate_each(
        struct tw_catalogue *of, tw_migrate_one one, void *arg, struct tw_err *err) TW_MUST_USE;
/* The number of files; 0 if unknown. */
uint64_t tw_migrate_count(struct tw_catalogue *c);

#endif

/*
 * migrate_each.h - something done to every file that a catalogue names, a few at a time.
 *
 * A store elsewhere answers many at once, and one after the other it would be waited for most of
 * the time.  Names are read a page at a time, so memory does not grow with them.  Thread: the
 * caller's.
 */
#ifndef TW_MIGRATE_EACH_H
#define TW_MIGRATE_EACH_H

#include "server/catalogue/catalogue.h"
#include "server/storage/blob_store.h"

enum { TW_MIGRATE_HANDS = 8, TW_MIGRATE_NAME = 200 };

struct tw_migrate_file {
	char key[TW_STORE_KEY];     /* blob_store.h; "" its name is none */
	char sha256[TW_SHA256_HEX]; /* "" not known: an older program kept none of what it decoded
	                             */
	uint64_t bytes;             /* 0 not known */
	unsigned hand;              /* below TW_MIGRATE_HANDS; no other has it meanwhile */
	char id[TW_MIGRATE_NAME], what[TW_MIGRATE_NAME]; /* for sentences */
};

/* In several threads at once. */
typedef enum tw_status (*tw_migrate_one)(
        void *arg, const struct tw_migrate_file *f, struct tw_err *err);

/* Mappings, uploads and decoded files.  Ends with the first failure, when those under way ended. */
enum tw_status tw_migrate_each(
        struct tw_catalogue *of, tw_migrate_one one, void *arg, struct tw_err *err) TW_MUST_USE;
/* How many there are; 0 where it cannot be told. */
uint64_t tw_migrate_count(struct tw_catalogue *c);

#endif

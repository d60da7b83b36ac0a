/*
 * blob_store.h - where files are kept: what a storage engine is.
 *
 * Whole files by key ("blobs/ab/<sha256>", "traces/ab/cd/<id>.db"), put from spool/ and read as a
 * descriptor of this machine.  A new engine is one file that defines a tw_store_engine, and one
 * line in blob_store.c.  What is kept for how long, and who may, is not decided here.
 * Thread: any.
 */
#ifndef TW_BLOB_STORE_H
#define TW_BLOB_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/storage.h"
#include "server/storage/blob.h"

enum { TW_STORE_KEY = 96 };
_Static_assert(TW_STORE_KEY >= sizeof "blobs/ab/" + TW_SHA256_HEX, "the longest key fits");
_Static_assert(
        TW_STORE_KEY >= sizeof "pieces/ab/" + (size_t)2 * TW_ID_CHARS + 1, "and that of a piece");

struct tw_store_place {
	const char *data_dir;
	const struct tw_storage *storage;
	unsigned min_free_percent;
	uint64_t reserve_bytes; /* that the data folder sets aside (reserve.h); 0: nothing */
	bool serves; /* a server: others use the folder beside it, and leave its cache alone */
};

/* The keys of content and of trace files; false: nothing has such a name. */
bool tw_blob_key(const char *sha256, char out[TW_STORE_KEY]);
bool tw_trace_key(const char *trace_id, char out[TW_STORE_KEY]);

struct tw_store_file {
	const char *key;
	uint64_t bytes;
	int64_t modified_ms;
	char sha256[TW_SHA256_HEX]; /* look: what it was put as; "" not known */
};

struct tw_store_put { /* a whole file on its way in; one caller's */
	const char *key, *sha256;
	uint64_t bytes;
	const char *path; /* where it lies in spool/; taken away.  "" (remote): fd is all of it */
	int fd;           /* of it, open until the end */
	/* It takes the place of another of that name, its bytes are synced, and it is durable when
	 * put returns. */
	bool replaces;
	void *state; /* the engine's, from put to end */
};

typedef enum tw_status tw_store_each(void *arg, const struct tw_store_file *f, struct tw_err *err);

struct tw_store_engine {
	const char *scheme; /* that --blobs begins with; "" the folder's */
	/* Files are elsewhere: calls take their time and may fail for a while (TW_BUSY). */
	bool remote;
	enum tw_status (*open)(const struct tw_store_place *p, void **ret, struct tw_err *err);
	void (*close)(void *s);
	void (*stop)(void *s); /* nothing is waited for any more; NULL: nothing is */
	/* Begins; nothing counts on the file before wait said that it is durable. end is owed. */
	enum tw_status (*put)(void *s, struct tw_store_put *p, struct tw_err *err);
	enum tw_status (*wait)(void *s, struct tw_store_put *p, struct tw_err *err);
	void (*end)(void *s, struct tw_store_put *p);
	/* O_RDONLY at 0, whole and what was put.  TW_NOT_FOUND when it is not there; TW_BUSY when
	 * it is not here by then (monotonic; 0: whenever). */
	enum tw_status (*get)(
	        void *s, const char *key, int64_t until_ms, int *ret_fd, struct tw_err *err);
	/* What is here of it goes, so that it is got anew; false: nothing was here.  NULL: never.
	 */
	bool (*forget)(void *s, const char *key);
	/* The disk is short: what is elsewhere too goes; false: it still is.  NULL: nothing is. */
	bool (*yield)(void *s);
	enum tw_status (*look)(
	        void *s, const char *key, struct tw_store_file *ret, struct tw_err *err);
	/* One that is not there is fine. */
	enum tw_status (*remove)(void *s, const char *key, struct tw_err *err);
	/* The same by one try that ends soon.  NULL: remove does. */
	enum tw_status (*remove_once)(void *s, const char *key, struct tw_err *err);
	/* Unix time by the clock that its files' times are of.  NULL: ours. */
	int64_t (*now_ms)(void *s);
	/* All below "blobs" or "traces". */
	enum tw_status (*list)(
	        void *s, const char *folder, tw_store_each *each, void *arg, struct tw_err *err);
	/* May uploads be taken?  Asks nobody.  NULL: always. */
	enum tw_status (*ready)(void *s, struct tw_err *err);
	/* Asks, so that ready knows; TW_DENIED when asking again is no use.  NULL: nothing to ask.
	 */
	enum tw_status (*probe)(void *s, struct tw_err *err);
	/* Sends one request of at most two seconds, unless others were answered a moment ago.
	 * TW_BUSY: the store has not answered for two seconds; after five, ready fails too.  NULL:
	 * a store that is always there. */
	enum tw_status (*ping)(void *s, struct tw_err *err);
	/* ready says no with that sentence until hold says NULL.  NULL: nothing to hold. */
	void (*hold)(void *s, const struct tw_err *why);
	/* What was begun before that time and never ended goes.  NULL: nothing is. */
	enum tw_status (*tidy)(void *s, int64_t before_ms, struct tw_err *err);
	void (*metrics)(void *s, struct tw_buf *out); /* s NULL: nothing happened */
	/* An address to which anybody may put that file for so long.  NULL: there is none. */
	enum tw_status (*address)(void *s, const struct tw_store_put *p, unsigned expires_s,
	        struct tw_buf *out, struct tw_err *err);
};

extern const struct tw_store_engine tw_store_folder, tw_store_s3;

/* The engine of --blobs; TW_BAD_REQUEST with a sentence when there is none. */
enum tw_status tw_store_engine_of(
        const char *blobs, const struct tw_store_engine **ret, struct tw_err *err) TW_MUST_USE;

#endif

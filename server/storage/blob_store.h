/*
 * blob_store.h - the interface of a storage engine.
 *
 * Stores complete files by key ("blobs/ab/<sha256>", "traces/ab/<id>.db"), written from spool/
 * and read through a local descriptor.  A new engine is one file that defines a tw_store_engine,
 * and one line in blob.c.  Retention and permissions are decided by callers.
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

struct tw_store_endpoint {
	const char *data_dir;
	const struct tw_storage *storage;
	unsigned min_free_percent;
	uint64_t reserve_bytes; /* size of the data folder's reserve (disk.h); 0: none */
	bool serves; /* a server; other programs share the folder with it and leave its cache
	              * alone */
};

/* The keys of content and of trace files; false: invalid name. */
bool tw_blob_key(const char *sha256, char out[TW_STORE_KEY]);
bool tw_trace_key(const char *trace_id, char out[TW_STORE_KEY]);

/* Fails with errno: TW_FULL, TW_BUSY if the server is out of descriptors or memory, or TW_IO. */
enum tw_status tw_store_fail_errno(const char *doing, const char *path, struct tw_err *err);
enum tw_status tw_store_sync_folder(const char *path, struct tw_err *err) TW_MUST_USE;

struct tw_store_file {
	const char *key;
	uint64_t bytes;
	int64_t modified_ms;
	char sha256[TW_SHA256_HEX]; /* stat_file: the hash stored with the file; "" unknown */
};

struct tw_store_put { /* a complete file being written; used by one caller */
	const char *key, *sha256;
	uint64_t bytes;
	const char *path; /* its path in spool/; the file is removed from there.  "" (remote): only
	                   * fd */
	int fd;           /* open until the end */
	/* It replaces a file of that key; its bytes are synced, and it is durable when put
	 * returns. */
	bool replaces;
	void *state; /* for the engine, from put to end */
};

typedef enum tw_status tw_store_each(void *arg, const struct tw_store_file *f, struct tw_err *err);

struct tw_store_engine {
	const char *scheme; /* prefix of --blobs; "" for the folder */
	/* Files are in an object store: calls are slow and may fail temporarily (TW_BUSY). */
	bool remote;
	enum tw_status (*open)(const struct tw_store_endpoint *p, void **ret, struct tw_err *err);
	void (*close)(void *s);
	void (*stop)(void *s); /* cancels waits; NULL: the engine never waits */
	/* Starts a write; nothing may refer to the file before wait succeeded.  Always call end. */
	enum tw_status (*put)(void *s, struct tw_store_put *p, struct tw_err *err);
	enum tw_status (*wait)(void *s, struct tw_store_put *p, struct tw_err *err);
	void (*end)(void *s, struct tw_store_put *p);
	/* O_RDONLY at 0, complete and verified.  TW_NOT_FOUND if missing; TW_BUSY if it is not
	 * fetched by until_ms (monotonic; 0: no limit). */
	enum tw_status (*get)(
	        void *s, const char *key, int64_t until_ms, int *ret_fd, struct tw_err *err);
	/* Deletes the local copy, so that the file is fetched again; false: there was none.  NULL:
	 * no local copies. */
	bool (*forget)(void *s, const char *key);
	/* The disk is nearly full: deletes local copies; false: that was not enough.  NULL: no
	 * local copies. */
	bool (*yield)(void *s);
	enum tw_status (*stat_file)(
	        void *s, const char *key, struct tw_store_file *ret, struct tw_err *err);
	/* Succeeds if the file is missing. */
	enum tw_status (*remove)(void *s, const char *key, struct tw_err *err);
	/* The same with a single short attempt.  NULL: use remove. */
	enum tw_status (*remove_once)(void *s, const char *key, struct tw_err *err);
	/* Unix time by the clock of the files' timestamps.  NULL: the local clock. */
	int64_t (*now_ms)(void *s);
	/* All files below "blobs" or "traces". */
	enum tw_status (*list)(
	        void *s, const char *folder, tw_store_each *each, void *arg, struct tw_err *err);
	/* Whether uploads can be accepted; sends no request.  NULL: always. */
	enum tw_status (*ready)(void *s, struct tw_err *err);
	/* Sends a request to update the state of ready; TW_DENIED if retrying is pointless.  NULL:
	 * not needed. */
	enum tw_status (*probe)(void *s, struct tw_err *err);
	/* Sends one request of at most two seconds, unless another was just answered.  TW_BUSY: the
	 * store has not answered for two seconds; after five, ready fails too.  NULL: the storage
	 * is always available. */
	enum tw_status (*ping)(void *s, struct tw_err *err);
	/* Makes ready fail with this error until hold is called with NULL.  NULL: not supported. */
	void (*hold)(void *s, const struct tw_err *why);
	/* Deletes unfinished writes begun before that time.  NULL: there are none. */
	enum tw_status (*tidy)(void *s, int64_t before_ms, struct tw_err *err);
	void (*metrics)(void *s, struct tw_buf *out); /* s NULL: zero values */
	/* A presigned URL for uploading this file, valid for expires_s.  NULL: not supported. */
	enum tw_status (*address)(void *s, const struct tw_store_put *p, unsigned expires_s,
	        struct tw_buf *out, struct tw_err *err);
};

extern const struct tw_store_engine tw_store_folder, tw_store_s3;

/* The engine of --blobs; TW_BAD_REQUEST with a message if unknown. */
enum tw_status tw_store_engine_of(
        const char *blobs, const struct tw_store_engine **ret, struct tw_err *err) TW_MUST_USE;

#endif

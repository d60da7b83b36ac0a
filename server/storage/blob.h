/*
 * blob.h - files by content (uploads and mappings), and trace files by trace id.
 *
 * A file is written to data/spool/<ulid>, then passed to the storage engine (blob_store.h): the
 * data folder (blobs/ab/<sha256> and traces/ab/<id>.db) or an object store, where these are
 * keys.  It is durable there before anything refers to it (I1).  Leftovers of a crash in spool/,
 * and files without a row, are removed (I9).  Contents are not inspected here.
 * While an object store does not answer, calls return TW_BUSY.
 * Thread: a writer belongs to one request; all other functions may be called by any.
 */
#ifndef TW_BLOB_H
#define TW_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/file/sha256.h"

enum { TW_ID_CHARS = 26 };

struct tw_blobs;
struct tw_blob_writer;
struct tw_store_endpoint;
struct tw_store_engine;

/* Creates missing folders under data_dir.  Writes fail with TW_FULL if less than min_free_percent
 * of the disk would remain free. */
enum tw_status tw_blobs_open(const char *data_dir, unsigned min_free_percent, struct tw_blobs **ret,
        struct tw_err *err) TW_MUST_USE;
/* The same for the storage described by `p`. */
enum tw_status tw_blobs_open_at(
        const struct tw_store_endpoint *p, struct tw_blobs **ret, struct tw_err *err) TW_MUST_USE;
struct tw_blobs *tw_blobs_close(struct tw_blobs *b);
/* TW_BUSY while the store is known not to answer; sends no request. */
enum tw_status tw_blobs_ready(const struct tw_blobs *b, struct tw_err *err);
bool tw_blobs_remote(const struct tw_blobs *b); /* files are in an object store */
/* For tasks over all files, and for direct access to the store. */
const struct tw_store_engine *tw_blobs_engine(const struct tw_blobs *b, void **ret_store);
/* Claims a file for deletion.  False while it is being written, or while another program has the
 * data folder open: retry later.  Look for rows only after claiming.  Always true in the data
 * folder, where tw_blob_drop_begin provides the exclusion.  Thread: one. */
bool tw_blobs_claim_exclusive(struct tw_blobs *b, const char *key);
/* With several servers, checks that the claim still holds: TW_CONFLICT if it was lost and another
 * server may have it. */
enum tw_status tw_blobs_still_exclusive(
        struct tw_blobs *b, const char *key, struct tw_err *err) TW_MUST_USE;
/* False: the claim was lost before, or that is unknown. */
bool tw_blobs_claim_exclusive_end(struct tw_blobs *b, const char *key);

enum tw_status tw_blob_begin(struct tw_blobs *b, uint64_t max_bytes, struct tw_blob_writer **ret,
        struct tw_err *err) TW_MUST_USE;
/* TW_TOO_LARGE past max_bytes, TW_FULL if the disk is full. */
enum tw_status tw_blob_write(
        struct tw_blob_writer *w, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Appends the rest of fd. */
enum tw_status tw_blob_write_fd(struct tw_blob_writer *w, int fd, struct tw_err *err) TW_MUST_USE;
/* Stores the file under the name of its content (equal content once) and starts to make it durable.
 * Nothing may refer to it before tw_blob_wait succeeded. */
enum tw_status tw_blob_store(struct tw_blob_writer *w, struct tw_err *err) TW_MUST_USE;
/* Waits until file and name are durable, or fails.  Thread: any; after tw_blob_store. */
enum tw_status tw_blob_wait(struct tw_blob_writer *w, struct tw_err *err);
/* Instead of tw_blob_store: reads the content, as hex digits and a 0, into `out`, and removes the
 * file. */
enum tw_status tw_blob_take_content(
        struct tw_blob_writer *w, char *out, size_t cap, struct tw_err *err) TW_MUST_USE;
/* after tw_blob_store or tw_blob_take_content, until tw_blob_end */
const char *tw_blob_sha256(const struct tw_blob_writer *w);
uint64_t tw_blob_bytes(const struct tw_blob_writer *w); /* written so far */
/* Ends a writer after tw_blob_wait; the blob remains.  Returns NULL. */
struct tw_blob_writer *tw_blob_end(struct tw_blob_writer *w);
/* tw_blob_store, tw_blob_wait and tw_blob_end.  On failure, free w with tw_blob_discard. */
enum tw_status tw_blob_commit(
        struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX], struct tw_err *err) TW_MUST_USE;
struct tw_blob_writer *tw_blob_discard(struct tw_blob_writer *w); /* accepts NULL; returns NULL */
/* Ends a writer and leaves its file at `path` in spool/ to the caller.  On failure, free w with
 * tw_blob_discard. */
enum tw_status tw_blob_set_aside(struct tw_blob_writer *w, const char *path,
        char ret_sha256[TW_SHA256_HEX], struct tw_err *err) TW_MUST_USE;
/* Stores such a file like tw_blob_commit.  Only with files in the data folder. */
enum tw_status tw_blob_take(
        struct tw_blobs *b, const char *path, const char *sha256, struct tw_err *err) TW_MUST_USE;

enum tw_status tw_blob_open(struct tw_blobs *b, const char *sha256, int *ret_fd,
        struct tw_err *err) TW_MUST_USE; /* O_RDONLY | O_CLOEXEC */
/* TW_BUSY if the file was not fetched by until_ms (monotonic; 0: no limit); fetching continues. */
enum tw_status tw_blob_open_by(struct tw_blobs *b, const char *sha256, int64_t until_ms,
        int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Reads the complete file: TW_NOT_FOUND if missing, TW_CORRUPT if its content does not match its
 * name and `bytes`. */
enum tw_status tw_blob_check(
        struct tw_blobs *b, const char *sha256, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
/* Its size as reported by the storage. */
enum tw_status tw_blob_stat(struct tw_blobs *b, const char *sha256, uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_blob_delete(struct tw_blobs *b, const char *sha256, struct tw_err *err);

/* Equal content shares one file, so blobs without a row are deleted only while no upload is between
 * a blob's commit and its row.  Does nothing with object storage: there each blob is claimed
 * individually (store_claims.c), because a put can take arbitrarily long. */
void tw_blob_use_begin(struct tw_blobs *b);
void tw_blob_use_end(struct tw_blobs *b);
void tw_blob_drop_begin(struct tw_blobs *b); /* waits for uses; excludes new ones */
void tw_blob_drop_end(struct tw_blobs *b);

/* Path of a trace file in the data folder: traces/ab/<id>.db, from the id's last characters. */
enum tw_status tw_trace_path(
        struct tw_blobs *b, const char *trace_id, char *out, size_t cap, struct tw_err *err);
/* O_RDONLY | O_CLOEXEC; TW_NOT_FOUND if missing. */
enum tw_status tw_trace_open(
        struct tw_blobs *b, const char *trace_id, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Like tw_blob_open_by. */
enum tw_status tw_trace_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Deletes the local copy, so that it is fetched again; false: there was none. */
bool tw_trace_forget(struct tw_blobs *b, const char *trace_id);
enum tw_status tw_trace_stat(struct tw_blobs *b, const char *trace_id, uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;
/* Succeeds if the file is missing. */
enum tw_status tw_trace_delete(struct tw_blobs *b, const char *trace_id, struct tw_err *err);

/* Moves a finished trace file, already synced, to its place and makes the move durable. */
enum tw_status tw_trace_publish(struct tw_blobs *b, const char *tmp_path, const char *trace_id,
        struct tw_err *err) TW_MUST_USE;

struct tw_blob_peers { /* coordination with other servers that write to and delete from the same
	                * store */
	/* Holds a key, shared with other writers or exclusively.  Shared: waits for a limited time
	 * (TW_BUSY).  Exclusively: *ret is 0 immediately if any server holds the key.  *ret is
	 * passed to the other functions. */
	enum tw_status (*hold)(
	        void *arg, const char *key, bool exclusive, uint64_t *ret, struct tw_err *err);
	/* Checks that the key is still held exclusively.  TW_CONFLICT: it was lost. */
	enum tw_status (*still)(void *arg, const char *key, uint64_t held, struct tw_err *err);
	/* TW_BUSY: it had already been lost. */
	enum tw_status (*let_go)(
	        void *arg, const char *key, bool exclusive, uint64_t held, struct tw_err *err);
	void *arg;
};
void tw_blobs_honour_peers(struct tw_blobs *b, const struct tw_blob_peers *p);
bool tw_blobs_have_peers(const struct tw_blobs *b);

struct tw_blob_rows { /* small files in rows of the catalogue (small_file.h) */
	/* A descriptor at offset 0; TW_NOT_FOUND: no row has it.  sha256 NULL: the trace's file. */
	enum tw_status (*get)(void *arg, const char *sha256, const char *trace_id, int *ret_fd,
	        struct tw_err *err);
	enum tw_status (*size)(void *arg, const char *sha256, const char *trace_id,
	        uint64_t *ret_bytes, struct tw_err *err);
	void *arg;
	uint64_t most_bytes; /* of a new file that is to be in rows; 0: none is */
	bool are_rare;       /* look for rows only if the store lacks the file */
};
/* From now on, files are read from rows too. */
void tw_blobs_use_rows(struct tw_blobs *b, const struct tw_blob_rows *rows);
bool tw_blobs_have_rows(const struct tw_blobs *b);
uint64_t tw_blobs_row_bytes(const struct tw_blobs *b); /* most_bytes */

/* Servers that share a data folder have one spool folder each; the others remove it when its server
 * is dead.  A server is alive while it holds a lock on a file in its folder, which ends with the
 * process; so the file system must support flock across machines. */
/* Spools files in spool/NAME/ from now on. */
enum tw_status tw_blobs_own_spool(
        struct tw_blobs *b, const char *name, struct tw_err *err) TW_MUST_USE;
/* Whether the server of a spool folder is dead.  If so, the caller removes the contents. */
bool tw_spool_is_dead(const char *path);

/* Path of a file of that name in spool/, which is emptied at the next start. */
void tw_spool_path(struct tw_blobs *b, const char *name, char *out, size_t cap);

/* TW_FULL if the disk has too little free space, or while the reserve is not complete. */
enum tw_status tw_blobs_check_space(const struct tw_blobs *b, uint64_t bytes, struct tw_err *err);
/* Bytes of the disk that --min-free keeps free. */
uint64_t tw_blobs_min_free_bytes(const struct tw_blobs *b);
/* Bytes that temporary files may take: what is free above these. */
uint64_t tw_blobs_spare_bytes(const struct tw_blobs *b);
/* Checks only the reserve. */
enum tw_status tw_blobs_check_reserve(const struct tw_blobs *b, struct tw_err *err);
/* Tests whether the data folder is writable.  Also allocates the reserve again if there is
 * space. */
enum tw_status tw_blobs_probe(struct tw_blobs *b, struct tw_err *err);

/* Creates a folder durably; succeeds if it exists. */
enum tw_status tw_folder_make(const char *path, struct tw_err *err) TW_MUST_USE;

/* Prevents the deletion of the trace's file until tw_trace_release: from writing it until its row
 * refers to it. */
enum tw_status tw_trace_hold(
        struct tw_blobs *b, const char *trace_id, struct tw_err *err) TW_MUST_USE;
void tw_trace_release(struct tw_blobs *b, const char *trace_id);

/* Cancels waits: requests to an object store fail from now on. */
void tw_blobs_stop(struct tw_blobs *b);

/* The data folder. */
const char *tw_blobs_dir(const struct tw_blobs *b);

#endif

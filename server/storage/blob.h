/*
 * blob.h - bytes by content: uploads and mappings; and trace files, by the trace.
 *
 * data/spool/<ulid> while it arrives, then handed to the storage engine (blob_store.h): the data
 * folder, blobs/ab/<sha256> and traces/ab/cd/<id>.db, or a store elsewhere, where the same are
 * keys. It is durable there before anything counts on it (I1).  What a crash leaves in spool/, and
 * what it leaves without a row, is removed (I9).  Nothing here looks at the content.
 * While a store elsewhere does not answer, calls are TW_BUSY.
 * Thread: a writer belongs to one request; the rest may be called by any.
 */
#ifndef TW_BLOB_H
#define TW_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/file/digest.h"

enum { TW_ID_CHARS = 26 };

struct tw_blobs;
struct tw_blob_writer;
struct tw_store_place;
struct tw_store_engine;

/* Makes the folders under data_dir when they are missing.  Accepting stops (TW_FULL) when less
 * than min_free_percent of the disk would stay free. */
enum tw_status tw_blobs_open(const char *data_dir, unsigned min_free_percent, struct tw_blobs **ret,
        struct tw_err *err) TW_MUST_USE;
/* The same where files are kept as `p` says. */
enum tw_status tw_blobs_open_at(
        const struct tw_store_place *p, struct tw_blobs **ret, struct tw_err *err) TW_MUST_USE;
struct tw_blobs *tw_blobs_close(struct tw_blobs *b);
/* TW_BUSY while the store is known not to answer: asks nobody. */
enum tw_status tw_blobs_ready(const struct tw_blobs *b, struct tw_err *err);
bool tw_blobs_remote(const struct tw_blobs *b); /* files are not in the data folder */
/* For what looks after all files, or at the store itself. */
const struct tw_store_engine *tw_blobs_engine(const struct tw_blobs *b, void **ret_store);
/* May a file be deleted now?  False while somebody puts it, or a program beside the server has the
 * folder open: another time then.  Thread: one.  Rows are to be looked for behind this.  Always
 * true in the data folder, where blob_use (app.h) does that. */
bool tw_blobs_claim_alone(struct tw_blobs *b, const char *key);
/* Asks, of several servers: TW_CONFLICT when the claim was lost, and another may have it. */
enum tw_status tw_blobs_claim_alone_still(
        struct tw_blobs *b, const char *key, struct tw_err *err) TW_MUST_USE;
/* False: it was lost meanwhile, or nobody can say. */
bool tw_blobs_claim_alone_end(struct tw_blobs *b, const char *key);

enum tw_status tw_blob_begin(struct tw_blobs *b, uint64_t max_bytes, struct tw_blob_writer **ret,
        struct tw_err *err) TW_MUST_USE;
/* TW_TOO_LARGE past max_bytes, TW_FULL when the disk is. */
enum tw_status tw_blob_write(
        struct tw_blob_writer *w, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* All that is left to read from fd. */
enum tw_status tw_blob_write_fd(struct tw_blob_writer *w, int fd, struct tw_err *err) TW_MUST_USE;
/* Puts it under its content's name, where equal content is stored once, and begins to make that
 * durable.  Nothing may count on the file before tw_blob_wait said that it is. */
enum tw_status tw_blob_place(struct tw_blob_writer *w, struct tw_err *err) TW_MUST_USE;
/* Returns when file and name are durable, or why they are not.  Thread: any, of a placed writer. */
enum tw_status tw_blob_wait(struct tw_blob_writer *w, struct tw_err *err);
const char *tw_blob_sha256(const struct tw_blob_writer *w); /* once placed; until its end */
uint64_t tw_blob_bytes(const struct tw_blob_writer *w);     /* written so far */
/* Ends a placed writer; the blob stays.  Waits first.  Returns NULL. */
struct tw_blob_writer *tw_blob_end(struct tw_blob_writer *w);
/* place, wait and end; on failure w stays the caller's to discard. */
enum tw_status tw_blob_commit(
        struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX], struct tw_err *err) TW_MUST_USE;
struct tw_blob_writer *tw_blob_discard(struct tw_blob_writer *w); /* NULL is fine; returns NULL */
/* Ends a writer whose file is the caller's from here on, at `path` in spool/; on failure w stays
 * the caller's to discard. */
enum tw_status tw_blob_set_aside(struct tw_blob_writer *w, const char *path,
        char ret_sha256[TW_SHA256_HEX], struct tw_err *err) TW_MUST_USE;
/* Such a file becomes what tw_blob_commit makes.  The data folder's alone. */
enum tw_status tw_blob_take(
        struct tw_blobs *b, const char *path, const char *sha256, struct tw_err *err) TW_MUST_USE;

enum tw_status tw_blob_open(struct tw_blobs *b, const char *sha256, int *ret_fd,
        struct tw_err *err) TW_MUST_USE; /* O_RDONLY | O_CLOEXEC */
/* TW_BUSY when it is not here by then (monotonic; 0: whenever): it is on its way all the same. */
enum tw_status tw_blob_open_by(struct tw_blobs *b, const char *sha256, int64_t until_ms,
        int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Reads it all: TW_NOT_FOUND when it is not there, TW_CORRUPT when it is not what its name and
 * `bytes` say. */
enum tw_status tw_blob_check(
        struct tw_blobs *b, const char *sha256, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
/* Its size as the storage tells it. */
enum tw_status tw_blob_look(struct tw_blobs *b, const char *sha256, uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_blob_delete(struct tw_blobs *b, const char *sha256, struct tw_err *err);

/* Path of a trace file in the data folder: traces/ab/cd/<id>.db, from the id's last characters. */
enum tw_status tw_trace_path(
        struct tw_blobs *b, const char *trace_id, char *out, size_t cap, struct tw_err *err);
/* O_RDONLY | O_CLOEXEC; TW_NOT_FOUND when it is not there. */
enum tw_status tw_trace_open(
        struct tw_blobs *b, const char *trace_id, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* As tw_blob_open_by. */
enum tw_status tw_trace_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* Its copy on this machine goes, and is fetched anew; false: there was none. */
bool tw_trace_forget(struct tw_blobs *b, const char *trace_id);
enum tw_status tw_trace_look(struct tw_blobs *b, const char *trace_id, uint64_t *ret_bytes,
        struct tw_err *err) TW_MUST_USE;
/* One that is not there is fine. */
enum tw_status tw_trace_delete(struct tw_blobs *b, const char *trace_id, struct tw_err *err);

/* Moves a finished trace file, whose bytes are synced, to its place and makes the move durable. */
enum tw_status tw_trace_publish(struct tw_blobs *b, const char *tmp_path, const char *trace_id,
        struct tw_err *err) TW_MUST_USE;

struct tw_blob_peers { /* other servers that put into the same store, and delete from it */
	/* With those who put it too, for which it waits a while (TW_BUSY), or alone: *ret, which
	 * the others take, 0 at once when anybody has it. */
	enum tw_status (*hold)(
	        void *arg, const char *key, bool alone, uint64_t *ret, struct tw_err *err);
	/* Asks whether it is held alone as yet.  TW_CONFLICT: it was lost. */
	enum tw_status (*still)(void *arg, const char *key, uint64_t held, struct tw_err *err);
	/* TW_BUSY: it was lost before. */
	enum tw_status (*let_go)(
	        void *arg, const char *key, bool alone, uint64_t held, struct tw_err *err);
	void *arg;
};
void tw_blobs_heed_peers(struct tw_blobs *b, const struct tw_blob_peers *p);
bool tw_blobs_have_peers(const struct tw_blobs *b);

/* Where several servers have one data folder: from here on files are spooled in spool/NAME/. */
enum tw_status tw_blobs_own_spool(
        struct tw_blobs *b, const char *name, struct tw_err *err) TW_MUST_USE;

/* Path of a file of that name in spool/, which the next start empties. */
void tw_spool_path(struct tw_blobs *b, const char *name, char *out, size_t cap);

/* TW_FULL below the disk's floor, or while the reserve is not complete. */
enum tw_status tw_blobs_check_room(const struct tw_blobs *b, struct tw_err *err);
/* The second alone. */
enum tw_status tw_blobs_check_reserve(const struct tw_blobs *b, struct tw_err *err);
/* Can the data folder be written?  Also allocates the reserve again if there is space. */
enum tw_status tw_blobs_probe(struct tw_blobs *b, struct tw_err *err);

/* Makes a folder, and its name durable; one that is there is fine. */
enum tw_status tw_folder_make(const char *path, struct tw_err *err) TW_MUST_USE;

/* Nobody deletes the trace's file before it is released: until its row tells of it. */
enum tw_status tw_trace_hold(
        struct tw_blobs *b, const char *trace_id, struct tw_err *err) TW_MUST_USE;
void tw_trace_release(struct tw_blobs *b, const char *trace_id);

/* From now on nothing is waited for: what is asked of a store elsewhere ends, and badly. */
void tw_blobs_stop(struct tw_blobs *b);

/* The data folder. */
const char *tw_blobs_dir(const struct tw_blobs *b);

#endif

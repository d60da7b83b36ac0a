/*
 * resume_int.h - where resume.c keeps uploads: in files of the data folder, or, with several
 * servers, in the storage.
 */
#ifndef TW_RESUME_INT_H
#define TW_RESUME_INT_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/ingest/tus/resume.h"

/* --- files (resume_file.c) --- */

struct tw_resume_entry {
	struct tw_resume r; /* must be first */
	bool busy, dropped, apart;
	int fd;             /* of the current piece, -1 none */
	uint64_t pending;   /* bytes of a piece begun with `apart` */
	uint64_t checked;   /* offset at which free space was last checked */
	int64_t touched_ms; /* if loaded at start: time of the last byte */
	struct tw_resume_entry *next;
};

void tw_resume_path(
        const struct tw_blobs *b, const char *id, const char *suffix, char *out, size_t cap);
enum tw_status tw_resume_store(
        struct tw_blobs *b, const struct tw_resume *r, struct tw_err *err) TW_MUST_USE;
/* Loads all uploads in the folder; files without an upload are removed. */
enum tw_status tw_resume_load_all(
        struct tw_blobs *b, struct tw_resume_entry **ret, struct tw_err *err) TW_MUST_USE;
void tw_resume_remove(struct tw_blobs *b, const char *id);
/* Makes names in the folder durable. */
enum tw_status tw_resume_sync_folder(const struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;

/* Records durably that a part is durable up to this offset (resume_watermark.c). */
enum tw_status tw_resume_write_watermark(
        const struct tw_blobs *b, const char *id, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Returns how many of the part's `size` bytes can be trusted: all if the machine has not rebooted
 * since the watermark was written, otherwise those below the watermark.  If *ret_of_this_boot is
 * false, write a new watermark before accepting data; otherwise later bytes are not trusted after a
 * kill. */
uint64_t tw_resume_trusted_bytes(
        const struct tw_blobs *b, const char *id, uint64_t size, bool *ret_of_this_boot);
struct tw_resume_entry *tw_resume_free(struct tw_resume_entry *e);

/* --- several servers (resume_shared.c) --- */

struct tw_resume_shared;

/* All of p must outlive it. */
enum tw_status tw_resume_shared_open(const struct tw_resume_parts *p,
        const struct tw_resume_limits *limits, struct tw_resume_shared **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_resume_shared *tw_resume_shared_close(struct tw_resume_shared *s);

enum tw_status tw_resume_shared_new(
        struct tw_resume_shared *s, struct tw_resume *r, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_progress_of(struct tw_resume_shared *s, const char *project_id,
        const char *id, struct tw_resume *ret, struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_acquire(struct tw_resume_shared *s, const char *project_id,
        const char *id, struct tw_resume **ret, struct tw_err *err) TW_MUST_USE;
void tw_resume_shared_release(struct tw_resume *r);

enum tw_status tw_resume_shared_begin_piece(
        struct tw_resume *r, bool apart, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_write(
        struct tw_resume *r, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_end_piece(struct tw_resume *r, bool keep, struct tw_err *err);

/* All its pieces as one local file; the caller closes it. */
enum tw_status tw_resume_shared_assemble(
        struct tw_resume *r, int *ret_fd, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_done(struct tw_resume *r, const char *trace_id, struct tw_err *err);
enum tw_status tw_resume_shared_drop(struct tw_resume *r, struct tw_err *err);

struct tw_resume_sums {
	uint64_t open, bytes, begun, finished, expired, ended;
};
void tw_resume_shared_sums(struct tw_resume_shared *s, struct tw_resume_sums *ret);

#endif

/*
 * resume_shared.h - resumable uploads with several servers: any server may continue any upload.
 *
 * Received bytes are a file of the storage and a row of the catalogue (catalogue_resumable.h)
 * before the response.  A piece is spooled locally while it is received; of a long one a part is
 * stored and counted every few seconds by separate threads, so that little is sent again if this
 * server dies.  A piece with a checksum counts completely or not at all.  The writer holds a lease
 * on the row for LEASE_MS, renewed while bytes arrive; it is lost when another server continues the
 * upload, and then adds nothing.  Calls are as in resume.h.  Thread: any, as there.
 */
#ifndef TW_RESUME_SHARED_H
#define TW_RESUME_SHARED_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/ingest/tus/resume.h"

struct tw_resume_shared;

/* All of p must outlive it; node: a unique name of this server. */
enum tw_status tw_resume_shared_open(const struct tw_resume_place *p,
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
enum tw_status tw_resume_assemble(const struct tw_resume_place *p, const struct tw_resume *r,
        int *ret_fd, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_shared_assemble(struct tw_resume *r, int *ret_fd, struct tw_err *err);
enum tw_status tw_resume_shared_done(struct tw_resume *r, const char *trace_id, struct tw_err *err);
enum tw_status tw_resume_shared_drop(struct tw_resume *r, struct tw_err *err);

struct tw_resume_sums {
	uint64_t open, bytes, begun, finished, expired, ended;
};
void tw_resume_shared_sums(struct tw_resume_shared *s, struct tw_resume_sums *ret);

#endif

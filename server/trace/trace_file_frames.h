/*
 * trace_file_frames.h - compresses payloads in parallel with the code that produces them.
 *
 * Payloads are copied into a few slots; one thread compresses them in order and passes each frame
 * to `store`.  If no thread can be created, the caller's thread does this.
 * Thread: one caller; `store` runs in the other thread until tw_frames_finish has returned.
 */
#ifndef TW_TRACE_FILE_FRAMES_H
#define TW_TRACE_FILE_FRAMES_H

#include "decoder/trace/trace_out.h"

struct tw_frame_info {
	bool is_tree;
	struct tw_chunk_info chunk; /* is_tree: only thread_id */
	uint32_t nodes;             /* is_tree */
};

/* The compressed frame of a payload. */
typedef enum tw_status (*tw_frame_fn)(void *arg, const struct tw_frame_info *info,
        const struct tw_buf *frame, struct tw_err *err);

struct tw_frames;

/* NULL: out of memory. */
struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store, void *arg);
/* Waits for work in progress and ignores its result. */
struct tw_frames *tw_frames_free(struct tw_frames *f);
/* Copies the payload.  Returns the first error of compressing or storing this payload or an earlier
 * one. */
enum tw_status tw_frames_add(struct tw_frames *f, const struct tw_frame_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err) TW_MUST_USE;
/* Returns when everything is stored.  Can be called again, without effect. */
enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err) TW_MUST_USE;
/* The context, while nothing is being compressed. */
struct ZSTD_CCtx_s *tw_frames_zstd(struct tw_frames *f);

#endif

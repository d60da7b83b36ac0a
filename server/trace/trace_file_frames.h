/*
 * trace_file_frames.h - compressing beside the walk that makes what is compressed.
 *
 * Payloads are copied into a few slots; one thread compresses them in the order
 * in which they came and hands each frame to `store`.  Where no thread can be
 * had, the caller's does the same work.  Thread: one caller; store runs in the
 * other thread until tw_frames_finish has returned.
 */
#ifndef TW_TRACE_FILE_FRAMES_H
#define TW_TRACE_FILE_FRAMES_H

#include "decoder/trace/builder.h"

struct tw_frame_info {
	bool is_tree;
	struct tw_chunk_info chunk; /* is_tree: thread_id alone */
	uint32_t nodes;             /* is_tree */
};

/* The payload as it was added, and compressed. */
typedef enum tw_status (*tw_frame_fn)(void *arg, const struct tw_frame_info *info,
        const struct tw_buf *payload, const struct tw_buf *frame, struct tw_err *err);

struct tw_frames;

/* NULL: no memory. */
struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store, void *arg);
/* Waits for what is under way, whatever came of it. */
struct tw_frames *tw_frames_free(struct tw_frames *f);
/* Copies the payload.  An error is the first that compressing or storing met, of this payload or
 * one before it. */
enum tw_status tw_frames_add(struct tw_frames *f, const struct tw_frame_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err) TW_MUST_USE;
/* Returns when all is stored. May be called again, adds nothing then. */
enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err) TW_MUST_USE;

#endif

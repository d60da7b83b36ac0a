/*
 * resume_header.h - parses tus headers of an upload and of a piece.  Pure, except for the arena.
 */
#ifndef TW_RESUME_HEADER_H
#define TW_RESUME_HEADER_H

#include "decoder/base/arena.h"
#include "server/ingest/upload_meta.h"

enum { TW_RESUME_PAIRS = 32, TW_RESUME_SUM = 32 };

/* Upload-Metadata, NULL like "": at most TW_RESUME_PAIRS pairs, decoded, without the file facts
 * that clients add by themselves.  TW_BAD_REQUEST. */
enum tw_status tw_resume_read_metadata(struct tw_arena *a, const char *text,
        struct tw_ingest_pair pairs[TW_RESUME_PAIRS], size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

struct tw_resume_sum {
	bool sha1; /* otherwise SHA-256 */
	uint8_t bytes[TW_RESUME_SUM];
	size_t len;
};
/* Upload-Checksum.  TW_BAD_REQUEST. */
enum tw_status tw_resume_read_sum(struct tw_arena *a, const char *text, struct tw_resume_sum *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

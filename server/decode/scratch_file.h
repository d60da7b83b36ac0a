/*
 * scratch_file.h - a builder's scratch (decoder/trace/builder.h) at the end of an open file.
 */
#ifndef TW_SCRATCH_FILE_H
#define TW_SCRATCH_FILE_H

#include <stdbool.h>

#include "decoder/trace/builder.h"

struct tw_scratch_file {
	int fd;             /* open for reading and writing */
	uint64_t from;      /* its first offset; what is before is not touched */
	uint64_t max_bytes; /* 0: it is not used */
	bool used;
};

/* With the usual window.  Keep `file` until the builder is freed. */
struct tw_scratch tw_scratch_file(struct tw_scratch_file *file);
/* Truncates the file to `bytes` if it was used, after the builder's last read. */
enum tw_status tw_scratch_file_end(
        struct tw_scratch_file *file, uint64_t bytes, struct tw_err *err) TW_MUST_USE;

#endif

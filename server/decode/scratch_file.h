/*
 * scratch_file.h - a builder's scratch (decoder/trace/builder.h) at the end of an open file.
 */
#ifndef TW_SCRATCH_FILE_H
#define TW_SCRATCH_FILE_H

#include <stdbool.h>

#include "decoder/trace/builder.h"

struct tw_scratch_file {
	int fd;             /* open for reading and writing */
	uint64_t from;      /* offset at which scratch begins; earlier bytes are unchanged */
	uint64_t max_bytes; /* 0: scratch is not used */
	/* If the disk has less free, writes fail with TW_FULL.  Checked for each further 64 MiB, as
	 * uploads and exports take space, too. */
	uint64_t min_free_bytes;
	uint64_t checked_bytes; /* of scratch, covered by the last check */
	bool used;
};

/* Scratch with the usual window.  Keep `file` until the builder is freed. */
struct tw_scratch tw_scratch_file(struct tw_scratch_file *file);
/* Call after the builder's last read: truncates the file to `bytes` if scratch was used. */
enum tw_status tw_scratch_file_end(
        struct tw_scratch_file *file, uint64_t bytes, struct tw_err *err) TW_MUST_USE;

#endif

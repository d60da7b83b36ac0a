/*
 * tar_head.h - the header that a member of a tar archive (ustar) begins with.
 *
 * A member is its header, its bytes, and zeros up to a whole block; an archive
 * ends with two blocks of zeros.
 * Thread: any.
 */
#ifndef TW_TAR_HEAD_H
#define TW_TAR_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_TAR_BLOCK = 512, TW_TAR_NAME_BYTES = 100 };

/* name: shorter than TW_TAR_NAME_BYTES, or it is cut.  mode: like 0644.  False: a header cannot
 * say so many bytes (8 GiB and more). */
bool tw_tar_head(uint8_t ret[TW_TAR_BLOCK], const char *name, unsigned mode, uint64_t bytes);

/* How many zeros follow a member. */
static inline size_t tw_tar_pad(uint64_t bytes)
{
	return (size_t)(-bytes & (TW_TAR_BLOCK - 1));
}

#endif

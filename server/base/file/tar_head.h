/*
 * tar_head.h - the header of a member of a tar archive (ustar).
 *
 * A member is its header, its bytes, and zeros up to a full block; an archive ends with two blocks
 * of zeros.
 * Thread: any.
 */
#ifndef TW_TAR_HEAD_H
#define TW_TAR_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_TAR_BLOCK = 512, TW_TAR_NAME_BYTES = 100 };

/* name: shorter than TW_TAR_NAME_BYTES, otherwise truncated.  mode: like 0644.  False: too many
 * bytes for a header (8 GiB and more). */
bool tw_tar_head(uint8_t ret[TW_TAR_BLOCK], const char *name, unsigned mode, uint64_t bytes);

/* Number of zeros after a member. */
static inline size_t tw_tar_pad(uint64_t bytes)
{
	return (size_t)(-bytes & (TW_TAR_BLOCK - 1));
}

#endif

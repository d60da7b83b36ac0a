/*
 * codec_memory.h - allocates zlib and zstd contexts through tw_mem_alloc, so that their memory is
 * counted and tests can make it fail.
 */
#ifndef TW_CODEC_MEMORY_H
#define TW_CODEC_MEMORY_H

#ifndef ZSTD_STATIC_LINKING_ONLY
#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_customMem */
#endif
#include <zlib.h>
#include <zstd.h>

#include "decoder/base/arena.h"

static inline void *tw_codec_alloc(void *arg, size_t size)
{
	(void)arg;
	return tw_mem_alloc(1, size);
}

static inline void tw_codec_free(void *arg, void *p)
{
	(void)arg;
	tw_mem_free(p);
}

static inline voidpf tw_codec_alloc_n(voidpf arg, uInt n, uInt size)
{
	(void)arg;
	return tw_mem_alloc(n, size);
}

static inline ZSTD_customMem tw_zstd_memory(void)
{
	return (ZSTD_customMem){tw_codec_alloc, tw_codec_free, NULL};
}

/* Call before deflateInit or inflateInit. */
static inline void tw_zlib_memory(z_stream *z)
{
	z->zalloc = tw_codec_alloc_n;
	z->zfree = tw_codec_free;
	z->opaque = NULL;
}

#endif

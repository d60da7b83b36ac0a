/*
 * symbols.h - a cache of memory-mapped mappings of builds.
 *
 * A mapping is compiled once (symbols/names.h), stored as a blob, memory-mapped when a request
 * needs it and kept while recently used.  Names are resolved on read, so a late mapping also names
 * earlier traces (I8).
 * Thread: any.
 */
#ifndef TW_SYMBOLS_H
#define TW_SYMBOLS_H

#include "decoder/symbols/names.h"
#include "server/storage/blob.h"

struct tw_symbols;
struct tw_symbols_ref;

struct tw_symbols *tw_symbols_new(struct tw_blobs *blobs);
struct tw_symbols *tw_symbols_free(struct tw_symbols *s);

/* image_sha256 "" gives an empty ref whose map is NULL.  Release with tw_symbols_release. */
enum tw_status tw_symbols_acquire(struct tw_symbols *s, const char *image_sha256,
        struct tw_symbols_ref **ret, struct tw_err *err) TW_MUST_USE;
void tw_symbols_release(struct tw_symbols *s, struct tw_symbols_ref *r);
/* NULL: no mapping, or one of another kind. */
const struct tw_map *tw_symbols_map(const struct tw_symbols_ref *r);
const struct tw_retrace *tw_symbols_retrace(const struct tw_symbols_ref *r);
const struct tw_native_map *tw_symbols_native(const struct tw_symbols_ref *r);

#endif

/* native_fixture.h - symbols of a native library, for tests. */
#ifndef TW_NATIVE_FIXTURE_H
#define TW_NATIVE_FIXTURE_H

#include "decoder/symbols/native_map.h"

#define NATIVE_ID "aabbccdd"

/* The functions "pay" at 0x100 and "tail" at 0x200, of 128 bytes each.  tw_buf_done is owed for the
 * image. */
struct tw_native_map native_symbols(struct tw_buf *image);

#endif

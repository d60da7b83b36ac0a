/* calltree_internal.h - the stored forms of a call tree. */
#ifndef TW_CALLTREE_INTERNAL_H
#define TW_CALLTREE_INTERNAL_H

#include "decoder/trace/calltree.h"

enum { TW_TREE_MAGIC = 0x32545754 /* "TWT2" */, TW_TREE_MAGIC_FIRST = 0x31545754 /* "TWT1" */ };

enum tw_status tw_tree_decode_first(const uint8_t *p, size_t len, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;

#endif

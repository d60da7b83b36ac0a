/*
 * mapping_kind.h - recognises the kind of a mapping by its first meaningful line:
 * `id,access,Class method` or `a.B -> c:`.
 */
#ifndef TW_MAPPING_KIND_H
#define TW_MAPPING_KIND_H

#include "decoder/base/str.h"

enum tw_mapping_kind { TW_MAPPING_NONE, TW_MAPPING_METHODS, TW_MAPPING_RETRACE };

/* head: the first bytes of the text, or all of it. */
enum tw_mapping_kind tw_mapping_kind(struct tw_str head);
/* "it looks like ..., which belongs to ...", for the error of a mapping sent to the wrong endpoint;
 * NULL for NONE. */
const char *tw_mapping_belongs(enum tw_mapping_kind kind);

#endif

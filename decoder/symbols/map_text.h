/*
 * map_text.h - recognises the text of a mapping, methods or R8, by its first meaningful line:
 * `id,access,Class method` or `a.B -> c:`.
 */
#ifndef TW_MAP_TEXT_H
#define TW_MAP_TEXT_H

#include "decoder/base/str.h"

enum tw_map_text { TW_MAP_TEXT_NONE, TW_MAP_TEXT_METHODS, TW_MAP_TEXT_RETRACE };

/* head: the first bytes of the text, or all of it. */
enum tw_map_text tw_map_text_of(struct tw_str head);
/* "it looks like ..., which belongs to ...", for the error of a mapping sent to the wrong endpoint;
 * NULL for NONE. */
const char *tw_map_text_belongs(enum tw_map_text kind);

#endif

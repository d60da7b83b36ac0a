/*
 * detail.h - builds the small JSON objects attached to notes, without allocating.
 *
 * Pairs that do not fit are dropped, so the object is always complete.
 */
#ifndef TW_DETAIL_H
#define TW_DETAIL_H

#include <stdint.h>

#include "decoder/base/str.h"

enum { TW_DETAIL_BYTES = 2048 };

struct tw_detail { /* len 0 is empty */
	size_t len;
	char text[TW_DETAIL_BYTES];
};

/* An empty value is dropped. */
void tw_detail_str(struct tw_detail *d, const char *key, struct tw_str value);
void tw_detail_int(struct tw_detail *d, const char *key, int64_t value);
/* The object, "" without pairs; valid as long as *d.  More pairs can be added. */
struct tw_str tw_detail_text(struct tw_detail *d);

#endif

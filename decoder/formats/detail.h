/*
 * detail.h - the small JSON objects that go with notes, made without memory.
 *
 * Pairs that do not fit are left out, so that what is there is always whole.
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

/* An empty value is left out. */
void tw_detail_str(struct tw_detail *d, const char *key, struct tw_str value);
void tw_detail_int(struct tw_detail *d, const char *key, int64_t value);
/* The object, "" without pairs; valid while *d is.  More pairs may follow. */
struct tw_str tw_detail_text(struct tw_detail *d);

#endif

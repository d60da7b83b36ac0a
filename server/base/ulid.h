/*
 * ulid.h - identifiers that sort by time: 48 bits of milliseconds, 80 random bits, 26 characters of
 * Crockford's base 32.
 *
 * Within one millisecond of a process the random part is incremented, so consecutive ids also sort
 * in order.
 * Thread: any.
 */
#ifndef TW_ULID_H
#define TW_ULID_H

#include <stdbool.h>
#include <stdint.h>

enum { TW_ID_BYTES = 27 }; /* 26 characters and NUL */

void tw_ulid_new(int64_t now_ms, char ret[TW_ID_BYTES]);
bool tw_ulid_valid(const char *id);
/* When it was made, Unix time.  The id must be valid. */
int64_t tw_ulid_ms(const char *id);
/* The first id of that millisecond: ids made before it sort before it. */
void tw_ulid_first(int64_t ms, char ret[TW_ID_BYTES]);

#endif

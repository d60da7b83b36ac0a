/*
 * json_scan.h - eight bytes of JSON at a time.  Thread: any.
 */
#ifndef TW_JSON_SCAN_H
#define TW_JSON_SCAN_H

#include <stdint.h>

/* A word of eight such bytes. */
#define TW_EACH(byte) ((uint64_t)(byte)*0x0101010101010101u)

/* The high bit of each byte that is 0.  Bits above the lowest one may be wrong. */
static inline uint64_t tw_zero_bytes(uint64_t word)
{
	return (word - TW_EACH(1)) & ~word & TW_EACH(0x80);
}

/* The high bit of each byte that ends plain text: a quote, a backslash or a control character.
 * Bits above the lowest one may be wrong. */
static inline uint64_t tw_json_text_ends(uint64_t word)
{
	return tw_zero_bytes(word ^ TW_EACH('"')) | tw_zero_bytes(word ^ TW_EACH('\\')) |
	       ((word - TW_EACH(' ')) & ~word & TW_EACH(0x80));
}

#endif

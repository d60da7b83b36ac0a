/*
 * anr_scan.h - small steps over the text of an ANR report.
 * Each takes what it read off the front of *s, and nothing when it does not fit.
 */
#ifndef TW_ANR_SCAN_H
#define TW_ANR_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"

bool tw_anr_eat(struct tw_str *s, const char *literal);
bool tw_anr_eat_number(struct tw_str *s, uint64_t *ret); /* decimal */
bool tw_anr_eat_hex(struct tw_str *s, uint64_t *ret);    /* with or without 0x */
bool tw_anr_eat_signed(struct tw_str *s, int32_t *ret);
struct tw_str tw_anr_eat_word(struct tw_str *s); /* to the next blank, with the blanks before it */
/* [YYYY-]MM-DD hh:mm:ss[.fraction]; nanoseconds since 2000-01-01, or since that day of 2000 when
 * there is no year. */
bool tw_anr_eat_date(struct tw_str *s, int64_t *ret_ns);

struct tw_str tw_anr_skip_blanks(struct tw_str s);
struct tw_str tw_anr_from(struct tw_str s, size_t at); /* without its first `at` bytes */
/* Where `literal` begins in s, from the front or the last one; s.len when nowhere. */
size_t tw_anr_find(struct tw_str s, const char *literal);
size_t tw_anr_find_last(struct tw_str s, const char *literal);
/* The number behind the first `key` ("tid="). */
bool tw_anr_number_after(struct tw_str s, const char *key, uint64_t *ret);

#endif

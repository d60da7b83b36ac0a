/*
 * anr_scan.h - scanner functions for the text of an ANR report.
 * Each removes the text it matched from the front of *s, and nothing if it does not match.
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
struct tw_str tw_anr_take_word(struct tw_str *s); /* up to the next blank; also consumes leading
                                                   * blanks */
/* [YYYY-]MM-DD hh:mm:ss[.fraction].  Nanoseconds since 2000-01-01; without a year, the year 2000 is
 * assumed. */
bool tw_anr_eat_date(struct tw_str *s, int64_t *ret_ns);

struct tw_str tw_anr_skip_blanks(struct tw_str s);
/* Offset of the first or last `literal` in s; s.len if absent. */
size_t tw_anr_find(struct tw_str s, const char *literal);
size_t tw_anr_find_last(struct tw_str s, const char *literal);
/* The number after the first `key` ("tid="). */
bool tw_anr_number_after(struct tw_str s, const char *key, uint64_t *ret);

#endif

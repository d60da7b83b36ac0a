/*
 * str.h - borrowed strings, and the few things done to them.
 *
 * A tw_str is a view: valid until the call that handed it over returns.  Who
 * keeps it copies it (tw_arena_str).  Bytes may be anything, NUL and invalid
 * UTF-8 included; tw_utf8_clean makes them fit for JSON and SQL text.
 * Thread: any.
 */
#ifndef TW_STR_H
#define TW_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tw_str {
	const char *ptr;
	size_t len;
};

#define TW_STR(literal) ((struct tw_str){(literal), sizeof(literal) - 1})

static inline struct tw_str tw_str_of(const char *cstr)
{
	return (struct tw_str){cstr, cstr ? strlen(cstr) : 0};
}

static inline bool tw_str_eq(struct tw_str a, struct tw_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* By bytes, a shorter one before what it begins: less than, equal to or greater than 0. */
static inline int tw_str_cmp(struct tw_str a, struct tw_str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

	return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

/* Length in bytes (1..4) of the valid UTF-8 character at s, 0 when there is none. */
size_t tw_utf8_len(const char *s, size_t len);

/* Is a valid character of `len` bytes one that a terminal obeys or does not show: C0, DEL, C1, what
 * turns the direction of text, separates lines or takes no room? */
bool tw_utf8_is_control(const char *s, size_t len);

/* Copies s into out (cap bytes, cap > 0) as valid NUL-terminated UTF-8: bad bytes and NUL become
 * U+FFFD, pairs of surrogates (as Java's modified UTF-8 writes characters from U+10000 on) that
 * character, cut at a character boundary when too long.  Returns the length. */
size_t tw_utf8_clean(char *out, size_t cap, struct tw_str s);

/* Reads a decimal number that fills all of s and is at most max. */
bool tw_str_u64(struct tw_str s, uint64_t max, uint64_t *ret);

/* Reads a decimal number, with or without a '-', that fills all of s and fits. */
bool tw_str_i64(struct tw_str s, int64_t *ret);

static inline bool tw_str_starts(struct tw_str s, struct tw_str prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* s without its first n bytes, n ≤ s.len. */
static inline struct tw_str tw_str_from(struct tw_str s, size_t n)
{
	return (struct tw_str){s.ptr + n, s.len - n};
}

/* Where `what` (not empty) stands in s for the first or the last time; s.len when it does not. */
size_t tw_str_find(struct tw_str s, struct tw_str what);
size_t tw_str_find_last(struct tw_str s, struct tw_str what);

/* Cuts the piece before the first `sep` off *s and returns it; all of *s when there is none. */
struct tw_str tw_str_split(struct tw_str *s, char sep);

/* s without blanks, tabs, CR and LF at both ends. */
struct tw_str tw_str_trim(struct tw_str s);

#endif

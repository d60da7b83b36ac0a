/*
 * str.h - string views and operations on them.
 *
 * A tw_str is a view, valid until the call that passed it returns.  To keep it, copy it
 * (tw_arena_str).  Bytes are arbitrary, including NUL and invalid UTF-8; tw_utf8_clean makes them
 * valid for JSON and SQL text.
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

/* By bytes, a prefix before longer strings: less than, equal to or greater than 0. */
static inline int tw_str_cmp(struct tw_str a, struct tw_str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

	return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

/* Length in bytes (1..4) of the valid UTF-8 character at s; 0 if there is none. */
size_t tw_utf8_len(const char *s, size_t len);

/* Whether a valid character of `len` bytes acts on a terminal or is invisible: C0, DEL, C1,
 * bidirectional controls, line separators, zero-width characters. */
bool tw_utf8_is_control(const char *s, size_t len);

/* Whether it contains a byte below ' ', or DEL. */
bool tw_str_has_control(struct tw_str s);
/* Whether all bytes are visible ASCII: no blanks either. */
bool tw_str_is_graphic(struct tw_str s);

/* Whether it is valid UTF-8 without NUL because all bytes are ASCII, as in nearly all texts. */
bool tw_utf8_is_plain(struct tw_str s);

/* Copies s into out (cap bytes, cap > 0) as valid NUL-terminated UTF-8.  Invalid bytes and NUL
 * become U+FFFD.  Surrogate pairs (Java's modified UTF-8 for characters from U+10000 on) become the
 * character.  Truncated at a character boundary if too long.  Returns the length. */
size_t tw_utf8_clean(char *out, size_t cap, struct tw_str s);

/* Parses a decimal number that spans all of s and is at most max. */
bool tw_str_u64(struct tw_str s, uint64_t max, uint64_t *ret);

/* Parses a decimal number, optionally with '-', that spans all of s and fits. */
bool tw_str_i64(struct tw_str s, int64_t *ret);

static inline bool tw_str_starts(struct tw_str s, struct tw_str prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool tw_str_ends(struct tw_str s, struct tw_str suffix)
{
	return s.len >= suffix.len &&
	       (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* The value of a digit of base64 in either alphabet; -1: it is not one. */
static inline int tw_base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* s without its first n bytes; n ≤ s.len. */
static inline struct tw_str tw_str_from(struct tw_str s, size_t n)
{
	return (struct tw_str){s.ptr + n, s.len - n};
}

/* Offset of the first or last occurrence of `what` (not empty) in s; s.len if it does not occur. */
size_t tw_str_find(struct tw_str s, struct tw_str what);
size_t tw_str_find_last(struct tw_str s, struct tw_str what);
/* The part of a path after its last "/". */
struct tw_str tw_str_last_component(struct tw_str path);

/* Removes the part up to the first `sep` from *s and returns it without `sep`; all of *s if there
 * is none. */
struct tw_str tw_str_split(struct tw_str *s, char sep);

/* s without blanks, tabs, CR and LF at either end. */
struct tw_str tw_str_trim(struct tw_str s);

#endif

/*
 * lookup.h - finds a row of an array by one of its texts.  Thread: any.
 */
#ifndef TW_LOOKUP_H
#define TW_LOOKUP_H

#include <stddef.h>

#include "decoder/base/str.h"

/* Returns the first of n rows whose member (char *, const char * or char[]) equals the text (const
 * char * or struct tw_str); NULL: none does, or the text is NULL. */
#define TW_LOOKUP(rows, n, member, text)                                                           \
	((__typeof__(&(rows)[0]))tw_lookup((rows), (n), sizeof *(rows),                            \
	        offsetof(__typeof__(*(rows)), member),                                             \
	        _Generic(&((__typeof__(&(rows)[0]))NULL)->member, const char *const *              \
	                 : false, const char **                                                    \
	                 : false, char *const *                                                    \
	                 : false, char **                                                          \
	                 : false, default                                                          \
	                 : true),                                                                  \
	        _Generic((text), struct tw_str                                                     \
	                 : tw_lookup_str, default                                                  \
	                 : tw_str_of)(text)))

static inline struct tw_str tw_lookup_str(struct tw_str s)
{
	return s;
}

static inline void *tw_lookup(const void *rows, size_t n, size_t row_bytes, size_t member,
        bool is_array, struct tw_str text)
{
	for (size_t i = 0; text.ptr && i < n; i++) {
		const char *const row = (const char *)rows + i * row_bytes;
		const char *of = row + member;

		if (!is_array)
			memcpy(&of, row + member, sizeof of);
		if (tw_str_eq(tw_str_of(of), text))
			return (void *)(uintptr_t)row;
	}
	return NULL;
}

#endif

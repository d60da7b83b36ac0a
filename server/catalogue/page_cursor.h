/*
 * page_cursor.h - cursors of lists that are sorted by a number and an id: "<number>.<id>" of the
 * last row of a page.
 *
 * The next page continues exactly there, however many rows were added or deleted.  Thread: any.
 */
#ifndef TW_PAGE_CURSOR_H
#define TW_PAGE_CURSOR_H

#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_page_cursor {
	int64_t number;
	const char *id;
};

/* *io is unchanged by "", the cursor of a first page; otherwise its id is a part of `text`.
 * TW_BAD_REQUEST. */
static inline enum tw_status tw_page_cursor_read(
        const char *text, struct tw_page_cursor *io, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	struct tw_str number = tw_str_split(&rest, '.');
	int64_t value = 0;

	if (!text[0])
		return TW_OK;
	if (!tw_str_i64(number, &value) || !rest.len)
		return tw_fail(err, TW_BAD_REQUEST,
		        "invalid cursor: use next_cursor of the previous page");
	*io = (struct tw_page_cursor){value, rest.ptr}; /* the rest of a NUL-terminated string */
	return TW_OK;
}

/* In the arena; NULL: out of memory. */
static inline const char *tw_page_cursor_text(struct tw_arena *a, int64_t number, const char *id)
{
	return tw_arena_printf(a, "%lld.%s", (long long)number, id);
}

#endif

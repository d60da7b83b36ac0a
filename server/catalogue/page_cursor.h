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

struct tw_page_cursor {
	int64_t number;
	const char *id;
};
/* *io is unchanged by "", the cursor of a first page; otherwise its id is a part of `text`.
 * TW_BAD_REQUEST. */
enum tw_status tw_page_cursor_read(
        const char *text, struct tw_page_cursor *io, struct tw_err *err) TW_MUST_USE;
/* In the arena; NULL: out of memory. */
const char *tw_page_cursor_text(struct tw_arena *a, int64_t number, const char *id);

#endif

/*
 * catalogue_sums.h - sums of the catalogue's pages, so that a flipped byte in a row is noticed.
 *
 * SQLite sees damage to a page's structure, not to what is in it.  So each page of the catalogue
 * ends with eight bytes that SQLite leaves alone: the sum of all before them, of the kind that
 * SQLite's own checksum VFS keeps, so that its shell with that extension loaded can read and write
 * the file too. catalogue_vfs.c puts them in where a page is written to the file and looks at them
 * where one is read.
 *
 * A page that does not fit is noted, logged and counted, and read all the same: what to do about it
 * is for whoever looks after the server (`tracewell check`).  Thread: any.
 */
#ifndef TW_CATALOGUE_SUMS_H
#define TW_CATALOGUE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_SUMS_PAGE = 4096, TW_SUMS_BYTES = 8, TW_SUMS_HEADER = 100 };

/* Of the first bytes of a file, TW_SUMS_HEADER at least: have its pages sums? */
bool tw_sums_kept(const uint8_t *header);
/* Of a page of TW_SUMS_PAGE bytes. */
void tw_sums_put(uint8_t *page);
bool tw_sums_fit(const uint8_t *page);

/* A page, counted from 1, of the file of that name does not fit. */
void tw_sums_note(const char *file, uint64_t page);
/* Calls `each` with the pages of `file` that were noted since the program began (of very many: the
 * last); returns how many. */
size_t tw_sums_noted(const char *file, void (*each)(void *arg, uint64_t page), void *arg);
/* Of all files. */
uint64_t tw_sums_damaged(void);

#endif

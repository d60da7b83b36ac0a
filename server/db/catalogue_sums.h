/*
 * catalogue_sums.h - checksums of the catalogue's pages, to detect flipped bytes in rows.
 *
 * SQLite detects damage to a page's structure, not to its contents.  So each page of the catalogue
 * ends with eight bytes that SQLite reserves: the checksum of all bytes before them, in the format
 * of SQLite's own checksum VFS, so that the sqlite3 shell with that extension can read and write
 * the file too.  catalogue_vfs.c writes them when a page is written to the file and verifies them
 * when one is read.
 *
 * A page with a wrong checksum is recorded, logged and counted, but still read: the operator
 * decides what to do (`tracewell check`).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_SUMS_H
#define TW_CATALOGUE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TW_SUMS_PAGE = 4096, TW_SUMS_BYTES = 8, TW_SUMS_HEADER = 100 };

/* Whether a file's pages have checksums; header: its first TW_SUMS_HEADER bytes at least. */
bool tw_sums_are_stored(const uint8_t *header);
/* page: TW_SUMS_PAGE bytes. */
void tw_sums_put(uint8_t *page);
bool tw_sums_fit(const uint8_t *page);

/* Records a wrong checksum of a page (numbered from 1) of that file. */
void tw_sums_note(const char *file, uint64_t page);
/* Calls `each` with the pages of `file` recorded since the program began (the latest, if there are
 * very many); returns their number. */
size_t tw_sums_noted(const char *file, void (*each)(void *arg, uint64_t page), void *arg);
/* The number for all files. */
uint64_t tw_sums_damaged(void);

#endif

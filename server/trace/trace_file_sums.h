/*
 * trace_file_sums.h - makes the sums of a trace's notes while the notes are written.
 *
 * Notes are added up by blocks of TW_NOTE_BLOCK neighbours, so that the sums of a
 * range cost its blocks and the notes at its two ends (tw_query_note_sums).
 * Thread: one at a time.
 */
#ifndef TW_TRACE_FILE_SUMS_H
#define TW_TRACE_FILE_SUMS_H

#include <sqlite3.h>

#include "decoder/trace/builder.h"

enum { TW_NOTE_BLOCK = 2048 };

struct tw_sums_maker;

/* NULL: no memory. */
struct tw_sums_maker *tw_sums_maker_new(void);
struct tw_sums_maker *tw_sums_maker_free(struct tw_sums_maker *m);

/* After each note, in their order; stores a block that is full. */
enum tw_status tw_sums_maker_add(struct tw_sums_maker *m, sqlite3 *db,
        const struct tw_note_row *note, struct tw_err *err) TW_MUST_USE;
/* After the last note. */
enum tw_status tw_sums_maker_end(
        struct tw_sums_maker *m, sqlite3 *db, struct tw_err *err) TW_MUST_USE;

#endif

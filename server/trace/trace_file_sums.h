/*
 * trace_file_sums.h - computes the sums of a trace's notes while the notes are written.
 *
 * Notes are summed in blocks of TW_NOTE_BLOCK consecutive notes, so the sums of a range cost its
 * blocks and the notes at its two ends (tw_query_note_sums).
 * Thread: one at a time.
 */
#ifndef TW_TRACE_FILE_SUMS_H
#define TW_TRACE_FILE_SUMS_H

#include <sqlite3.h>

#include "decoder/trace/trace_out.h"

enum { TW_NOTE_BLOCK = 2048 };

struct tw_sums_maker;

/* NULL: out of memory. */
struct tw_sums_maker *tw_sums_maker_new(void);
struct tw_sums_maker *tw_sums_maker_free(struct tw_sums_maker *m);

/* Call for each note, in order; stores a block when it is full. */
enum tw_status tw_sums_maker_add(struct tw_sums_maker *m, sqlite3 *db,
        const struct tw_note_row *note, struct tw_err *err) TW_MUST_USE;
/* Call after the last note. */
enum tw_status tw_sums_maker_end(
        struct tw_sums_maker *m, sqlite3 *db, struct tw_err *err) TW_MUST_USE;

#endif

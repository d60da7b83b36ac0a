/*
 * trace_file_crown.h - makes the crown of a trace while its call trees are written.
 *
 * Thread: one at a time.
 */
#ifndef TW_TRACE_FILE_CROWN_H
#define TW_TRACE_FILE_CROWN_H

#include <sqlite3.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "server/trace/trace_file.h"

struct tw_crown_maker;

/* NULL: no memory. */
struct tw_crown_maker *tw_crown_maker_new(tw_crown_fn make);
struct tw_crown_maker *tw_crown_maker_free(struct tw_crown_maker *m);

/* A thread's call tree as it is stored, not compressed. */
void tw_crown_maker_add(struct tw_crown_maker *m, const uint8_t *payload, size_t len);

/* Stores the crown beside the trees; `methods` is how many the trace has.  Without enough nodes or
 * memory it stores nothing, which is TW_OK. */
enum tw_status tw_crown_maker_store(
        struct tw_crown_maker *m, sqlite3 *db, uint32_t methods, struct tw_err *err) TW_MUST_USE;

#endif

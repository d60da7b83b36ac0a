/*
 * builder.h - the production sink: builds one trace from the events of any format.
 *
 * Per thread, the builder stores finished calls in the order of their ends; BEGIN/END pairs become
 * such calls too.  tw_builder_write moves the calls of one thread after another to pre-order, in
 * linear time (builder_nest.c); calls that are out of order are sorted first, which is counted.  It
 * passes columns, trees, mip levels, totals and the repair report to a trace writer.
 *
 * Memory: 64 MiB + usually 18 and at most 30 bytes per record; 24 more for a call that lasts more
 * than 4 s or begins hours from its thread's first one, 8 more for a CPU time of more than 2 s.
 * With scratch, records in the order of their ends take only the window and 64 KiB per thread.  The
 * limits are set by the constructor.
 * Thread: one decode job.
 */
#ifndef TW_BUILDER_H
#define TW_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/trace/trace_out.h"

/* Storage for records that do not fit in memory: a file or similar, provided by the caller.  Reads
 * return the data last written.  Two threads may read at the same time, and one of them write. */
struct tw_scratch {
	void *arg;
	uint64_t window_bytes; /* of records in memory, before any are written */
	uint64_t max_bytes;    /* once they are written, further records stay in memory */
	enum tw_status (*write)(
	        void *arg, uint64_t at, const void *p, size_t n, struct tw_err *err);
	enum tw_status (*read)(void *arg, uint64_t at, void *p, size_t n, struct tw_err *err);
};
/* The usual window.  Traces below it are decoded without scratch. */
enum { TW_SCRATCH_WINDOW_BYTES = 64 << 20 };

struct tw_builder;
struct tw_limits;
struct tw_sink;

struct tw_builder *tw_builder_new(const struct tw_limits *limits);
struct tw_builder *tw_builder_free(struct tw_builder *b);
struct tw_sink *tw_builder_sink(struct tw_builder *b);
/* Call before the first event.  The trace is the same with and without scratch. */
void tw_builder_use_scratch(struct tw_builder *b, const struct tw_scratch *scratch);

/* Later events come from another input of the same trace with its own clock: its times are
 * converted to the first input's clock through the MONOTONIC and BOOTTIME readings of both. */
void tw_builder_next_input(struct tw_builder *b);
/* The same for a report without a clock that describes the state at the end of the trace: its
 * events are placed at the trace's end. */
void tw_builder_next_input_at_end(struct tw_builder *b);
/* This input is the device's own trace: its notes are flagged as such (tw_note_row). */
void tw_builder_input_is_system(struct tw_builder *b);

/* Closes open calls, resolves thread ids, sorts if needed, and writes the trace.  Can be called
 * once.  TW_CORRUPT if the input gave no slice, note or document. */
enum tw_status tw_builder_write(
        struct tw_builder *b, struct tw_trace_out *out, struct tw_err *err) TW_MUST_USE;

#endif

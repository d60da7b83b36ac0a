/*
 * export_system_facts.h - what a look through the device's own trace found, as bytes.
 *
 * Looking through a trace of hundreds of megabytes takes longer than anybody waits for a first
 * byte, so it is done once, where the trace is decoded, and what it found is kept in the trace file
 * (tw_trace_writer_system).  Thread: any.
 */
#ifndef TW_EXPORT_SYSTEM_FACTS_H
#define TW_EXPORT_SYSTEM_FACTS_H

#include "decoder/base/buf.h"
#include "server/export/perfetto/system/export_system.h"

/* They unfold to no more; what says more of its clocks and threads is looked through again. */
enum {
	TW_SYSTEM_FACTS_MAX_BYTES = 4 << 20,
	TW_SYSTEM_FACTS_ROOM_BYTES = 5 << 20 /* that a buffer for them must have */
};

/* Appends nothing where that is too little. */
enum tw_status tw_system_pack(
        const struct tw_system *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT: these are no such bytes, or of another version. */
enum tw_status tw_system_unpack(
        struct tw_str bytes, struct tw_system **ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * export_system_facts.h - serialises the result of scanning the device's own trace.
 *
 * Scanning a trace of hundreds of megabytes takes longer than a client waits for the first byte, so
 * it is done once, during decoding, and the result is stored in the trace file
 * (tw_trace_writer_system). Thread: any.
 */
#ifndef TW_EXPORT_SYSTEM_FACTS_H
#define TW_EXPORT_SYSTEM_FACTS_H

#include "decoder/base/buf.h"
#include "server/export/perfetto/system/export_system.h"

/* Maximum unpacked size; a trace with more clocks and threads is scanned again on each export. */
enum {
	TW_SYSTEM_FACTS_MAX_BYTES = 4 << 20,
	TW_SYSTEM_FACTS_BYTES = 5 << 20 /* required capacity of a buffer for them */
};

/* Appends nothing if they exceed the maximum. */
enum tw_status tw_system_pack(
        const struct tw_system *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT: invalid bytes, or another version. */
enum tw_status tw_system_unpack(
        struct tw_str bytes, struct tw_system **ret, struct tw_err *err) TW_MUST_USE;

#endif

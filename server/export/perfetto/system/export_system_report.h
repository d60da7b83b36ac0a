/*
 * export_system_report.h - what became of the device's own trace beside one of ours, for people.
 */
#ifndef TW_EXPORT_SYSTEM_REPORT_H
#define TW_EXPORT_SYSTEM_REPORT_H

#include "decoder/base/buf.h"
#include "decoder/trace/builder.h"
#include "server/export/perfetto/system/export_system.h"

/* Appends a JSON object: whether the two go together and why not, by which clock and with what
 * offset.  It is what an export would decide. */
enum tw_status tw_system_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif

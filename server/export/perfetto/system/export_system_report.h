/*
 * export_system_report.h - reports whether the device's own trace can be joined with one of ours.
 */
#ifndef TW_EXPORT_SYSTEM_REPORT_H
#define TW_EXPORT_SYSTEM_REPORT_H

#include "decoder/base/buf.h"
#include "decoder/trace/trace_out.h"
#include "server/export/perfetto/system/export_system.h"

/* Appends a JSON object: whether they can be joined and why not, by which clock and with which
 * offset.  An export decides the same. */
enum tw_status tw_system_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif

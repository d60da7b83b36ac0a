/*
 * anr_report.h - emits an ANR report to the sink.
 *
 * Each stack is one sample of its thread, so flame graphs show where all threads were; the reason
 * is a note, and so is each wait for a lock; the rest is the document "anr".
 * Thread: one decode job.
 */
#ifndef TW_ANR_REPORT_H
#define TW_ANR_REPORT_H

#include "decoder/formats/anr/anr_classify.h"

/* A thread's id in the trace: its kernel id, otherwise its ART id (the process id for main),
 * otherwise one derived from its name. */
uint64_t tw_anr_track_tid(const struct tw_anr *m, const struct tw_anr_dump *d,
        const struct tw_anr_finding *f, uint32_t thread);
/* The time of each dump on the trace's clock: from the dates in the file if present, otherwise
 * sequential.  *ret_interval_ns is the usual interval of samples, or a nominal millisecond.  NULL:
 * out of memory. */
int64_t *tw_anr_times(
        const struct tw_anr *m, const struct tw_anr_summary *s, int64_t *ret_interval_ns);

/* Analyses the report and emits all of it. */
enum tw_status tw_anr_emit(struct tw_anr *m, struct tw_err *err) TW_MUST_USE;

/* The document, in the arena; ptr NULL: out of memory. */
struct tw_str tw_anr_document(
        const struct tw_anr *m, const struct tw_anr_summary *s, const int64_t *times_ns);

#endif

/*
 * anr_report.h - an ANR report, told to the sink.
 *
 * Every stack is one sample of its thread, so that the flame graph shows where all
 * threads stood; the reason is a note, each wait for a lock another; all else is the
 * document "anr".  Thread: one decode job.
 */
#ifndef TW_ANR_REPORT_H
#define TW_ANR_REPORT_H

#include "decoder/formats/anr/anr_judge.h"

/* A thread's id for the trace: its kernel id, else its ART id (the process for main), else one made
 * from its name. */
uint64_t tw_anr_track_tid(const struct tw_anr *m, const struct tw_anr_dump *d,
        const struct tw_anr_finding *f, uint32_t thread);
/* Of each dump on the trace's clock: dates where the file has them, else one after the other.
 * *ret_interval_ns is the usual distance of looks, else a nominal millisecond.  NULL: no memory. */
int64_t *tw_anr_times(
        const struct tw_anr *m, const struct tw_anr_summary *s, int64_t *ret_interval_ns);

/* Judges and tells all of it. */
enum tw_status tw_anr_tell(struct tw_anr *m, struct tw_err *err) TW_MUST_USE;

/* The document, in the arena; ptr NULL: no memory. */
struct tw_str tw_anr_document(
        const struct tw_anr *m, const struct tw_anr_summary *s, const int64_t *times_ns);

#endif

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
#include <jansson.h>

/* A thread's id in the trace: its kernel id, otherwise its ART id (the process id for main),
 * otherwise one derived from its name. */
uint64_t tw_anr_track_tid(const struct tw_anr *m, const struct tw_anr_dump *d,
        const struct tw_anr_finding *f, uint32_t thread);
/* Analyses the report and emits all of it. */
enum tw_status tw_anr_emit(struct tw_anr *m, struct tw_err *err) TW_MUST_USE;

/* The document, in the arena; ptr NULL: out of memory. */
struct tw_str tw_anr_document(
        const struct tw_anr *m, const struct tw_anr_summary *s, const int64_t *times_ns);

/* --- reading a document back (anr_read.c) --- */

/* Reads a document "anr" back into the model it was written from.
 *
 * A mapping may arrive after a report was decoded (I8).  New names change everything derived from
 * them: which frames belong to the application, which frame describes what a thread does, the
 * verdict and the cluster.  So the document is read back, renamed, analysed and written again.
 * Data dropped by its limits stays missing.
 */

struct tw_anr_namer {
	void *arg;
	/* The frames of the next thread follow, topmost first. */
	void (*thread)(void *arg);
	/* Adds the original frames of a Java frame: none, one, or several that were inlined into
	 * each other. */
	void (*frame)(void *arg, struct tw_anr *m, struct tw_str name, struct tw_str where);
	/* The function of a native frame at "libapp.so+0x12", "" unknown; the returned text is
	 * copied. */
	struct tw_str (*native)(void *arg, struct tw_str location, struct tw_str build_id);
	/* Original name of an object's class; the returned text is copied. */
	struct tw_str (*type)(void *arg, struct tw_str type);
};

/* Fills an initialised model.  *ret_times_ns: the time of each dump, for tw_anr_document. Members
 * that do not match schema/anr.md count as absent.  False: out of memory. */
bool tw_anr_document_read(struct tw_anr *m, const json_t *doc, const struct tw_anr_namer *namer,
        int64_t **ret_times_ns);

/* Adds a Java frame to the last thread. */
void tw_anr_document_add_frame(
        struct tw_anr *m, struct tw_str name, struct tw_str where, bool inlined);

#endif

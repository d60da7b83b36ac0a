/*
 * resume_clean.h - deletes the pieces and rows of uploads that became traces, were given up or
 * expired; on several servers the first one to find them does so (catalogue_resumable.h).
 *
 * Runs every few seconds, and when woken.  Pieces without a row are deleted by the sweeps
 * (jobs_sweep.c, jobs_store.c).  Thread: start and stop by the owner; the rest any.
 */
#ifndef TW_RESUME_CLEAN_H
#define TW_RESUME_CLEAN_H

#include "server/ingest/tus/resume.h"

struct tw_resume_cleaner;

enum tw_status tw_resume_cleaner_start(const struct tw_resume_parts *p,
        struct tw_resume_cleaner **ret, struct tw_err *err) TW_MUST_USE;
struct tw_resume_cleaner *tw_resume_cleaner_stop(struct tw_resume_cleaner *c);
void tw_resume_cleaner_wake(struct tw_resume_cleaner *c);
uint64_t tw_resume_cleaner_expired(struct tw_resume_cleaner *c);

#endif

/*
 * resume_clean.h - pieces of uploads that became traces, were given up or are too old go, with
 * their rows, by whichever server finds them first (catalogue_resumable.h).
 *
 * A look every few seconds, and when it is woken.  Pieces without a row are the sweeps' business
 * (jobs_sweep.c, jobs_store.c).  Thread: start and stop by the owner; the rest any.
 */
#ifndef TW_RESUME_CLEAN_H
#define TW_RESUME_CLEAN_H

#include "server/ingest/tus/resume.h"

struct tw_resume_cleaner;

enum tw_status tw_resume_cleaner_start(const struct tw_resume_place *p,
        struct tw_resume_cleaner **ret, struct tw_err *err) TW_MUST_USE;
struct tw_resume_cleaner *tw_resume_cleaner_stop(struct tw_resume_cleaner *c);
void tw_resume_cleaner_wake(struct tw_resume_cleaner *c);
uint64_t tw_resume_cleaner_expired(struct tw_resume_cleaner *c);

#endif

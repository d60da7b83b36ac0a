/*
 * jobs_internal.h - between the dispatcher and what keeps the data folder clean.
 */
#ifndef TW_JOBS_INTERNAL_H
#define TW_JOBS_INTERNAL_H

#include <stdatomic.h>

#include "app.h"
#include "blob.h"

/* Removes what a crash left in spool/. */
enum tw_status tw_jobs_clear_spool(struct tw_blobs *b, struct tw_err *err);

/* Removes blobs and trace files that no row knows, and queues ready traces again whose file is
 * gone (I9).  Runs while the server serves; ends early when *stop becomes true. */
void tw_jobs_sweep(struct tw_app *app, const _Atomic bool *stop);

enum tw_status tw_jobs_copy_file(const char *path, struct tw_blob_writer *w, struct tw_err *err);

#endif

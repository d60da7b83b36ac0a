/*
 * jobs_run.h - a running job, shared by the dispatcher (jobs.c) and the handling of results
 * (jobs_end.c).
 */
#ifndef TW_JOBS_RUN_H
#define TW_JOBS_RUN_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/child.h"
#include "server/base/child_template.h"
#include "server/base/thread/pool.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/decode/jobs.h"
#include "server/storage/blob.h"

enum { TW_RUN_PATH = 1500, TW_RUN_WORKERS = 64 };

enum ending { /* the outcome of a job that did not succeed */
	ENDING_NONE,
	ENDING_FAILED,
	ENDING_RETRY,
	ENDING_WAIT,
	ENDING_RETURN /* not begun: queued again as it was */
};

enum fault { /* the origin of an error */
	FAULT_SERVER,
	FAULT_CHILD, /* reported by the child, or its death */
	FAULT_INPUT  /* a part of the upload cannot be read */
};

enum step { /* the operation that an unfinished job waits for */
	STEP_CHILD,
	STEP_FETCH,  /* fetching its parts */
	STEP_STORE,  /* storing the child's output */
	STEP_ENDINGS /* of a group: endings that could not be written yet */
};

struct running { /* a child and its job */
	bool used;
	enum step step;
	struct tw_async_task task; /* of STEP_FETCH and STEP_STORE */
	struct tw_jobs *jobs;
	enum ending ending; /* not ENDING_NONE: the child exited, and the outcome is not yet in the
	                       catalogue */
	struct tw_err why;  /* error of ending */
	struct tw_child_end end;
	struct tw_child child;
	struct tw_arena *arena; /* of job */
	struct tw_job_row job;
	int64_t started_ms;
	int fds[TW_CHILD_INPUTS];
	json_t *result; /* of a successful child */
	char sha256[TW_SHA256_HEX];
	uint64_t file_bytes;
	char *file_hex;   /* a small file's content; NULL: it is in storage */
	bool held;        /* the trace's file, until its row is written */
	bool stored;      /* its file is in storage */
	int64_t lease_ms; /* monotonic; its lease then lasted long enough to store it; 0: unknown */
	bool abandoned;   /* the child was killed because the claim was lost */
	int system_fd;    /* of the child's second output, -1 none */
	char out[TW_RUN_PATH];
	/* Several small jobs of one child (jobs_group.c).  They have no child, and this one has no
	 * job. */
	struct running *group; /* NULL: none */
	size_t n_group, n_begun;
	bool in_group;
};

struct tw_jobs {
	struct tw_decode_parts parts;
	pthread_t thread;
	struct tw_pool *async_pool; /* NULL: storage is the disk */
	struct tw_pool *group_pool; /* of groups, on the disk: stores outputs in parallel */
	int wake_fd;
	_Atomic bool stop;
	/* of the last pause, during which no job is started (monotonic) */
	_Atomic int64_t pause_ms, resume_ms;
	int64_t claims_checked_ms; /* monotonic */
	bool claim_unknown;        /* the last claim failed, perhaps after it was committed */
	int64_t claim_ms;          /* monotonic; the next claim is not tried before */
	int64_t claimed_ms;        /* monotonic; of the last claim, also if there was no job */
	_Atomic int64_t active_ms; /* the dispatcher's last activity (monotonic); 0: none yet */
	unsigned drain_s;
	unsigned n_slots;
	struct tw_child_template children; /* of the dispatcher */
	struct running slots[TW_RUN_WORKERS];
	int spare[TW_RUN_WORKERS]; /* second outputs, empty */
	unsigned n_spare;
	struct tw_compilers *compilers; /* jobs_internal.h; NULL: none */
	struct tw_claims *claims;       /* jobs_internal.h; NULL: a single server */
};

/* Releases the trace's file. */
void tw_run_release(struct running *r);
/* Sets lease_ms for jobs of a group that are to be stored, by one statement. */
void tw_run_check_leases(struct tw_jobs *j, struct running *group, size_t n);
/* Moves the child's output to storage.  May run in parallel with the dispatcher. */
enum tw_status tw_run_store(void *arg, struct tw_err *err) TW_MUST_USE;
/* Records that the output was stored in the trace's row. */
enum tw_status tw_run_record(struct tw_jobs *j, struct running *r, struct tw_err *err) TW_MUST_USE;
/* Number of the first runs to be recorded together: at least 1. */
size_t tw_run_together(struct running *const *runs, size_t n);
/* The same for several, in one transaction: ret[i] is the status of each. */
enum tw_status tw_run_record_all(struct tw_jobs *j, struct running *const *runs, size_t n,
        enum tw_status *ret, struct tw_err *err) TW_MUST_USE;
/* Deletes the output: another server decodes the trace, or has. */
void tw_run_discard(struct running *r);
/* Does the error concern all jobs (space, descriptors, storage), not this one? */
bool tw_run_is_environment(enum tw_status st, enum fault fault);
/* Writes the ending.  False: it could not be written, and is to be tried again. */
bool tw_run_write_ending(struct tw_jobs *j, struct running *r);
/* Chooses the ending of a job that did not succeed, and writes it as tw_run_write_ending. */
bool tw_run_fail(struct tw_jobs *j, struct running *r, const struct tw_err *why, enum fault fault);
/* Queues a job again that was not begun.  As tw_run_write_ending. */
bool tw_run_return(struct tw_jobs *j, struct running *r);
/* Ends a job whose claim is lost: deleted, or another server's.  As tw_run_write_ending. */
bool tw_run_abandon(struct tw_jobs *j, struct running *r);

/* --- jobs.c --- */

void tw_run_init(struct running *r, struct tw_jobs *j, struct tw_arena *a);
/* Ends the use of everything but the arena. */
void tw_run_clear(struct running *r);
void tw_run_release_slot(struct running *r);
/* Begins STEP_FETCH or STEP_STORE in the pool; NULL: runs it now. */
void tw_run_begin_step(struct running *r, enum step step, struct tw_pool *pool);
/* Names and opens the output. */
enum tw_status tw_run_open_output(struct running *r, int *ret, struct tw_err *err) TW_MUST_USE;
/* The second output of a child. */
enum tw_status tw_run_open_system(struct running *r, struct tw_err *err) TW_MUST_USE;
/* The error that a child reported; TW_OK: none. */
enum tw_status tw_run_result(struct running *r, struct tw_err *ret);

/* --- jobs_group.c --- */

/* For a slot without a job: the claimed ones are its group. */
void tw_group_begin(struct tw_jobs *j, struct running *r, const struct tw_job_row *jobs, size_t n);
void tw_group_child_ended(struct tw_jobs *j, struct running *r);
/* Of STEP_FETCH and STEP_STORE. */
bool tw_group_step_is_done(const struct running *r);
void tw_group_step_done(struct tw_jobs *j, struct running *r);
/* Writes endings again that could not be written. */
void tw_group_retry_endings(struct tw_jobs *j, struct running *r);

#endif

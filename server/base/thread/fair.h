/*
 * fair.h - schedules projects by the time that their tasks take, not by their number.
 *
 * Start-time fair queueing.  Every project has an account, which rises by the time of its decodes:
 * at the start by an estimate from the trace's bytes, corrected at the end by the measured time.
 * The project with the lowest account is next.  The level is the account of the last started
 * project at its start, and no account is below it: unused time is not saved up, and a new project
 * starts without debt.  So each of k projects with waiting tasks gets 1/k of the time, plus or
 * minus one decode, whatever its traces are.
 *
 * In memory only: a restart resets all accounts.
 * Thread: any.
 */
#ifndef TW_FAIR_H
#define TW_FAIR_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/ulid.h"

/* Limits on accounts above the level and on running decodes.  Beyond them, the account nearest to
 * the level is dropped, and a decode keeps its estimate. */
enum { TW_FAIR_ACCOUNTS = 256, TW_FAIR_RUNNING = 256 };

struct tw_fair { /* for the owner; fields are read-only */
	pthread_mutex_t lock;
	int64_t (*clock_ms)(void); /* tw_monotonic_ms, except in tests */
	uint64_t level_us;
	uint64_t us_per_decode; /* recent average, independent of bytes */
	double ns_per_byte;     /* recent average */
	struct tw_fair_account {
		char project_id[TW_ID_BYTES];
		uint64_t at_us;
		unsigned running;
	} accounts[TW_FAIR_ACCOUNTS];
	size_t n_accounts;
	struct tw_fair_run {
		char project_id[TW_ID_BYTES], trace_id[TW_ID_BYTES];
		uint64_t bytes, charged_us;
		size_t n; /* traces */
		int64_t begun_ms;
	} running[TW_FAIR_RUNNING];
	size_t n_running;
};

void tw_fair_init(struct tw_fair *f);
void tw_fair_done(struct tw_fair *f);

/* A project's account: the lowest is next.  *ret_level: the minimum of all accounts. */
uint64_t tw_fair_level(struct tw_fair *f, const char *project_id, uint64_t *ret_level);
/* A decode of a trace with that many bytes starts; a second start of the same trace ends the
 * first. */
void tw_fair_begin(struct tw_fair *f, const char *project_id, const char *trace_id, uint64_t bytes);
/* The same for n traces of about that many bytes, decoded together under the id of one. */
void tw_fair_begin_group(
        struct tw_fair *f, const char *project_id, const char *trace_id, uint64_t bytes, size_t n);
/* No task is waiting.  If none is running either, all accounts are cleared. */
void tw_fair_idle(struct tw_fair *f);
/* The decode ended, for any reason; unknown ids are ignored. */
void tw_fair_end(struct tw_fair *f, const char *trace_id);

#endif

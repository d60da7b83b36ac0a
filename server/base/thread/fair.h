/*
 * fair.h - how much of the decoders' time each project has had, so that turns go by time and not by
 * number of traces.
 *
 * Start-time fair queueing.  Every project has an account, which rises by the time its decodes
 * take: at their begin by what their bytes will probably need, at their end it is put right by the
 * clock.  Whose account stands lowest is next.  The level is where the project of the last decode
 * stood then, and nobody stands below it: time that was not asked for is not saved up, and a
 * newcomer owes nothing.  So of k projects with something queued each has a k-th of the time, give
 * or take one decode, whatever their traces are like.
 *
 * No SQL, no files; in memory only: a restart forgives all.  Thread: any.
 */
#ifndef TW_FAIR_H
#define TW_FAIR_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/ulid.h"

/* Accounts above the level, and decodes under way, that are known at a time.  Of more, the account
 * nearest to the level is forgotten, and a decode stays charged by its bytes. */
enum { TW_FAIR_ACCOUNTS = 256, TW_FAIR_RUNNING = 256 };

struct tw_fair { /* its owner's; read only */
	pthread_mutex_t lock;
	int64_t (*clock_ms)(void); /* tw_monotonic_ms, but in tests */
	uint64_t level_us;
	uint64_t us_a_decode; /* of late, whatever its bytes */
	double ns_a_byte;     /* of late */
	struct tw_fair_account {
		char project_id[TW_ID_BYTES];
		uint64_t at_us;
		unsigned running;
	} accounts[TW_FAIR_ACCOUNTS];
	size_t n_accounts;
	struct tw_fair_run {
		char project_id[TW_ID_BYTES], trace_id[TW_ID_BYTES];
		uint64_t bytes, charged_us;
		int64_t begun_ms;
	} running[TW_FAIR_RUNNING];
	size_t n_running;
};

void tw_fair_init(struct tw_fair *f);
void tw_fair_done(struct tw_fair *f);

/* Where a project stands: the lowest is next.  *ret_level: where nobody stands below. */
uint64_t tw_fair_stands(struct tw_fair *f, const char *project_id, uint64_t *ret_level);
/* A decode of a trace of that many bytes begins; a second begin of the same trace ends the first.
 */
void tw_fair_begin(struct tw_fair *f, const char *project_id, const char *trace_id, uint64_t bytes);
/* Nothing is queued.  When nothing is being decoded either, all accounts are settled. */
void tw_fair_idle(struct tw_fair *f);
/* It ended, in whatever way; one that is not known is fine. */
void tw_fair_end(struct tw_fair *f, const char *trace_id);

#endif

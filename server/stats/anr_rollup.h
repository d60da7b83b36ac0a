/*
 * anr_rollup.h - rollups of ANRs and lock waits: count, duration, distinct versions, devices and
 * users.
 *
 * Adding is commutative and associative to the byte: the same reports give the same rollup in any
 * order and grouping.  Distinct counts are exact up to TW_ANR_ROLLUP_DISTINCT in a stored rollup;
 * beyond that the smallest hashes are a sample of all, with a standard error of 1/32 (3.1 %), so a
 * rollup never grows with reports.  No files, no SQL. Thread: one at a time.
 */
#ifndef TW_ANR_ROLLUP_H
#define TW_ANR_ROLLUP_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum {
	TW_ANR_ROLLUP_DISTINCT = 1024,
	TW_ANR_ROLLUP_MONITORS = 32,
	TW_ANR_ROLLUP_TEXT = 1024,
	TW_ANR_ROLLUP_ID = 26
};

struct tw_distinct {     /* a set of hashes */
	uint64_t *slots; /* 0 free */
	uint32_t cap, n;
	uint64_t below; /* only hashes below this are counted, and all of those are present; 0: all
	                 * hashes */
};
uint64_t tw_distinct_hash(const char *text); /* never 0 */
uint64_t tw_distinct_mix(int64_t number);    /* 0 only for 0 */
uint64_t tw_distinct_count(const struct tw_distinct *d);

enum tw_anr_rollup_set {
	TW_ANR_ROLLUP_VERSIONS,
	TW_ANR_ROLLUP_DEVICES,
	TW_ANR_ROLLUP_USERS,
	TW_ANR_ROLLUP_SETS
};

struct tw_anr_rollup_sum {
	uint64_t traces, waits, timed;
	int64_t total_ns, max_ns, first_ms, last_ms;
	/* The trace with the largest max_ns; the latest one, if that is 0; "" none. */
	char worst[TW_ANR_ROLLUP_ID + 1];
	const char *holder; /* the owner of the lock in that wait */
};

/* Kinds of waits, one bit each; ANR reports use the first. */
enum { TW_ANR_ROLLUP_KINDS = 4 };
struct tw_anr_rollup_part { /* waits of kind `bit` in traces that have exactly the kinds in `mask`
	                     */
	struct tw_anr_rollup_part *next;
	unsigned mask, bit;
	bool owned; /* the rollup's name is the method that held the lock */
	struct tw_anr_rollup_sum sum;
	struct tw_distinct sets[TW_ANR_ROLLUP_SETS];
	const char *monitors[TW_ANR_ROLLUP_MONITORS]; /* the first ones in sort order */
	uint32_t n_monitors;
};
struct tw_anr_rollup {
	const char *key;
	const char *name, *value; /* NULL until set by the caller */
	int64_t day;
	struct tw_anr_rollup_part *parts;
};

struct tw_anr_rollup_one { /* an addition; traces 0: more waits of an already added trace */
	unsigned mask, bit;
	bool owned;
	struct tw_anr_rollup_sum sum;
	uint64_t sets[TW_ANR_ROLLUP_SETS]; /* hashes, 0: none */
	const char *monitor;               /* "" none */
};
/* False: out of memory. */
bool tw_anr_rollup_add(
        struct tw_arena *a, struct tw_anr_rollup *t, const struct tw_anr_rollup_one *o);
/* Adds the output of tw_anr_rollup_write.  TW_CORRUPT, TW_TOO_LARGE. */
enum tw_status tw_anr_rollup_merge(struct tw_arena *a, struct tw_anr_rollup *t, const uint8_t *p,
        size_t n, struct tw_err *err) TW_MUST_USE;
/* Also reduces the sets to their limit; additions remain possible. */
void tw_anr_rollup_write(struct tw_arena *a, struct tw_anr_rollup *t, struct tw_buf *out);
/* All waits of these kinds as one part, whose `mask` has the kinds that occur; traces counts those
 * with at least one of them.  NULL: out of memory. */
struct tw_anr_rollup_part *tw_anr_rollup_select(
        struct tw_arena *a, const struct tw_anr_rollup *t, unsigned kinds);
/* Number of traces with a wait of one of these kinds. */
uint64_t tw_anr_rollup_traces(const struct tw_anr_rollup *t, unsigned kinds);

struct tw_anr_rollups { /* by key */
	struct tw_arena *arena;
	struct tw_anr_rollup **slots, **list;
	size_t n_slots, n;
};
/* The rollup of that key, created if missing; NULL: out of memory. */
struct tw_anr_rollup *tw_anr_rollups_at(struct tw_anr_rollups *all, struct tw_str key);

/* TW_TOO_LARGE: the ANRs or locks of a query exceed its memory. */
enum tw_status tw_anr_fail_too_large(struct tw_err *err);

#endif

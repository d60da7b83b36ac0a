/*
 * hang_tally.h - ANRs and waits for locks added up: how often, how long, of how many versions,
 * devices and users.
 *
 * Adding is commutative and associative to the byte, so the same reports give the same tally in
 * whatever order and grouping they come.  How many different things there are is exact up to
 * TW_TALLY_DISTINCT of them in a tally that is kept; beyond that the things with the smallest
 * hashes stand for all, with a standard error of 1/32 (3.1 %), so that a tally never grows with
 * reports.  No files, no SQL.  Thread: one at a time.
 */
#ifndef TW_HANG_TALLY_H
#define TW_HANG_TALLY_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { TW_TALLY_DISTINCT = 1024, TW_TALLY_MONITORS = 32, TW_TALLY_TEXT = 1024, TW_TALLY_ID = 26 };

struct tw_distinct {     /* hashes */
	uint64_t *slots; /* 0 free */
	uint32_t cap, n;
	uint64_t below; /* all of them that are less are here; 0: all are */
};
uint64_t tw_distinct_hash(const char *text); /* never 0 */
uint64_t tw_distinct_mix(int64_t number);    /* 0 only for 0 */
/* Adds a hash that is not 0; false: no memory. */
bool tw_distinct_add(struct tw_arena *a, struct tw_distinct *d, uint64_t hash);
bool tw_distinct_add_all(
        struct tw_arena *a, struct tw_distinct *d, const struct tw_distinct *other);
uint64_t tw_distinct_count(const struct tw_distinct *d);

enum tw_tally_set { TW_TALLY_VERSIONS, TW_TALLY_DEVICES, TW_TALLY_USERS, TW_TALLY_SETS };

struct tw_tally_sum {
	uint64_t traces, waits, timed;
	int64_t total_ns, max_ns, first_ms, last_ms;
	char worst[TW_TALLY_ID + 1]; /* of the greatest max_ns the last trace; "" none */
	const char *holder;          /* of its lock */
};

/* Kinds of waits, a bit each; reports of ANRs are of the first. */
enum { TW_TALLY_KINDS = 4 };
struct tw_tally_part { /* the waits of kind `bit` in traces that have all of the kinds `mask` */
	struct tw_tally_part *next;
	unsigned mask, bit;
	bool owned; /* the tally's name is that of a method that took the lock */
	struct tw_tally_sum sum;
	struct tw_distinct sets[TW_TALLY_SETS];
	const char *monitors[TW_TALLY_MONITORS]; /* the first ones, in order */
	uint32_t n_monitors;
};
struct tw_tally {
	const char *key;
	const char *name, *value; /* NULL until whoever asked says */
	int64_t day;
	struct tw_tally_part *parts;
};

struct tw_tally_one { /* to be added; traces 0 adds to what a trace brought before */
	unsigned mask, bit;
	bool owned;
	struct tw_tally_sum sum;
	uint64_t sets[TW_TALLY_SETS]; /* hashes, 0 none */
	const char *monitor;          /* "" none */
};
/* False: no memory. */
bool tw_tally_add(struct tw_arena *a, struct tw_tally *t, const struct tw_tally_one *o);
/* Adds what tw_tally_write appended.  TW_CORRUPT, TW_TOO_LARGE. */
enum tw_status tw_tally_merge(struct tw_arena *a, struct tw_tally *t, const uint8_t *p, size_t n,
        struct tw_err *err) TW_MUST_USE;
/* Bounds the tally's sets; it may be added to after that. */
void tw_tally_write(struct tw_arena *a, struct tw_tally *t, struct tw_buf *out);
/* All waits of these kinds in one part, whose `mask` says of which there are any; traces are those
 * that have one of them.  NULL: no memory. */
struct tw_tally_part *tw_tally_select(struct tw_arena *a, const struct tw_tally *t, unsigned kinds);
/* That have a wait of one of these kinds. */
uint64_t tw_tally_traces(const struct tw_tally *t, unsigned kinds);

struct tw_tallies { /* by key */
	struct tw_arena *arena;
	struct tw_tally **slots, **list;
	size_t n_slots, n;
};
/* The one of that key, new when there is none; NULL: no memory. */
struct tw_tally *tw_tallies_at(struct tw_tallies *all, struct tw_str key);

#endif

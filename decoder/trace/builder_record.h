/*
 * builder_record.h - a finished call in 16 bytes.
 *
 * Most calls last less than 4 s and begin within hours of the track's first one, so a record has
 * the begin relative to a base in 44 bits, a symbol of 20 bits, and the duration in 32 bits.  Other
 * calls are stored in a separate array, with their index in place of the begin.
 */
#ifndef TW_BUILDER_RECORD_H
#define TW_BUILDER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_RECORD_SYM_BITS = 20 };
#define TW_RECORD_WIDE    UINT32_MAX         /* duration of a record whose call is in `wide` */
#define TW_RECORD_BEFORE  ((int64_t)1 << 42) /* nanoseconds from the base to the first begin */
#define TW_RECORD_SPAN    ((uint64_t)1 << (64 - TW_RECORD_SYM_BITS))
#define TW_OFFSET_UNKNOWN UINT32_MAX

struct call {
	int64_t start_ns, dur_ns;
	uint32_t sym;
};

struct record {
	uint64_t start_and_sym; /* or an index of `wide` */
	uint32_t dur_ns;
	uint32_t offset; /* in the input; TW_OFFSET_UNKNOWN past 4 GiB */
};

struct records {
	struct record *at;
	int64_t base_ns;
	struct call *wide;
	uint32_t n_wide, cap_wide;
};

static inline struct call tw_record_call(const struct records *r, uint64_t i)
{
	const struct record *at = &r->at[i];

	if (__builtin_expect(at->dur_ns == TW_RECORD_WIDE, 0))
		return r->wide[at->start_and_sym];
	return (struct call){r->base_ns + (int64_t)(at->start_and_sym >> TW_RECORD_SYM_BITS),
	        at->dur_ns, (uint32_t)at->start_and_sym & ((1u << TW_RECORD_SYM_BITS) - 1)};
}

/* Before the first record: its begin. */
static inline void tw_records_start(struct records *r, int64_t start_ns)
{
	r->base_ns = start_ns - TW_RECORD_BEFORE;
}

static inline bool tw_record_fits(const struct records *r, const struct call *c)
{
	return (uint64_t)(c->start_ns - r->base_ns) < TW_RECORD_SPAN &&
	       (uint64_t)c->dur_ns < TW_RECORD_WIDE && c->sym >> TW_RECORD_SYM_BITS == 0;
}

/* Makes space for a call that does not fit a record. False: out of memory. */
static inline bool tw_records_reserve_wide(struct records *r)
{
	uint32_t cap = r->cap_wide ? 2 * r->cap_wide : 16;
	struct call *p;

	if (r->n_wide < r->cap_wide)
		return true;
	p = cap > r->cap_wide ? tw_mem_resize(r->wide, cap, sizeof *p) : NULL;
	if (!p)
		return false;
	r->wide = p;
	r->cap_wide = cap;
	return true;
}

/* Sets element i. A call that does not fit a record needs space. */
static inline void tw_record_put(
        struct records *r, uint64_t i, const struct call *c, uint32_t offset)
{
	if (__builtin_expect(tw_record_fits(r, c), 1)) {
		r->at[i] = (struct record){
		        (uint64_t)(c->start_ns - r->base_ns) << TW_RECORD_SYM_BITS | c->sym,
		        (uint32_t)c->dur_ns, offset};
		return;
	}
	r->at[i] = (struct record){r->n_wide, TW_RECORD_WIDE, offset};
	r->wide[r->n_wide++] = *c;
}

static inline void tw_record_shorten(struct records *r, uint64_t i, int64_t dur_ns)
{
	struct record *at = &r->at[i];

	if (at->dur_ns == TW_RECORD_WIDE)
		r->wide[at->start_and_sym].dur_ns = dur_ns;
	else
		at->dur_ns = (uint32_t)dur_ns;
}

static inline uint64_t tw_record_offset(const struct record *r)
{
	return r->offset == TW_OFFSET_UNKNOWN ? TW_NO_OFFSET : r->offset;
}

#endif

/*
 * rollup.h - methods of many traces added up: what a trace brings, and sums of it.
 *
 * A trace brings facts: one for each of its methods.  Facts of any number of
 * traces add up to parts, one for each metric: a sketch for each method, and the
 * trace in which it was worst.  Adding is commutative and associative to the byte,
 * so the same traces give the same parts in whatever order and grouping they come.
 * Methods are numbers (rollup_cell.h makes them) that mean the same everywhere.
 * No files, no SQL.  Thread: one at a time.
 */
#ifndef TW_ROLLUP_H
#define TW_ROLLUP_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/stats/sketch.h"

enum tw_rollup_metric {
	TW_ROLLUP_WALL,    /* ns with a call of it open */
	TW_ROLLUP_SELF,    /* ns in it and in nothing that it called */
	TW_ROLLUP_CPU,     /* ns of CPU in its calls */
	TW_ROLLUP_WAITING, /* ns of its calls that were no CPU time */
	TW_ROLLUP_CALLS,   /* how many calls */
	TW_ROLLUP_CALL,    /* ns of a call, the mean of the trace */
	TW_ROLLUP_METRICS
};
/* "wall", "self", "cpu", "waiting", "calls", "call"; NULL ends the list. */
extern const char *const tw_rollup_words[TW_ROLLUP_METRICS + 1];
enum { TW_ROLLUP_ALL = (1 << TW_ROLLUP_METRICS) - 1 };

/* A trace brings at most so many methods, those with most time of their own; the rest is one method
 * of number TW_ROLLUP_OTHER. */
enum { TW_ROLLUP_METHODS_MAX = 4096, TW_ROLLUP_OTHER = 0 };
enum { TW_ROLLUP_ID = 26 }; /* characters of a trace's id */

struct tw_rollup_fact { /* of a method in a trace */
	uint64_t method;
	uint64_t count;
	int64_t total_ns, self_ns, sum_ns; /* as in struct tw_method_info */
	int64_t cpu_ns;                    /* -1: not known */
	uint32_t at; /* the caller's, where it was before sorting; not written */
};

/* Of each call or trace; -1: not known. */
int64_t tw_rollup_value(const struct tw_rollup_fact *f, enum tw_rollup_metric m);
/* Sorts them by method, and puts those beyond TW_ROLLUP_METHODS_MAX into one.  Returns how many
 * there are then. */
size_t tw_rollup_bound(struct tw_rollup_fact *facts, size_t n);
/* Appends them, sorted by method as they must be. */
void tw_rollup_write_facts(const struct tw_rollup_fact *facts, size_t n, struct tw_buf *out);

struct tw_rollup_piece { /* something to be added up; borrowed */
	struct tw_rollup_piece *next;
	const uint8_t *at, *end; /* a written sketch; NULL: one number */
	int64_t value;
	const char *worst; /* TW_ROLLUP_ID characters */
};

struct tw_rollup_method {
	uint64_t id;
	struct tw_rollup_piece *pieces[TW_ROLLUP_METRICS];
};

/* What is to be added up.  Bytes and ids that are handed in must live as long. */
struct tw_rollup {
	struct tw_arena *arena;
	unsigned metrics;     /* a bit for each that is wanted */
	const uint64_t *only; /* methods that are wanted, sorted; NULL: all */
	size_t n_only;
	struct tw_rollup_method *methods;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash of id; 0 free */
	uint32_t n_slots;
};

/* TW_NOMEM when the arena is full, TW_CORRUPT when the bytes are damaged. */
enum tw_status tw_rollup_add_facts(struct tw_rollup *r, const char *trace_id, const uint8_t *p,
        size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_rollup_add_part(struct tw_rollup *r, enum tw_rollup_metric m, const uint8_t *p,
        size_t n, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_worst {
	int64_t value;
	const char *trace_id; /* TW_ROLLUP_ID characters, borrowed; NULL: none */
};
/* Adds a method's pieces to s, which is not cleared, and takes the worst of *w and theirs. */
enum tw_status tw_rollup_sum(const struct tw_rollup_method *of, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_rollup_worst *w, struct tw_err *err) TW_MUST_USE;
/* Appends the part of a metric: all methods, added up.  Sorts r->methods by id.  s is worked in. */
enum tw_status tw_rollup_write_part(struct tw_rollup *r, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* --- lengths of traces (rollup_head.c) --- */

/* A sketch of lengths, with one trace for each bucket: that of the lowest id. */
struct tw_rollup_head {
	struct tw_sketch lengths;
	char ids[TW_BUCKETS][TW_ROLLUP_ID]; /* "" where there is none */
};

void tw_rollup_head_init(struct tw_rollup_head *h);
void tw_rollup_head_clear(struct tw_rollup_head *h);
void tw_rollup_head_add(struct tw_rollup_head *h, const char *trace_id, int64_t duration_ns);
void tw_rollup_head_write(const struct tw_rollup_head *h, struct tw_buf *out);
/* Of what tw_rollup_head_write appended; n 0 adds nothing.  TW_CORRUPT. */
enum tw_status tw_rollup_head_merge(
        struct tw_rollup_head *h, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* A trace whose length is the quantile's, or nearest to it among those kept; NULL: none. */
const char *tw_rollup_head_exemplar(const struct tw_rollup_head *h, int64_t duration_ns);

#endif

/*
 * rollup.h - rollups: sums of the methods of many traces.
 *
 * A trace contributes facts, one per method.  Facts of any number of traces are summed into parts,
 * one per metric: a sketch per method, and the trace with its worst value.  Adding is commutative
 * and associative to the byte: the same traces give the same parts in any order and grouping.
 * Methods are numbers (rollup_id.h) with the same meaning everywhere.  No files, no SQL.
 * Thread: one at a time.
 */
#ifndef TW_ROLLUP_H
#define TW_ROLLUP_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/stats/sketch.h"

enum tw_rollup_metric {
	TW_ROLLUP_WALL,    /* ns with at least one of its calls open */
	TW_ROLLUP_SELF,    /* ns in it, without its callees */
	TW_ROLLUP_CPU,     /* ns of CPU in its calls */
	TW_ROLLUP_WAITING, /* ns of its calls without CPU time */
	TW_ROLLUP_CALLS,   /* number of calls */
	TW_ROLLUP_CALL,    /* ns per call, the mean of the trace */
	TW_ROLLUP_METRICS
};
/* "wall", "self", "cpu", "waiting", "calls", "call"; NULL ends the list. */
extern const char *const tw_rollup_metric_names[TW_ROLLUP_METRICS + 1];
enum { TW_ROLLUP_ALL = (1 << TW_ROLLUP_METRICS) - 1 };

/* A trace contributes at most this many methods, those with the most self time; the others are
 * merged into the method TW_ROLLUP_OTHER. */
enum { TW_ROLLUP_METHODS_MAX = 4096, TW_ROLLUP_OTHER = 0 };
enum { TW_ROLLUP_ID = 26 }; /* characters of a trace's id */

struct tw_rollup_fact { /* of a method in a trace */
	uint64_t method;
	uint64_t count;
	int64_t total_ns, self_ns, sum_ns; /* as in struct tw_method_info */
	int64_t cpu_ns;                    /* -1: not known */
	uint32_t at;                       /* for the caller: index before sorting; not stored */
};

/* The value per trace, or per call for TW_ROLLUP_CALL; -1: unknown. */
int64_t tw_rollup_value(const struct tw_rollup_fact *f, enum tw_rollup_metric m);
/* Sorts the facts by method and merges those beyond TW_ROLLUP_METHODS_MAX.  Returns the new
 * number. */
size_t tw_rollup_bound(struct tw_rollup_fact *facts, size_t n);
/* Appends the facts, which must be sorted by method. */
void tw_rollup_write_facts(const struct tw_rollup_fact *facts, size_t n, struct tw_buf *out);

/* Reads written facts one by one: *p is moved after the fact; false: the end, or *p is NULL and
 * they are damaged.  Begin with *n UINT64_MAX. */
bool tw_rollup_next_fact(
        const uint8_t **p, const uint8_t *end, uint64_t *n, struct tw_rollup_fact *ret);

/* Appends the facts of a kind of thread, which must be sorted by method. */
void tw_rollup_write_thread(
        struct tw_str name, const struct tw_rollup_fact *facts, size_t n, struct tw_buf *out);
/* Reads the name of the next kind; its facts follow, for tw_rollup_next_fact.  False: the end, or
 * *p is NULL and it is damaged. */
bool tw_rollup_next_thread(const uint8_t **p, const uint8_t *end, struct tw_str *ret);

struct tw_rollup_piece { /* an addend; borrowed */
	struct tw_rollup_piece *next;
	const uint8_t *at, *end; /* a stored sketch; NULL: one number */
	int64_t value;
	const char *worst; /* TW_ROLLUP_ID characters */
};

struct tw_rollup_method {
	uint64_t id;
	struct tw_rollup_piece *pieces[TW_ROLLUP_METRICS];
};

/* The addends of a rollup.  Bytes and ids passed in must stay valid as long. */
struct tw_rollup {
	struct tw_arena *arena;
	unsigned metrics;     /* a bit per requested metric */
	const uint64_t *only; /* requested methods, sorted; NULL: all */
	size_t n_only;
	struct tw_rollup_method *methods;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash of id; 0 free */
};

/* TW_NOMEM if the arena is full, TW_CORRUPT if the bytes are damaged. */
enum tw_status tw_rollup_add_facts(struct tw_rollup *r, const char *trace_id, const uint8_t *p,
        size_t n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_rollup_add_part(struct tw_rollup *r, enum tw_rollup_metric m, const uint8_t *p,
        size_t n, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_worst {
	int64_t value;
	const char *trace_id; /* TW_ROLLUP_ID characters, borrowed; NULL: none */
};
/* Adds a method's pieces to s, which is not cleared, and updates *w with their worst. */
enum tw_status tw_rollup_sum(const struct tw_rollup_method *of, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_rollup_worst *w, struct tw_err *err) TW_MUST_USE;
/* Appends the part of a metric: the sums of all methods.  Sorts r->methods by id.  s is scratch
 * space. */
enum tw_status tw_rollup_write_part(struct tw_rollup *r, enum tw_rollup_metric m,
        struct tw_sketch *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* --- durations of traces --- */

/* A sketch of durations, with one trace per bucket: that with the lowest id. */
struct tw_rollup_head {
	struct tw_sketch lengths;
	char ids[TW_BUCKETS][TW_ROLLUP_ID]; /* "" if none */
};

void tw_rollup_head_clear(struct tw_rollup_head *h);
void tw_rollup_head_add(struct tw_rollup_head *h, const char *trace_id, int64_t duration_ns);
void tw_rollup_head_write(const struct tw_rollup_head *h, struct tw_buf *out);
/* Adds a bucket of durations, with the lowest id of their traces. */
void tw_rollup_head_add_bucket(
        struct tw_rollup_head *h, const char *trace_id, const struct tw_sketch_bucket *b);
/* Adds the output of tw_rollup_head_write; n 0 adds nothing.  TW_CORRUPT. */
enum tw_status tw_rollup_head_merge(
        struct tw_rollup_head *h, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* A stored trace with this duration (of a quantile), or the nearest; NULL: none. */
const char *tw_rollup_head_exemplar(const struct tw_rollup_head *h, int64_t duration_ns);

/* TW_TOO_LARGE: the rollups of a query exceed its memory. */
enum tw_status tw_rollup_fail_too_large(struct tw_err *err);

#endif

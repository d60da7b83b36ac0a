/*
 * export_plan.h - all that is decided before the first byte of a Perfetto file.
 *
 * Which device's trace is joined and why not, where each of our traces stands in time, which ids
 * are free.  Once settled a plan does not change, so that a file can be made from it twice.
 * Thread: one, until it is settled; then any.
 */
#ifndef TW_EXPORT_PLAN_H
#define TW_EXPORT_PLAN_H

#include "server/export/perfetto/export_ours.h"

struct tw_plan {
	struct tw_arena *arena;
	struct tw_perfetto_options options;
	struct tw_perfetto_source *sources;
	struct tw_system **kept; /* by source: what is known of its device's trace, or NULL */
	struct tw_ours *ours;
	uint32_t n;
	bool settled;             /* all below is decided, and where ours stand in time */
	struct tw_system *system; /* NULL: none is joined */
	int system_fd;
	uint64_t system_bytes; /* of the file as it was sent */
	uint32_t system_of;    /* whose of ours it is */
	const char *left_out;  /* why a device's trace is not joined, or "" */
	uint32_t tail_seq;
};

enum tw_status tw_plan_new(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_plan **ret,
        struct tw_err *err) TW_MUST_USE;
/* To be called unless the plan is settled: it is not where that takes long (a device's trace of
 * which nothing was kept, a call to be looked for) and the asker need not wait for it, as nothing
 * that was asked for can be missing. */
enum tw_status tw_plan_settle(struct tw_plan *p, struct tw_err *err) TW_MUST_USE;
struct tw_plan *tw_plan_free(struct tw_plan *p);

/* What the file says of itself.  Calls each with a key and a text, or a number when text is NULL.
 * A key is to be told once: Perfetto shows all. */
typedef void (*tw_plan_fact_fn)(void *arg, const char *key, const char *text, int64_t number);
/* Whose traces these are: known before the plan is settled. */
void tw_plan_whose(const struct tw_plan *p, tw_plan_fact_fn each, void *arg);
/* What was decided. */
void tw_plan_facts(const struct tw_plan *p, tw_plan_fact_fn each, void *arg);

#endif

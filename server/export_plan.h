/*
 * export_plan.h - all that is decided before the first byte of a Perfetto file.
 *
 * Which device's trace is joined and why not, where each of our traces stands in time, which ids
 * are free.  A plan does not change, so that a file can be made from it twice.
 * Thread: any, once made.
 */
#ifndef TW_EXPORT_PLAN_H
#define TW_EXPORT_PLAN_H

#include "export_ours.h"

struct tw_plan {
	struct tw_arena *arena;
	struct tw_perfetto_options options;
	struct tw_ours *ours;
	uint32_t n;
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
struct tw_plan *tw_plan_free(struct tw_plan *p);

/* What the file says of itself.  Calls each with a key and a text, or a number when text is NULL.
 */
typedef void (*tw_plan_fact_fn)(void *arg, const char *key, const char *text, int64_t number);
void tw_plan_facts(const struct tw_plan *p, tw_plan_fact_fn each, void *arg);

#endif

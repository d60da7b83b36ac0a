/*
 * stage_anr.h - the rules by which a project's ANRs are grouped.  Thread: any.
 */
#ifndef TW_STAGE_ANR_H
#define TW_STAGE_ANR_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;

/* The number that identifies the grouping rules and the app's frame patterns.  Always above 0. */
enum tw_status tw_anr_rules_number(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, int64_t *ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * export_join.h - one .perfetto-trace of our traces, and the device's own when a plan has it.
 */
#ifndef TW_EXPORT_JOIN_H
#define TW_EXPORT_JOIN_H

#include "server/export/export_pull.h"
#include "server/export/perfetto/export_plan.h"

/* plan must outlive it.  with_system false leaves the device's trace out, though ours stands where
 * it does beside it.  ret->free is owed. */
enum tw_status tw_join_open(struct tw_plan *plan, bool with_system, struct tw_pull *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

/*
 * export_join.h - writes our traces, and the device's own if the plan has one, as one
 * .perfetto-trace or as a tar.
 */
#ifndef TW_EXPORT_JOIN_H
#define TW_EXPORT_JOIN_H

#include "server/export/export_pull.h"
#include "server/export/perfetto/export_plan.h"

/* plan must outlive it.  With with_system false the device's trace is omitted, but ours keep the
 * times that they have with it.  The caller frees with ret->free. */
enum tw_status tw_join_open(struct tw_plan *plan, bool with_system, struct tw_pull *ret,
        struct tw_err *err) TW_MUST_USE;

/* A tar of the device's unchanged trace, ours, and a manifest (export_tar.c).  Perfetto 58 and
 * later opens it as one trace and keeps the members' ids apart.  A tar header contains the length
 * of its member, so ours is produced twice. */
enum tw_status tw_tar_open(
        struct tw_plan *plan, struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif

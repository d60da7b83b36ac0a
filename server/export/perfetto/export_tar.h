/*
 * export_tar.h - a tar of the device's unchanged trace, ours, and a manifest.
 *
 * Perfetto 58 and later opens it as one trace and keeps the members' ids apart.  A tar header
 * contains the length of its member, so ours is produced twice.
 */
#ifndef TW_EXPORT_TAR_H
#define TW_EXPORT_TAR_H

#include "server/export/export_pull.h"
#include "server/export/perfetto/export_plan.h"

/* plan must outlive it.  The caller frees with ret->free. */
enum tw_status tw_tar_open(
        struct tw_plan *plan, struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif

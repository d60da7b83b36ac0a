/*
 * export_tar.h - the device's trace byte for byte, ours beside it, and a manifest, as one tar.
 *
 * Perfetto 58 and later opens it as one trace and lets no member disturb another.  The length of
 * ours must stand before it, so it is made twice.
 */
#ifndef TW_EXPORT_TAR_H
#define TW_EXPORT_TAR_H

#include "server/export/export_pull.h"
#include "server/export/perfetto/export_plan.h"

/* plan must outlive it.  ret->free is owed. */
enum tw_status tw_tar_open(
        struct tw_plan *plan, struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif

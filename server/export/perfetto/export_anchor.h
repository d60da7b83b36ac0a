/*
 * export_anchor.h - the first call of a name, at which traces are put beside each other.
 */
#ifndef TW_EXPORT_ANCHOR_H
#define TW_EXPORT_ANCHOR_H

#include "server/export/perfetto/export_ours.h"

/* It is known without looking at calls that the selection has a call of this name. */
bool tw_anchor_is_certain(const struct tw_ours *o, const char *name);
/* The begin of the selection's first call of a name as it is shown.  Reads the calls up to it.
 * TW_NOT_FOUND: there is none. */
enum tw_status tw_anchor_first(
        const struct tw_ours *o, const char *name, int64_t *ret_ns, struct tw_err *err) TW_MUST_USE;

#endif

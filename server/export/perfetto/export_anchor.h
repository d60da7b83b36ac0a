/*
 * export_anchor.h - finds the first call of a name, at which traces are aligned.
 */
#ifndef TW_EXPORT_ANCHOR_H
#define TW_EXPORT_ANCHOR_H

#include "server/export/perfetto/export_ours.h"

/* Returns whether the selection certainly contains a call of this name, without reading calls. */
bool tw_anchor_is_certain(const struct tw_ours *o, const char *name);
/* The begin of the selection's first call of a displayed name.  Reads the calls up to it.
 * TW_NOT_FOUND: no such call. */
enum tw_status tw_anchor_first(
        const struct tw_ours *o, const char *name, int64_t *ret_ns, struct tw_err *err) TW_MUST_USE;

#endif

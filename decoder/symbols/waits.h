/*
 * waits.h - distinguishes methods that wait from methods that work, by their names.
 *
 * A looper's thread spends most of a trace in nativePollOnce, a pool's thread in park. Tables
 * ranked by such time would not show a cause. The list is waits.def, with names as resolved by
 * mappings. Thread: any.
 */
#ifndef TW_WAITS_H
#define TW_WAITS_H

#include "decoder/base/str.h"

/* Whether a method of this name only waits; a descriptor or a line may follow the name. */
bool tw_name_waits(struct tw_str name);

#endif

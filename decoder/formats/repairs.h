/*
 * repairs.h - the names under which damage is counted (repairs.def).
 *
 * A trace with a readable part is a trace (I2).  Losses and corrections are counted by name, with
 * the offset of the first case, and shown with the trace.  Names are part of the API: added, never
 * renamed.
 *
 * These have no offset, as they have no first position in the input: thread_limit if a thread is
 * requested before one of its records; slice_limit for too many methods; name_limit for threads and
 * binder calls; note_limit for documents; call_tree_full, which concerns the finished trace; and
 * everything past 4 GiB.
 */
#ifndef TW_REPAIRS_H
#define TW_REPAIRS_H

#include <stdint.h>

enum tw_repair_kind { TW_REPAIR_NOTE, TW_REPAIR_REPAIR, TW_REPAIR_LOSS };

enum tw_repair {
#define REPAIR(name, kind, meaning) TW_REPAIR_##name,
#include "decoder/formats/repairs.def"
#undef REPAIR
	TW_REPAIR_COUNT
};

struct tw_repair_info {
	const char *name;
	enum tw_repair_kind kind;
	const char *kind_word; /* "note", "repair", "loss" */
	const char *meaning;
};

/* Never NULL; `what` must be below TW_REPAIR_COUNT. */
const struct tw_repair_info *tw_repair_info(enum tw_repair what);

/* TW_REPAIR_COUNT if the name is unknown. */
enum tw_repair tw_repair_of_name(const char *name);

#endif

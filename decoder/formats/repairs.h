/*
 * repairs.h - the names under which damage is counted (repairs.def).
 *
 * A trace with a readable part is a trace (I2): what was lost or mended on the
 * way is counted here by name, with the offset of the first case, and shown
 * beside the trace.  Names are part of the API: they are added, never renamed.
 *
 * Without an offset are those that have no first place in the input: thread_limit, where a thread
 * is asked for before a record of it is told; slice_limit, of methods that are too many;
 * name_limit, of threads and binder calls; note_limit, of documents; call_tree_full, which is of
 * the finished trace; and what lies past 4 GiB.
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

/* TW_REPAIR_COUNT when the name is unknown. */
enum tw_repair tw_repair_of_name(const char *name);

#endif

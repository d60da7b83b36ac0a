/*
 * names.h - resolves the name of a trace's method through the mappings of its build.
 *
 * The method mapping (method_map.h) gives the name of a method id.  That name, or a name in the
 * trace itself, may be obfuscated: R8's mapping (retrace.h) has the original.  A native frame
 * (native_frame.h) is named by the symbols of its module.  Each may be missing or arrive later
 * (I8). Thread: any.
 */
#ifndef TW_NAMES_H
#define TW_NAMES_H

#include "decoder/base/str.h"
#include "decoder/symbols/method_map.h"
#include "decoder/symbols/native_map.h"
#include "decoder/symbols/retrace.h"

struct tw_names { /* borrowed; each may be NULL */
	const struct tw_map *map;
	const struct tw_retrace *retrace;
	const struct tw_natives *natives;
};

struct tw_named { /* a method as the trace has it */
	bool has_id;
	uint64_t id; /* has_id */
	/* otherwise "pkg.Class.method", or other text; may be followed by a descriptor from '('
	 * on, or by the line of a sampled frame, "(:12)"; or a native frame */
	struct tw_str name;
	bool original; /* the name comes from a mapping */
};

/* A name without its descriptor, line or build id, as mappings write it.  A view of the argument.
 */
struct tw_str tw_names_plain(struct tw_str name);
/* The line after the name of a sampled frame; 0: none. */
uint32_t tw_names_line(struct tw_str name);

/* Whether the name is that of a sampled frame, which tw_names_frames may resolve. */
bool tw_names_is_frame(struct tw_str name);

/* The original frames of a sampled frame with a line, innermost first: one alternative, without
 * compiler-generated frames. The walk comes from the frame that this one called, or contains only
 * r. False: the mapping has no such frame, or several alternatives. The one frame of a native
 * frame has no class. */
bool tw_names_frames(const struct tw_names *n, const struct tw_named *what,
        struct tw_retrace_walk *walk, struct tw_retraced *ret, size_t cap, size_t *ret_n);

/* Valid UTF-8, truncated to cap.  False for an id without a mapping line, shown as
 * "unknown:<id>".  A native frame without symbols is shown as its module, "[libapp.so]". */
bool tw_names_display(const struct tw_names *n, const struct tw_named *what, char *out, size_t cap);

/* The method's descriptor (JVM), which distinguishes overloads: with original types, valid UTF-8,
 * truncated to cap; "" if unknown. */
void tw_names_descriptor(
        const struct tw_names *n, const struct tw_named *what, char *out, size_t cap);

/* Distinguishes methods that wait from methods that work, by their names.
 *
 * A looper's thread spends most of a trace in nativePollOnce, a pool's thread in park. Tables
 * ranked by such time would not show a cause. The list is waits.def, with names as resolved by
 * mappings.
 *
 * Whether a method of this name only waits; a descriptor or a line may follow the name. */
bool tw_name_waits(struct tw_str name);

#endif

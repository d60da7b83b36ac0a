/*
 * names.h - what a method of a trace is called, by all mappings of its build.
 *
 * A method id is named by the method mapping (method_map.h).  What that says, or
 * what stood in the trace itself, may be obfuscated: then R8's mapping
 * (retrace.h) tells the original.  Either may be missing, or come later (I8).
 * Thread: any.
 */
#ifndef TW_NAMES_H
#define TW_NAMES_H

#include "decoder/symbols/method_map.h"
#include "decoder/symbols/retrace.h"

struct tw_names { /* borrowed; each may be NULL */
	const struct tw_map *map;
	const struct tw_retrace *retrace;
};

struct tw_named { /* a method as the trace has it */
	bool has_id;
	uint64_t id;        /* has_id */
	struct tw_str name; /* else: "pkg.Class.method", or anything; a descriptor may follow at
	                       '(', or the line of a sampled frame, "(:12)" */
	bool original;      /* name is what a mapping gave */
};

/* A name without the descriptor or line behind it: as mappings show theirs.  A view of it. */
struct tw_str tw_names_plain(struct tw_str name);
/* The line behind the name of a sampled frame; 0: none. */
uint32_t tw_names_line(struct tw_str name);

/* The original frames of a sampled frame with a line, innermost first: one alternative, without
 * those that the compiler made.  The walk comes from the frame that this one called, or has only
 * r.  False: the mapping has no such frame, or several alternatives. */
bool tw_names_frames(const struct tw_names *n, const struct tw_named *what,
        struct tw_retrace_walk *walk, struct tw_retraced *ret, size_t cap, size_t *ret_n);

/* Valid UTF-8, cut to cap.  False for an id without a mapping line, which is "unknown:<id>". */
bool tw_names_display(const struct tw_names *n, const struct tw_named *what, char *out, size_t cap);

#endif

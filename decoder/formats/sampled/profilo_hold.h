/*
 * profilo_hold.h - the parts of a Profilo log that can be emitted only at its end.
 *
 * The name of a marker follows it, batches of stack samples overlap in time, and whether a thread
 * has samples is known late.  So markers are stored (40 bytes each, limited in number) next to
 * samples.h and emitted together: samples as sampled calls; markers as calls on threads without
 * samples, as notes on threads with samples.
 */
#ifndef TW_PROFILO_HOLD_H
#define TW_PROFILO_HOLD_H

#include "decoder/base/arena.h"
#include "decoder/formats/notes.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

struct tw_profilo_hold;

#define TW_PROFILO_NO_MARKER UINT32_MAX

/* NULL: out of memory. */
struct tw_profilo_hold *tw_profilo_hold_new(
        struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink);

struct tw_profilo_frame {
	uint32_t pid, tid;
	int64_t ts_ns;
	uint64_t method, offset;
};

/* One frame of a sample, outermost first; frames of the same thread and time form one sample. */
enum tw_status tw_profilo_hold_frame(struct tw_profilo_hold *h, const struct tw_profilo_frame *f,
        struct tw_err *err) TW_MUST_USE;

struct tw_profilo_marker {
	uint32_t tid;
	int64_t ts_ns;
	uint64_t offset;
	enum tw_note_kind kind; /* the kind of note if it cannot be a call */
	struct tw_str name;     /* used if nothing names it; borrowed */
};

/* *ret is the marker that begins, or that of its thread that ends here, for tw_profilo_hold_name;
 * TW_PROFILO_NO_MARKER at a limit or if none is open, which is counted. */
enum tw_status tw_profilo_hold_begin(struct tw_profilo_hold *h,
        const struct tw_profilo_marker *marker, uint32_t *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_profilo_hold_end(struct tw_profilo_hold *h,
        const struct tw_profilo_marker *marker, uint32_t *ret, struct tw_err *err) TW_MUST_USE;
/* The first name wins. */
enum tw_status tw_profilo_hold_name(struct tw_profilo_hold *h, uint32_t marker, struct tw_str name,
        struct tw_err *err) TW_MUST_USE;

/* Emits everything to the sink; open markers end at end_ns. */
enum tw_status tw_profilo_hold_emit(
        struct tw_profilo_hold *h, uint32_t pid, int64_t end_ns, struct tw_err *err) TW_MUST_USE;

#endif

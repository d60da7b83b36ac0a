/*
 * rhea.h - the text that btrace writes of intercepted atrace messages, 1.0 and 2.0.
 *
 *   <n>|TRACE_START|<boottime ns>|<pid>|2147483647|2|1       first line
 *   <seconds>.<fraction> <tid>: B|<pid>|<name>               all threads
 *   <seconds>.<fraction>: E|<pid>                            main thread only: no tid
 *   <n>|TRACE_END|<boottime ns>|<pid>|2147483647|2|1         when it ended cleanly
 *
 * 2.0 writes nine digits of CLOCK_MONOTONIC, 1.0 six of CLOCK_BOOTTIME.  Old
 * Android writes a bare "E".  Learned from bytedance/btrace v1.0.2 and v2.0.0.
 */
#ifndef TW_RHEA_H
#define TW_RHEA_H

#include "decoder/formats/lines.h"
#include "decoder/formats/markers/markers.h"

struct tw_rhea;
typedef enum tw_status (*tw_rhea_marker_fn)(
        struct tw_rhea *r, const struct tw_marker *marker, struct tw_err *err);

struct tw_rhea { /* first member of a format's state */
	struct tw_markers markers;
	struct tw_lines lines;
	struct tw_clock clock;
	tw_rhea_marker_fn each; /* handles a marker: tw_rhea_emit, or a wrapper of it */
	unsigned digits;        /* of a fraction */
	bool have_zero, ended;
	int64_t zero_ns;
	uint32_t pid; /* 0 until read */
	uint64_t events;
};

/* How likely (0 no ... 100 certain) these bytes are the text with this many fraction digits. */
int tw_rhea_probe(const uint8_t *head, size_t len, unsigned digits);
enum tw_status tw_rhea_start(struct tw_rhea *r, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err) TW_MUST_USE;
/* Emits the marker to the sink unchanged. */
enum tw_status tw_rhea_emit(
        struct tw_rhea *r, const struct tw_marker *marker, struct tw_err *err) TW_MUST_USE;
/* Reads the last line.  Fails if there was no event.  `cut`: as for a format's finish. */
enum tw_status tw_rhea_end(struct tw_rhea *r, bool cut, struct tw_err *err) TW_MUST_USE;
/* Emits calls that are still open, and reports a missing end marker. */
enum tw_status tw_rhea_finish(struct tw_rhea *r, bool cut, struct tw_err *err) TW_MUST_USE;

#endif

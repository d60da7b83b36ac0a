/*
 * chrome_event.h - events of Chrome's JSON traces, as publicly documented.
 *
 *   B E X         calls of a thread, with its CPU clock (tts, tdur) if present
 *   i I R         instants
 *   C             counters, one per member of args
 *   b e, S F      spans by id; n T p are instants of theirs
 *   s t f         flows, and bind_id with flow_out and flow_in
 *   M             names of processes and threads
 *   P             a sample's name
 *   N O D v V c   objects, memory dumps, clock sync markers: ignored
 *
 * Times are microseconds of a clock that "metadata" may name.  B and E are paired in time order,
 * which can differ from file order: a window of TW_CHROME_WINDOW of them is sorted, and emitted
 * from the earliest on once it is full.  A kernel trace may accompany them, in one page or as
 * "systemTraceEvents"; both then share one zero.
 */
#ifndef TW_CHROME_EVENT_H
#define TW_CHROME_EVENT_H

#include "decoder/formats/ftrace/ftrace.h"
#include "decoder/formats/json/chrome_text.h"
#include "decoder/formats/markers/flows.h"

enum { TW_CHROME_WINDOW = 1 << 18 };

struct tw_chrome_edge;

struct tw_chrome {
	struct tw_ftrace *trace; /* supplies markers, zero and clock */
	struct tw_chrome_text text;
	struct tw_lines kernel; /* of systemTraceEvents */
	struct tw_flows flows;
	struct tw_chrome_edge *edges; /* B and E not emitted yet, 56 bytes each */
	uint32_t n_edges, cap_edges;
	uint32_t seq;     /* of the next */
	int64_t first_ns; /* of these events */
	uint32_t pid;     /* of the only process with calls so far; 0 none yet */
	bool many_pids, monotonic, own_zero;
	uint64_t events; /* of known kinds */
};

/* False: out of memory. */
bool tw_chrome_init(struct tw_chrome *c, struct tw_arena *a, struct tw_ftrace *trace);
/* Emits the remaining calls and the clock.  Call it after the end of the JSON (which is pushed to
 * c->text, chrome_text.h) and before tw_ftrace_finish. */
enum tw_status tw_chrome_finish(struct tw_chrome *c, struct tw_err *err) TW_MUST_USE;
/* Whether these first bytes, from the opening bracket on, are such a trace: 0 no ... 100
 * certain. */
int tw_chrome_probe(const uint8_t *head, size_t len);

#endif

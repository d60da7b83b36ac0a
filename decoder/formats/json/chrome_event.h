/*
 * chrome_event.h - events of Chrome's JSON traces, as public documentation has them.
 *
 *   B E X         calls of a thread, with its CPU clock (tts, tdur) where it is there
 *   i I R         moments
 *   C             counters, one for each member of args
 *   b e, S F      spans by id; n T p are moments of theirs
 *   s t f         flows, and bind_id with flow_out and flow_in
 *   M             names of processes and threads
 *   P             a sample's name
 *   N O D v V c   objects, memory dumps, clock marks: passed over
 *
 * Times are microseconds of a clock that "metadata" may name.  B and E are
 * paired in the order of their times, which need not be the file's: a window of
 * TW_CHROME_WINDOW of them is sorted, and emitted from the earliest on once it is
 * full.  A kernel trace may stand beside them, in one
 * page or as "systemTraceEvents"; both then have one zero.
 */
#ifndef TW_CHROME_EVENT_H
#define TW_CHROME_EVENT_H

#include "decoder/formats/flows.h"
#include "decoder/formats/ftrace/ftrace.h"
#include "decoder/formats/json/chrome_text.h"

enum { TW_CHROME_WINDOW = 1 << 18 };

struct tw_chrome_edge;

struct tw_chrome {
	struct tw_ftrace *trace; /* whose marks, zero and clock are used */
	struct tw_chrome_text text;
	struct tw_lines kernel; /* of systemTraceEvents */
	struct tw_flows flows;
	struct tw_chrome_edge *edges; /* B and E read but not emitted yet, 56 bytes each */
	uint32_t n_edges, cap_edges;
	uint32_t seq;     /* of the next */
	int64_t first_ns; /* of these events */
	uint32_t pid;     /* of the one process that has calls; 0 none yet */
	bool many_pids, monotonic, own_zero;
	uint64_t events; /* of a kind that is known */
};

/* False: no memory. */
bool tw_chrome_init(struct tw_chrome *c, struct tw_arena *a, struct tw_ftrace *trace);
/* After the last of the JSON, which goes to c->text (chrome_text.h), and before tw_ftrace_finish:
 * the remaining calls, and what is known of the clock. */
enum tw_status tw_chrome_finish(struct tw_chrome *c, struct tw_err *err) TW_MUST_USE;
/* The first bytes, from the one that opens it, are such a trace's: 0 no ... 100 certain. */
int tw_chrome_probe(const uint8_t *head, size_t len);

#endif

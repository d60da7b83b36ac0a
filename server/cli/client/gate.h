/*
 * gate.h - conditions under which a comparison fails: 'p95(cold_start) > +10%'.
 *
 *   STAT(SCENARIO) or STAT(method:NAME), then > or <, then a number with %, ms, s or us
 *
 * STAT: p50, p75, p95, p99, mean (of the traces' durations, or of the method's wall time in the
 * traces that contain it), share (of the traces that contain the method; in percentage points).
 * With a sign, or for a time in %, the number is the change from base to head: relative with %,
 * otherwise absolute. Such a condition fails the gate if the change exceeds it and is significant:
 * its 95 % interval does not contain 0.  Without a sign it is a budget for head's own value.
 * Independent of HTTP and files.  Thread: any.
 */
#ifndef TW_GATE_H
#define TW_GATE_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"

enum { TW_GATE_NAME_BYTES = 512, TW_GATE_TEXT_BYTES = 1024 };

struct tw_gate {
	char stat[8];
	char name[TW_GATE_NAME_BYTES]; /* of the scenario or method */
	bool is_method, is_share;
	bool below;    /* <, otherwise > */
	bool relative; /* limit is in %, otherwise in ns */
	bool budget;   /* limit is for head's value, otherwise for the change */
	double limit;
};

/* TW_BAD_REQUEST with a message. */
enum tw_status tw_gate_parse(const char *text, struct tw_gate *ret, struct tw_err *err) TW_MUST_USE;

enum tw_gate_result { TW_GATE_PASSES, TW_GATE_FAILS, TW_GATE_TOO_LITTLE };
/* Evaluates a response of /api/v1/fleet/compare (of a method: one with method=NAME). strict:
 * exceeding the limit fails even if the change is not significant. ret_why: one line. */
enum tw_gate_result tw_gate_check(const struct tw_gate *g, const json_t *answer, bool strict,
        char ret_why[TW_GATE_TEXT_BYTES]);

#endif

/*
 * gate.h - conditions that a comparison must not meet: 'p95(cold_start) > +10%'.
 *
 *   STAT(SCENARIO) or STAT(method:NAME), then > or <, then a number with %, ms, s or us
 * STAT: p50, p75, p95, p99, mean (of the traces' lengths, or of the method's wall time in the
 * traces that have it), share (of the traces, those that have the method; in percentage points).
 * With a sign, or of a time in %, the number is the change from base to head: relative with %, else
 * absolute. Such a condition fails the gate when the change is beyond it and sure to be one at all:
 * its 95 % interval does not reach 0.  Without a sign it is a budget, of what head itself has.
 * Knows neither HTTP nor files.  Thread: any.
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
	bool below;    /* <, else > */
	bool relative; /* limit is in %, else in ns */
	bool budget;   /* limit is of head's value, else of the change */
	double limit;
};

/* TW_BAD_REQUEST in words. */
enum tw_status tw_gate_parse(const char *text, struct tw_gate *ret, struct tw_err *err) TW_MUST_USE;

enum tw_gate_result { TW_GATE_HOLDS, TW_GATE_FAILS, TW_GATE_TOO_LITTLE };
/* By an answer of /api/v1/fleet/compare (of a method, one with method=NAME).  strict: what is
 * beyond the limit fails, sure or not.  ret_why: one line. */
enum tw_gate_result tw_gate_check(const struct tw_gate *g, const json_t *answer, bool strict,
        char ret_why[TW_GATE_TEXT_BYTES]);

#endif

/*
 * source_turn.h - who may start a child that reads a clone: equal questions share one, a few run at
 * once, and projects take turns.
 *
 * Of k projects that ask more than can be answered at once each gets a k-th of the children,
 * whatever the others ask: a project's next question stands one behind its last, and none begins
 * in front of those that are being answered (start-time fair queueing).  No project has all the
 * children or all the places to wait.  Questions name their project, so no two projects share an
 * answer.  No files, no processes.  Thread: any.
 */
#ifndef TW_SOURCE_TURN_H
#define TW_SOURCE_TURN_H

#include <jansson.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/http/http.h"

enum {
	TW_TURN_CHILDREN = 3,
	TW_TURN_CHILDREN_OF_PROJECT = 2,
	TW_TURN_QUESTIONS = 32, /* that are answered or wait, whoever shares them */
	TW_TURN_QUESTIONS_OF_PROJECT = 16,
	TW_TURN_ASKERS = TW_CHILD_ASKERS, /* with who shares: each holds a thread */
	TW_TURN_ASKERS_OF_PROJECT = 32
};

struct tw_turns;
struct tw_turns *tw_turns_new(void); /* NULL: no memory */
struct tw_turns *tw_turns_free(struct tw_turns *t);

struct tw_turn {
	const char *project, *question;
	int64_t turn_ms;  /* until then it waits for a child, and */
	int64_t until_ms; /* until then for the answer of one that it shares (CLOCK_MONOTONIC) */
	/* By the first that asks, once it has its turn; json_decref of the answer is owed. */
	enum tw_status (*run)(void *arg, json_t **ret, struct tw_err *err);
	void *arg;
};

/* TW_BUSY: later; else what run came to, for all that asked the same meanwhile.  json_decref of the
 * answer is owed. */
enum tw_status tw_turns_ask(
        struct tw_turns *t, const struct tw_turn *of, json_t **ret, struct tw_err *err) TW_MUST_USE;

struct tw_turn_counts { /* since the start; but for askers, which are there now */
	uint64_t run, shared, refused, askers;
};
struct tw_turn_counts tw_turns_counts(struct tw_turns *t);

#endif

/*
 * note_pass.h - one pass over notes: of which threads, and until when.
 *
 * Thread: one at a time.
 */
#ifndef TW_NOTE_PASS_H
#define TW_NOTE_PASS_H

#include "server/query/query.h"

struct tw_note_pass { /* a and deadline are set before it begins */
	struct tw_arena *a;
	const struct tw_deadline *deadline;
	const bool *wanted; /* by thread id, 0 the whole trace */
	uint32_t n_wanted;
	uint32_t seen;
	bool no_memory, partial;
};

enum tw_status tw_note_pass_begin(struct tw_note_pass *p, const struct tw_trace_file *f,
        const struct tw_selection *sel, struct tw_err *err) TW_MUST_USE;
/* Is the thread (0: the whole trace) of the selection? */
bool tw_note_pass_wants(const struct tw_note_pass *p, uint32_t thread_id);
/* After each note; false stops: the time is up, memory is short, or a limit is reached. */
bool tw_note_pass_goes_on(struct tw_note_pass *p);
/* st, or that memory was short. */
enum tw_status tw_note_pass_end(
        const struct tw_note_pass *p, enum tw_status st, struct tw_err *err) TW_MUST_USE;

#endif

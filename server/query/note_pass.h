/*
 * note_pass.h - state of one pass over notes: the selected threads and the deadline.
 *
 * Thread: one at a time.
 */
#ifndef TW_NOTE_PASS_H
#define TW_NOTE_PASS_H

#include "server/query/query.h"

struct tw_note_pass { /* the caller sets a and deadline first */
	struct tw_arena *a;
	const struct tw_deadline *deadline;
	const bool *wanted; /* by thread id, 0: notes of the whole trace */
	uint32_t n_wanted;
	uint32_t seen;
	bool no_memory, partial;
};

enum tw_status tw_note_pass_begin(struct tw_note_pass *p, const struct tw_trace_file *f,
        const struct tw_selection *sel, struct tw_err *err) TW_MUST_USE;
/* Returns whether the thread (0: the whole trace) is selected. */
bool tw_note_pass_wants(const struct tw_note_pass *p, uint32_t thread_id);
/* Call after each note; false: stop at the deadline, without memory, or at a limit. */
bool tw_note_pass_continue(struct tw_note_pass *p);
/* Returns st, or TW_NOMEM if memory ran out. */
enum tw_status tw_note_pass_end(
        const struct tw_note_pass *p, enum tw_status st, struct tw_err *err) TW_MUST_USE;

#endif

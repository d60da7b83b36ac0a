/*
 * note_pass.c - one pass over the notes of a selection.
 */
#include "server/query/note_pass.h"

enum { CHECK_EVERY = 1024 };

enum tw_status tw_note_pass_begin(struct tw_note_pass *p, const struct tw_trace_file *f,
        const struct tw_selection *sel, struct tw_err *err)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	bool *wanted = tw_arena_zalloc(p->a, (size_t)n + 1, sizeof *wanted);

	if (!wanted)
		return tw_oom(err);
	wanted[0] = sel->all_threads;
	for (uint32_t i = 0; i < n; i++)
		wanted[i + 1] = tw_selection_has(sel, &t[i]);
	p->wanted = wanted;
	p->n_wanted = n + 1;
	return TW_OK;
}

bool tw_note_pass_wants(const struct tw_note_pass *p, uint32_t thread_id)
{
	return thread_id < p->n_wanted && p->wanted[thread_id];
}

bool tw_note_pass_continue(struct tw_note_pass *p)
{
	if (++p->seen % CHECK_EVERY == 0 && tw_deadline_passed(p->deadline))
		p->partial = true;
	return !p->partial && !p->no_memory;
}

enum tw_status tw_note_pass_end(const struct tw_note_pass *p, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && p->no_memory)
		return tw_oom(err);
	return st;
}

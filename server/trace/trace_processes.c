#include "server/trace/trace_processes.h"

#include <stdlib.h>

struct naming {
	struct tw_arena *arena;
	struct tw_trace_process *list;
	uint32_t n;
	bool no_memory;
};

static int by_pid(const void *pa, const void *pb)
{
	const struct tw_trace_process *a = pa;
	const struct tw_trace_process *b = pb;

	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* The first name wins. */
static bool take_name(void *arg, uint64_t id, const struct tw_note_row *note)
{
	struct naming *m = arg;
	const struct tw_trace_process sought = {.pid = (uint32_t)note->value};
	struct tw_trace_process *p = NULL;

	(void)id;
	if (note->value >= 0 && note->value <= UINT32_MAX && note->text.len)
		p = bsearch(&sought, m->list, m->n, sizeof *m->list, by_pid);
	if (!p || p->name.len)
		return true;
	p->name.ptr = tw_arena_str(m->arena, note->text);
	m->no_memory = !p->name.ptr;
	p->name.len = p->name.ptr ? note->text.len : 0;
	return !m->no_memory;
}

enum tw_status tw_trace_processes(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_trace_process **ret, uint32_t *ret_n, struct tw_err *err)
{
	const struct tw_note_query q = {.kind = TW_NOTE_process,
	        .from_ns = INT64_MIN,
	        .to_ns = INT64_MAX,
	        .limit = UINT32_MAX};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct naming m = {.arena = a, .list = tw_arena_alloc(a, (size_t)n + 1, sizeof *m.list)};
	enum tw_status st;

	if (!m.list)
		return tw_oom(err);
	for (uint32_t i = 0; i < n; i++)
		m.list[i] = (struct tw_trace_process){t[i].pid, 1, {"", 0}};
	if (n)
		qsort(m.list, n, sizeof *m.list, by_pid);
	for (uint32_t i = 0; i < n; i++) {
		if (m.n && m.list[m.n - 1].pid == m.list[i].pid)
			m.list[m.n - 1].threads++;
		else
			m.list[m.n++] = m.list[i];
	}
	st = tw_trace_file_notes(f, &q, take_name, &m, err);
	*ret = m.list;
	*ret_n = m.n;
	return st == TW_OK && m.no_memory ? tw_oom(err) : st;
}

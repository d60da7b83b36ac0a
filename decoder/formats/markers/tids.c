#include "decoder/formats/markers/markers.h"

#include "decoder/base/hash.h"

bool tw_tids_init(
        struct tw_tids *t, struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink)
{
	*t = (struct tw_tids){
	        .sink = sink, .max = limits->max_threads, .n_slots = 64, .salt = limits->hash_salt};
	while (t->n_slots < t->max * 2)
		t->n_slots *= 2;
	t->list = tw_arena_alloc(a, t->max, sizeof *t->list);
	t->slots = tw_arena_zalloc(a, t->n_slots, sizeof *t->slots);
	return t->list && t->slots;
}

/* The slot of a thread, or the free one where it belongs.  any: ignores the process. */
static uint32_t find(const struct tw_tids *t, uint64_t tid, uint32_t pid, bool any)
{
	uint32_t mask = t->n_slots - 1;
	uint32_t at = (uint32_t)tw_hash_id(tid ^ (uint64_t)pid << 40, t->salt) & mask;

	while (t->slots[at]) {
		const struct tw_tid *k = &t->list[t->slots[at] - 1];

		if (k->tid == tid && (any || k->pid == pid))
			break;
		at = (at + 1) & mask;
	}
	return at;
}

static struct tw_tid *add(struct tw_tids *t, uint32_t at, uint64_t tid, uint64_t offset)
{
	if (t->n >= t->max) {
		t->sink->ops->repair(t->sink, TW_REPAIR_thread_limit, offset, 1);
		return NULL;
	}
	t->list[t->n] = (struct tw_tid){.tid = tid, .cpu = -1, .iowait = -1};
	t->slots[at] = ++t->n;
	return &t->list[t->n - 1];
}

struct tw_tid *tw_tids_get(struct tw_tids *t, uint64_t tid, uint64_t offset)
{
	uint32_t at;

	if (t->last && t->last->tid == tid)
		return t->last;
	at = find(t, tid, 0, true);
	return t->last = t->slots[at] ? &t->list[t->slots[at] - 1] : add(t, at, tid, offset);
}

struct tw_tid *tw_tids_get_in(struct tw_tids *t, uint32_t pid, uint64_t tid, uint64_t offset)
{
	struct tw_tid *k = t->last_in;
	uint32_t at;

	if (k && pid && k->tid == tid && k->pid == pid)
		return k;
	at = find(t, tid, 0, true);
	k = t->slots[at] ? &t->list[t->slots[at] - 1] : NULL;
	/* lookups without a process use this slot; further threads with this id get others */
	if (!k) {
		k = add(t, at, tid, offset);
	} else if (k->pid && k->pid != pid) {
		at = find(t, tid, pid, false);
		k = t->slots[at] ? &t->list[t->slots[at] - 1] : add(t, at, tid, offset);
	}
	if (k && !k->pid && !k->track)
		k->pid = pid;
	else if (k)
		tw_tids_process(t, k, pid);
	t->last_in = k;
	return k;
}

uint32_t tw_tids_track(struct tw_tids *t, struct tw_tid *k)
{
	if (!k->track)
		k->track = t->sink->ops->track(t->sink, k->pid, k->tid, TW_TID_FULL);
	return k->track;
}

void tw_tids_process(struct tw_tids *t, struct tw_tid *k, uint32_t pid)
{
	if (k->pid || !pid || !k->tid)
		return;
	k->pid = pid;
	if (k->track)
		t->sink->ops->thread_process(t->sink, k->tid, pid);
}

void tw_tids_marker_process(struct tw_tid *k, uint32_t pid)
{
	if (!k->marker_pid)
		k->marker_pid = pid;
}

void tw_tids_apply_markers(struct tw_tids *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		tw_tids_process(t, &t->list[i], t->list[i].marker_pid);
}

void tw_tids_name(struct tw_tids *t, struct tw_tid *k, struct tw_str name)
{
	if (k->named || name.len == 0 || !k->tid)
		return;
	k->named = true;
	t->sink->ops->thread_name(t->sink, k->pid, k->tid, name);
}

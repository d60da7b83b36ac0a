#include "server/export/perfetto/export_ours.h"

uint32_t tw_ours_pid(const struct tw_ours *o, const struct tw_thread_info *t)
{
	return t && t->pid ? t->pid : tw_trace_file_info(o->file)->pid;
}

static uint64_t known_uuid(const struct tw_ours *o, uint64_t tid, uint32_t pid)
{
	size_t low = 0;
	size_t high = o->n_known;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct tw_system_thread *k = &o->known[mid];

		if (k->tid < tid || (k->tid == tid && k->pid < pid))
			low = mid + 1;
		else
			high = mid;
	}
	if (low == o->n_known || o->known[low].tid != tid || o->known[low].pid != pid)
		return 0;
	return o->known[low].uuid;
}

uint64_t tw_ours_process_uuid(const struct tw_ours *o, uint32_t pid)
{
	uint64_t known = known_uuid(o, 0, pid);

	if (pid == 0)
		return 0;
	return known ? known : tw_track_uuid(o->salt, TW_TRACK_PROCESS, o->machine, pid);
}

uint64_t tw_ours_thread_uuid(
        const struct tw_ours *o, const struct tw_thread_info *t, bool *ret_known)
{
	uint32_t pid = tw_ours_pid(o, t);
	uint64_t known = known_uuid(o, t->tid, pid);

	*ret_known = known != 0;
	if (known)
		return known;
	return tw_track_uuid(o->salt, TW_TRACK_THREAD, o->machine, tw_track_mix(pid) ^ t->tid);
}

enum tw_status tw_ours_put_thread(const struct tw_ours *o, struct tw_buf *out, uint32_t seq,
        int64_t ts_ns, const struct tw_thread_info *t)
{
	TwPerfetto__ThreadDescriptor d = TW_PERFETTO__THREAD_DESCRIPTOR__INIT;
	bool known;
	uint64_t uuid = tw_ours_thread_uuid(o, t, &known);

	if (known)
		return TW_OK;
	d.pid = (int32_t)(tw_ours_pid(o, t) + o->pid_shift);
	d.tid = (int64_t)(t->tid + o->pid_shift);
	if (t->name.len) {
		d.thread_name = tw_track_text(o->arena, t->name);
		if (!d.thread_name)
			return TW_NOMEM;
	}
	return tw_track_put_thread(out, seq, ts_ns, uuid, &d);
}

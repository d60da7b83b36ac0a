#include "server/export/perfetto/export_trace.h"

#include "decoder/base/order.h"

uint32_t tw_export_trace_pid(const struct tw_export_trace *o, const struct tw_thread_info *t)
{
	return t && t->pid ? t->pid : tw_trace_file_info(o->file)->pid;
}

static uint64_t known_uuid(const struct tw_export_trace *o, uint64_t tid, uint32_t pid)
{
	const struct tw_system_thread *const k = o->known;
	size_t at;

	TW_BISECT(at, o->n_known, k[at].tid < tid || (k[at].tid == tid && k[at].pid < pid));
	return at < o->n_known && k[at].tid == tid && k[at].pid == pid ? k[at].uuid : 0;
}

uint64_t tw_export_trace_process_uuid(const struct tw_export_trace *o, uint32_t pid)
{
	uint64_t known = known_uuid(o, 0, pid);

	if (pid == 0)
		return 0;
	return known ? known : tw_track_uuid(o->salt, TW_TRACK_PROCESS, o->machine, pid);
}

uint64_t tw_export_trace_thread_uuid(
        const struct tw_export_trace *o, const struct tw_thread_info *t, bool *ret_known)
{
	uint32_t pid = tw_export_trace_pid(o, t);
	uint64_t known = known_uuid(o, t->tid, pid);

	*ret_known = known != 0;
	if (known)
		return known;
	return tw_track_uuid(o->salt, TW_TRACK_THREAD, o->machine, tw_track_mix(pid) ^ t->tid);
}

enum tw_status tw_export_trace_put_thread(const struct tw_export_trace *o, struct tw_buf *out,
        uint32_t seq, int64_t ts_ns, const struct tw_thread_info *t)
{
	TwPerfetto__ThreadDescriptor d = TW_PERFETTO__THREAD_DESCRIPTOR__INIT;
	bool known;
	uint64_t uuid = tw_export_trace_thread_uuid(o, t, &known);

	if (known)
		return TW_OK;
	d.pid = (int32_t)(tw_export_trace_pid(o, t) + o->pid_shift);
	d.tid = (int64_t)(t->tid + o->pid_shift);
	if (t->name.len) {
		d.thread_name = tw_track_text(o->arena, t->name);
		if (!d.thread_name)
			return TW_NOMEM;
	}
	return tw_track_put_thread(out, seq, ts_ns, uuid, &d);
}

/* --- its clock ---
 *
 * A trace reads its two clock bases in two system calls, between which its thread may be
 * preempted; the device's snapshots avoid this. So if both agree within TOLERANCE_NS, the device's
 * are used. Otherwise the device slept between the trace's begin and the next snapshot, or they
 * are of different devices or boots: BOOTTIME minus MONOTONIC is the total time slept and never
 * shrinks.
 */

#define TOLERANCE_NS ((int64_t)10000000)
/* Recorders take the first and last snapshot slightly outside of the recorded range. */
#define APART_NS ((int64_t)1000000000)

const char *tw_clock_sync_name(enum tw_clock_sync_choice choice)
{
	static const char *const names[] = {
	        "alone", "monotonic", "boottime", "start", "slice", "apart"};

	return names[choice];
}

enum tw_status tw_clock_sync_at(enum tw_clock_sync_choice choice, uint32_t clock, int64_t at_ns,
        int64_t to_ns, struct tw_arena *a, struct tw_clock_sync *ret, struct tw_err *err)
{
	struct tw_clock_sync_step *step = tw_arena_alloc(a, 1, sizeof *step);

	if (!step)
		return tw_oom(err);
	*step = (struct tw_clock_sync_step){INT64_MIN, to_ns - at_ns};
	*ret = (struct tw_clock_sync){choice, clock, step, 1, INT64_MIN};
	return TW_OK;
}

static const struct tw_perfetto_clock *find(const struct tw_perfetto_clocks *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_clocks; i++)
		if (c->clocks[i].id == id && c->clocks[i].n)
			return &c->clocks[i];
	return NULL;
}

static bool relates(const struct tw_perfetto_clocks *c, uint32_t id)
{
	return c->trace_clock == id || find(c, id) != NULL;
}

/* Converts a reading of a clock to the device trace's clock by its snapshots. */
static enum tw_status by_clock(const struct tw_system *s, uint32_t id, int64_t base_ns,
        struct tw_arena *a, struct tw_clock_sync *ret, struct tw_err *err)
{
	enum tw_clock_sync_choice choice =
	        id == TW_PERFETTO_MONOTONIC ? TW_CLOCK_SYNC_MONOTONIC : TW_CLOCK_SYNC_BOOTTIME;
	const struct tw_perfetto_clock *k = find(&s->clocks, id);
	struct tw_clock_sync_step *steps;

	if (id == s->clocks.trace_clock || !k)
		return tw_clock_sync_at(choice, id, 0, base_ns, a, ret, err);
	steps = tw_arena_alloc(a, (size_t)k->n + 1, sizeof *steps);
	if (!steps)
		return tw_oom(err);
	for (uint32_t i = 0; i < k->n; i++) {
		const struct tw_perfetto_pair *p = &k->pairs[i];

		steps[i].from_ns = i ? p->from_ns - base_ns : INT64_MIN;
		steps[i].add_ns = p->to_ns - p->from_ns + base_ns;
	}
	*ret = (struct tw_clock_sync){choice, s->clocks.trace_clock, steps, k->n, INT64_MIN};
	return TW_OK;
}

/* The total sleep of the device at the last snapshot up to a reading of MONOTONIC, and at the next
 * one; the trace's clock is BOOTTIME. */
static void slept(const struct tw_perfetto_clock *k, int64_t mono_ns, int64_t ret[2])
{
	const struct tw_perfetto_pair *p = k->pairs;
	uint32_t i = 0;

	while (i + 1 < k->n && p[i + 1].from_ns <= mono_ns)
		i++;
	ret[0] = p[i].to_ns - p[i].from_ns;
	ret[1] = i + 1 < k->n ? p[i + 1].to_ns - p[i + 1].from_ns : INT64_MAX;
	if (p[0].from_ns > mono_ns) { /* before the first */
		ret[1] = ret[0];
		ret[0] = 0;
	}
}

/* Uses the trace's own pair up to the device's next snapshot: the device slept in between. */
static void put_own_first(
        struct tw_clock_sync *p, const struct tw_perfetto_clock *k, const struct tw_trace_info *t)
{
	struct tw_clock_sync_step *steps = (struct tw_clock_sync_step *)(uintptr_t)p->steps;

	p->n = 0;
	steps[p->n++] = (struct tw_clock_sync_step){INT64_MIN, t->boot_base_ns};
	for (uint32_t i = 0; i < k->n; i++)
		if (k->pairs[i].from_ns > t->mono_base_ns)
			steps[p->n++] =
			        (struct tw_clock_sync_step){k->pairs[i].from_ns - t->mono_base_ns,
			                k->pairs[i].to_ns - k->pairs[i].from_ns + t->mono_base_ns};
}

/* Compares the trace's own BOOTTIME with the time by MONOTONIC and the snapshots. */
static void compare(
        const struct tw_system *s, const struct tw_trace_info *t, struct tw_clock_sync *p)
{
	const struct tw_perfetto_clock *k = find(&s->clocks, TW_PERFETTO_MONOTONIC);
	uint32_t at = 0;
	int64_t slept_ns[2];
	int64_t own = t->boot_base_ns - t->mono_base_ns;

	if (s->clocks.trace_clock != TW_PERFETTO_BOOTTIME || t->boot_base_ns < 0 || !k)
		return;
	p->residual_ns = t->boot_base_ns - tw_clock_sync_time(p, &at, 0);
	if (p->residual_ns <= TOLERANCE_NS && p->residual_ns >= -TOLERANCE_NS)
		return;
	slept(k, t->mono_base_ns, slept_ns);
	if (own < slept_ns[0] - TOLERANCE_NS ||
	        (slept_ns[1] != INT64_MAX && own > slept_ns[1] + TOLERANCE_NS))
		p->choice = TW_CLOCK_SYNC_APART;
	else
		put_own_first(p, k, t);
}

static bool apart(
        const struct tw_system *s, const struct tw_trace_info *t, const struct tw_clock_sync *p)
{
	uint32_t at = 0;

	if (s->first_ns < 0 || t->slices == 0)
		return false;
	return tw_clock_sync_time(p, &at, t->end_ns) < s->first_ns - APART_NS ||
	       tw_clock_sync_time(p, &at, t->start_ns) > s->last_ns + APART_NS;
}

enum tw_status tw_clock_sync_make(const struct tw_trace_info *t, const struct tw_system *s,
        struct tw_arena *a, struct tw_clock_sync *ret, struct tw_err *err)
{
	const int64_t mono = t->mono_base_ns;
	const int64_t boot = t->boot_base_ns;
	struct tw_clock_sync p = {0};
	enum tw_status st;

	if (!s)
		return tw_clock_sync_at(TW_CLOCK_SYNC_ALONE, TW_PERFETTO_BOOTTIME, 0,
		        boot >= 0   ? boot
		        : mono >= 0 ? mono
		                    : 0,
		        a, ret, err);
	if (mono >= 0 && relates(&s->clocks, TW_PERFETTO_MONOTONIC))
		st = by_clock(s, TW_PERFETTO_MONOTONIC, mono, a, &p, err);
	else if (boot >= 0 && (relates(&s->clocks, TW_PERFETTO_BOOTTIME) || !s->clocks.trace_clock))
		st = by_clock(s, TW_PERFETTO_BOOTTIME, boot, a, &p, err);
	else
		return tw_clock_sync_at(TW_CLOCK_SYNC_START,
		        s->clocks.trace_clock ? s->clocks.trace_clock : TW_PERFETTO_BOOTTIME,
		        t->start_ns, s->first_ns >= 0 ? s->first_ns : 0, a, ret, err);
	if (st != TW_OK || !p.steps)
		return st;
	if (p.choice == TW_CLOCK_SYNC_MONOTONIC)
		compare(s, t, &p);
	if (apart(s, t, &p))
		p.choice = TW_CLOCK_SYNC_APART;
	*ret = p;
	return TW_OK;
}

int64_t tw_clock_sync_back(const struct tw_clock_sync *p, int64_t file_ns)
{
	for (uint32_t i = p->n; i-- > 0;) {
		int64_t ts = file_ns - p->steps[i].add_ns;

		if (i == 0 || ts >= p->steps[i].from_ns)
			return ts;
	}
	return file_ns;
}

const char *tw_clock_sync_why_not(const struct tw_system *s, const struct tw_clock_sync *sync)
{
	if (s->fault != TW_SYSTEM_FINE)
		return tw_system_why(s);
	if (sync->choice == TW_CLOCK_SYNC_APART)
		return "its clocks belong to another time or device";
	return NULL;
}

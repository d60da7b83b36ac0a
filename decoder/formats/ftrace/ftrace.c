/* ftrace.c - converts event lines to markers, states and counters. */
#include "decoder/formats/ftrace/ftrace.h"

#include <stdio.h>
#include <string.h>

#include "decoder/formats/detail.h"

enum { CPU_NAME_BYTES = 64 };

#define SECOND_NS ((int64_t)1000000000)

bool tw_ftrace_init(struct tw_ftrace *f, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink)
{
	f->clock = (struct tw_clock){.mono_base_ns = -1, .boot_base_ns = -1};
	return tw_markers_init(&f->markers, a, limits, sink);
}

static void repair(struct tw_ftrace *f, enum tw_repair what, uint64_t offset, uint64_t n)
{
	f->markers.sink->ops->repair(f->markers.sink, what, offset, n);
}

static enum tw_status malformed(struct tw_ftrace *f, uint64_t offset)
{
	repair(f, TW_REPAIR_line_malformed, offset, 1);
	return TW_OK;
}

struct line_event { /* an event with its context */
	struct tw_ftrace_event e;
	struct tw_tid *by; /* NULL: at the limit of threads */
	int64_t ts_ns;
	uint64_t offset;
};

/* --- arguments --- */

/* The word after the last `key`, which begins with a blank, up to the next blank. */
static bool word(struct tw_str args, struct tw_str key, struct tw_str *ret)
{
	size_t at = tw_str_find_last(args, key);
	struct tw_str rest;

	if (at == args.len)
		return false;
	rest = tw_str_from(args, at + key.len);
	*ret = tw_str_split(&rest, ' ');
	return true;
}

static bool word_number(struct tw_str args, struct tw_str key, uint64_t *ret)
{
	struct tw_str w;

	return word(args, key, &w) && tw_str_u64(w, INT64_MAX, ret);
}

/* "COMM KEY...": a name may contain blanks and equal signs, so it extends to the last key. */
static struct tw_str comm(struct tw_str args, struct tw_str key)
{
	return (struct tw_str){args.ptr, tw_str_find_last(args, key)};
}

static struct tw_tid *named_thread(
        struct tw_ftrace *f, uint64_t tid, struct tw_str name, uint64_t offset)
{
	struct tw_tid *k = tw_tids_get(&f->markers.tids, tid, offset);

	if (k && !tw_str_eq(name, TW_STR("<...>")))
		tw_tids_name(&f->markers.tids, k, name);
	return k;
}

/* --- events --- */

static struct tw_sched_event sched_event(const struct line_event *l)
{
	return (struct tw_sched_event){l->ts_ns, l->offset, (int32_t)l->e.cpu};
}

/* prev_comm=A prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=B next_pid=2 next_prio=120 */
static enum tw_status read_switch(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	static const struct tw_str arrow = {" ==> next_comm=", sizeof " ==> next_comm=" - 1};
	static const struct tw_str lead = {"prev_comm=", sizeof "prev_comm=" - 1};
	const struct tw_str prev_key = TW_STR(" prev_pid=");
	const struct tw_str next_key = TW_STR(" next_pid=");
	const struct tw_sched_event ev = sched_event(l);
	size_t at = tw_str_find_last(l->e.args, arrow);
	struct tw_str left = {l->e.args.ptr, at};
	struct tw_str right;
	struct tw_str state;
	uint64_t prev;
	uint64_t next;

	if (at == l->e.args.len || !tw_str_starts(left, lead))
		return malformed(f, l->offset);
	left = tw_str_from(left, lead.len);
	right = tw_str_from(l->e.args, at + arrow.len);
	if (!word_number(left, prev_key, &prev) || !word(left, TW_STR(" prev_state="), &state) ||
	        !word_number(right, next_key, &next))
		return malformed(f, l->offset);
	return tw_sched_switch(&f->markers, &ev,
	        named_thread(f, prev, comm(left, prev_key), l->offset), state,
	        named_thread(f, next, comm(right, next_key), l->offset), err);
}

/* comm=B pid=2 prio=120 [success=1] target_cpu=001 */
static enum tw_status read_wake(struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	static const struct tw_str lead = {"comm=", sizeof "comm=" - 1};
	const struct tw_str key = TW_STR(" pid=");
	const struct tw_sched_event ev = sched_event(l);
	struct tw_str args = l->e.args;
	uint64_t success;
	uint64_t tid;

	if (!tw_str_starts(args, lead))
		return malformed(f, l->offset);
	args = tw_str_from(args, lead.len);
	if (!word_number(args, key, &tid))
		return malformed(f, l->offset);
	if (word_number(args, TW_STR(" success="), &success) && success == 0)
		return TW_OK;
	return tw_sched_wake(&f->markers, &ev, l->by,
	        named_thread(f, tid, comm(args, key), l->offset), comm(args, key), err);
}

/* pid=2 iowait=1 caller=fn+0x1/0x2 */
static enum tw_status read_blocked(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	struct tw_str args = l->e.args;
	struct tw_str caller = TW_STR("");
	struct tw_str first;
	struct tw_tid *k;
	uint64_t iowait;
	uint64_t tid;

	(void)err;
	if (!tw_str_starts(args, TW_STR("pid=")))
		return malformed(f, l->offset);
	(void)word(args, TW_STR(" caller="), &caller);
	if (!word_number(args, TW_STR(" iowait="), &iowait))
		return malformed(f, l->offset);
	args = tw_str_from(args, 4);
	first = tw_str_split(&args, ' ');
	if (!tw_str_u64(first, UINT32_MAX, &tid))
		return malformed(f, l->offset);
	k = tw_tids_get(&f->markers.tids, tid, l->offset);
	if (k && k->state != TW_RUN_RUNNING && k->state != TW_RUN_RUNNABLE)
		tw_sched_blocked(k, iowait != 0, caller);
	return TW_OK;
}

static enum tw_status emit_counter(struct tw_ftrace *f, const struct line_event *l,
        struct tw_str what, uint64_t value, struct tw_err *err)
{
	return tw_markers_note(&f->markers,
	        &(struct tw_note){.kind = TW_NOTE_counter,
	                .ts_ns = l->ts_ns,
	                .dur_ns = -1,
	                .value = (int64_t)value,
	                .offset = l->offset,
	                .text = what},
	        err);
}

static struct tw_str of_cpu(char buf[CPU_NAME_BYTES], uint64_t cpu, const char *what)
{
	int n = snprintf(buf, CPU_NAME_BYTES, "cpu%llu %s", (unsigned long long)cpu, what);

	return (struct tw_str){buf, n > 0 ? (size_t)n : 0};
}

/* state=KHZ cpu_id=0 */
static enum tw_status read_frequency(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	char name[CPU_NAME_BYTES];
	struct tw_str rest = l->e.args;
	struct tw_str state = tw_str_split(&rest, ' ');
	uint64_t khz;
	uint64_t cpu;

	if (!tw_str_starts(state, TW_STR("state=")) ||
	        !tw_str_u64(tw_str_from(state, 6), INT64_MAX, &khz) ||
	        !word_number(l->e.args, TW_STR(" cpu_id="), &cpu))
		return malformed(f, l->offset);
	return emit_counter(f, l, of_cpu(name, cpu, "frequency (kHz)"), khz, err);
}

/* min=KHZ max=KHZ cpu_id=0, or min_freq= and max_freq= */
static enum tw_status read_limits(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	char name[CPU_NAME_BYTES];
	uint64_t cpu;
	uint64_t khz;

	if (!word_number(l->e.args, TW_STR(" cpu_id="), &cpu) ||
	        (!word_number(l->e.args, TW_STR(" max="), &khz) &&
	                !word_number(l->e.args, TW_STR(" max_freq="), &khz)))
		return malformed(f, l->offset);
	return emit_counter(f, l, of_cpu(name, cpu, "highest frequency (kHz)"), khz, err);
}

/* NAME state=V cpu_id=0 */
static enum tw_status read_clock_rate(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	uint64_t value;
	struct tw_str name = comm(l->e.args, TW_STR(" state="));

	if (name.len == 0 || !word_number(l->e.args, TW_STR(" state="), &value))
		return malformed(f, l->offset);
	return emit_counter(f, l, name, value, err);
}

/* --- markers --- */

/* "S" or "S.FRACTION" seconds; at most nine digits of the fraction are used. */
static bool seconds(struct tw_str s, int64_t *ret_ns)
{
	struct tw_str rest = s;
	struct tw_str whole = tw_str_split(&rest, '.');
	uint64_t v;
	uint64_t f = 0;

	if (!tw_str_u64(whole, (uint64_t)1 << 33, &v))
		return false;
	if (rest.len > 9)
		rest.len = 9;
	if (rest.len && !tw_str_u64(rest, UINT64_MAX, &f))
		return false;
	for (size_t i = rest.len; i < 9; i++)
		f *= 10;
	*ret_ns = (int64_t)v * SECOND_NS + (int64_t)f;
	return true;
}

static void emit_clock(struct tw_ftrace *f)
{
	f->clock_emitted = true;
	f->markers.sink->ops->clock(f->markers.sink, &f->clock);
}

/* "trace_event_clock_sync: parent_ts=S" is CLOCK_MONOTONIC at the line, 0: the same clock;
 * "realtime_ts=MS" is the wall clock. */
static enum tw_status read_sync(
        struct tw_ftrace *f, const struct line_event *l, struct tw_str what, struct tw_err *err)
{
	struct tw_detail d;
	int64_t parent_ns;
	uint64_t realtime_ms;

	d.len = 0;
	if (tw_str_starts(what, TW_STR("parent_ts=")) &&
	        seconds(tw_str_from(what, 10), &parent_ns)) {
		f->clock.mono_base_ns =
		        parent_ns ? f->zero_ns + parent_ns - l->e.time_ns : f->zero_ns;
		if (f->clock.mono_base_ns < 0)
			f->clock.mono_base_ns = -1;
		emit_clock(f);
		return TW_OK;
	}
	if (tw_str_starts(what, TW_STR("realtime_ts=")) &&
	        tw_str_u64(tw_str_from(what, 12), INT64_MAX, &realtime_ms))
		tw_detail_int(&d, "realtime_ms", (int64_t)realtime_ms);
	return tw_markers_note(&f->markers,
	        &(struct tw_note){.kind = TW_NOTE_instant,
	                .ts_ns = l->ts_ns,
	                .dur_ns = -1,
	                .offset = l->offset,
	                .text = TW_STR("clock_sync"),
	                .detail = tw_detail_text(&d)},
	        err);
}

/* A print may begin with the caller's address or function. */
static struct tw_str without_caller(struct tw_str text)
{
	size_t at;

	if (tw_str_starts(text, TW_STR("tracing_mark_write: ")))
		return tw_str_from(text, sizeof "tracing_mark_write: " - 1);
	at = tw_str_starts(text, TW_STR("0x")) ? tw_str_find(text, TW_STR(": ")) : text.len;
	return at < text.len && at < 32 ? tw_str_from(text, at + 2) : text;
}

static enum tw_status read_marker(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	static const struct tw_str sync = {
	        "trace_event_clock_sync: ", sizeof "trace_event_clock_sync: " - 1};
	struct tw_marker marker = {l->ts_ns, l->offset, l->by, without_caller(l->e.args)};

	if (tw_str_starts(marker.text, sync))
		return read_sync(f, l, tw_str_from(marker.text, sync.len), err);
	return l->by ? tw_markers_emit(&f->markers, &marker, err) : TW_OK;
}

/* transaction=7 [dest_node=1 dest_proc=2 dest_thread=3 reply=0 flags=0x10 code=0x1] */
static bool binder_event(const struct line_event *l, struct tw_binder_event *ret)
{
	static const struct tw_str lead = {"transaction=", sizeof "transaction=" - 1};
	struct tw_str rest = tw_str_trim(l->e.args);

	*ret = (struct tw_binder_event){.ts_ns = l->ts_ns, .offset = l->offset, .by = l->by};
	if (!tw_str_starts(rest, lead))
		return false;
	rest = tw_str_from(rest, lead.len);
	return tw_str_u64(tw_str_split(&rest, ' '), UINT32_MAX, &ret->id);
}

static enum tw_status read_binder_sent(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	static const char odd[] = "13579bdf";
	struct tw_binder_event ev;
	struct tw_str flags;
	uint64_t reply;

	if (!binder_event(l, &ev) || !word_number(l->e.args, TW_STR(" reply="), &reply) ||
	        !word(l->e.args, TW_STR(" flags="), &flags) || !flags.len)
		return malformed(f, l->offset);
	ev.reply = reply != 0;
	ev.one_way = memchr(odd, flags.ptr[flags.len - 1], sizeof odd - 1) != NULL; /* bit 0 */
	return tw_binder_sent(&f->binder, &f->markers, &ev, err);
}

static enum tw_status read_binder_received(
        struct tw_ftrace *f, const struct line_event *l, struct tw_err *err)
{
	struct tw_binder_event ev;

	if (!binder_event(l, &ev))
		return malformed(f, l->offset);
	return tw_binder_received(&f->binder, &f->markers, &ev, err);
}

static const struct handler {
	struct tw_str name;
	enum tw_status (*read)(struct tw_ftrace *f, const struct line_event *l, struct tw_err *err);
} handlers[] = {
#define H(name, read)                                                                              \
	{                                                                                          \
		{name, sizeof(name) - 1}, read                                                     \
	}
        H("tracing_mark_write", read_marker),
        H("sched_switch", read_switch),
        H("sched_waking", read_wake),
        H("sched_wakeup", read_wake),
        H("sched_wakeup_new", read_wake),
        H("sched_blocked_reason", read_blocked),
        H("binder_transaction", read_binder_sent),
        H("binder_transaction_received", read_binder_received),
        H("cpu_frequency", read_frequency),
        H("cpu_frequency_limits", read_limits),
        H("clock_set_rate", read_clock_rate),
        H("print", read_marker),
        H("0", read_marker),
#undef H
};

/* --- lines --- */

static void set_zero(struct tw_ftrace *f, int64_t first_ns)
{
	int64_t second = first_ns / SECOND_NS;

	f->zero_ns = second > 0 ? (second - 1) * SECOND_NS : 0;
	f->have_zero = true;
}

static enum tw_status read_event(struct tw_ftrace *f, struct line_event *l, struct tw_err *err)
{
	if (!f->have_zero)
		set_zero(f, l->e.time_ns);
	f->clock.some_base_ns = f->zero_ns;
	l->ts_ns = l->e.time_ns - f->zero_ns;
	f->events++;
	if (l->ts_ns < 0) {
		repair(f, TW_REPAIR_impossible_time, l->offset, 1);
		return TW_OK;
	}
	l->by = tw_tids_get(&f->markers.tids, l->e.tid, l->offset);
	if (l->by) {
		tw_tids_process(&f->markers.tids, l->by, l->e.tgid);
		(void)named_thread(f, l->e.tid, l->e.task, l->offset);
	}
	/* a clock sync line is more precise than the first event, so it is waited for */
	if (!f->clock_emitted && tw_str_find(l->e.args, TW_STR("parent_ts=")) == l->e.args.len)
		emit_clock(f);
	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
		if (tw_str_eq(handlers[i].name, l->e.name))
			return handlers[i].read(f, l, err);
	return TW_OK;
}

/* "# entries-in-buffer/entries-written: A/B": B - A were overwritten before they were read. */
static void read_comment(struct tw_ftrace *f, const struct tw_line *line)
{
	static const struct tw_str key = {"entries-in-buffer/entries-written: ",
	        sizeof "entries-in-buffer/entries-written: " - 1};
	size_t at = tw_str_find(line->text, key);
	struct tw_str rest;
	struct tw_str kept;
	uint64_t a;
	uint64_t b;

	if (at == line->text.len)
		return;
	rest = tw_str_from(line->text, at + key.len);
	kept = tw_str_split(&rest, '/');
	if (tw_str_u64(kept, UINT64_MAX, &a) &&
	        tw_str_u64(tw_str_split(&rest, ' '), UINT64_MAX, &b) && a < b)
		repair(f, TW_REPAIR_buffer_overrun, line->offset, b - a);
}

/* "CPU:3 [LOST 12 EVENTS]" */
static bool read_lost(struct tw_ftrace *f, const struct tw_line *line)
{
	struct tw_str text = tw_str_trim(line->text);
	size_t at = tw_str_find(text, TW_STR("[LOST "));
	struct tw_str rest;
	uint64_t n;

	if (at == text.len || !tw_str_starts(text, TW_STR("CPU:")))
		return false;
	rest = tw_str_from(text, at + 6);
	if (!tw_str_u64(tw_str_split(&rest, ' '), UINT64_MAX, &n) || n == 0)
		n = 1;
	repair(f, TW_REPAIR_buffer_overrun, line->offset, n);
	return true;
}

/* "/proc/PID/task/TID", with or without the beginning, in a listing after the events. */
static bool read_listing(struct tw_ftrace *f, const struct tw_line *line)
{
	struct tw_str text = tw_str_trim(line->text);
	struct tw_str pid;
	struct tw_tid *k;
	uint64_t p;
	uint64_t t;

	if (tw_str_starts(text, TW_STR("/proc/")))
		text = tw_str_from(text, 6);
	pid = tw_str_split(&text, '/');
	if (!tw_str_u64(pid, UINT32_MAX, &p) || !tw_str_starts(text, TW_STR("task/")) ||
	        !tw_str_u64(tw_str_from(text, 5), UINT32_MAX, &t))
		return false;
	k = tw_tids_get(&f->markers.tids, t, line->offset);
	if (k)
		tw_tids_process(&f->markers.tids, k, (uint32_t)p);
	return true;
}

enum tw_status tw_ftrace_line(struct tw_ftrace *f, const struct tw_line *line, struct tw_err *err)
{
	struct line_event l = {.offset = line->offset};
	struct tw_str text = line->text;
	struct tw_str bare;

	/* copied out of a page of 2012, where each line ends with the three characters \n\ */
	if (text.len >= 3 && memcmp(text.ptr + text.len - 3, "\\n\\", 3) == 0)
		text.len -= 3;
	if (text.len == 0)
		return TW_OK;
	if (text.ptr[0] != '#' && tw_line_is_cut(line, f->markers.sink))
		return TW_OK;
	if (text.ptr[0] != '#' && !line->too_long && tw_ftrace_parse(text, &l.e))
		return read_event(f, &l, err);
	bare = tw_str_trim(text);
	if (bare.len == 0)
		return TW_OK;
	if (bare.ptr[0] == '#') {
		read_comment(f, line);
		return TW_OK;
	}
	if (read_lost(f, line) || read_listing(f, line))
		return TW_OK;
	return malformed(f, line->offset);
}

enum tw_status tw_ftrace_finish(struct tw_ftrace *f, struct tw_err *err)
{
	enum tw_status st = tw_markers_finish(&f->markers, err);

	if (f->have_zero && !f->clock_emitted)
		emit_clock(f);
	return st == TW_OK ? tw_sched_finish(&f->markers, err) : st;
}

#include "server/query/detect/query_detect.h"

#include <stdlib.h>

#include "decoder/base/sum.h"

enum { ROWS_PER_CHECK = 256, DISPLAY_BYTES = 300 };

struct frames {
	const struct tw_frame_limits *limits;
	struct tw_frames *ret;
	struct tw_arena *arena;
	struct tw_str pid; /* from the note's detail; len 0: unknown */
	uint64_t rows;
	bool no_memory;
};

static int longest_first(const void *pa, const void *pb)
{
	const struct tw_frame_found *a = pa, *b = pb;

	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* The list has space for twice the reported number; when full, it is reduced to the longest. */
static void list(struct frames *x, const struct tw_frame_found *f)
{
	struct tw_frames *ret = x->ret;

	if (ret->n == 2 * TW_FRAMES_LISTED) {
		qsort(ret->list, ret->n, sizeof *ret->list, longest_first);
		ret->n = TW_FRAMES_LISTED;
	}
	ret->list[ret->n++] = *f;
}

static void add(struct frames *x, const struct tw_frame_found *f)
{
	x->ret->total++;
	x->ret->slow += f->dur_ns > x->limits->slow_ns;
	x->ret->frozen += f->dur_ns > x->limits->frozen_ns;
	if (f->dur_ns > x->limits->slow_ns)
		list(x, f);
}

/* --- frames from calls --- */

/* A message that draws a frame is reported as that frame. */
static bool draws(const struct tw_detected *d, uint32_t at)
{
	const struct tw_marked *m = &d->marked[at];
	const int64_t end_ns = tw_sum_ns(m->start_ns, m->dur_ns);

	for (uint32_t i = at + 1; i < d->n_marked && d->marked[i].start_ns < end_ns; i++)
		if (d->marked[i].mark == TW_MARK_FRAME && d->marked[i].dur_ns >= m->dur_ns / 2)
			return true;
	return false;
}

static void add_calls(struct frames *x, const struct tw_detected *d)
{
	for (uint32_t i = 0; i < d->n_marked; i++) {
		const struct tw_marked *m = &d->marked[i];
		const struct tw_frame_found f = {
		        m->start_ns, m->dur_ns, m->method, m->mark == TW_MARK_MESSAGE, ""};

		if (m->mark == TW_MARK_FRAME) {
			x->ret->from = TW_FRAMES_CALLS;
			add(x, &f);
		} else if (f.message && m->dur_ns > x->limits->frozen_ns && !draws(d, i)) {
			x->ret->messages++;
			list(x, &f);
		}
	}
}

/* --- frames from notes --- */

static bool detail_contains(struct tw_str detail, struct tw_str what)
{
	return tw_str_find(detail, what) < detail.len;
}

/* The detail was written by perfetto_frames.c.  Each frame of an app has two notes: expected and
 * actual. */
static bool is_frame(const struct frames *x, const struct tw_note_row *n)
{
	return n->dur_ns >= 0 && detail_contains(n->detail, TW_STR("\"actual\"")) &&
	       detail_contains(n->detail, TW_STR("\"surface\"")) &&
	       (!x->pid.len || detail_contains(n->detail, x->pid));
}

/* Truncated, as many texts may be stored before the longest frames are known. NULL: out of
 * memory. */
static const char *display_of(struct frames *x, struct tw_str text)
{
	char shown[DISPLAY_BYTES];

	(void)tw_utf8_clean(shown, sizeof shown, text);
	return tw_arena_str(x->arena, tw_str_of(shown));
}

/* Frames of other processes are skipped, but count towards the deadline check. */
static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct frames *x = arg;
	struct tw_frame_found f = {n->ts_ns, n->dur_ns, TW_NO_METHOD, false, NULL};

	(void)id;
	if (x->rows++ % ROWS_PER_CHECK == 0 && tw_deadline_passed(x->limits->deadline))
		x->ret->cut |= TW_CUT_TIME;
	if (x->ret->cut || !is_frame(x, n))
		return !x->ret->cut;
	if (x->ret->total == x->limits->most) {
		x->ret->cut |= TW_CUT_FRAMES;
		return false;
	}
	x->ret->from = TW_FRAMES_NOTES;
	f.display = n->dur_ns > x->limits->slow_ns ? display_of(x, n->text) : "";
	x->no_memory = !f.display;
	if (f.display)
		add(x, &f);
	return !x->no_memory;
}

static enum tw_status add_notes(struct frames *x, struct tw_trace_file *f, struct tw_err *err)
{
	const struct tw_note_query q = {
	        .kind = TW_NOTE_frame, .to_ns = INT64_MAX, .limit = UINT32_MAX};
	const uint32_t pid = tw_trace_file_info(f)->pid;
	const char *text = pid ? tw_arena_printf(x->arena, "\"pid\":%u,", pid) : "";
	enum tw_status st;

	if (!text)
		return tw_oom(err);
	x->pid = tw_str_of(text);
	st = tw_trace_file_notes(f, &q, add_note, x, err);
	if (st == TW_OK && x->no_memory)
		st = tw_oom(err);
	return st;
}

enum tw_status tw_detect_frames(struct tw_trace_file *f, const struct tw_detected *d,
        const struct tw_frame_limits *limits, struct tw_arena *a, struct tw_frames *ret,
        struct tw_err *err)
{
	struct frames x = {.limits = limits, .ret = ret, .arena = a};
	enum tw_status st = TW_OK;

	*ret = (struct tw_frames){
	        .list = tw_arena_alloc(a, (size_t)2 * TW_FRAMES_LISTED, sizeof *ret->list)};
	if (!ret->list)
		return tw_oom(err);
	add_calls(&x, d);
	if (ret->from == TW_FRAMES_NOWHERE)
		st = add_notes(&x, f, err);
	if (st == TW_OK && ret->n)
		qsort(ret->list, ret->n, sizeof *ret->list, longest_first);
	if (ret->n > TW_FRAMES_LISTED)
		ret->n = TW_FRAMES_LISTED;
	return st;
}

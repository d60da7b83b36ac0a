#include "decoder/formats/json/chrome_event.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/formats/detail.h"
#include "decoder/formats/json/json_text.h"
#include "decoder/formats/markers/facts.h"

/* Events are not in time order: one may be this long before the first. */
#define LEAD_NS ((int64_t)60 * 1000000000)
#define MAX_US  ((int64_t)1 << 52)

enum { NAME_BYTES = 1024, ID_BITS = 31 };

struct event { /* strings point into its text, or into root */
	struct tw_chrome_fields fields;
	const json_t *root; /* NULL: its kind needs no more than the fields */
	struct tw_marker marker;
	uint32_t pid;
	struct tw_str cat;
};

static void repair(struct tw_chrome *c, enum tw_repair what, uint64_t offset)
{
	struct tw_sink *sink = c->trace->markers.sink;

	sink->ops->repair(sink, what, offset, 1);
}

static enum tw_status malformed(struct tw_chrome *c, uint64_t offset)
{
	repair(c, TW_REPAIR_record_malformed, offset);
	return TW_OK;
}

/* --- members --- */

static const struct tw_chrome_value *field(const struct event *e, enum tw_chrome_field which)
{
	return &e->fields.of[which];
}

static struct tw_str word(const struct event *e, enum tw_chrome_field which)
{
	return tw_chrome_text_of(field(e, which));
}

static uint64_t hash(uint64_t h, struct tw_str s)
{
	return tw_fnv64(tw_fnv64(h, s), TW_STR("\xFF")); /* so that the end of a string matters */
}

/* Microseconds, with a fraction. */
static bool micros(const struct tw_chrome_value *v, int64_t *ret_ns)
{
	double d = v->kind == TW_CHROME_REAL ? v->real : 0;
	int64_t us;

	if (v->kind != TW_CHROME_REAL) {
		if (!tw_chrome_i64(v, &us) || us > MAX_US || us < -MAX_US)
			return false;
		*ret_ns = us * 1000;
		return true;
	}
	if (!(d >= (double)-MAX_US && d <= (double)MAX_US))
		return false;
	us = (int64_t)d;
	d = (d - (double)us) * 1000;
	*ret_ns = us * 1000 + (int64_t)(d < 0 ? d - 0.5 : d + 0.5);
	return true;
}

static bool hex(struct tw_str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!tw_str_starts(s, TW_STR("0x")) || s.len == 2 || s.len > 18)
		return false;
	for (size_t i = 2; i < s.len; i++) {
		char c = s.ptr[i];
		int digit = c >= '0' && c <= '9'                     ? c - '0'
		            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
		                                                     : -1;

		if (digit < 0)
			return false;
		v = v << 4 | (unsigned)digit;
	}
	*ret = v;
	return true;
}

/* An id: a number, a hexadecimal number, or any word, which is hashed. */
static bool id_of(const struct tw_chrome_value *v, int64_t *ret)
{
	struct tw_str s = tw_chrome_text_of(v);
	uint64_t u;

	if (tw_chrome_i64(v, ret))
		return true;
	if (v->kind == TW_CHROME_REAL) { /* beyond 64 bits; close values are treated as equal */
		memcpy(&u, &v->real, sizeof u);
		*ret = (int64_t)(u >> 1);
		return true;
	}
	if (s.len == 0)
		return false;
	if (!hex(s, &u))
		u = hash(1, s) >> 1;
	*ret = (int64_t)u;
	return true;
}

/* A process or thread: a number up to `max`; anything else is hashed to a number above those of
 * Linux. */
static uint64_t thread_number(const struct tw_chrome_value *v, uint64_t max)
{
	int64_t n;

	if (tw_chrome_i64(v, &n) && n >= 0 && (uint64_t)n <= max)
		return (uint64_t)n;
	if (!id_of(v, &n))
		return 0;
	return ((uint64_t)n & (((uint64_t)1 << (ID_BITS - 1)) - 1)) | (uint64_t)1 << (ID_BITS - 1);
}

static uint32_t process_of(const struct event *e)
{
	const struct tw_chrome_value *v = field(e, TW_CHROME_PID);
	int64_t n;

	return tw_chrome_i64(v, &n) && n == 0 ? TW_PID_ZERO : (uint32_t)thread_number(v, INT32_MAX);
}

static struct tw_tid *thread_of(struct tw_chrome *c, struct event *e)
{
	const struct tw_chrome_value *v = field(e, TW_CHROME_TID);
	uint64_t tid = thread_number(v, ((uint64_t)1 << 53) - 1);
	struct tw_tid *k = tw_tids_get_in(&c->trace->markers.tids, e->pid, tid, e->marker.offset);
	struct tw_sink *sink = c->trace->markers.sink;
	int64_t n;

	if (k && !k->named && v->kind == TW_CHROME_TEXT && !tw_chrome_i64(v, &n)) {
		k->named = true;
		sink->ops->thread_name(sink, e->pid, tid, tw_chrome_text_of(v));
	}
	return k;
}

static void count_process(struct tw_chrome *c, uint32_t pid)
{
	if (c->pid == 0)
		c->pid = pid;
	else if (pid && pid != c->pid)
		c->many_pids = true;
}

/* False: no valid time; counted. */
static bool time_of(struct tw_chrome *c, struct event *e)
{
	int64_t ns;

	if (!micros(field(e, TW_CHROME_TS), &ns)) {
		(void)malformed(c, e->marker.offset);
		return false;
	}
	if (!c->trace->have_zero) {
		c->trace->have_zero = c->own_zero = true;
		c->trace->zero_ns = ns > LEAD_NS ? ns - LEAD_NS : 0;
	}
	e->marker.ts_ns = ns - c->trace->zero_ns;
	if (e->marker.ts_ns < 0) {
		repair(c, c->own_zero ? TW_REPAIR_impossible_time : TW_REPAIR_clock_unknown,
		        e->marker.offset);
		return false;
	}
	if (c->events == 0)
		c->first_ns = e->marker.ts_ns;
	return true;
}

/* --- flows --- */

static enum tw_status emit_flow(struct tw_chrome *c, const struct event *e, uint64_t id,
        enum tw_flow_step step, struct tw_err *err)
{
	const struct tw_flow_point p = {.id = id,
	        .ts_ns = e->marker.ts_ns,
	        .offset = e->marker.offset,
	        .thread = e->marker.by,
	        .name = e->marker.text};

	return tw_flows_emit(&c->flows, &p, step, TW_FLOW_BY_STEP, err);
}

static enum tw_status read_flow(
        struct tw_chrome *c, const struct event *e, char phase, struct tw_err *err)
{
	int64_t id;
	uint64_t h;

	if (!id_of(field(e, TW_CHROME_ID), &id))
		return malformed(c, e->marker.offset);
	h = hash(hash((uint64_t)id * 0x9E3779B97F4A7C15u, e->cat), e->marker.text);
	return emit_flow(c, e, h,
	        phase == 's'   ? TW_FLOW_BEGIN
	        : phase == 't' ? TW_FLOW_STEP
	                       : TW_FLOW_END,
	        err);
}

/* An event with flags for outgoing or incoming flows. */
static enum tw_status read_bound_flow(
        struct tw_chrome *c, const struct event *e, struct tw_err *err)
{
	bool in = field(e, TW_CHROME_FLOW_IN)->kind == TW_CHROME_TRUE;
	bool out = field(e, TW_CHROME_FLOW_OUT)->kind == TW_CHROME_TRUE;
	int64_t id;

	if ((!in && !out) || !id_of(field(e, TW_CHROME_BIND_ID), &id))
		return TW_OK;
	return emit_flow(c, e, (uint64_t)id,
	        in && out ? TW_FLOW_STEP
	        : out     ? TW_FLOW_BEGIN
	                  : TW_FLOW_END,
	        err);
}

/* --- calls --- */

static int64_t cpu_of(const struct event *e, enum tw_chrome_field which)
{
	int64_t ns;

	return micros(field(e, which), &ns) && ns >= 0 ? ns : -1;
}

struct tw_chrome_edge { /* B or E */
	int64_t ts_ns, cpu_ns;
	uint64_t offset;
	struct tw_tid *by;
	struct tw_str fact; /* its name, if it contains a fact (facts.h) */
	uint32_t sym, seq;  /* sym 0: E, or at a limit */
	bool ends;
};

TW_ORDER_BY(by_time, struct tw_chrome_edge, TW_RISING(ts_ns), TW_RISING(seq))

/* Emits the n earliest. */
static enum tw_status emit_edges(struct tw_chrome *c, uint32_t n, struct tw_err *err)
{
	struct tw_markers *m = &c->trace->markers;
	enum tw_status st = TW_OK;

	if (c->n_edges == 0)
		return TW_OK;
	if (c->unsorted)
		TW_SORT(c->edges, c->n_edges, by_time);
	c->unsorted = false;
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		const struct tw_chrome_edge *e = &c->edges[i];
		const struct tw_marker marker = {.ts_ns = e->ts_ns,
		        .offset = e->offset,
		        .by = e->by,
		        .text = e->fact,
		        .sym = e->sym};

		if (e->ends)
			st = tw_markers_end(m, &marker, e->cpu_ns, err);
		else if (e->sym)
			st = tw_markers_begin(m, &marker, e->cpu_ns, err);
		else
			e->by->hidden++; /* the name is at a limit: its end must not close another
			                  * call */
	}
	c->n_edges -= n;
	memmove(c->edges, c->edges + n, c->n_edges * sizeof *c->edges);
	return st;
}

static enum tw_status read_edge(
        struct tw_chrome *c, const struct event *e, bool ends, struct tw_err *err)
{
	struct tw_markers *m = &c->trace->markers;
	struct tw_chrome_edge edge = {.ts_ns = e->marker.ts_ns,
	        .cpu_ns = cpu_of(e, TW_CHROME_TTS),
	        .offset = e->marker.offset,
	        .by = e->marker.by,
	        .seq = c->seq++,
	        .ends = ends};
	struct tw_fact fact;
	enum tw_status st = TW_OK;

	if (!ends && tw_fact_of(e->marker.text, &fact)) {
		edge.fact.ptr = tw_arena_str(m->arena, e->marker.text);
		edge.fact.len = e->marker.text.len;
	}
	if (edge.fact.len && !edge.fact.ptr)
		return tw_oom(err);
	if (!ends)
		edge.sym = tw_markers_name(m, e->marker.text);
	if (c->n_edges == TW_CHROME_WINDOW)
		st = emit_edges(c, TW_CHROME_WINDOW / 2, err);
	if (st == TW_OK && !TW_GROW(c->trace->markers.arena, c->edges, c->n_edges, c->cap_edges))
		st = tw_oom(err);
	if (st != TW_OK)
		return st;
	c->unsorted |= c->n_edges && edge.ts_ns < c->edges[c->n_edges - 1].ts_ns;
	c->edges[c->n_edges++] = edge;
	return TW_OK;
}

static enum tw_status read_call(struct tw_chrome *c, const struct event *e, struct tw_err *err)
{
	struct tw_markers *m = &c->trace->markers;
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = e->marker.ts_ns,
	        .cpu_ns = cpu_of(e, TW_CHROME_TDUR),
	        .offset = e->marker.offset};

	if (!micros(field(e, TW_CHROME_DUR), &ev.dur_ns) || ev.dur_ns < 0)
		ev.dur_ns = 0;
	if (ev.cpu_ns > ev.dur_ns)
		ev.cpu_ns = ev.dur_ns;
	ev.track = tw_tids_track(&m->tids, e->marker.by);
	ev.sym = m->sink->ops->name(
	        m->sink, e->marker.text.len ? e->marker.text : TW_STR("[empty slice name]"));
	if (ev.ts_ns + ev.dur_ns > m->last_ns)
		m->last_ns = ev.ts_ns + ev.dur_ns;
	return tw_markers_event(m, &ev, err);
}

/* --- instants, counters, samples --- */

static enum tw_status emit_moment(
        struct tw_chrome *c, const struct event *e, enum tw_note_kind kind, struct tw_err *err)
{
	struct tw_str scope = word(e, TW_CHROME_S);
	bool of_thread = scope.len == 0 || scope.ptr[0] == 't';
	struct tw_note note = {.kind = kind,
	        .ts_ns = e->marker.ts_ns,
	        .dur_ns = -1,
	        .offset = e->marker.offset,
	        .text = e->marker.text};
	struct tw_detail d;

	d.len = 0;
	if (of_thread)
		note.track = tw_tids_track(&c->trace->markers.tids, e->marker.by);
	else if (scope.ptr[0] == 'p')
		tw_detail_int(&d, "pid", tw_pid_number(e->pid));
	tw_detail_str(&d, "category", e->cat);
	note.detail = tw_detail_text(&d);
	return tw_markers_note(&c->trace->markers, &note, err);
}

static enum tw_status emit_counter(struct tw_chrome *c, const struct event *e, struct tw_str name,
        const json_t *value, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_counter,
	        .ts_ns = e->marker.ts_ns,
	        .dur_ns = -1,
	        .offset = e->marker.offset,
	        .text = name};
	char exact[32];
	struct tw_detail d;

	if (!tw_json_i64(value, &note.value))
		return malformed(c, e->marker.offset);
	d.len = 0;
	if (tw_pid_number(e->pid))
		tw_detail_int(&d, "pid", tw_pid_number(e->pid));
	if (json_is_real(value) && json_real_value(value) != (double)note.value) {
		(void)snprintf(exact, sizeof exact, "%.9g", json_real_value(value));
		tw_detail_str(&d, "exact", tw_str_of(exact));
	}
	note.detail = tw_detail_text(&d);
	return tw_markers_note(&c->trace->markers, &note, err);
}

/* Each member of args is a separate series; a single one gets the counter's name. */
static enum tw_status read_counter(struct tw_chrome *c, const struct event *e, struct tw_err *err)
{
	json_t *args = json_object_get(e->root, "args");
	struct tw_str id = word(e, TW_CHROME_ID);
	enum tw_status st = TW_OK;
	const char *key;
	json_t *v;

	if (!json_is_object(args))
		return malformed(c, e->marker.offset);
	json_object_foreach(args, key, v)
	{
		char name[NAME_BYTES];
		bool alone =
		        json_object_size(args) == 1 &&
		        (strcmp(key, "value") == 0 || tw_str_eq(tw_str_of(key), e->marker.text));
		int n = snprintf(name, sizeof name, "%.*s%s%.*s%s%s%s", (int)e->marker.text.len,
		        e->marker.text.ptr, id.len ? "[" : "", (int)id.len, id.ptr,
		        id.len ? "]" : "", alone ? "" : " ", alone ? "" : key);
		size_t len = n < (int)sizeof name ? (size_t)n : sizeof name - 1;

		st = emit_counter(c, e, (struct tw_str){name, len}, v, err);
		if (st != TW_OK)
			break;
	}
	return st;
}

/* --- spans --- */

static bool key_of(const struct event *e, char phase, struct tw_span_key *ret)
{
	const json_t *id2 = json_object_get(e->root, "id2");
	const json_t *global = json_object_get(id2, "global");
	const json_t *local = json_object_get(id2, "local");
	struct tw_chrome_value id = tw_chrome_value_of(global ? global : local);

	*ret = (struct tw_span_key){.pid = global ? 0 : e->pid,
	        .name = e->marker.text,
	        .by_name = e->marker.text.len > 0};
	if (phase == 'b' || phase == 'e')
		ret->track = e->cat.len ? e->cat : TW_STR("async");
	if (!global && !local)
		id = *field(e, TW_CHROME_ID);
	return id_of(&id, &ret->cookie);
}

static enum tw_status read_span(
        struct tw_chrome *c, const struct event *e, char phase, struct tw_err *err)
{
	struct tw_markers *m = &c->trace->markers;
	struct tw_span_key key;

	if (!key_of(e, phase, &key))
		return malformed(c, e->marker.offset);
	return phase == 'b' || phase == 'S' ? tw_markers_begin_span(m, &e->marker, &key, err)
	                                    : tw_markers_end_span(m, &e->marker, &key, err);
}

/* --- names --- */

static enum tw_status read_name(struct tw_chrome *c, struct event *e, struct tw_err *err)
{
	struct tw_markers *m = &c->trace->markers;
	struct tw_str name = tw_json_text_of(json_object_get(e->root, "args"), "name");
	struct tw_tid *k;

	if (tw_str_eq(e->marker.text, TW_STR("thread_name")) && name.len) {
		k = thread_of(c, e);
		if (k && !k->named)
			m->sink->ops->thread_name(m->sink, e->pid, k->tid, name);
		if (k)
			k->named = true;
		return TW_OK;
	}
	if (!tw_str_eq(e->marker.text, TW_STR("process_name")) || name.len == 0)
		return TW_OK;
	return tw_markers_note(m,
	        &(struct tw_note){.kind = TW_NOTE_process,
	                .dur_ns = -1,
	                .value = tw_pid_number(e->pid),
	                .offset = e->marker.offset,
	                .text = name},
	        err);
}

/* --- one event --- */

/* Kinds of phases.  TREE: it uses args or id2. */
enum { KNOWN = 1, IGNORED = 2, CALL = 4, TREE = 8 };

static const uint8_t phases[256] = {['B'] = KNOWN | CALL,
        ['E'] = KNOWN,
        ['X'] = KNOWN | CALL,
        ['i'] = KNOWN,
        ['I'] = KNOWN,
        ['R'] = KNOWN,
        ['C'] = KNOWN | TREE,
        ['b'] = KNOWN | TREE,
        ['e'] = KNOWN | TREE,
        ['n'] = KNOWN,
        ['S'] = KNOWN | TREE,
        ['T'] = KNOWN,
        ['p'] = KNOWN,
        ['F'] = KNOWN | TREE,
        ['s'] = KNOWN,
        ['t'] = KNOWN,
        ['f'] = KNOWN,
        ['M'] = KNOWN | TREE,
        ['P'] = KNOWN,
        ['N'] = IGNORED,
        ['O'] = IGNORED,
        ['D'] = IGNORED,
        ['V'] = IGNORED,
        ['v'] = IGNORED,
        ['c'] = IGNORED,
        ['('] = IGNORED,
        [')'] = IGNORED,
        [','] = IGNORED};

static bool is(char phase, unsigned kind)
{
	return (phases[(unsigned char)phase] & kind) != 0;
}

/* 0: none. */
static char phase_of(const struct event *e)
{
	struct tw_str ph = word(e, TW_CHROME_PH);

	if (ph.len != 1)
		return 0;
	return ph.ptr[0];
}

/* With a known thread and time. */
static enum tw_status read_timed(
        struct tw_chrome *c, const struct event *e, char phase, struct tw_err *err)
{
	switch (phase) {
	case 'B':
		return read_edge(c, e, false, err);
	case 'E':
		return read_edge(c, e, true, err);
	case 'X':
		return read_call(c, e, err);
	case 'C':
		return read_counter(c, e, err);
	case 'b':
	case 'e':
	case 'S':
	case 'F':
		return read_span(c, e, phase, err);
	case 's':
	case 't':
	case 'f':
		return read_flow(c, e, phase, err);
	case 'P':
		return emit_moment(c, e, TW_NOTE_sample, err);
	default:
		return emit_moment(c, e, TW_NOTE_instant, err);
	}
}

static enum tw_status read_event(struct tw_chrome *c, struct event *e, struct tw_err *err)
{
	char phase = phase_of(e);
	enum tw_status st;

	e->pid = process_of(e);
	e->cat = word(e, TW_CHROME_CAT);
	e->marker.text = word(e, TW_CHROME_NAME);
	if (is(phase, IGNORED))
		return TW_OK;
	if (!is(phase, KNOWN))
		return malformed(c, e->marker.offset);
	if (phase == 'M')
		return read_name(c, e, err);
	if (!time_of(c, e))
		return TW_OK;
	c->events++;
	e->marker.by = thread_of(c, e);
	if (!e->marker.by)
		return TW_OK; /* at the limit, which was counted */
	if (is(phase, CALL))
		count_process(c, e->pid);
	st = read_timed(c, e, phase, err);
	return st == TW_OK ? read_bound_flow(c, e, err) : st;
}

/* --- the text --- */

static json_t *parse(struct tw_str text)
{
	json_error_t why;
	json_t *root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &why);

	/* a number beyond 64 bits must not lose the event */
	if (!root && json_error_code(&why) == json_error_numeric_overflow)
		root = json_loadb(
		        text.ptr, text.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
	return root;
}

static void read_metadata(struct tw_chrome *c, const json_t *root)
{
	struct tw_str domain = tw_json_text_of(root, "clock-domain");

	c->monotonic |= tw_str_eq(domain, TW_STR("LINUX_CLOCK_MONOTONIC"));
}

/* Whether this kind of event uses args or id2. */
static bool needs_tree(const struct event *e)
{
	return is(phase_of(e), TREE);
}

static enum tw_status read_kernel(
        struct tw_chrome *c, struct tw_str text, uint64_t offset, struct tw_err *err)
{
	bool cut = c->text.part == TW_CHROME_STRING; /* the file ends within it, which is counted */

	if (text.len == 0)
		return tw_lines_finish(&c->kernel, cut ? TW_LINES_CUT : TW_LINES_WHOLE, err);
	if (c->kernel.n_held == 0 && c->kernel.offset == 0)
		c->kernel.offset = c->kernel.start = offset;
	return tw_lines_push(&c->kernel, (const uint8_t *)text.ptr, text.len, err);
}

static enum tw_status each_piece(void *arg, enum tw_chrome_piece what, struct tw_str text,
        uint64_t offset, struct tw_err *err)
{
	struct tw_chrome *c = arg;
	struct event e;
	enum tw_status st = TW_OK;
	json_t *root;

	if (what == TW_CHROME_KERNEL)
		return read_kernel(c, text, offset, err);
	e.root = NULL;
	e.marker = (struct tw_marker){.offset = offset};
	if (what == TW_CHROME_EVENT &&
	        tw_chrome_fields_read(text, &c->key_cache, &e.fields) == text.len &&
	        !needs_tree(&e))
		return read_event(c, &e, err);
	root = parse(text);
	if (!root)
		return malformed(c, offset);
	e.root = root;
	if (what == TW_CHROME_METADATA) {
		read_metadata(c, root);
	} else {
		tw_chrome_fields_of(root, &e.fields);
		st = read_event(c, &e, err);
	}
	json_decref(root);
	return st;
}

static enum tw_status each_plain(
        void *arg, struct tw_str text, uint64_t offset, size_t *ret_used, struct tw_err *err)
{
	struct tw_chrome *c = arg;
	struct event e;

	*ret_used = tw_chrome_fields_read(text, &c->key_cache, &e.fields);
	if (*ret_used && needs_tree(&e))
		*ret_used = 0;
	if (*ret_used == 0)
		return TW_OK;
	e.root = NULL;
	e.marker = (struct tw_marker){.offset = offset};
	return read_event(c, &e, err);
}

static enum tw_status each_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	return tw_ftrace_line(((struct tw_chrome *)arg)->trace, line, err);
}

bool tw_chrome_init(struct tw_chrome *c, struct tw_arena *a, struct tw_ftrace *trace)
{
	*c = (struct tw_chrome){.trace = trace, .flows = {.arena = a, .markers = &trace->markers}};
	trace->markers.any_order = true;
	return tw_chrome_text_init(&c->text, a, trace->markers.sink, each_piece, each_plain, c) &&
	       tw_lines_init(&c->kernel, a, TW_FTRACE_LINE_MAX, each_line, c);
}

enum tw_status tw_chrome_finish(struct tw_chrome *c, struct tw_err *err)
{
	struct tw_clock *clock = &c->trace->clock;
	enum tw_status st = emit_edges(c, c->n_edges, err);

	if (st != TW_OK || !c->own_zero)
		return st;
	clock->session_ns = c->first_ns;
	if (c->monotonic)
		clock->mono_base_ns = c->trace->zero_ns;
	if (c->trace->events == 0 && !c->many_pids)
		clock->pid = tw_pid_number(c->pid);
	return TW_OK;
}

int tw_chrome_probe(const uint8_t *head, size_t len)
{
	if (!tw_json_head(head, len))
		return 0;
	if (tw_json_head_has(head, len, 1, "traceEvents"))
		return 95;
	if (tw_json_head_has(head, len, 2, "ph") &&
	        (tw_json_head_has(head, len, 2, "pid") || tw_json_head_has(head, len, 2, "ts")))
		return 90;
	return tw_json_head_has(head, len, 1, "displayTimeUnit") ||
	                       tw_json_head_has(head, len, 1, "systemTraceEvents")
	               ? 70
	               : 0;
}

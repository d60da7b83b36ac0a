#include "export_perfetto.h"

#include <string.h>

#include "export_cursor.h"
#include "export_packet.h"
#include "perfetto_subset.pb-c.h"

enum {
	RUN_EVENTS = 4096,
	CLOCK_MONOTONIC_ID = 3,
	CLOCK_BOOTTIME_ID = 6,
	CLOCK_OWN_ID = 64,
	STATE_CLEARED = 1,
	NEVER_MERGE = 2,
	NAME_MAX_BYTES = 16384,
	PIECE_BYTES = 256 << 10,
	FACTS = 12
};
#define MERGE_MAX_BYTES ((uint64_t)192 << 20)
#define COLD_MAX_BYTES  ((size_t)64 << 20)

struct lane { /* one thread on its way out */
	const struct tw_thread_info *thread;
	struct tw_cursor cursor;
	bool open;       /* its cursor */
	bool introduced; /* its sequence's first packets are out */
	uint32_t seq;
	int64_t last_ns; /* of the event before */
	uint32_t *iids;  /* name number by method, 0 not told yet */
	uint32_t n_iids;
};

struct tw_perfetto {
	struct tw_trace_file *file;
	struct tw_names names;
	const struct tw_method_info *methods;
	uint32_t n_methods;
	struct lane *lanes;
	uint32_t n_lanes, n_merged; /* the first n_merged are merged by time, the rest follows */
	uint32_t *heap;             /* merged lanes that are not done, earliest on top */
	uint32_t n_heap, next_single;
	struct tw_buf piece; /* made but not yet read */
	size_t taken;
	bool begun, ended;
	uint64_t clipped;
	uint64_t salt; /* of track uuids */
	struct tw_arena *arena;
	struct tw_perfetto_facts facts;
	char *name; /* NAME_MAX_BYTES */
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to export");
}

/* --- packets that are rare: through protobuf-c --- */

static enum tw_status put_packet(struct tw_perfetto *x, const TwPerfetto__TracePacket *p)
{
	size_t len = tw_perfetto__trace_packet__get_packed_size(p);

	(void)tw_buf_add_u8(&x->piece, 0x0A);
	(void)tw_buf_add_varint(&x->piece, len);
	if (tw_buf_reserve(&x->piece, len) != TW_OK)
		return tw_buf_status(&x->piece);
	x->piece.len += tw_perfetto__trace_packet__pack(p, x->piece.data + x->piece.len);
	return TW_OK;
}

static uint64_t mix(uint64_t v)
{
	v ^= v >> 31;
	v *= 0x9E3779B97F4A7C15u;
	v ^= v >> 29;
	v *= 0xBF58476D1CE4E5B9u;
	return v ^ v >> 32;
}

static uint64_t uuid_of(const struct tw_perfetto *x, uint64_t kind, uint64_t id)
{
	uint64_t v = mix(x->salt ^ mix(kind << 56 ^ id));

	return v ? v : 1; /* 0 is Perfetto's implicit track */
}

enum { UUID_PROCESS = 1, UUID_THREAD = 2, UUID_METHODS = 3, UUID_TRACE = 4 };

static TwPerfetto__Clock clock_at(uint32_t id, int64_t ts_ns)
{
	TwPerfetto__Clock c = TW_PERFETTO__CLOCK__INIT;

	c.clock_id = id;
	c.timestamp = (uint64_t)ts_ns;
	return c;
}

/* What trace time 0 is in MONOTONIC and BOOTTIME; one that is unknown is taken to be the other. */
static int64_t base_of(const struct tw_perfetto *x, bool boot)
{
	const struct tw_trace_info *i = tw_trace_file_info(x->file);
	int64_t first = boot ? i->boot_base_ns : i->mono_base_ns;
	int64_t second = boot ? i->mono_base_ns : i->boot_base_ns;

	return first >= 0 ? first : second >= 0 ? second : 0;
}

/* Relates the two clocks, so that times show in Perfetto's trace clock (BOOTTIME). */
static enum tw_status put_clocks(struct tw_perfetto *x)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__ClockSnapshot snapshot = TW_PERFETTO__CLOCK_SNAPSHOT__INIT;
	TwPerfetto__Clock boot = clock_at(CLOCK_BOOTTIME_ID, base_of(x, true));
	TwPerfetto__Clock mono = clock_at(CLOCK_MONOTONIC_ID, base_of(x, false));
	TwPerfetto__Clock *clocks[] = {&boot, &mono};

	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	p.clock_snapshot = &snapshot;
	return put_packet(x, &p);
}

static enum tw_status put_uuid(struct tw_perfetto *x)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TraceUuid u = TW_PERFETTO__TRACE_UUID__INIT;

	u.has_msb = u.has_lsb = 1;
	u.msb = (int64_t)uuid_of(x, UUID_TRACE, 0);
	u.lsb = (int64_t)uuid_of(x, UUID_TRACE, 1);
	p.trace_uuid = &u;
	return put_packet(x, &p);
}

static char *mutable_text(const char *s)
{
	return (char *)(uintptr_t)s; /* protobuf-c reads it only */
}

/* Repair and clip counts are known when everything is out: this packet is the last. */
static enum tw_status put_attributes(struct tw_perfetto *x)
{
	const struct {
		const char *key, *text;
		uint64_t number;
	} rows[FACTS] = {
	        {"tracewell_version", TW_VERSION, 0},
	        {"tracewell_trace", x->facts.trace_id, 0},
	        {"tracewell_url", x->facts.url, 0},
	        {"app", x->facts.app, 0},
	        {"version_name", x->facts.version_name, 0},
	        {"build_id", x->facts.build_id, 0},
	        {"device", x->facts.device, 0},
	        {"scenario", x->facts.scenario, 0},
	        {"slices", NULL, tw_trace_file_info(x->file)->slices},
	        {"slices_left_out_below_depth_512", NULL, x->clipped},
	};
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TraceAttributes all = TW_PERFETTO__TRACE_ATTRIBUTES__INIT;
	TwPerfetto__TraceAttribute each[FACTS];
	TwPerfetto__TraceAttribute *list[FACTS];

	for (size_t i = 0; i < FACTS; i++) {
		if (!rows[i].key || (rows[i].text && !rows[i].text[0]))
			continue;
		tw_perfetto__trace_attribute__init(&each[i]);
		each[i].key = mutable_text(rows[i].key);
		each[i].string_value = mutable_text(rows[i].text);
		each[i].has_long_value = rows[i].text == NULL;
		each[i].long_value = (int64_t)rows[i].number;
		list[all.n_attribute++] = &each[i];
	}
	all.attribute = list;
	p.trace_attributes = &all;
	return put_packet(x, &p);
}

/* Names must be UTF-8; the copy lives in the arena. */
static char *clean_text(struct tw_perfetto *x, struct tw_str s)
{
	char *out = tw_arena_alloc(x->arena, s.len * 3 + 1, 1);

	if (out)
		(void)tw_utf8_clean(out, s.len * 3 + 1, s);
	return out;
}

static enum tw_status put_process(struct tw_perfetto *x)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__ProcessDescriptor process = TW_PERFETTO__PROCESS_DESCRIPTOR__INIT;
	const char *name = x->facts.process[0] ? x->facts.process : x->facts.app;
	uint32_t pid = tw_trace_file_info(x->file)->pid;

	if (!pid)
		return TW_OK;
	process.has_pid = 1;
	process.pid = (int32_t)pid;
	process.process_name = name[0] ? mutable_text(name) : NULL;
	track.has_uuid = 1;
	track.uuid = uuid_of(x, UUID_PROCESS, pid);
	track.process = &process;
	p.has_trusted_packet_sequence_id = 1;
	p.trusted_packet_sequence_id = x->n_lanes + 1;
	p.track_descriptor = &track;
	return put_packet(x, &p);
}

static enum tw_status put_sequence(struct tw_perfetto *x, const struct lane *l)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__ClockSnapshot snapshot = TW_PERFETTO__CLOCK_SNAPSHOT__INIT;
	TwPerfetto__TracePacketDefaults defaults = TW_PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	TwPerfetto__TrackEventDefaults event = TW_PERFETTO__TRACK_EVENT_DEFAULTS__INIT;
	TwPerfetto__Clock own = clock_at(CLOCK_OWN_ID, 0);
	TwPerfetto__Clock real =
	        clock_at(CLOCK_MONOTONIC_ID, base_of(x, false) + l->thread->start_ns);
	TwPerfetto__Clock *clocks[] = {&own, &real};

	own.has_is_incremental = own.has_unit_multiplier_ns = 1;
	own.is_incremental = 1;
	own.unit_multiplier_ns = 1;
	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	event.has_track_uuid = 1;
	event.track_uuid = uuid_of(x, UUID_METHODS, l->thread->thread_id);
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_OWN_ID;
	defaults.track_event_defaults = &event;
	p.has_trusted_packet_sequence_id = p.has_sequence_flags = 1;
	p.trusted_packet_sequence_id = l->seq;
	p.sequence_flags = STATE_CLEARED;
	p.clock_snapshot = &snapshot;
	p.trace_packet_defaults = &defaults;
	return put_packet(x, &p);
}

static enum tw_status put_track(
        struct tw_perfetto *x, const struct lane *l, TwPerfetto__TrackDescriptor *track)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = 1;
	p.has_trusted_packet_sequence_id = p.has_timestamp = 1;
	p.trusted_packet_sequence_id = l->seq;
	p.timestamp = 0; /* the thread's first event: thread ids may be used again later */
	p.track_descriptor = track;
	return put_packet(x, &p);
}

static enum tw_status introduce(struct tw_perfetto *x, struct lane *l)
{
	TwPerfetto__TrackDescriptor thread = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__TrackDescriptor methods = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__ThreadDescriptor t = TW_PERFETTO__THREAD_DESCRIPTOR__INIT;
	static char own_name[] = "methods";
	enum tw_status st = put_sequence(x, l);

	t.has_pid = t.has_tid = 1;
	t.pid = (int32_t)(l->thread->pid ? l->thread->pid : tw_trace_file_info(x->file)->pid);
	t.tid = (int64_t)l->thread->tid;
	if (l->thread->name.len)
		t.thread_name = clean_text(x, l->thread->name);
	thread.thread = &t;
	thread.uuid = uuid_of(x, UUID_THREAD, l->thread->thread_id);
	methods.has_parent_uuid = methods.has_sibling_merge_behavior = 1;
	methods.parent_uuid = thread.uuid;
	methods.uuid = uuid_of(x, UUID_METHODS, l->thread->thread_id);
	methods.name = own_name;
	methods.sibling_merge_behavior = NEVER_MERGE;
	if (st == TW_OK)
		st = put_track(x, l, &thread);
	if (st == TW_OK)
		st = put_track(x, l, &methods);
	l->last_ns = l->thread->start_ns;
	l->introduced = true;
	return st;
}

/* --- events --- */

static struct tw_str name_of(struct tw_perfetto *x, uint32_t method)
{
	const struct tw_method_info *m = &x->methods[method];

	(void)tw_names_display(
	        &x->names, &(struct tw_named){m->has_id, m->id, m->name}, x->name, NAME_MAX_BYTES);
	return tw_str_of(x->name);
}

static enum tw_status put_edge(struct tw_perfetto *x, struct lane *l, const struct tw_edge *e)
{
	uint64_t delta = e->ts_ns > l->last_ns ? (uint64_t)(e->ts_ns - l->last_ns) : 0;
	uint32_t iid = 0;
	uint8_t *p;

	if (e->ts_ns > l->last_ns)
		l->last_ns = e->ts_ns;
	if (e->begin && e->method < x->n_methods) {
		iid = l->iids[e->method];
		if (iid == 0) {
			iid = l->iids[e->method] = ++l->n_iids;
			return tw_packet_begin_named(
			        &x->piece, l->seq, delta, iid, name_of(x, e->method));
		}
	}
	if (tw_buf_reserve(&x->piece, TW_PACKET_MAX_BYTES) != TW_OK)
		return tw_buf_status(&x->piece);
	p = x->piece.data + x->piece.len;
	p = e->begin ? tw_packet_begin(p, l->seq, delta, iid) : tw_packet_end(p, l->seq, delta);
	x->piece.len = (size_t)(p - x->piece.data);
	return TW_OK;
}

static void close_lane(struct tw_perfetto *x, struct lane *l)
{
	if (l->open)
		x->clipped += l->cursor.clipped;
	tw_cursor_close(&l->cursor);
	tw_mem_free(l->iids);
	l->iids = NULL;
	l->open = false;
}

static enum tw_status open_lane(struct tw_perfetto *x, struct lane *l, struct tw_err *err)
{
	l->iids = tw_mem_zalloc(x->n_methods, sizeof *l->iids);
	if (!l->iids)
		return no_memory(err);
	l->open = true;
	return tw_cursor_open(
	        &l->cursor, x->file, l->thread->thread_id, TW_PERFETTO_MAX_DEPTH, err);
}

/* Up to RUN_EVENTS events of one thread. */
static enum tw_status run(struct tw_perfetto *x, struct lane *l, struct tw_err *err)
{
	enum tw_status st = l->introduced ? TW_OK : introduce(x, l);

	if (st != TW_OK)
		return no_memory(err);
	for (int i = 0; i < RUN_EVENTS && !l->cursor.done; i++) {
		struct tw_edge e;

		st = tw_cursor_next(&l->cursor, &e, err);
		if (st != TW_OK)
			return st;
		if (put_edge(x, l, &e) != TW_OK)
			return no_memory(err);
	}
	return TW_OK;
}

static bool earlier(const struct tw_perfetto *x, uint32_t a, uint32_t b)
{
	int64_t ta = x->lanes[a].cursor.next_ns;
	int64_t tb = x->lanes[b].cursor.next_ns;

	return ta != tb ? ta < tb : a < b;
}

static void sift_down(struct tw_perfetto *x)
{
	uint32_t lane = x->heap[0];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= x->n_heap)
			break;
		if (child + 1 < x->n_heap && earlier(x, x->heap[child + 1], x->heap[child]))
			child++;
		if (!earlier(x, x->heap[child], lane))
			break;
		x->heap[at] = x->heap[child];
		at = child;
	}
	x->heap[at] = lane;
}

static void heap_add(struct tw_perfetto *x, uint32_t lane)
{
	uint32_t at = x->n_heap++;

	while (at && earlier(x, lane, x->heap[(at - 1) / 2])) {
		x->heap[at] = x->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	x->heap[at] = lane;
}

static enum tw_status begin(struct tw_perfetto *x, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	x->begun = true;
	if (put_clocks(x) != TW_OK || put_uuid(x) != TW_OK || put_process(x) != TW_OK)
		return no_memory(err);
	for (uint32_t i = 0; st == TW_OK && i < x->n_merged; i++) {
		st = open_lane(x, &x->lanes[i], err);
		if (st == TW_OK)
			heap_add(x, i);
	}
	x->next_single = x->n_merged;
	return st;
}

static enum tw_status step_merged(struct tw_perfetto *x, struct tw_err *err)
{
	struct lane *l = &x->lanes[x->heap[0]];
	enum tw_status st = run(x, l, err);

	if (l->cursor.done) {
		close_lane(x, l);
		x->heap[0] = x->heap[--x->n_heap];
	}
	if (x->n_heap)
		sift_down(x);
	return st;
}

static enum tw_status step_single(struct tw_perfetto *x, struct tw_err *err)
{
	struct lane *l = &x->lanes[x->next_single];
	enum tw_status st = l->open ? TW_OK : open_lane(x, l, err);

	if (st == TW_OK)
		st = run(x, l, err);
	if (l->cursor.done) {
		close_lane(x, l);
		x->next_single++;
	}
	return st;
}

static enum tw_status make_piece(struct tw_perfetto *x, struct tw_err *err)
{
	enum tw_status st = x->begun ? TW_OK : begin(x, err);

	while (st == TW_OK && !x->ended && x->piece.len < PIECE_BYTES) {
		if (x->n_heap) {
			st = step_merged(x, err);
		} else if (x->next_single < x->n_lanes) {
			st = step_single(x, err);
		} else {
			x->ended = true;
			if (put_attributes(x) != TW_OK)
				st = no_memory(err);
		}
	}
	return st;
}

enum tw_status tw_perfetto_read(
        struct tw_perfetto *x, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	size_t n;

	if (x->taken == x->piece.len) {
		enum tw_status st;

		tw_buf_clear(&x->piece);
		x->taken = 0;
		st = make_piece(x, err);
		if (st != TW_OK)
			return st;
	}
	n = x->piece.len - x->taken;
	if (n > cap)
		n = cap;
	if (n)
		memcpy(out, x->piece.data + x->taken, n);
	x->taken += n;
	*ret_n = n;
	return TW_OK;
}

/* --- opening --- */

static bool copy_facts(struct tw_perfetto *x, const struct tw_perfetto_facts *f)
{
	const char *from[] = {f->trace_id, f->process, f->app, f->version_name, f->build_id,
	        f->device, f->scenario, f->url};
	const char **to[] = {&x->facts.trace_id, &x->facts.process, &x->facts.app,
	        &x->facts.version_name, &x->facts.build_id, &x->facts.device, &x->facts.scenario,
	        &x->facts.url};

	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		*to[i] = clean_text(x, tw_str_of(from[i] ? from[i] : ""));
		if (!*to[i])
			return false;
	}
	x->salt = 0x7477656C6C;
	for (const char *p = x->facts.trace_id; *p; p++)
		x->salt = mix(x->salt ^ (unsigned char)*p);
	return true;
}

/* Threads with calls, in the order of the file: main first, then the busiest. */
static bool make_lanes(struct tw_perfetto *x, const struct tw_selection *sel)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);
	uint64_t bytes = 0;

	x->lanes = tw_mem_zalloc(n, sizeof *x->lanes);
	x->heap = tw_mem_alloc(n, sizeof *x->heap);
	if (!x->lanes || !x->heap)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t held = t[i].slices < TW_CHUNK_SLICES ? t[i].slices : TW_CHUNK_SLICES;

		if (t[i].slices == 0 || !tw_selection_has(sel, &t[i]))
			continue;
		bytes += held * sizeof(struct tw_slice) + (uint64_t)x->n_methods * sizeof(uint32_t);
		x->lanes[x->n_lanes].thread = &t[i];
		x->lanes[x->n_lanes].seq = x->n_lanes + 1;
		x->n_lanes++;
		if (bytes <= MERGE_MAX_BYTES)
			x->n_merged = x->n_lanes;
	}
	return true;
}

enum tw_status tw_perfetto_open(struct tw_trace_file *file, const struct tw_names *names,
        const struct tw_selection *threads, const struct tw_perfetto_facts *facts,
        struct tw_perfetto **ret, struct tw_err *err)
{
	enum tw_status st = tw_selection_check(file, threads, err);
	struct tw_perfetto *x;

	if (st != TW_OK)
		return st;
	x = tw_mem_zalloc(1, sizeof *x);
	if (!x)
		return no_memory(err);
	x->file = file;
	x->names = names ? *names : (struct tw_names){NULL, NULL};
	tw_buf_init(&x->piece, COLD_MAX_BYTES);
	x->arena = tw_arena_new(COLD_MAX_BYTES);
	x->name = x->arena ? tw_arena_alloc(x->arena, NAME_MAX_BYTES, 1) : NULL;
	st = tw_trace_file_methods(file, &x->methods, &x->n_methods, err);
	if (st == TW_OK && (!x->name || !copy_facts(x, facts) || !make_lanes(x, threads)))
		st = no_memory(err);
	if (st == TW_OK)
		*ret = x;
	else
		tw_perfetto_close(x);
	return st;
}

struct tw_perfetto *tw_perfetto_close(struct tw_perfetto *x)
{
	if (!x)
		return NULL;
	for (uint32_t i = 0; x->lanes && i < x->n_lanes; i++)
		close_lane(x, &x->lanes[i]);
	tw_mem_free(x->lanes);
	tw_mem_free(x->heap);
	tw_buf_done(&x->piece);
	tw_arena_free(x->arena);
	tw_mem_free(x);
	return NULL;
}

/*
 * builder.c - the production sink: collects finished calls per track.
 *
 * A record is 16 bytes (20 with CPU time) in a growing array per track.  The system moves pages
 * rather than bytes when large arrays grow, and untouched pages cost nothing, so the peak stays
 * near the size of the contents.  Writing adds 2 bytes per record of the largest track, 10 if it is
 * out of order.  With scratch, records past its window are written there (builder_spill.c).
 * Records that do not fit are dropped and counted.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

#include "decoder/base/hash.h"

enum { DIRECT_IDS = 1 << 23, ARENA_SHARE = 4 };
/* From this number of slices on, a second thread saves more time than it costs. */
enum { SHARED_FROM = 1 << 16 };
/* Fewer calls of one track are taken one by one. */
enum { FEW_CALLS = 8 };
/* A quarter of the arena is for names only, and its last bytes for the shared name of all names
 * that do not fit. */
enum { NAMES_SHARE = 4, LAST_ROOM = 64 };
/* Records may take half of the memory: writing adds an eighth of their size, or five eighths if
 * they are out of order.  With scratch, records in memory and in scratch may total the memory minus
 * FIXED_BYTES: the window and memory that does not depend on the number of records. */
enum { RECORD_SHARE_OF = 2, FIRST_RECORDS = 64, LARGE_BYTES = 64 << 20, FIXED_BYTES = 192 << 20 };

static struct tw_builder *builder_of(struct tw_sink *s)
{
	return (struct tw_builder *)(void *)s;
}

void tw_builder_repair(struct tw_builder *b, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct tw_repair_count *r = &b->repairs[what];

	/* threads are processed one after another: the first case of one input is that with the
	 * lowest offset */
	if (r->count == 0 || r->first_offset == TW_NO_OFFSET ||
	        (b->input == 0 && offset < r->first_offset))
		r->first_offset = offset;
	r->count += n;
}

enum tw_status tw_builder_fail(const struct tw_builder *b, struct tw_err *err)
{
	if (b->status == TW_NOMEM)
		return tw_fail(err, TW_NOMEM, "the trace needs more memory than a decode may use");
	if (err)
		tw_err_copy(err, &b->why);
	return b->status;
}

static void sink_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	tw_builder_repair(builder_of(s), what, offset, n);
}

static void sink_clock(struct tw_sink *s, const struct tw_clock *clock)
{
	tw_builder_clock(builder_of(s), clock);
}

static uint32_t *track_slot(
        const struct tw_builder *b, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	uint32_t mask = b->n_track_slots - 1;
	uint64_t h =
	        tw_hash_id(tid ^ (uint64_t)pid << 32 ^ (uint64_t)kind << 62, b->limits.hash_salt);
	uint32_t at = (uint32_t)h & mask;

	while (b->track_slots[at]) {
		const struct track *t = &b->tracks[b->track_slots[at] - 1];

		if (t->tid == tid && t->pid == pid && t->kind == kind)
			break;
		at = (at + 1) & mask;
	}
	return &b->track_slots[at];
}

static uint32_t sink_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	struct tw_builder *b = builder_of(s);
	uint32_t *slot = track_slot(b, pid, tid, kind);

	if (*slot)
		return *slot;
	if (b->n_tracks >= b->limits.max_threads) {
		tw_builder_repair(b, TW_REPAIR_thread_limit, TW_NO_OFFSET, 1);
		return 0;
	}
	if (!TW_GROW_MEM(b->tracks, b->n_tracks, b->cap_tracks)) {
		b->status = TW_NOMEM;
		return 0;
	}
	b->tracks[b->n_tracks] = (struct track){.pid = pid,
	        .tid = tid,
	        .kind = kind,
	        .last_end_ns = INT64_MIN,
	        .unordered_offset = TW_NO_OFFSET};
	return *slot = ++b->n_tracks;
}

static uint32_t add_symbol(struct tw_builder *b, bool has_id, uint64_t id, struct tw_str name)
{
	if (b->n_symbols >= b->limits.max_methods) {
		tw_builder_repair(b, TW_REPAIR_slice_limit, TW_NO_OFFSET, 1);
		return 0;
	}
	if (!TW_GROW_MEM(b->symbols, b->n_symbols, b->cap_symbols)) {
		b->status = TW_NOMEM;
		return 0;
	}
	b->symbols[b->n_symbols] = (struct symbol){.has_id = has_id, .id = id, .name = name};
	return ++b->n_symbols;
}

static uint64_t hash_of(const struct tw_builder *b, bool has_id, uint64_t id, struct tw_str name)
{
	uint64_t salt = b->limits.hash_salt;

	return has_id ? tw_hash_id(id, salt) : tw_hash_str(name, salt);
}

static uint32_t *slot_of(const struct tw_builder *b, bool has_id, uint64_t id, struct tw_str name)
{
	uint32_t mask = b->cap_hashed - 1;
	uint32_t at = (uint32_t)(hash_of(b, has_id, id, name) >> 32) & mask;

	while (b->hashed[at]) {
		const struct symbol *s = &b->symbols[b->hashed[at] - 1];

		if (s->has_id == has_id && s->id == id && (has_id || tw_str_eq(s->name, name)))
			break;
		at = (at + 1) & mask;
	}
	return &b->hashed[at];
}

static bool widen_hash(struct tw_builder *b)
{
	uint32_t cap = b->cap_hashed ? b->cap_hashed * 2 : 1024;
	uint32_t *old = b->hashed;
	uint32_t old_cap = b->cap_hashed;
	uint32_t *larger;

	if (b->n_hashed < b->cap_hashed / 2)
		return true;
	larger = tw_mem_zalloc(cap, sizeof *larger);
	if (!larger)
		return false;
	b->hashed = larger;
	b->cap_hashed = cap;
	for (uint32_t i = 0; i < old_cap; i++) {
		const struct symbol *s = old[i] ? &b->symbols[old[i] - 1] : NULL;

		if (s)
			*slot_of(b, s->has_id, s->id, s->name) = old[i];
	}
	tw_mem_free(old);
	return true;
}

bool tw_builder_has_room(const struct tw_builder *b, size_t bytes)
{
	return tw_arena_fits(
	        b->arena, b->limits.max_memory_bytes / ARENA_SHARE / NAMES_SHARE + bytes);
}

/* The end of the arena is reserved for the shared name of all names that do not fit. */
static bool name_fits(struct tw_builder *b, struct tw_str name)
{
	if (tw_arena_fits(b->arena, name.len + LAST_ROOM))
		return true;
	tw_builder_repair(b, TW_REPAIR_name_limit, TW_NO_OFFSET, 1);
	return false;
}

static uint32_t find_symbol(struct tw_builder *b, bool has_id, uint64_t id, struct tw_str name)
{
	uint32_t *slot;
	char *copy = NULL;
	bool left_out = false;

	if (!widen_hash(b)) {
		b->status = TW_NOMEM;
		return 0;
	}
	slot = slot_of(b, has_id, id, name);
	if (*slot)
		return *slot;
	if (!has_id && !name_fits(b, name)) {
		left_out = true;
		name = TW_STR("(name left out)");
		slot = slot_of(b, false, 0, name);
		if (*slot)
			return *slot;
	}
	if (!has_id) {
		copy = tw_arena_str(b->arena, name);
		if (!copy) {
			b->status = TW_NOMEM;
			return 0;
		}
	}
	*slot = add_symbol(b, has_id, id, (struct tw_str){copy, name.len});
	b->n_hashed += *slot != 0;
	if (left_out)
		b->left_out_sym = *slot;
	return *slot;
}

static uint32_t sink_method(struct tw_sink *s, uint64_t id)
{
	struct tw_builder *b = builder_of(s);

	if (id >= b->n_direct)
		return find_symbol(b, true, id, (struct tw_str){0});
	if (!b->direct[id])
		b->direct[id] = add_symbol(b, true, id, (struct tw_str){0});
	return b->direct[id];
}

static uint32_t sink_name(struct tw_sink *s, struct tw_str name)
{
	struct tw_builder *b = builder_of(s);
	uint32_t sym;

	if (name.len <= b->limits.max_name_bytes)
		return find_symbol(b, false, 0, name);
	tw_builder_repair(b, TW_REPAIR_name_cut, TW_NO_OFFSET, 1);
	name.len = b->limits.max_name_bytes;
	sym = find_symbol(b, false, 0, name);
	if (b->repairs[TW_REPAIR_name_cut].first_offset == TW_NO_OFFSET && !b->cut_sym)
		b->cut_sym = sym;
	return sym;
}

static bool set_first_offset(uint32_t *sym, struct tw_repair_count *r, const struct tw_event *ev)
{
	if (!*sym || ev->sym != *sym)
		return false;
	if (r->first_offset == TW_NO_OFFSET)
		r->first_offset = ev->offset;
	*sym = 0;
	return true;
}

/* Names are requested before the events that use them. */
static void place_names(struct tw_builder *b, const struct tw_event *ev, size_t n)
{
	for (size_t i = 0; i < n && (b->cut_sym || b->left_out_sym); i++)
		if (!set_first_offset(&b->cut_sym, &b->repairs[TW_REPAIR_name_cut], &ev[i]))
			(void)set_first_offset(
			        &b->left_out_sym, &b->repairs[TW_REPAIR_name_limit], &ev[i]);
}

static void sink_method_name(struct tw_sink *s, uint64_t id, struct tw_str name)
{
	struct tw_builder *b = builder_of(s);
	uint32_t sym = sink_method(s, id);
	char *copy;

	if (sym == 0 || b->symbols[sym - 1].name.ptr)
		return;
	if (name.len > b->limits.max_name_bytes) {
		tw_builder_repair(b, TW_REPAIR_name_cut, TW_NO_OFFSET, 1);
		name.len = b->limits.max_name_bytes;
	}
	if (!name_fits(b, name))
		return;
	copy = tw_arena_str(b->arena, name);
	if (copy)
		b->symbols[sym - 1].name = (struct tw_str){copy, name.len};
	else
		b->status = TW_NOMEM;
}

static uint32_t *name_slot(const struct tw_builder *b, uint32_t pid, uint64_t tid)
{
	uint32_t mask = b->n_track_slots - 1;
	uint64_t h = tw_hash_id(tid ^ (uint64_t)pid << 32, b->limits.hash_salt);
	uint32_t at = (uint32_t)h & mask;

	while (b->name_slots[at]) {
		const struct thread_name *n = &b->names[b->name_slots[at] - 1];

		if (n->tid == tid && n->pid == pid)
			break;
		at = (at + 1) & mask;
	}
	return &b->name_slots[at];
}

static void sink_thread_name(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct tw_builder *b = builder_of(s);
	uint32_t *slot;
	char *copy;

	if (b->n_names >= b->limits.max_threads) {
		tw_builder_repair(b, TW_REPAIR_thread_limit, TW_NO_OFFSET, 1);
		return;
	}
	slot = name_slot(b, pid, tid);
	if (*slot)
		return;
	if (name.len > b->limits.max_name_bytes)
		name.len = b->limits.max_name_bytes;
	if (!name_fits(b, name))
		return;
	copy = tw_arena_str(b->arena, name);
	if (!copy || !TW_GROW_MEM(b->names, b->n_names, b->cap_names)) {
		b->status = TW_NOMEM;
		return;
	}
	b->names[b->n_names++] = (struct thread_name){pid, tid, {copy, name.len}};
	*slot = b->n_names;
}

static uint64_t bytes_left(uint64_t share, uint64_t used)
{
	return share > used ? share - used : 0;
}

uint64_t tw_builder_left_for_records(const struct tw_builder *b)
{
	return bytes_left(b->limits.max_memory_bytes / RECORD_SHARE_OF, b->record_bytes);
}

/* The same, limited by all records including those in scratch: writing them takes memory too,
 * mostly for call trees. */
static uint64_t left_for_calls(const struct tw_builder *b)
{
	const uint64_t left = tw_builder_left_for_records(b);
	const uint64_t most = bytes_left(b->limits.max_memory_bytes, FIXED_BYTES);
	const uint64_t half = b->limits.max_memory_bytes / RECORD_SHARE_OF;
	const uint64_t calls =
	        bytes_left(most > half ? most : half, b->record_bytes + b->scratch_bytes);

	return calls < left ? calls : left;
}

/* With a small window, arrays start smaller. */
static uint64_t first_records(const struct tw_builder *b)
{
	const uint64_t n = tw_piece_records(b);

	return b->scratch.max_bytes && n < FIRST_RECORDS ? n : FIRST_RECORDS;
}

/* The next capacity of a track: doubled, or a quarter more for large arrays, within the share of
 * memory that leaves enough for writing. */
static uint64_t next_cap(const struct tw_builder *b, const struct track *t)
{
	uint64_t size = tw_track_record_bytes(t);
	uint64_t left = left_for_calls(b) / size;
	uint64_t has = t->cap - t->n_spilled;
	uint64_t more = has * size > LARGE_BYTES ? has / 4 : has;
	uint64_t n;

	if (more < first_records(b))
		more = first_records(b);
	n = tw_mem_fill_pages((has + more) * sizeof(struct record)) / sizeof(struct record);
	if (t->records.cpu)
		n = tw_mem_fill_pages(n * sizeof *t->records.cpu) / sizeof *t->records.cpu;
	more = n - has;
	return t->cap + (more < left ? more : left);
}

static bool resize_arrays(struct track *t, uint64_t n)
{
	struct record *records = tw_mem_resize(t->records.at, n, sizeof *records);

	if (!records)
		return false;
	tw_mem_will_fill(records, n * sizeof *records);
	t->records.at = records;
	if (t->records.cpu) {
		uint32_t *cpu = tw_mem_resize(t->records.cpu, n, sizeof *cpu);

		if (!cpu)
			return false;
		tw_mem_will_fill(cpu, n * sizeof *cpu);
		t->records.cpu = cpu;
	}
	return true;
}

bool tw_builder_resize_records(struct tw_builder *b, struct track *t, uint64_t cap)
{
	const uint64_t size = tw_track_record_bytes(t);

	if (!resize_arrays(t, cap - t->n_spilled)) {
		b->status = TW_NOMEM;
		return false;
	}
	b->record_bytes = b->record_bytes - t->cap * size + cap * size;
	t->cap = cap;
	return true;
}

/* False with b->status set if memory ran out; only false if the share is used up. */
static inline bool reserve_record(struct tw_builder *b, struct track *t)
{
	uint64_t cap;

	if (t->n < t->cap)
		return true;
	cap = next_cap(b, t);
	if (cap == t->cap)
		return false;
	if (tw_builder_must_spill(b, t, cap - t->cap))
		return tw_builder_spill(b, t);
	return tw_builder_resize_records(b, t, cap);
}

bool tw_builder_grow_rare(
        struct tw_builder *b, struct track *t, const struct call *c, int64_t cpu_ns)
{
	struct records *r = &t->records;
	const uint64_t before = tw_rare_bytes(r);

	if ((!tw_record_fits(r, c) && !TW_GROW_MEM(r->wide, r->n_wide, r->cap_wide)) ||
	        (tw_cpu_is_long(cpu_ns) &&
	                !TW_GROW_MEM(r->long_cpu_ns, r->n_long_cpu, r->cap_long_cpu)))
		b->status = TW_NOMEM;
	b->record_bytes += tw_rare_bytes(r) - before;
	return b->status == TW_OK;
}

/* The same as reserve_record for the arrays of rare values. */
static bool reserve_rare(
        struct tw_builder *b, struct track *t, const struct call *c, int64_t cpu_ns)
{
	const struct records *r = &t->records;
	uint64_t more = 0;

	if (!tw_record_fits(r, c) && r->n_wide == r->cap_wide)
		more = (r->cap_wide + 16) * sizeof *r->wide;
	if (tw_cpu_is_long(cpu_ns) && r->n_long_cpu == r->cap_long_cpu)
		more += (r->cap_long_cpu + 16) * sizeof *r->long_cpu_ns;
	return left_for_calls(b) >= more && tw_builder_grow_rare(b, t, c, cpu_ns);
}

void tw_builder_free_records(struct track *t)
{
	tw_mem_free(t->records.at);
	tw_mem_free(t->records.wide);
	tw_mem_free(t->records.cpu);
	tw_mem_free(t->records.long_cpu_ns);
	tw_mem_free(t->by_bits);
	t->records = (struct records){0};
	t->by_bits = NULL;
	t->n = t->cap = 0;
	tw_spilled_free(t);
}

/* The first record with CPU time: earlier ones have none. */
static bool start_cpu(struct tw_builder *b, struct track *t)
{
	uint64_t cap = t->cap - t->n_spilled;

	t->records.cpu = tw_mem_alloc(cap, sizeof *t->records.cpu);
	if (!t->records.cpu) {
		b->status = TW_NOMEM;
		return false;
	}
	b->record_bytes += cap * sizeof *t->records.cpu;
	for (uint64_t i = 0; i < t->n - t->n_spilled; i++)
		t->records.cpu[i] = TW_CPU_NONE;
	return true;
}

static inline void note_order(struct track *t, int64_t end_ns, uint64_t offset)
{
	if (t->n == 0)
		t->first_offset = offset;
	if (end_ns >= t->last_end_ns) {
		t->last_end_ns = end_ns;
	} else if (!t->unordered) {
		t->unordered = true;
		t->unordered_offset = offset;
	}
}

enum tw_status tw_builder_record(struct tw_builder *b, struct track *t, const struct call *c,
        int64_t cpu_ns, uint64_t offset)
{
	int64_t end = c->start_ns + c->dur_ns;

	if (t->n == 0)
		tw_records_start(&t->records, c->start_ns);
	if (b->slices >= b->limits.max_slices || !reserve_record(b, t) ||
	        !reserve_rare(b, t, c, cpu_ns)) {
		if (b->status == TW_OK)
			tw_builder_repair(b, TW_REPAIR_slice_limit, offset, 1);
		return b->status;
	}
	if (cpu_ns >= 0 && !t->records.cpu && !start_cpu(b, t))
		return b->status;
	note_order(t, end, offset);
	if (t->records.cpu)
		tw_record_put_cpu(&t->records, t->n - t->n_spilled, cpu_ns);
	if (t->n == 0 || c->start_ns < t->first_ns)
		t->first_ns = c->start_ns;
	tw_record_put(&t->records, t->n++ - t->n_spilled, c, tw_short_offset(offset));
	b->slices++;
	b->symbols[c->sym - 1].count++;
	if (end > b->last_ns)
		b->last_ns = end;
	return TW_OK;
}

static inline bool sane(const struct tw_builder *b, const struct tw_event *ev)
{
	if (ev->track == 0 || ev->track > b->n_tracks || ev->sym > b->n_symbols)
		return false;
	return ev->ts_ns >= 0 && ev->ts_ns <= TW_MAX_NS && ev->dur_ns >= 0 &&
	       ev->dur_ns <= TW_MAX_NS;
}

/* NULL: there is no such track. */
static struct track *track_of(const struct tw_builder *b, uint32_t handle)
{
	return handle && handle <= b->n_tracks ? &b->tracks[handle - 1] : NULL;
}

static inline void take_event(struct tw_builder *b, const struct tw_event *ev)
{
	struct track *t;

	if (!sane(b, ev) || (ev->kind <= TW_EV_BEGIN && ev->sym == 0)) {
		tw_builder_repair(b, TW_REPAIR_impossible_time, ev->offset, 1);
		return;
	}
	t = &b->tracks[ev->track - 1];
	t->any_order |= ev->any_order;
	if (ev->kind == TW_EV_SLICE)
		b->status = tw_builder_record(b, t, &(struct call){ev->ts_ns, ev->dur_ns, ev->sym},
		        ev->cpu_ns, ev->offset);
	else if (ev->kind == TW_EV_BEGIN)
		b->status = tw_builder_begin(b, t, ev);
	else
		b->status = tw_builder_end(b, t, ev);
}

/* The begins and symbols of calls that are sane and fit a record, if their durations do. */
struct plain {
	int64_t from_ns;
	uint64_t span_ns;
	uint32_t max_sym;
};

static struct plain plain_of(const struct tw_builder *b, const struct track *t)
{
	int64_t from_ns = t->records.base_ns > 0 ? t->records.base_ns : 0;
	int64_t end_ns = t->records.base_ns + (int64_t)TW_RECORD_SPAN;

	if (end_ns > TW_MAX_NS)
		end_ns = TW_MAX_NS;
	return (struct plain){from_ns, end_ns > from_ns ? (uint64_t)(end_ns - from_ns) : 0,
	        b->n_symbols < TW_RECORD_MAX_SYM ? b->n_symbols : TW_RECORD_MAX_SYM};
}

static inline bool is_plain_time(const struct plain *p, int64_t ns)
{
	return (uint64_t)ns - (uint64_t)p->from_ns < p->span_ns;
}

static inline bool is_plain_call(const struct plain *p, const struct call *c)
{
	return c->sym - 1 < p->max_sym && is_plain_time(p, c->start_ns) &&
	       (uint64_t)c->dur_ns < TW_RECORD_WIDE;
}

/* Returns whether the event ends the innermost call, `o`. */
static inline bool ends_call(const struct tw_event *ev, const struct open_call *o)
{
	return (ev->kind == TW_EV_END || ev->kind == TW_EV_END_EARLIER) &&
	       (ev->sym == 0 || ev->sym == o->sym) && (uint64_t)ev->dur_ns <= TW_MAX_NS;
}

/* take_run for a track with or without CPU times. */
static inline size_t take_run_of(
        struct tw_builder *b, struct track *t, const struct tw_event *ev, size_t n, bool has_cpu)
{
	const uint64_t left_in_all = b->limits.max_slices - b->slices;
	const uint64_t left = left_in_all < t->cap - t->n ? left_in_all : t->cap - t->n;
	const struct plain plain = plain_of(b, t);
	const bool unordered = t->unordered;
	const int64_t base_ns = t->records.base_ns;
	struct record *const first = t->records.at + (t->n - t->n_spilled);
	struct record *at = first;
	const struct record *full = first + left;
	const int64_t most_cpu_ns = has_cpu ? (int64_t)TW_CPU_LONG : 0;
	uint32_t *cpu = has_cpu ? t->records.cpu + (t->n - t->n_spilled) : NULL;
	struct symbol *symbols = b->symbols;
	struct open_call none; /* for pointers, as NULL + 0 is undefined */
	struct open_call *open = t->open ? t->open : &none;
	struct open_call *top = open + t->n_open; /* after the innermost call */
	const struct open_call *open_end = open + t->cap_open;
	int64_t first_ns = t->first_ns;
	int64_t end_ns = t->last_end_ns;
	int64_t last_ns = b->last_ns;
	bool any_order = false;
	size_t i = 0;

	for (; i < n; i++) {
		const struct tw_event *e = &ev[i];
		struct call c = {e->ts_ns, e->dur_ns, e->sym};
		int64_t cpu_ns = e->cpu_ns;
		uint64_t offset = e->offset;

		if (e->track != ev->track || !is_plain_time(&plain, e->ts_ns))
			break;
		if (e->kind == TW_EV_BEGIN) {
			if (top == open_end || e->sym - 1 >= plain.max_sym)
				break;
			*top++ = (struct open_call){e->ts_ns, e->cpu_ns, e->offset, e->sym};
			any_order |= e->any_order;
			last_ns = e->ts_ns > last_ns ? e->ts_ns : last_ns;
			continue;
		}
		if (e->kind != TW_EV_SLICE) {
			if (top == open || !ends_call(e, top - 1))
				break;
			c = (struct call){
			        top[-1].start_ns, e->ts_ns - top[-1].start_ns, top[-1].sym};
			cpu_ns = tw_open_call_cpu(top - 1, e->cpu_ns);
			offset = top[-1].offset;
		}
		if (at == full || !is_plain_call(&plain, &c) || cpu_ns >= most_cpu_ns)
			break;
		if (c.start_ns + c.dur_ns >= end_ns)
			end_ns = c.start_ns + c.dur_ns;
		else if (!unordered)
			break;
		top -= e->kind != TW_EV_SLICE;
		any_order |= e->any_order;
		if (c.start_ns < first_ns)
			first_ns = c.start_ns;
		if (has_cpu)
			*cpu++ = tw_short_cpu(cpu_ns);
		*at++ = (struct record){
		        (uint64_t)(c.start_ns - base_ns) << TW_RECORD_SYM_BITS | c.sym,
		        (uint32_t)c.dur_ns, tw_short_offset(offset)};
		symbols[c.sym - 1].count++;
	}
	t->n += (uint64_t)(at - first);
	t->n_open = (uint32_t)(top - open);
	t->first_ns = first_ns;
	t->last_end_ns = end_ns;
	t->any_order |= any_order;
	b->slices += (uint64_t)(at - first);
	b->last_ns = at > first && end_ns > last_ns ? end_ns : last_ns;
	return i;
}

/* Takes the leading events of a batch that need no special case, as nearly all: on one track, in
 * order, within the limits, each a call or the begin or end of an innermost call.  Returns their
 * number. */
static size_t take_run(struct tw_builder *b, struct track *t, const struct tw_event *ev, size_t n)
{
	return t->records.cpu ? take_run_of(b, t, ev, n, true) : take_run_of(b, t, ev, n, false);
}

static void take_moved_event(struct tw_builder *b, const struct tw_event *ev)
{
	struct tw_event moved = *ev;
	int64_t none = 0;

	if (tw_builder_place(
	            b, &moved.ts_ns, ev->kind == TW_EV_SLICE ? &moved.dur_ns : &none, ev->offset))
		take_event(b, &moved);
}

/* One event that may need a special case. */
static void take_any_event(struct tw_builder *b, const struct tw_event *ev)
{
	if (tw_builder_is_moved(b))
		take_moved_event(b, ev);
	else
		take_event(b, ev);
}

static enum tw_status sink_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	struct tw_builder *b = builder_of(s);
	const bool moved = tw_builder_is_moved(b);

	if (b->cut_sym || b->left_out_sym)
		place_names(b, ev, n);
	for (size_t i = 0; i < n && b->status == TW_OK;) {
		struct track *t = moved ? NULL : track_of(b, ev[i].track);

		if (t && t->n && !t->n_hidden)
			i += take_run(b, t, ev + i, n - i);
		if (i < n)
			take_any_event(b, &ev[i++]);
	}
	return b->status == TW_OK ? TW_OK : tw_builder_fail(b, err);
}

/* The number of calls from number `from` on that are of one track, at most TW_CALLS_AT_ONCE. */
static size_t run_of(const struct tw_call_batch *calls, size_t from)
{
	const size_t left = calls->n - from;
	const size_t most = left < TW_CALLS_AT_ONCE ? left : TW_CALLS_AT_ONCE;
	size_t n = 1;

	while (n < most && calls->tracks[from + n] == calls->tracks[from])
		n++;
	return n;
}

/* Takes n calls that may need special cases.  plain: their times and names do not. */
static void take_one_by_one(
        struct tw_builder *b, const struct tw_call_batch *calls, size_t from, size_t n, bool plain)
{
	for (size_t i = from; i < from + n && b->status == TW_OK; i++) {
		const struct tw_event ev = tw_call_batch_event(calls, i);

		if (plain) {
			take_event(b, &ev);
			continue;
		}
		place_names(b, &ev, 1);
		take_any_event(b, &ev);
	}
}

static enum tw_status sink_calls(
        struct tw_sink *s, const struct tw_call_batch *calls, struct tw_err *err)
{
	struct tw_builder *b = builder_of(s);
	const bool plain = !tw_builder_is_moved(b) && !b->cut_sym && !b->left_out_sym;

	for (size_t i = 0; i < calls->n && b->status == TW_OK;) {
		const size_t n = run_of(calls, i);
		struct track *t = plain && n >= FEW_CALLS ? track_of(b, calls->tracks[i]) : NULL;

		if (!t || !tw_builder_take_calls(b, t, calls, i, n))
			take_one_by_one(b, calls, i, n, plain);
		i += n;
	}
	return b->status == TW_OK ? TW_OK : tw_builder_fail(b, err);
}

static enum tw_status sink_edges(
        struct tw_sink *s, const struct tw_edge_batch *edges, struct tw_err *err)
{
	struct tw_builder *b = builder_of(s);
	const bool plain = !tw_builder_is_moved(b) && !b->cut_sym && !b->left_out_sym &&
	                   edges->n > 0 && tw_builder_are_edges_plain(b, edges);
	struct track *t = plain ? track_of(b, edges->track) : NULL;

	for (size_t i = 0; i < edges->n && b->status == TW_OK;) {
		const size_t taken = t ? tw_builder_take_edges(b, t, edges, i) : 0;

		i += taken;
		if (taken == 0) {
			const struct tw_event ev = tw_edge_batch_event(edges, i++);

			place_names(b, &ev, 1);
			take_any_event(b, &ev);
		}
	}
	return b->status == TW_OK ? TW_OK : tw_builder_fail(b, err);
}

static void sink_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	tw_builder_process(builder_of(s), tid, pid);
}

static void sink_transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name)
{
	struct tw_builder *b = builder_of(s);

	if (!tw_builder_has_room(b, interface.len + name.len))
		tw_builder_repair(b, TW_REPAIR_name_limit, TW_NO_OFFSET, 1);
	else if (!tw_codes_add(&b->codes, b->arena, interface, code, name))
		b->status = TW_NOMEM;
}

static struct tw_str sink_transaction_name(
        struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	return tw_codes_name(&builder_of(s)->codes, interface, code);
}

static void sink_source(
        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns)
{
	struct tw_builder *b = builder_of(s);

	if (track == 0 || track > b->n_tracks)
		return;
	b->tracks[track - 1].source = source;
	b->tracks[track - 1].interval_ns = interval_ns >= TW_INTERVAL_NONE ? interval_ns : 0;
}

static const struct tw_sink_ops ops = {
        .track = sink_track,
        .method = sink_method,
        .name = sink_name,
        .method_name = sink_method_name,
        .events = sink_events,
        .calls = sink_calls,
        .edges = sink_edges,
        .thread_name = sink_thread_name,
        .thread_process = sink_process,
        .transaction = sink_transaction,
        .transaction_name = sink_transaction_name,
        .clock = sink_clock,
        .source = sink_source,
        .note = tw_builder_note,
        .document = tw_builder_document,
        .repair = sink_repair,
};

struct tw_builder *tw_builder_new(const struct tw_limits *limits)
{
	struct tw_builder *b = tw_mem_zalloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->sink.ops = &ops;
	b->limits = *limits;
	b->shared_from = SHARED_FROM;
	if (b->limits.max_depth > TW_MOST_DEPTH)
		b->limits.max_depth = TW_MOST_DEPTH;
	b->codes.salt = limits->hash_salt;
	b->clock = (struct tw_clock){.mono_base_ns = -1, .boot_base_ns = -1};
	b->arena = tw_arena_new(limits->max_memory_bytes / ARENA_SHARE);
	b->n_direct = limits->max_methods < DIRECT_IDS / 2 ? limits->max_methods * 2 : DIRECT_IDS;
	b->direct = tw_mem_zalloc(b->n_direct, sizeof *b->direct);
	for (b->n_track_slots = 64; b->n_track_slots < limits->max_threads * 2;)
		b->n_track_slots *= 2;
	b->track_slots = tw_mem_zalloc(b->n_track_slots, sizeof *b->track_slots);
	b->name_slots = tw_mem_zalloc(b->n_track_slots, sizeof *b->name_slots);
	if (!b->arena || !b->direct || !b->track_slots || !b->name_slots)
		return tw_builder_free(b);
	return b;
}

struct tw_builder *tw_builder_free(struct tw_builder *b)
{
	if (!b)
		return NULL;
	for (uint32_t i = 0; i < b->n_tracks; i++) {
		tw_builder_free_records(&b->tracks[i]);
		tw_mem_free(b->tracks[i].open);
	}
	tw_mem_free(b->tracks);
	tw_mem_free(b->track_slots);
	tw_mem_free(b->symbols);
	tw_mem_free(b->indexes);
	tw_mem_free(b->direct);
	tw_mem_free(b->hashed);
	tw_mem_free(b->names);
	tw_mem_free(b->name_slots);
	tw_mem_free(b->processes);
	tw_builder_free_notes(b);
	tw_arena_free(b->arena);
	tw_mem_free(b);
	return NULL;
}

struct tw_sink *tw_builder_sink(struct tw_builder *b)
{
	return &b->sink;
}

void tw_builder_use_scratch(struct tw_builder *b, const struct tw_scratch *scratch)
{
	b->scratch = *scratch;
}

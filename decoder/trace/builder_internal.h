/*
 * builder_internal.h - shared by the files of the builder only.
 *
 * builder.c       the sink: tracks, symbols, events, limits, repair counts
 * builder_calls.c many calls of one track at once
 * builder_note.c  notes and documents
 * builder_merge.c several inputs: clocks, ids, tracks that belong to one thread
 * builder_pair.c  BEGIN/END pairs become finished calls
 * builder_spill.c records that do not fit in memory
 * builder_nest.c  a track's records become slices in pre-order
 * builder_mip.c   zoomed-out levels
 * builder_shape.c the slices of a thread become chunks, mip levels and a tree
 * builder_write.c threads one by one, totals per method, the order of the output
 */
#ifndef TW_BUILDER_INTERNAL_H
#define TW_BUILDER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/list.h"
#include "decoder/formats/codes.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "decoder/trace/running.h"

/* --- records --- */

/* A finished call in 16 bytes.  Most calls last less than 4 s and begin within hours of the track's
 * first one, so a record has the begin relative to a base in 44 bits, a symbol of 20 bits, and the
 * duration in 32 bits.  Other calls are stored in a separate array, with their index in place of
 * the begin. */
enum { TW_RECORD_SYM_BITS = 20 };
#define TW_RECORD_WIDE    UINT32_MAX         /* duration of a record whose call is in `wide` */
#define TW_RECORD_BEFORE  ((int64_t)1 << 42) /* nanoseconds from the base to the first begin */
#define TW_RECORD_SPAN    ((uint64_t)1 << (64 - TW_RECORD_SYM_BITS))
#define TW_RECORD_MAX_SYM ((1u << TW_RECORD_SYM_BITS) - 1)
#define TW_OFFSET_UNKNOWN UINT32_MAX
#define TW_MAX_NS         (INT64_C(1) << 61) /* of a begin and of a duration */
#define TW_MOST_DEPTH     UINT16_MAX         /* deeper calls are stored with this depth */

/* A CPU time in 4 bytes: nanoseconds, or the index of a long one in `long_cpu_ns`. */
#define TW_CPU_NONE UINT32_MAX
#define TW_CPU_LONG (UINT32_C(1) << 31) /* plus the index; from this time on */

struct call {
	int64_t start_ns, dur_ns;
	uint32_t sym;
};

struct record {
	uint64_t start_and_sym; /* or an index of `wide` */
	uint32_t dur_ns;
	uint32_t offset; /* in the input; TW_OFFSET_UNKNOWN past 4 GiB */
};

struct records {
	struct record *at;
	uint32_t *cpu; /* of the same calls; NULL if none has a CPU time */
	int64_t base_ns;
	struct call *wide;
	int64_t *long_cpu_ns;
	uint32_t n_wide, cap_wide;
	uint32_t n_long_cpu, cap_long_cpu;
};

static inline struct call tw_record_call(const struct records *r, uint64_t i)
{
	const struct record *at = &r->at[i];

	if (__builtin_expect(at->dur_ns == TW_RECORD_WIDE, 0))
		return r->wide[at->start_and_sym];
	return (struct call){r->base_ns + (int64_t)(at->start_and_sym >> TW_RECORD_SYM_BITS),
	        at->dur_ns, (uint32_t)at->start_and_sym & TW_RECORD_MAX_SYM};
}

/* Before the first record: its begin. */
static inline void tw_records_start(struct records *r, int64_t start_ns)
{
	r->base_ns = start_ns - TW_RECORD_BEFORE;
}

static inline bool tw_record_fits(const struct records *r, const struct call *c)
{
	return (uint64_t)(c->start_ns - r->base_ns) < TW_RECORD_SPAN &&
	       (uint64_t)c->dur_ns < TW_RECORD_WIDE && c->sym >> TW_RECORD_SYM_BITS == 0;
}

/* Of a call that fits. */
static inline struct record tw_record_of(
        const struct records *r, const struct call *c, uint32_t offset)
{
	return (struct record){(uint64_t)(c->start_ns - r->base_ns) << TW_RECORD_SYM_BITS | c->sym,
	        (uint32_t)c->dur_ns, offset};
}

/* Sets element i. A call that does not fit a record needs space. */
static inline void tw_record_put(
        struct records *r, uint64_t i, const struct call *c, uint32_t offset)
{
	if (__builtin_expect(tw_record_fits(r, c), 1)) {
		r->at[i] = tw_record_of(r, c, offset);
		return;
	}
	r->at[i] = (struct record){r->n_wide, TW_RECORD_WIDE, offset};
	r->wide[r->n_wide++] = *c;
}

static inline void tw_record_shorten(struct records *r, uint64_t i, int64_t dur_ns)
{
	struct record *at = &r->at[i];

	if (at->dur_ns == TW_RECORD_WIDE)
		r->wide[at->start_and_sym].dur_ns = dur_ns;
	else
		at->dur_ns = (uint32_t)dur_ns;
}

/* The number of significant bits of a duration, at least 1. */
static inline unsigned tw_duration_bits(int64_t dur_ns)
{
	return 64 - (unsigned)__builtin_clzll((uint64_t)dur_ns | 1);
}

static inline uint64_t tw_record_offset(const struct record *r)
{
	return r->offset == TW_OFFSET_UNKNOWN ? TW_NO_OFFSET : r->offset;
}

static inline uint32_t tw_short_offset(uint64_t offset)
{
	return offset < TW_OFFSET_UNKNOWN ? (uint32_t)offset : TW_OFFSET_UNKNOWN;
}

/* CPU time of a call; -1: unknown.  The records have CPU times. */
static inline int64_t tw_record_cpu(const struct records *r, uint64_t i)
{
	const uint32_t cpu = r->cpu[i];

	if (__builtin_expect(cpu < TW_CPU_LONG, 1))
		return cpu;
	return cpu == TW_CPU_NONE ? -1 : r->long_cpu_ns[cpu - TW_CPU_LONG];
}

static inline bool tw_cpu_is_long(int64_t cpu_ns)
{
	return cpu_ns >= (int64_t)TW_CPU_LONG;
}

/* Of a CPU time that is not long. */
static inline uint32_t tw_short_cpu(int64_t cpu_ns)
{
	return cpu_ns < 0 ? TW_CPU_NONE : (uint32_t)cpu_ns;
}

/* A long CPU time needs space. */
static inline void tw_record_put_cpu(struct records *r, uint64_t i, int64_t cpu_ns)
{
	if (tw_cpu_is_long(cpu_ns)) {
		r->cpu[i] = TW_CPU_LONG + r->n_long_cpu;
		r->long_cpu_ns[r->n_long_cpu++] = cpu_ns;
	} else {
		r->cpu[i] = tw_short_cpu(cpu_ns);
	}
}

/* Bytes of the arrays that few calls need. */
static inline uint64_t tw_rare_bytes(const struct records *r)
{
	return r->cap_wide * sizeof *r->wide + r->cap_long_cpu * sizeof *r->long_cpu_ns;
}

struct open_call { /* a BEGIN whose END has not been read yet */
	int64_t start_ns;
	int64_t cpu_ns; /* the thread's CPU clock, -1 none */
	uint64_t offset;
	uint32_t sym;
};

/* Returns the call's CPU time, given the CPU clock at its end; -1: unknown. */
static inline int64_t tw_open_call_cpu(const struct open_call *o, int64_t end_cpu_ns)
{
	return o->cpu_ns >= 0 && end_cpu_ns >= o->cpu_ns ? end_cpu_ns - o->cpu_ns : -1;
}

struct track {
	uint32_t pid;
	uint64_t tid;
	enum tw_tid_kind kind;
	struct records records; /* from number n_spilled on */
	uint64_t n, cap;
	uint64_t n_spilled;      /* the first of the n, in scratch */
	struct spilled *spilled; /* NULL: none */
	/* once nested: number of records by tw_duration_bits; NULL: not counted */
	uint64_t *by_bits;
	int64_t first_ns, last_end_ns;
	uint64_t first_offset;     /* of its first record */
	uint64_t unordered_offset; /* of the first record out of order */
	enum tw_source source;
	int64_t interval_ns;
	bool unordered; /* ends were not rising: sort before nesting */
	bool any_order; /* the format promises no order */
	struct open_call *open;
	uint32_t n_open, cap_open;
	uint32_t n_hidden;    /* BEGINs nested deeper than the limit, not stored */
	uint32_t merged_into; /* handle of the track that now has its records; 0 none */
};

struct extent {          /* of records in scratch */
	uint64_t at;     /* offset in scratch */
	uint64_t first;  /* number of the first record */
	uint64_t cpu_at; /* offset of their CPU times; 0: none */
	uint32_t n;
};

enum { TW_DURATION_BITS = 63 }; /* at most */

struct spilled { /* of one track */
	struct extent *extents;
	uint32_t n, cap;
};

struct symbol {
	bool has_id;
	uint64_t id;
	struct tw_str name; /* has_id: the name in the trace itself, or NULL */
	uint64_t count;
};

struct thread_name {
	uint32_t pid;
	uint64_t tid;
	struct tw_str name;
};

struct thread_process {
	uint64_t tid;
	uint32_t pid;
};

struct note { /* text and detail are in the arena */
	int64_t ts_ns, dur_ns, value;
	const char *text, *detail;
	uint32_t text_bytes, detail_bytes;
	uint32_t track;
	uint8_t kind; /* enum tw_note_kind */
	bool from_system;
};

struct document {
	const char *kind;
	struct tw_str json;
};

struct tw_builder {
	struct tw_sink sink; /* first */
	struct tw_limits limits;
	struct tw_arena *arena; /* names */
	struct tw_clock clock;
	struct track *tracks; /* handle - 1 */
	uint32_t n_tracks, cap_tracks;
	uint32_t *track_slots;  /* handle by hash of pid, tid, kind; 0 free */
	uint32_t n_track_slots; /* power of two, over twice limits.max_threads */
	struct symbol *symbols; /* handle - 1 */
	uint32_t n_symbols, cap_symbols;
	uint32_t *indexes; /* in the trace's method table, by symbol - 1; set when writing */
	uint32_t *direct;  /* symbol handle by method id below n_direct */
	uint32_t n_direct; /* at most twice as many as a trace may have */
	uint32_t *hashed;  /* symbol handle by hash of a larger id or a name; 0 free */
	uint32_t n_hashed, cap_hashed;
	struct thread_name *names;
	uint32_t *name_slots; /* index + 1 by hash of pid and tid, as many as track_slots; 0 free */
	uint32_t n_names, cap_names;
	struct thread_process *processes;
	uint32_t n_processes, cap_processes;
	struct tw_codes codes;
	struct note *notes;
	uint32_t *by_time; /* numbers of notes, once tw_builder_sort_notes was called */
	uint32_t n_notes, cap_notes;
	/* by track - 1: its first note of a state + 1; NULL: there are none */
	uint32_t *first_state;
	uint32_t *next_state; /* by such a note: the next one of its track + 1 */
	const char **texts;   /* texts of notes by hash, as most repeat; NULL free */
	uint32_t n_texts, cap_texts;
	struct document *documents;
	uint32_t n_documents, cap_documents;
	uint32_t input;   /* 0: the first input, whose clock is the trace's */
	int64_t shift_ns; /* of this input's times */
	bool of_system;   /* this input is the device's own trace */
	bool placed;      /* the clock of this input is known */
	bool unplaced;    /* and unrelated to the trace's clock */
	uint64_t slices;
	uint64_t shared_from;  /* number of slices from which two threads write the trace */
	uint64_t record_bytes; /* in memory, of all tracks */
	struct tw_scratch scratch;
	uint64_t scratch_bytes; /* written */
	int64_t last_ns;        /* latest time of any event */
	struct tw_repair_count repairs[TW_REPAIR_COUNT];
	/* names that were truncated or dropped: the offset reported is that of the first event that
	 * uses one */
	uint32_t cut_sym, left_out_sym;
	enum tw_status status; /* sticky: memory ran out, or scratch failed */
	struct tw_err why;     /* the error of scratch */
};

/* builder.c */
void tw_builder_repair(struct tw_builder *b, enum tw_repair what, uint64_t offset, uint64_t n);
/* Adds a finished call.  cpu_ns: CPU time, -1 if unknown.  offset: position of its record
 * in the input. */
enum tw_status tw_builder_record(struct tw_builder *b, struct track *t, const struct call *c,
        int64_t cpu_ns, uint64_t offset);
/* Adds n calls of the track, from number `from` on.  False, and none is added: one of them may need
 * a special case (tw_builder_record). */
enum { TW_CALLS_AT_ONCE = 256 }; /* at most */
bool tw_builder_take_calls(struct tw_builder *b, struct track *t, const struct tw_call_batch *c,
        size_t from, size_t n);
/* Changes t->cap, which is at least t->n.  False: b->status is set. */
bool tw_builder_resize_records(struct tw_builder *b, struct track *t, uint64_t cap);
void tw_builder_free_records(struct track *t);
/* Makes space for a call that does not fit a record, and for a long CPU time.  False: b->status is
 * set. */
bool tw_builder_grow_rare(
        struct tw_builder *b, struct track *t, const struct call *c, int64_t cpu_ns);
/* Fails with b->status. */
enum tw_status tw_builder_fail(const struct tw_builder *b, struct tw_err *err);
/* Bytes of a record of this track in memory. */
static inline uint64_t tw_track_record_bytes(const struct track *t)
{
	return sizeof(struct record) + (t->records.cpu ? sizeof *t->records.cpu : 0);
}
/* How many more bytes of records may be in memory. */
uint64_t tw_builder_left_for_records(const struct tw_builder *b);
/* Whether b->arena has space for `bytes` of optional data and still enough for names. */
bool tw_builder_has_room(const struct tw_builder *b, size_t bytes);

/* builder_note.c */
enum tw_status tw_builder_note(struct tw_sink *s, const struct tw_note *note, struct tw_err *err);
enum tw_status tw_builder_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err);
/* Finds the order of notes by time (by_time), as later steps require.  False: out of memory. */
bool tw_builder_sort_notes(struct tw_builder *b);
/* The span of all notes with a time; unchanged if there are none. */
void tw_builder_notes_span(const struct tw_builder *b, int64_t *start_ns, int64_t *end_ns);
/* Extends the span by the states that the trace's own input recorded. */
void tw_builder_states_span(const struct tw_builder *b, int64_t *start_ns, int64_t *end_ns);
/* Clips the states of the system's trace to the span: that recording has its own begin and end.
 * Removes states outside it.  Links of states are invalid afterwards.  False: out of memory. */
bool tw_builder_clip_states(struct tw_builder *b, int64_t start_ns, int64_t end_ns);
/* Collects the states of each track, once tracks are joined.  False: out of memory. */
bool tw_builder_link_states(struct tw_builder *b);
/* Collects the times when a track's thread was on a CPU. False: out of memory; free *ret either
 * way. */
bool tw_builder_running_of(
        const struct tw_builder *b, const struct track *t, struct tw_running *ret);
/* thread_ids by track - 1. */
enum tw_status tw_builder_write_notes(struct tw_builder *b, const uint32_t *thread_ids,
        struct tw_trace_out *out, struct tw_err *err);
void tw_builder_free_notes(struct tw_builder *b);

/* builder_merge.c */
void tw_builder_clock(struct tw_builder *b, const struct tw_clock *clock);
void tw_builder_process(struct tw_builder *b, uint64_t tid, uint32_t pid);
/* Converts a time of this input to the trace's clock.  False: there is no relation. */
bool tw_builder_place(struct tw_builder *b, int64_t *ts_ns, int64_t *dur_ns, uint64_t offset);
/* Whether a time, or a span, of this input ended before the trace's zero. */
bool tw_builder_is_before(const struct tw_builder *b, int64_t ts_ns, int64_t dur_ns);
static inline bool tw_builder_is_moved(const struct tw_builder *b)
{
	return b->shift_ns != 0 || b->unplaced;
}
/* Completes ids and processes.  The first of several tracks of one thread takes all their
 * records. */
enum tw_status tw_builder_join_tracks(struct tw_builder *b);

/* builder_spill.c */

/* Whether the records in memory are to be written to scratch before `more` records are added. */
bool tw_builder_must_spill(const struct tw_builder *b, const struct track *t, uint64_t more);
/* Writes the records in memory to scratch.  False, here and below: b->status is set. */
bool tw_builder_spill(struct tw_builder *b, struct track *t);
void tw_spilled_free(struct track *t);
/* Whether scratch has space for the depths of all records, and for CPU times of all if some have
 * one. */
bool tw_spilled_may_move(const struct tw_builder *b, const struct track *t);
/* Call before the records are moved: if any record has a CPU time, makes space for the CPU times of
 * all. */
bool tw_spilled_prepare_moves(struct tw_builder *b, struct track *t);
/* Reads all records back into memory.  Those that do not fit are dropped and counted. */
bool tw_builder_load(struct tw_builder *b, struct track *t);
/* Overwrites n records from number `first` on. */
bool tw_spilled_replace(struct tw_builder *b, struct track *t, uint64_t first, uint64_t n,
        struct record *at, uint32_t *cpu);

struct piece { /* records of a track that are read together */
	struct track part;
	uint64_t first;
	uint64_t cap; /* of its own arrays; 0: it refers to the track's */
};
/* Records per piece. */
uint64_t tw_piece_records(const struct tw_builder *b);
/* Reads the piece that begins with record `first`: all records if none are in scratch, none past
 * the last.  Zero-initialise it; free with tw_piece_done.  Any thread. */
enum tw_status tw_piece_read(const struct tw_builder *b, const struct track *t, uint64_t first,
        struct piece *p, struct tw_err *err);
void tw_piece_done(struct piece *p);

/* builder_pair.c */
enum tw_status tw_builder_begin(struct tw_builder *b, struct track *t, const struct tw_event *ev);
enum tw_status tw_builder_end(struct tw_builder *b, struct track *t, const struct tw_event *ev);
/* Whether all times and symbols are sane and times do not fall, as tw_builder_take_edges requires.
 */
bool tw_builder_are_edges_plain(const struct tw_builder *b, const struct tw_edge_batch *e);
/* Takes the edges of a track from number `from` on that need no special case, as nearly all: within
 * the limits, each the begin or end of an innermost call.  Returns their number. */
size_t tw_builder_take_edges(
        struct tw_builder *b, struct track *t, const struct tw_edge_batch *e, size_t from);
/* Closes the calls that are still open, at the latest time of the trace. */
enum tw_status tw_builder_close_open(struct tw_builder *b, struct track *t);

/* builder_nest.c: the slices of a track in pre-order. */
struct nest {
	struct track *track;
	uint32_t *order;    /* record by place in pre-order; NULL: the records are in pre-order */
	uint16_t *depths;   /* by place in pre-order */
	uint64_t depths_at; /* offset of the depths in scratch, if the records are there */
	bool loaded;        /* the records were in scratch and are in memory now */
	bool moved;         /* in memory, from post-order to pre-order */
	uint32_t most_open; /* moved: more than the calls that contain any record */
	enum tw_status status;     /* of moving them */
	struct tw_running running; /* with states, their time on a CPU is the calls' CPU time */
};
/* Begins a nest: moves the track's records to pre-order if they are in memory, in the order of
 * their ends and properly nested.  Any thread: uses only the track. */
void tw_nest_move(struct nest *n, struct track *t);
/* Puts all other tracks' records in pre-order.  Calls that are too deep are counted, and not
 * read. */
enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct tw_err *err);
/* Frees the memory of the first n slices, if they are stored in order: no reader needs them any
 * more. */
void tw_nest_drop(const struct nest *nest, uint64_t n);
/* Frees the track's records, too. */
void tw_nest_close(struct nest *n);
/* Several threads may read one nest. */
struct nest_reader {
	const struct nest *nest;
	const struct tw_builder *builder;
	uint32_t at, running_at; /* 0 at first */
	/* of a track with records in scratch: */
	struct piece piece;
	uint16_t *depths; /* of the piece */
	enum tw_status status;
	struct tw_err why;
};
/* The next slices, at most `max` (method is the symbol's table index); 0 at the end, or after an
 * error. */
uint32_t tw_nest_read(struct nest_reader *r, struct tw_slice *ret, uint32_t max);
/* Frees the reader.  Returns st, or the error of reading if st is TW_OK. */
enum tw_status tw_nest_read_end(struct nest_reader *r, enum tw_status st, struct tw_err *err);

/* builder_mip.c */
struct chunker { /* collects slices of one level into chunks */
	struct tw_chunk_writer *writer;
	uint32_t thread_id, level;
	int64_t min_dur_ns;
	struct tw_buf *payload;
	struct tw_trace_out *out;
};
enum tw_status tw_chunker_init(struct chunker *c, struct tw_buf *payload, struct tw_trace_out *out);
void tw_chunker_done(struct chunker *c);
void tw_chunker_start(struct chunker *c, uint32_t thread_id, uint32_t level, int64_t min_dur_ns);
enum tw_status tw_chunker_add(
        struct chunker *c, const struct tw_slice *s, size_t n, struct tw_err *err);
enum tw_status tw_chunker_flush(struct chunker *c, struct tw_err *err);

enum { TW_MIP_LEVELS = 6 };
struct mip {
	struct chunker chunker;
	int64_t threshold_ns;
	bool running;        /* a run of short siblings is being merged */
	struct tw_slice run; /* its span, depth, count so far and the method of its longest slice */
	int64_t longest_ns;
};
/* Thresholds of a track's levels from the distribution of its durations; returns the number of
 * levels. */
uint32_t tw_mip_plan(const struct track *t, int64_t thresholds_ns[TW_MIP_LEVELS]);
/* Adds slices to the levels of a thread, in the order of their thresholds. */
enum tw_status tw_mips_add(struct mip *mips, uint32_t n_mips, const struct tw_slice *s, uint32_t n,
        struct tw_err *err);
enum tw_status tw_mip_finish(struct mip *m, struct tw_err *err);

/* builder_shape.c: turns the slices of one thread after another into chunks, tree and thread for
 * `out`.  An error may come from an earlier call; after one, only tw_shaper_free is allowed. */
struct tw_shaper;
/* NULL: out of memory.  Keep both arguments until tw_shaper_free. */
struct tw_shaper *tw_shaper_new(const struct tw_builder *b, struct tw_trace_out *out);
struct tw_shaper *tw_shaper_free(struct tw_shaper *s);
/* Begins the nest of a track (tw_nest_move), and in parallel that of the next one, which may be
 * NULL.  Sets *ret also on failure. */
enum tw_status tw_shaper_nest(struct tw_shaper *s, struct track *t, struct track *next,
        struct nest *ret, struct tw_err *err);
/* Takes the opened nest of the next thread, also on failure.  Its chunks are written from now on,
 * while the current thread's tree is read. */
enum tw_status tw_shaper_take(
        struct tw_shaper *s, const struct nest *nest, uint32_t thread_id, struct tw_err *err);
/* Begins the tree of the thread taken. */
enum tw_status tw_shaper_begin(struct tw_shaper *s, struct tw_err *err);
/* A reader of the thread's slices, until tw_shaper_tree. */
struct nest_reader tw_shaper_slices(const struct tw_shaper *s);
/* Adds the thread's next slices to its tree. */
enum tw_status tw_shaper_add(
        struct tw_shaper *s, const struct tw_slice *slices, uint32_t n, struct tw_err *err);
/* All slices of the thread were read and added: they can be freed, and the next thread opened. */
enum tw_status tw_shaper_added(struct tw_shaper *s, struct tw_err *err);
/* Calls of the thread that did not fit in its tree, after the last one was added. */
uint64_t tw_shaper_clipped(const struct tw_shaper *s);
/* The thread's tree is complete: its nodes are to be read, until there are none, before
 * tw_shaper_end. */
enum tw_status tw_shaper_tree(struct tw_shaper *s, struct tw_err *err);
enum { TW_NODES_AT_ONCE = 128 };
/* The next nodes in pre-order (see tw_tree_builder_read); none at the end. */
enum tw_status tw_shaper_nodes(struct tw_shaper *s, struct tw_tree_node nodes[TW_NODES_AT_ONCE],
        uint32_t *ret_n, struct tw_err *err);
enum tw_status tw_shaper_end(
        struct tw_shaper *s, const struct tw_thread_info *thread, struct tw_err *err);
/* After the last thread: all output is delivered.  *ret_clipped: calls that did not fit in
 * any tree. */
enum tw_status tw_shaper_finish(struct tw_shaper *s, uint64_t *ret_clipped, struct tw_err *err);

#endif

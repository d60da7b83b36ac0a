/*
 * markers.h - marker messages of Android's tracing, as apps and the system write them.
 *
 *   B|PID|NAME  E|PID  E|  E           a section of the writing thread
 *   S|PID|NAME|COOKIE  F|...           a span, begun and ended on any thread
 *   G|PID|TRACK|NAME|COOKIE  H|...     the same on a track
 *   C|PID|NAME|VALUE                   a counter of a process
 *   I|PID|NAME  N|PID|TRACK|NAME       an instant of the thread, of a track
 *   any other text                     an instant, unchanged
 *
 * Sections are emitted as BEGIN and END.  An END is emitted only for a section whose BEGIN was
 * seen: another input may have calls open on the same thread.  Facts in names (facts.h), spans,
 * counters and instants become notes.
 */
#ifndef TW_MARKERS_H
#define TW_MARKERS_H

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include <stdbool.h>

/* --- asynchronous spans (spans.c) --- */

/* They are begun and ended by key, on any thread.
 *
 * A key is process, track ("" if the span has none), name and cookie.  Spans without a track do not
 * nest: a begin whose key is already open is ignored, and the first end closes the span, as in
 * Perfetto.  On a track the innermost span ends first; by_name restricts that to spans of the key's
 * name.
 * Memory: at most TW_SPANS_MAX open at a time; names are deduplicated. */

enum { TW_SPANS_MAX = 1 << 16, TW_SPAN_NAMES_MAX_BYTES = 16 << 20 };

struct tw_span_key {
	uint32_t pid;
	struct tw_str track, name;
	int64_t cookie;
	bool by_name; /* spans of a track are distinguished by name; always true without a track */
};

struct tw_span {
	struct tw_span_key key; /* strings are copies */
	int64_t start_ns;
	uint64_t offset;
	uint32_t sink_track;
	uint32_t next; /* in its chain or the free list; 0 ends it */
	bool open;
};

struct tw_spans {
	struct tw_arena *arena;
	struct tw_span *list; /* NULL until the first is begun */
	uint32_t *chains;
	uint32_t used, free_list;
	struct tw_str *names;
	uint32_t n_names;
	size_t name_bytes;
	uint64_t salt; /* of hashes */
};

enum tw_span_outcome { TW_SPAN_OK, TW_SPAN_FULL, TW_SPAN_NO_MEMORY };

/* `at` supplies start_ns, offset and sink_track. */
enum tw_span_outcome tw_spans_begin(
        struct tw_spans *s, const struct tw_span_key *key, const struct tw_span *at);
/* The span that ends, valid until the next begin; NULL if none is open. */
const struct tw_span *tw_spans_end(struct tw_spans *s, const struct tw_span_key *key);
/* An open span at or after index *at, which is advanced past it; NULL if there are no more. */
const struct tw_span *tw_spans_next_open(const struct tw_spans *s, uint32_t *at);

/* --- threads of a text trace, by their ids --- */

/* One record per thread for everything known and open while the text is read.  Its track at the
 * sink is requested when first needed; its process may become known later, and is reported then. */
enum { TW_BLOCKED_IN_BYTES = 48 };

enum tw_run_state {
	TW_RUN_UNKNOWN,
	TW_RUN_RUNNING,
	TW_RUN_RUNNABLE,
	TW_RUN_SLEEPING,
	TW_RUN_BLOCKED,
	TW_RUN_STOPPED,
	TW_RUN_DEAD
};

struct tw_open_fact; /* markers.c */

struct tw_tid {
	uint64_t tid;
	uint32_t pid;        /* 0: unknown so far */
	uint32_t marker_pid; /* from a marker; used if no more reliable source has one; 0 none */
	uint32_t track;      /* 0: not requested yet */
	bool named;
	const void *calls_of; /* the source of its last calls; NULL: none yet */
	/* markers.c: open sections, those inside the first that the sink did not take, and those of
	 * the former that are facts, innermost first */
	uint32_t depth, hidden;
	struct tw_open_fact *facts;
	/* sched.c */
	enum tw_run_state state;
	int32_t cpu, iowait; /* -1 unknown */
	int64_t since_ns;
	uint64_t offset; /* of the event that began the state */
	char blocked_in[TW_BLOCKED_IN_BYTES];
};

struct tw_tids {
	struct tw_sink *sink;
	struct tw_tid *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, max, n_slots;
	struct tw_tid *last;    /* of tw_tids_get */
	struct tw_tid *last_in; /* of tw_tids_get_in */
	uint64_t salt;          /* of the hash */
};

/* False: out of memory. */
bool tw_tids_init(struct tw_tids *t, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
/* The thread with this id; NULL at the limit, which is counted. */
struct tw_tid *tw_tids_get(struct tw_tids *t, uint64_t tid, uint64_t offset);
/* The thread with this id in a process, for traces whose thread ids are unique only within a
 * process.  A thread without a known process is assumed to be it. */
struct tw_tid *tw_tids_get_in(struct tw_tids *t, uint32_t pid, uint64_t tid, uint64_t offset);
/* Its handle at the sink; 0 at a limit. */
uint32_t tw_tids_track(struct tw_tids *t, struct tw_tid *k);
/* Sets its process; the first value wins, 0 is ignored.  Lines' columns and process listings call
 * tw_tids_process.  A pid from a marker (tw_tids_marker_process) is used only if they have none,
 * and is applied at the end by tw_tids_apply_markers. */
void tw_tids_process(struct tw_tids *t, struct tw_tid *k, uint32_t pid);
void tw_tids_marker_process(struct tw_tid *k, uint32_t pid);
void tw_tids_apply_markers(struct tw_tids *t);
/* Sets its name; the first wins, "" is ignored. */
void tw_tids_name(struct tw_tids *t, struct tw_tid *k, struct tw_str name);

enum { TW_MARKERS_BATCH = 256 };

struct tw_markers {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_tids tids;
	struct tw_spans spans;
	struct tw_open_fact *free_facts;
	uint32_t n_facts;
	uint64_t salt;    /* of hashes */
	int64_t last_ns;  /* latest time so far */
	uint64_t emitted; /* number of events and notes emitted */
	bool any_order;   /* the format does not order its calls */
	unsigned n_batch;
	struct tw_event batch[TW_MARKERS_BATCH];
	char *renamed; /* a section's name with the name of its binder call */
};

struct tw_marker {
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *by; /* the writing thread; NULL: unknown (spans only) */
	struct tw_str text;
	uint32_t sym; /* of a section: the symbol of its name if already requested; text may then be
	               * "" */
};

/* False: out of memory. */
bool tw_markers_init(struct tw_markers *m, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
enum tw_status tw_markers_emit(
        struct tw_markers *m, const struct tw_marker *marker, struct tw_err *err) TW_MUST_USE;
/* The same for formats without such messages: a section named by the marker's text, with the
 * reading of the thread's CPU clock (-1 unknown); a span. */
enum tw_status tw_markers_begin(struct tw_markers *m, const struct tw_marker *marker,
        int64_t cpu_ns, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_markers_end(struct tw_markers *m, const struct tw_marker *marker, int64_t cpu_ns,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_markers_begin_span(struct tw_markers *m, const struct tw_marker *marker,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_markers_end_span(struct tw_markers *m, const struct tw_marker *marker,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
/* The sink's symbol for a section's name. */
uint32_t tw_markers_name(struct tw_markers *m, struct tw_str name);
/* Emits a note and counts it. */
enum tw_status tw_markers_note(
        struct tw_markers *m, const struct tw_note *note, struct tw_err *err) TW_MUST_USE;
/* Emits the batch. */
enum tw_status tw_markers_flush(struct tw_markers *m, struct tw_err *err) TW_MUST_USE;
/* Adds an event to the batch.  Inline, and member by member: copying a struct would stall on the
 * stores just made. */
static inline TW_MUST_USE enum tw_status tw_markers_event(
        struct tw_markers *m, const struct tw_event *ev, struct tw_err *err)
{
	struct tw_event *to = &m->batch[m->n_batch];

	m->emitted++;
	if (ev->track == 0 || (ev->sym == 0 && ev->kind != TW_EV_END))
		return TW_OK; /* at a limit, which the sink counts */
	to->ts_ns = ev->ts_ns;
	to->dur_ns = ev->dur_ns;
	to->cpu_ns = ev->cpu_ns;
	to->offset = ev->offset;
	to->track = ev->track;
	to->sym = ev->sym;
	to->kind = ev->kind;
	to->any_order = ev->any_order || m->any_order;
	return ++m->n_batch == TW_MARKERS_BATCH ? tw_markers_flush(m, err) : TW_OK;
}
/* Open spans and facts end at the latest time. */
enum tw_status tw_markers_finish(struct tw_markers *m, struct tw_err *err) TW_MUST_USE;

#endif

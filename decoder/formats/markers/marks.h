/*
 * marks.h - marker messages of Android's tracing, as apps and the system write them.
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
#ifndef TW_MARKS_H
#define TW_MARKS_H

#include "decoder/formats/markers/spans.h"
#include "decoder/formats/markers/tids.h"

enum { TW_MARKS_BATCH = 256 };

struct tw_marks {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_tids tids;
	struct tw_spans spans;
	struct tw_open_fact *free_facts;
	uint32_t n_facts, max_name;
	uint64_t salt;    /* of hashes */
	int64_t last_ns;  /* latest time so far */
	uint64_t emitted; /* number of events and notes emitted */
	bool any_order;   /* the format does not order its calls */
	unsigned n_batch;
	struct tw_event batch[TW_MARKS_BATCH];
	char *renamed; /* a section's name with the name of its binder call */
};

struct tw_mark {
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *by; /* the writing thread; NULL: unknown (spans only) */
	struct tw_str text;
	uint32_t sym; /* of a section: the symbol of its name if already requested; text may then be
	               * "" */
};

/* False: out of memory. */
bool tw_marks_init(struct tw_marks *m, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
enum tw_status tw_marks_emit(
        struct tw_marks *m, const struct tw_mark *mark, struct tw_err *err) TW_MUST_USE;
/* The same for formats without such messages: a section named by the marker's text, with the
 * reading of the thread's CPU clock (-1 unknown); a span. */
enum tw_status tw_marks_begin(struct tw_marks *m, const struct tw_mark *mark, int64_t cpu_ns,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_end(struct tw_marks *m, const struct tw_mark *mark, int64_t cpu_ns,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_begin_span(struct tw_marks *m, const struct tw_mark *mark,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_end_span(struct tw_marks *m, const struct tw_mark *mark,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
/* The sink's symbol for a section's name. */
uint32_t tw_marks_name(struct tw_marks *m, struct tw_str name);
/* Emits a note and counts it. */
enum tw_status tw_marks_note(
        struct tw_marks *m, const struct tw_note *note, struct tw_err *err) TW_MUST_USE;
/* Emits an event, in batches. */
enum tw_status tw_marks_event(
        struct tw_marks *m, const struct tw_event *ev, struct tw_err *err) TW_MUST_USE;
/* Open spans and facts end at the latest time. */
enum tw_status tw_marks_finish(struct tw_marks *m, struct tw_err *err) TW_MUST_USE;

#endif

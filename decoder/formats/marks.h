/*
 * marks.h - marker messages of Android's tracing, as apps and the system write them.
 *
 *   B|PID|NAME  E|PID  E|  E           a section of the writing thread
 *   S|PID|NAME|COOKIE  F|...           a span, begun and ended on any thread
 *   G|PID|TRACK|NAME|COOKIE  H|...     the same on a track
 *   C|PID|NAME|VALUE                   a counter of a process
 *   I|PID|NAME  N|PID|TRACK|NAME       a moment of the thread, of a track
 *   anything else                      a moment, as it stands
 *
 * Sections go to the sink as BEGIN and END.  Only ends of sections that were
 * begun are told: another input may have calls open on the same thread.
 * What the names say (facts.h), spans, counters and moments become notes.
 */
#ifndef TW_MARKS_H
#define TW_MARKS_H

#include "decoder/formats/spans.h"
#include "decoder/formats/tids.h"

enum { TW_MARKS_BATCH = 256 };

struct tw_marks {
	struct tw_sink *sink;
	struct tw_arena *arena;
	struct tw_tids tids;
	struct tw_spans spans;
	struct tw_open_fact *free_facts;
	uint32_t n_facts, max_name;
	uint64_t salt;   /* of hashes */
	int64_t last_ns; /* latest time so far */
	uint64_t told;   /* events and notes */
	bool any_order;  /* the format lets calls come in any order */
	unsigned n_batch;
	struct tw_event batch[TW_MARKS_BATCH];
	char *renamed; /* a section's name with the name of its binder call */
};

struct tw_mark {
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *by; /* the thread that wrote it; NULL, of spans only: not known */
	struct tw_str text;
	uint32_t sym; /* of a section: its name's, if that was asked for already; text may be "" */
};

/* False: no memory. */
bool tw_marks_init(struct tw_marks *m, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
enum tw_status tw_marks_tell(
        struct tw_marks *m, const struct tw_mark *mark, struct tw_err *err) TW_MUST_USE;
/* The same of formats that have no such messages: a section whose name is the mark's text, with
 * what the thread's CPU clock said (-1 unknown); a span. */
enum tw_status tw_marks_begin(struct tw_marks *m, const struct tw_mark *mark, int64_t cpu_ns,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_end(struct tw_marks *m, const struct tw_mark *mark, int64_t cpu_ns,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_begin_span(struct tw_marks *m, const struct tw_mark *mark,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_marks_end_span(struct tw_marks *m, const struct tw_mark *mark,
        const struct tw_span_key *key, struct tw_err *err) TW_MUST_USE;
/* The sink's symbol for the name of a section. */
uint32_t tw_marks_name(struct tw_marks *m, struct tw_str name);
/* A note; counts it. */
enum tw_status tw_marks_note(
        struct tw_marks *m, const struct tw_note *note, struct tw_err *err) TW_MUST_USE;
/* An event, in batches. */
enum tw_status tw_marks_event(
        struct tw_marks *m, const struct tw_event *ev, struct tw_err *err) TW_MUST_USE;
/* Spans and facts that are open last until the latest time. */
enum tw_status tw_marks_finish(struct tw_marks *m, struct tw_err *err) TW_MUST_USE;

#endif

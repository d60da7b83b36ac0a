/*
 * event_log.h - a sink that records everything it receives, for tests.
 *
 * A track's handle is its tid + 1, a method's its id + 1 (a hash of a large one) and a name's its
 * hash, so that events can be read as they are.  Runs the decoder chain over bytes cut as a seed
 * says, and compares what two runs gave.  Makes btrace 2.0 files too.
 */
#ifndef TW_EVENT_LOG_H
#define TW_EVENT_LOG_H

#include <stdbool.h>

#include "decoder/decoder.h"

struct event_log {
	struct tw_sink sink; /* first */
	struct tw_event *events;
	size_t n, cap;
	struct tw_clock clock;
	uint64_t counts[TW_REPAIR_COUNT];
	uint64_t offsets[TW_REPAIR_COUNT]; /* of the first case */
	bool bad_json;       /* a detail or a document that is not a JSON object was emitted */
	struct tw_buf kept;  /* of a bundle: the device's own trace */
	struct tw_buf names; /* lines: "tid name" for each emitted thread, notes, documents */
	/* of the run */
	enum tw_status status;
	struct tw_err err;
	const struct tw_format *format;
	uint64_t bytes;
};

/* Decodes p[0..n).  seed 0: in one push; 1: byte by byte; else in random pieces.  The log is
 * made by this; free it with event_log_done. */
void event_log_run(
        struct event_log *log, const void *p, size_t n, uint64_t seed, const struct tw_limits *l);
void event_log_done(struct event_log *log);
/* The same of an archive of files. */
void event_log_run_bundle(
        struct event_log *log, const void *p, size_t n, uint64_t seed, const struct tw_limits *l);

/* The handles this sink gives. */
uint32_t event_log_method(uint64_t id);
uint32_t event_log_name(struct tw_str name);

/* Runs p whole, byte by byte and in random pieces; aborts when they differ.  The log is of the
 * first run. */
void event_log_run_cut(
        struct event_log *log, const void *p, size_t n, const struct tw_limits *limits);

/* Fails allocation 1, 2, ... of a run until one run needs no more: each must give TW_NOMEM, or
 * TW_OK when it was the log's own.  NULL, or what went wrong. */
const char *event_log_run_starved(const void *p, size_t n);

/* Everything emitted other than events, as text. */
const char *event_log_text(struct event_log *log);

/* NULL when both runs gave the same, else what differs. */
const char *event_log_differs(const struct event_log *a, const struct event_log *b);

bool event_log_same(const struct tw_event *a, const struct tw_event *b);

/* The sum of all repair counts. */
uint64_t event_log_repairs(const struct event_log *log);

/* btrace 2.0 as the device writes it: no masks, so what overflows lands where it would there. */
void btrace2_header(struct tw_buf *b, uint32_t pid, uint64_t boot, uint64_t mono, uint64_t session);
void btrace2_record(struct tw_buf *b, uint64_t start, uint64_t dur, uint64_t tid, uint64_t mid);

/* xorshift64*: the same numbers on every machine; *state must not be 0. */
uint64_t test_random(uint64_t *state);

#endif

/*
 * digest.h - a sink that digests everything it receives, for the fuzz targets.
 *
 * Two runs over the same bytes are compared by a few numbers, so that thousands run
 * per second; tests/fixtures/event_log.h stores all events and shows the difference.  Events
 * that no format may emit abort immediately.  Handles count from 1 in the order of
 * the requests, so that this order is compared, too.
 */
#ifndef TW_SHA256_H
#define TW_SHA256_H

#include "decoder/base/unzip.h"
#include "decoder/decoder.h"

enum digest_part { DIGEST_EVENTS, DIGEST_HANDLES, DIGEST_WORDS, DIGEST_PARTS };

struct digest_handles {
	uint64_t *slots; /* hash of the requested text or id; 0 is empty */
	uint32_t *numbers;
	uint32_t n, cap;
};

struct digest {
	struct tw_sink sink; /* first */
	uint64_t parts[DIGEST_PARTS];
	struct tw_clock clock;
	uint64_t counts[TW_REPAIR_COUNT], offsets[TW_REPAIR_COUNT];
	uint64_t n_events;
	/* the requested handles */
	struct digest_handles tracks, syms;
	/* of the run */
	enum tw_status status;
	struct tw_err err;
	const struct tw_format *format;
	uint64_t bytes;
	bool check_fields; /* also parse emitted JSON */
};

/* How an input is decoded. */
struct digest_task {
	const uint8_t *p;
	size_t n;
	uint64_t seed;                  /* 0: in one push; 1: byte by byte; else in random pieces */
	const struct tw_format *format; /* the one that is fuzzed by itself; else NULL */
	struct tw_limits limits;
	bool cut;           /* a format by itself: the input's compression ended early */
	struct tw_arena *a; /* empty */
};
typedef void (*digest_fn)(struct digest *d, const struct digest_task *t);

/* The limits that the last byte but one of an input selects. */
struct tw_limits digest_limits(uint8_t how);

/* Empties it for the next run; its memory is retained. */
void digest_begin(struct digest *d, bool check_fields);

/* Something else that two runs must have in common, in order. */
void digest_word(struct digest *d, uint64_t word);

/* Pushes the input in its pieces; bytes outside of the current piece must not be read (address
 * sanitizer). */
enum tw_status digest_feed(
        const struct digest_task *t, tw_bytes_fn push, void *to, struct tw_err *err);

void digest_format(struct digest *d, const struct digest_task *t); /* one by itself */
void digest_chain(struct digest *d, const struct digest_task *t);  /* as an upload is decoded */
void digest_bundle(struct digest *d, const struct digest_task *t); /* an archive, in its passes */

/* NULL if both runs are equal, otherwise the name of the difference. */
const char *digest_differs(const struct digest *a, const struct digest *b);

/* Runs the input with the options of its last two bytes, in one push and in pieces in other memory.
 * Aborts if the results differ, or if one takes a second of CPU time for 64 KiB. */
void digest_cuts(const uint8_t *p, size_t n, const struct tw_format *format, digest_fn run);

#endif

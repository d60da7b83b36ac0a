/*
 * digest.h - a sink that digests everything it receives, for the fuzz targets.
 *
 * Two runs over the same bytes are compared by a few numbers, so that thousands
 * fit in a second; tests/event_log.h, which keeps everything, shows what it is.
 * What no format may say aborts at once.  Handles count from 1 in the order in
 * which they were asked for, so that this order is compared too.
 */
#ifndef TW_SHA256_H
#define TW_SHA256_H

#include "decoder/base/unzip.h"
#include "decoder/decoder.h"

enum digest_part { DIGEST_EVENTS, DIGEST_HANDLES, DIGEST_WORDS, DIGEST_PARTS };

struct digest_handles {
	uint64_t *slots; /* hash of what was asked for; 0 is empty */
	uint32_t *numbers;
	uint32_t n, cap;
};

struct digest {
	struct tw_sink sink; /* first */
	uint64_t parts[DIGEST_PARTS];
	struct tw_clock clock;
	uint64_t counts[TW_REPAIR_COUNT], offsets[TW_REPAIR_COUNT];
	uint64_t n_events;
	/* what was asked for */
	struct digest_handles tracks, syms;
	/* of the run */
	enum tw_status status;
	struct tw_err err;
	const struct tw_format *format;
	uint64_t bytes;
	bool look_closely; /* also parse emitted JSON */
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

/* Those that the last byte but one of an input asks for. */
struct tw_limits digest_limits(uint8_t how);

/* Empties it for the next run; what it took once it keeps. */
void digest_begin(struct digest *d, bool look_closely);

/* Something else that two runs must have in common, in order. */
void digest_word(struct digest *d, uint64_t word);

/* Pushes the input in its pieces; what is not in the present piece may not be touched (address
 * sanitizer). */
enum tw_status digest_feed(
        const struct digest_task *t, tw_bytes_fn push, void *to, struct tw_err *err);

void digest_format(struct digest *d, const struct digest_task *t); /* one by itself */
void digest_chain(struct digest *d, const struct digest_task *t);  /* as an upload is decoded */
void digest_bundle(struct digest *d, const struct digest_task *t); /* an archive, in its passes */

/* NULL when both runs gave the same, else what differs. */
const char *digest_differs(const struct digest *a, const struct digest *b);

/* What the input asks for by its last two bytes, and the oracle of cuts over it: in one push, and
 * in pieces into other memory, must give the same; neither may take a second of CPU for 64 KiB. */
void digest_cuts(const uint8_t *p, size_t n, const struct tw_format *format, digest_fn run);

#endif

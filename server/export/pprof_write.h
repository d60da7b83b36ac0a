/*
 * pprof_write.h - the messages of a pprof profile, for every response in this format.
 *
 *   1 sample_type {1 type, 2 unit}      2 sample {1 locations, innermost first; 2 values; 3 labels}
 *   4 location {1 id, 4 line {1 function}}       5 function {1 id, 2 name}      6 string_table
 *   9 time_nanos  10 duration_nanos  11 period_type  12 period  13 comment  14 default_sample_type
 *
 * Fields of a message may come in any order and a repeated one in pieces, so each function,
 * location and string is written where it is first needed, and nothing is gathered.  Learned from
 * the public profile.proto.
 */
#ifndef TW_PPROF_WRITE_H
#define TW_PPROF_WRITE_H

#include "decoder/base/buf.h"

enum { /* fields of Profile, all of them messages, strings or varints */
	TW_PPROF_SAMPLE_TYPE = 1,
	TW_PPROF_SAMPLE = 2,
	TW_PPROF_LOCATION = 4,
	TW_PPROF_FUNCTION = 5,
	TW_PPROF_STRING = 6,
	TW_PPROF_TIME = 9,
	TW_PPROF_DURATION = 10,
	TW_PPROF_PERIOD_TYPE = 11,
	TW_PPROF_PERIOD = 12,
	TW_PPROF_COMMENT = 13,
	TW_PPROF_DEFAULT_TYPE = 14
};

struct tw_pprof { /* allocation failures are recorded in out */
	struct tw_buf *out;
	uint64_t strings; /* written so far */
};

/* Begins a profile: its first string, at index 0, must be "". */
void tw_pprof_begin(struct tw_pprof *p, struct tw_buf *out);
void tw_pprof_number(struct tw_pprof *p, unsigned field, uint64_t v);
size_t tw_pprof_varint_bytes(uint64_t v);
/* Writes a string and returns its index in the table. */
uint64_t tw_pprof_string(struct tw_pprof *p, struct tw_str s);
/* Writes a sample type or the period's, and returns the index of its name. */
uint64_t tw_pprof_type(struct tw_pprof *p, unsigned field, const char *type, const char *unit);
/* Writes a function and its only location, which have the same id, not 0. */
void tw_pprof_location(struct tw_pprof *p, uint32_t id, struct tw_str name);

struct tw_pprof_sample {
	size_t stack_bytes; /* sum of tw_pprof_varint_bytes of the location ids */
	const uint64_t *values;
	unsigned n_values;
	const uint8_t *labels; /* encoded, with their tags */
	size_t labels_bytes;
};
/* Writes a sample up to its stack: the caller appends the location ids as varints, innermost first.
 */
void tw_pprof_sample(struct tw_pprof *p, const struct tw_pprof_sample *s);

#endif

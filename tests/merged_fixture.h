/*
 * merged_fixture.h - a made-up recording joined to a made-up device's trace, and read back.
 */
#ifndef TW_MERGED_FIXTURE_H
#define TW_MERGED_FIXTURE_H

#include "perfetto_reader.h"
#include "server/export/perfetto/export_perfetto.h"
#include "system_fixture.h"
#include "trace_fixture.h"

#define S ((int64_t)1000000000)
enum { THREADS = 3, PER_THREAD = 400 };

struct merged {
	struct model m;
	struct trace_fixture f;
	struct tw_buf system, bytes;
	struct perfetto_trace alone, trace; /* of the system trace; of the file */
	struct tw_arena *arena;
	int fd;
};

/* The device's clocks are at 500 s and 400 s at the begin of its trace. */
struct system_shape merged_usual(void);
/* The recording's zero is at these readings; -1 not known. */
void merged_make(struct merged *x, const struct system_shape *shape, int64_t mono_ns,
        int64_t boot_ns, const struct tw_perfetto_options *o);
void merged_done(struct merged *x);
/* The same recording with another file. */
void merged_beside(struct merged *x, const struct tw_buf *system);

struct tw_perfetto_source merged_source(const struct merged *x);
/* An open file of these bytes that has no name. */
int merged_file(const struct tw_buf *b);
/* Pulls a file in pieces of step. */
void merged_export(struct tw_buf *out, const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *o, size_t step);
void merged_read(struct merged *x, struct perfetto_trace *t, const struct tw_buf *b);

/* Every packet of the device's trace is there as it was, in order, and no other uses its
 * sequences. */
void merged_same_packets(const struct merged *x);
/* All calls of the recording are there, each where the device's clocks put it. */
void merged_same_calls(const struct merged *x, const struct system_shape *s, int64_t mono_ns);
bool merged_is_call(const struct perfetto_slice *s);
/* Attributes of the file. */
bool merged_says(const struct merged *x, const char *key, const char *text);
int64_t merged_number(const struct merged *x, const char *key); /* INT64_MIN: not there */
void merged_print_why(const struct merged *x, const char *what);

#endif

/*
 * columns.h - slices as columns: the bytes of a chunk.
 *
 * A chunk holds up to TW_CHUNK_SLICES slices of one thread in pre-order, with their exact begins
 * and durations, and the stack that was open where it starts, so that it can be read alone.  The
 * layout is in schema/columns.md; web/ has a second implementation.
 *
 * Thread: any.
 */
#ifndef TW_COLUMNS_H
#define TW_COLUMNS_H

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { TW_CHUNK_SLICES = 65536, TW_CHUNK_HEADER_BYTES = 48 };

struct tw_slice {
	int64_t start_ns; /* trace time: 0 is the trace's clock base */
	int64_t dur_ns;
	int64_t cpu_ns;  /* -1: not known */
	uint32_t method; /* index into the trace's method table */
	uint32_t depth;  /* 0 is a root */
	uint32_t merged; /* mip levels: slices represented by this one, 0 for a real slice */
};

/* Writes one chunk after another of a thread. */
struct tw_chunk_writer;
struct tw_chunk_writer *tw_chunk_writer_new(void); /* NULL: out of memory */
struct tw_chunk_writer *tw_chunk_writer_free(struct tw_chunk_writer *w);
/* The next slice is the first of a thread, in the calls open[0..n_open). */
enum tw_status tw_chunk_writer_start(
        struct tw_chunk_writer *w, const struct tw_slice *open, size_t n_open);
/* The next slices in pre-order: siblings disjoint and ascending, children inside parents, depths at
 * most one more than the one before (otherwise TW_BUG).  *ret_added: those that fit the chunk; it
 * has to be finished once it has TW_CHUNK_SLICES. */
enum tw_status tw_chunk_writer_add(
        struct tw_chunk_writer *w, const struct tw_slice *s, size_t n, size_t *ret_added);
struct tw_chunk_facts {
	int64_t start_ns, end_ns; /* begin of its first slice, latest end among its slices */
	uint32_t slices, open;
};
/* Of the slices that were added since the last chunk. */
static inline const struct tw_chunk_facts *tw_chunk_writer_facts(const struct tw_chunk_writer *w)
{
	return (const struct tw_chunk_facts *)(const void *)w;
}
/* Appends the chunk's payload to *out; the next slice begins another chunk. */
enum tw_status tw_chunk_writer_finish(struct tw_chunk_writer *w, struct tw_buf *out);

/* One chunk: slices[0..n), n ≤ TW_CHUNK_SLICES, with the stack open[0..n_open) at slices[0].
 * slices[0].depth == n_open. */
enum tw_status tw_chunk_encode(const struct tw_slice *open, size_t n_open,
        const struct tw_slice *slices, size_t n, struct tw_buf *out);

/* Positions in a payload at which values of another kind begin, for a compressor.  Returns their
 * number, at most TW_CHUNK_CUTS. */
enum {
	TW_CHUNK_CUTS = 8,
	TW_CHUNK_CALLS = 2 /* the column of calls ends at cuts[TW_CHUNK_CALLS] */
};
size_t tw_chunk_cuts(const uint8_t *payload, size_t len, size_t cuts[TW_CHUNK_CUTS]);

struct tw_chunk_level;
struct tw_chunk { /* decoded; owns its arrays */
	size_t n_open, n;
	struct tw_slice *open;
	struct tw_slice *slices;
	size_t cap_open, cap; /* capacity of the arrays, which later decodes reuse */
	struct tw_chunk_level *levels;
	uint32_t cap_levels;
};

void tw_chunk_init(struct tw_chunk *c);
void tw_chunk_done(struct tw_chunk *c);
/* Decodes a payload whose first slice starts at start_ns.  Accepts any bytes: TW_CORRUPT if
 * invalid. */
enum tw_status tw_chunk_decode(struct tw_chunk *c, const uint8_t *payload, size_t len,
        int64_t start_ns, struct tw_err *err) TW_MUST_USE;

#endif

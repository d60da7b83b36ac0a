/*
 * columns.h - slices as columns: the bytes of a chunk.
 *
 * A chunk holds up to TW_CHUNK_SLICES slices of one thread in pre-order, with
 * their exact begins and durations, and the stack that was open where it
 * starts, so that it can be read alone.  The layout is described, exactly
 * enough for a second implementation, in schema/columns.md; web/ has one.
 *
 * Payload (what zstd wraps), little-endian:
 *   u32 magic "TWC1", u32 slices, u32 open, u32 flags (1: cpu column, 2: merged column),
 *   u32 bytes of each column: open, step, gap, leaf, tail, method, cpu, merged; then the columns.
 *   All columns are unsigned LEB128 varints:
 *   open    per open slice, outermost first: chunk start − its start, its dur, its method
 *   step    per slice: levels closed before it: depth(previous) + 1 − depth(this);
 *           the first slice of a chunk has depth `open` and step 0
 *   gap     per slice: start − end of the previous sibling in this chunk, else − start of its
 *           parent if that is in this chunk, else − chunk start
 *   leaf    per slice without a child in this chunk, when it closes: its duration
 *   tail    per slice with a child in this chunk, when it closes: its end − end of its last child
 *           here.  Slices close innermost first; what is open at the chunk's end closes there,
 *           with its real end.
 *   method  per slice: index into the trace's method table (0 is the most frequent)
 *   cpu     per slice: CPU ns
 *   merged  per slice: 0 a slice; n > 0: n slices too short to show at this level, drawn as one
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

/* Appends to *out the encoding of slices[0..n) (pre-order, siblings disjoint and ascending,
 * children inside parents; n ≤ TW_CHUNK_SLICES), with the stack open[0..n_open) at slices[0].
 * slices[0].depth == n_open. */
enum tw_status tw_chunk_encode(const struct tw_slice *open, size_t n_open,
        const struct tw_slice *slices, size_t n, struct tw_buf *out);

struct tw_chunk { /* decoded; owns its arrays */
	size_t n_open, n;
	struct tw_slice *open;
	struct tw_slice *slices;
	size_t cap_open, cap; /* capacity of the arrays, which later decodes reuse */
};

void tw_chunk_init(struct tw_chunk *c);
void tw_chunk_done(struct tw_chunk *c);
/* Decodes a payload whose first slice starts at start_ns.  Accepts any bytes: TW_CORRUPT if
 * invalid. */
enum tw_status tw_chunk_decode(struct tw_chunk *c, const uint8_t *payload, size_t len,
        int64_t start_ns, struct tw_err *err) TW_MUST_USE;

#endif

/* Chunks of slices, call trees and blocks of notes from any bytes: refused, or encoded again to the
 * same values. */
#include <string.h>

#include "decoder/trace/calltree.h"
#include "decoder/trace/note_columns.h"
#include "fuzz.h"

static void try_chunk(const uint8_t *p, size_t n)
{
	struct tw_chunk a, b;
	struct tw_buf bytes;

	tw_chunk_init(&a);
	tw_chunk_init(&b);
	tw_buf_init(&bytes, 64 << 20);
	if (tw_chunk_decode(&a, p, n, 1000, NULL) == TW_OK && a.n > 0) {
		FUZZ_CHECK(tw_chunk_encode(a.open, a.n_open, a.slices, a.n, &bytes) == TW_OK);
		FUZZ_CHECK(tw_chunk_decode(&b, bytes.data, bytes.len, 1000, NULL) == TW_OK);
		FUZZ_CHECK(a.n == b.n && a.n_open == b.n_open);
		for (size_t i = 0; i < a.n; i++)
			FUZZ_CHECK(a.slices[i].start_ns == b.slices[i].start_ns &&
			           a.slices[i].dur_ns == b.slices[i].dur_ns &&
			           a.slices[i].depth == b.slices[i].depth &&
			           a.slices[i].method == b.slices[i].method);
	}
	tw_buf_done(&bytes);
	tw_chunk_done(&a);
	tw_chunk_done(&b);
}

static void try_tree(const uint8_t *p, size_t n)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_tree t, again;
	struct tw_buf bytes;

	tw_buf_init(&bytes, 64 << 20);
	if (a && tw_tree_decode(p, n, a, &t, NULL) == TW_OK) {
		FUZZ_CHECK(tw_tree_encode(&t, &bytes) == TW_OK);
		FUZZ_CHECK(tw_tree_decode(bytes.data, bytes.len, a, &again, NULL) == TW_OK);
		FUZZ_CHECK(t.n == again.n);
		FUZZ_CHECK(memcmp(t.nodes, again.nodes, t.n * sizeof *t.nodes) == 0);
	}
	tw_buf_done(&bytes);
	tw_arena_free(a);
}

static bool all_known(const struct tw_notes *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->rows[i].kind == TW_NOTE_COUNT)
			return false;
	return true;
}

static void try_notes(const uint8_t *p, size_t n)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_notes d, again;
	struct tw_buf bytes;

	tw_buf_init(&bytes, 64 << 20);
	if (a && tw_notes_decode(p, n, a, &d, NULL) == TW_OK && all_known(&d)) {
		FUZZ_CHECK(tw_notes_encode(d.rows, d.n, &bytes) == TW_OK);
		FUZZ_CHECK(tw_notes_decode(bytes.data, bytes.len, a, &again, NULL) == TW_OK);
		FUZZ_CHECK(d.n == again.n);
		for (size_t i = 0; i < d.n; i++)
			FUZZ_CHECK(d.rows[i].kind == again.rows[i].kind &&
			           d.rows[i].thread_id == again.rows[i].thread_id &&
			           d.rows[i].ts_ns == again.rows[i].ts_ns &&
			           d.rows[i].dur_ns == again.rows[i].dur_ns &&
			           d.rows[i].value == again.rows[i].value &&
			           d.rows[i].from_system == again.rows[i].from_system &&
			           (d.rows[i].text.len == 0) == (again.rows[i].text.len == 0));
	}
	tw_buf_done(&bytes);
	tw_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_chunk(data, size);
	try_tree(data, size);
	try_notes(data, size);
	return 0;
}

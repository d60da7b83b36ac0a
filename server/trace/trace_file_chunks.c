/* trace_file_chunks.c - the chunk directory of a trace file: see trace_file_internal.h. */
#include "server/trace/trace_file_internal.h"

#include <stdlib.h>

enum { FIRST_ROWS = 64 };

/* NULL if out of memory. */
static struct tw_chunk_row *next_row(struct tw_chunk_directory *d)
{
	if (d->n == d->cap) {
		uint32_t cap = d->cap ? d->cap * 2 : FIRST_ROWS;
		struct tw_chunk_row *more = tw_mem_resize(d->rows, cap, sizeof *more);

		if (!more)
			return NULL;
		d->rows = more;
		d->cap = cap;
	}
	return &d->rows[d->n++];
}

/* False: not written by our code. */
static bool read_row(sqlite3_stmt *s, struct tw_chunk_row *r)
{
	int64_t thread = sqlite3_column_int64(s, 0);
	int64_t slices = sqlite3_column_int64(s, 5);

	*r = (struct tw_chunk_row){
	        .chunk_id = (uint32_t)sqlite3_column_int64(s, 1),
	        .info = {.thread_id = (uint32_t)thread,
	                .level = (uint32_t)sqlite3_column_int64(s, 2),
	                .start_ns = sqlite3_column_int64(s, 3),
	                .end_ns = sqlite3_column_int64(s, 4),
	                .slices = (uint32_t)slices,
	                .open = (uint32_t)sqlite3_column_int64(s, 6),
	                .min_dur_ns = sqlite3_column_int64(s, 7)},
	        .stored_bytes = (uint32_t)sqlite3_column_int64(s, 8),
	};
	return thread > 0 && thread <= UINT32_MAX && slices > 0 && slices <= TW_CHUNK_SLICES &&
	       r->info.start_ns >= 0 && r->info.end_ns >= r->info.start_ns;
}

static enum tw_status read_rows(
        struct tw_chunk_directory *d, sqlite3 *db, sqlite3_stmt *s, struct tw_err *err)
{
	int rc;

	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		struct tw_chunk_row *r = next_row(d);

		if (!r)
			return tw_oom(err);
		if (!read_row(s, r))
			return tw_fail(
			        err, TW_CORRUPT, "the trace file is damaged (chunk directory)");
	}
	return rc == SQLITE_DONE ? TW_OK : tw_trace_sql_fail(db, "reading a trace file", err);
}

static int by_place(const void *pa, const void *pb)
{
	const struct tw_chunk_row *a = pa;
	const struct tw_chunk_row *b = pb;

	if (a->info.thread_id != b->info.thread_id)
		return a->info.thread_id < b->info.thread_id ? -1 : 1;
	if (a->info.level != b->info.level)
		return a->info.level < b->info.level ? -1 : 1;
	return a->chunk_id < b->chunk_id ? -1 : a->chunk_id > b->chunk_id;
}

enum tw_status tw_chunk_directory_load(
        struct tw_chunk_directory *d, sqlite3 *db, struct tw_err *err)
{
	static const char sql[] =
	        "SELECT thread_id, chunk_id, level, start_ns, end_ns, slices, open, min_dur_ns,"
	        " length(data) FROM trace_chunk";
	sqlite3_stmt *s = NULL;
	enum tw_status st;

	if (d->loaded)
		return TW_OK;
	d->n = 0;
	st = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK
	             ? read_rows(d, db, s, err)
	             : tw_trace_sql_fail(db, "reading a trace file", err);
	(void)sqlite3_finalize(s);
	if (st == TW_OK && d->n)
		qsort(d->rows, d->n, sizeof *d->rows, by_place);
	d->loaded = st == TW_OK;
	return st;
}

/* The first chunk of this thread or a later one. */
static uint32_t first_of(const struct tw_chunk_directory *d, uint64_t thread_id)
{
	uint32_t low = 0;
	uint32_t high = d->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (d->rows[mid].info.thread_id < thread_id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void tw_chunk_directory_of(const struct tw_chunk_directory *d, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n)
{
	uint32_t at = first_of(d, thread_id);

	*ret = d->rows ? d->rows + at : NULL;
	*ret_n = first_of(d, (uint64_t)thread_id + 1) - at;
}

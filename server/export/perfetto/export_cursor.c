#include "server/export/perfetto/export_cursor.h"

#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/base/thread/parallel.h"

enum { WORTH_A_THREAD = 4096 };

/* --- read-ahead --- */

struct tw_read_ahead {
	struct tw_helper *helper; /* NULL: idle */
	struct tw_cursor *cursor; /* for which it works */
	const struct tw_chunk_row *row;
	struct tw_unpacker *unpacker;
	struct tw_buf frame; /* the stored chunk: a file is read by one thread at a time */
	enum tw_status status;
};

struct tw_read_ahead *tw_read_ahead_new(void)
{
	struct tw_read_ahead *a = tw_mem_zalloc(1, sizeof *a);

	if (!a)
		return NULL;
	tw_buf_init(&a->frame, SIZE_MAX / 2);
	a->unpacker = tw_unpacker_new();
	return a->unpacker ? a : tw_read_ahead_free(a);
}

/* Waits for the helper.  A chunk that could not be decoded is read again when it is needed, which
 * reports the error. */
static void take_over(struct tw_read_ahead *a)
{
	if (!a->helper)
		return;
	a->helper = tw_parallel_join(a->helper);
	a->cursor->next_row = a->status == TW_OK ? a->row : NULL;
	a->cursor->ahead = NULL;
}

struct tw_read_ahead *tw_read_ahead_free(struct tw_read_ahead *a)
{
	if (!a)
		return NULL;
	take_over(a);
	tw_unpacker_free(a->unpacker);
	tw_buf_done(&a->frame);
	tw_mem_free(a);
	return NULL;
}

bool tw_read_ahead_is_busy(struct tw_read_ahead *a)
{
	if (a->helper && tw_parallel_is_done(a->helper))
		take_over(a);
	return a->helper != NULL;
}

bool tw_cursor_wants_ahead(const struct tw_cursor *c)
{
	const struct tw_chunk_row *row = &c->rows[c->row];

	return c->row < c->n_rows && !c->ahead && c->next_row != row &&
	       row->info.slices >= WORTH_A_THREAD && row->info.start_ns < c->to_ns;
}

static void decode_ahead(void *arg)
{
	struct tw_read_ahead *a = arg;
	const struct tw_str frame = {(const char *)a->frame.data, a->frame.len};
	struct tw_err err;

	a->status = tw_unpacker_chunk(a->unpacker, frame, a->row, &a->cursor->next, &err);
}

void tw_read_ahead_start(struct tw_read_ahead *a, struct tw_cursor *c)
{
	const struct tw_chunk_row *row = &c->rows[c->row];
	struct tw_err err;

	if (a->row != row) /* otherwise it was read when no helper was available */
		tw_buf_clear(&a->frame);
	if (a->row != row &&
	        tw_trace_file_chunk_raw(c->file, row->chunk_id, &a->frame, &err) != TW_OK)
		return;
	a->row = row;
	a->cursor = c;
	c->next_row = NULL;
	a->helper = tw_parallel_start(decode_ahead, a);
	c->ahead = a->helper ? a : NULL;
}

/* --- the cursor --- */

/* Reads the chunk of the next row. */
static enum tw_status next_chunk(struct tw_cursor *c, struct tw_err *err)
{
	const struct tw_chunk_row *row = &c->rows[c->row++];
	struct tw_chunk read = c->chunk;

	if (c->ahead)
		take_over(c->ahead);
	if (c->next_row != row || tw_work_is_overdue())
		return tw_trace_file_chunk(c->file, row, &c->chunk, err);
	c->chunk = c->next;
	c->next = read;
	c->next_row = NULL;
	return TW_OK;
}

/* Loads chunks until one has a slice at c->at. Its slices begin with those that were open at its
 * start. */
static enum tw_status load(struct tw_cursor *c, struct tw_err *err)
{
	while (c->at >= c->n) {
		bool first = c->chunk.n == 0;
		enum tw_status st;

		if (!c->in_open) {
			if (c->row >= c->n_rows)
				return TW_OK;
			st = next_chunk(c, err);
			if (st != TW_OK)
				return st;
		}
		c->in_open = !c->in_open && first;
		c->slices = c->in_open ? c->chunk.open : c->chunk.slices;
		c->n = c->in_open ? c->chunk.n_open : c->chunk.n;
		c->at = 0;
	}
	return TW_OK;
}

static bool in_range(const struct tw_cursor *c, const struct tw_slice *s)
{
	int64_t end = s->start_ns + s->dur_ns;

	return end > c->from_ns || (s->dur_ns == 0 && end == c->from_ns);
}

/* Slices are sorted by begin: the first one after the range ends it. */
static void stop_behind(struct tw_cursor *c)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) a list of n slices has them */
	if (c->at < c->n && c->slices[c->at].start_ns >= c->to_ns) {
		c->row = c->n_rows;
		c->at = c->n;
	}
}

/* The next edge is the begin of the slice at c->at or the end of the innermost open call. */
static void find_next(struct tw_cursor *c)
{
	c->done = c->depth == 0 && c->at >= c->n;
	c->next_ns = INT64_MAX;
	if (c->at < c->n)
		c->next_ns = c->slices[c->at].start_ns;
	if (c->next_ns < c->from_ns)
		c->next_ns = c->from_ns;
	if (c->depth && c->ends[c->depth - 1] < c->next_ns)
		c->next_ns = c->ends[c->depth - 1];
}

static bool is_next(const struct tw_cursor *c, const struct tw_slice *s)
{
	return s->depth < c->max_depth && s->start_ns < c->to_ns && in_range(c, s);
}

/* Skips calls that are too deep or out of range; their ends were never put on the stack. */
static enum tw_status skip(struct tw_cursor *c, struct tw_err *err)
{
	enum tw_status st = load(c, err);

	stop_behind(c);
	while (st == TW_OK && c->at < c->n) {
		const struct tw_slice *s = &c->slices[c->at];

		if (s->depth < c->max_depth && in_range(c, s))
			break;
		c->clipped += in_range(c, s);
		c->at++;
		st = load(c, err);
		stop_behind(c);
	}
	return st;
}

/* After the slice at c->at has changed. */
enum tw_status tw_cursor_reposition(struct tw_cursor *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (c->at >= c->n || !is_next(c, &c->slices[c->at]))
		st = skip(c, err);
	find_next(c);
	return st;
}

/* The last chunk that begins at or before the range, or the first. */
static uint32_t first_row(const struct tw_cursor *c)
{
	uint32_t i;

	TW_BISECT(i, c->n_rows, c->rows[i].info.start_ns <= c->from_ns);
	return i ? i - 1 : 0;
}

enum tw_status tw_cursor_open_range(struct tw_cursor *c, struct tw_trace_file *f,
        uint32_t thread_id, uint32_t max_depth, int64_t from_ns, int64_t to_ns, struct tw_err *err)
{
	enum tw_status st;

	*c = (struct tw_cursor){
	        .file = f, .max_depth = max_depth, .from_ns = from_ns, .to_ns = to_ns};
	tw_chunk_init(&c->chunk);
	tw_chunk_init(&c->next);
	c->ends = tw_mem_alloc(max_depth, sizeof *c->ends);
	c->methods = tw_mem_alloc(max_depth, sizeof *c->methods);
	if (!c->ends || !c->methods)
		return tw_oom(err);
	st = tw_trace_file_call_chunks(f, thread_id, &c->rows, &c->n_rows, err);
	if (st != TW_OK)
		return st;
	c->row = first_row(c);
	return tw_cursor_reposition(c, err);
}

enum tw_status tw_cursor_next(struct tw_cursor *c, struct tw_edge *ret, struct tw_err *err)
{
	const struct tw_slice *s = c->at < c->n ? &c->slices[c->at] : NULL;
	int64_t start_ns;
	int64_t end_ns;

	/* open calls at least as deep as the next call end before it */
	if (!s || c->depth > s->depth) {
		c->depth--;
		*ret = (struct tw_edge){.ts_ns = c->ends[c->depth], .method = c->methods[c->depth]};
		find_next(c);
		return TW_OK;
	}
	start_ns = s->start_ns > c->from_ns ? s->start_ns : c->from_ns;
	end_ns = s->start_ns + s->dur_ns;
	*ret = (struct tw_edge){
	        .ts_ns = start_ns, .cpu_ns = s->cpu_ns, .method = s->method, .begin = true};
	if (start_ns > s->start_ns || end_ns > c->to_ns)
		ret->cpu_ns = -1; /* within the range it is unknown */
	c->ends[c->depth] = end_ns < c->to_ns ? end_ns : c->to_ns;
	c->methods[c->depth++] = s->method;
	c->at++;
	return tw_cursor_reposition(c, err);
}

enum tw_status tw_cursor_next_slice(struct tw_cursor *c, struct tw_slice *ret, struct tw_err *err)
{
	const struct tw_slice *s = &c->slices[c->at++];
	int64_t end_ns = s->start_ns + s->dur_ns;

	*ret = *s;
	if (ret->start_ns < c->from_ns)
		ret->start_ns = c->from_ns;
	if (end_ns > c->to_ns)
		end_ns = c->to_ns;
	ret->dur_ns = end_ns - ret->start_ns;
	if (ret->dur_ns < s->dur_ns)
		ret->cpu_ns = -1;
	return tw_cursor_reposition(c, err);
}

void tw_cursor_close(struct tw_cursor *c)
{
	if (c->ahead)
		take_over(c->ahead);
	tw_chunk_done(&c->chunk);
	tw_chunk_done(&c->next);
	c->next_row = NULL;
	tw_mem_free(c->ends);
	tw_mem_free(c->methods);
	c->ends = NULL;
	c->methods = NULL;
}

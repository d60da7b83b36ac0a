#include "export_cursor.h"

/* Loads chunks until one has a slice at c->at. */
static enum tw_status load(struct tw_cursor *c, struct tw_err *err)
{
	while (c->at >= c->chunk.n && c->row < c->n_rows) {
		enum tw_status st =
		        tw_trace_file_chunk(c->file, &c->rows[c->row++], &c->chunk, err);

		if (st != TW_OK)
			return st;
		c->at = 0;
	}
	return TW_OK;
}

/* Steps over calls that are too deep: their ends never were put on the stack. */
static enum tw_status settle(struct tw_cursor *c, struct tw_err *err)
{
	enum tw_status st = load(c, err);

	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) a chunk of n slices has them */
	while (st == TW_OK && c->at < c->chunk.n && c->chunk.slices[c->at].depth >= c->max_depth) {
		c->clipped++;
		c->at++;
		st = load(c, err);
	}
	c->done = c->depth == 0 && c->at >= c->chunk.n;
	c->next_ns = INT64_MAX;
	if (st == TW_OK && c->at < c->chunk.n)
		c->next_ns = c->chunk.slices[c->at].start_ns;
	if (c->depth && c->ends[c->depth - 1] < c->next_ns)
		c->next_ns = c->ends[c->depth - 1];
	return st;
}

enum tw_status tw_cursor_open(struct tw_cursor *c, struct tw_trace_file *f, uint32_t thread_id,
        uint32_t max_depth, struct tw_err *err)
{
	uint32_t n = 0;
	enum tw_status st;

	*c = (struct tw_cursor){.file = f, .max_depth = max_depth};
	tw_chunk_init(&c->chunk);
	c->ends = tw_mem_alloc(max_depth, sizeof *c->ends);
	if (!c->ends)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to export");
	st = tw_trace_file_chunks(f, thread_id, &c->rows, &n, err);
	if (st != TW_OK)
		return st;
	while (c->n_rows < n && c->rows[c->n_rows].info.level == 0)
		c->n_rows++;
	return settle(c, err);
}

enum tw_status tw_cursor_next(struct tw_cursor *c, struct tw_edge *ret, struct tw_err *err)
{
	bool more = c->at < c->chunk.n;
	const struct tw_slice *s = more ? &c->chunk.slices[c->at] : NULL;

	/* The depth of the next call says how many open ones end before it. */
	if (!s || c->depth > s->depth) {
		*ret = (struct tw_edge){.ts_ns = c->ends[--c->depth], .begin = false};
		return settle(c, err);
	}
	*ret = (struct tw_edge){.ts_ns = s->start_ns, .method = s->method, .begin = true};
	c->ends[c->depth++] = s->start_ns + s->dur_ns;
	c->at++;
	return settle(c, err);
}

void tw_cursor_close(struct tw_cursor *c)
{
	tw_chunk_done(&c->chunk);
	tw_mem_free(c->ends);
	c->ends = NULL;
}

/*
 * rollup_wide.c - merges the parts of the cells of a past day over scenarios, device classes and OS
 * versions.
 */

#include "server/base/log.h"
#include "server/derive/rollup/rollup_writer.h"

enum { MADE_AT_ONCE = 16, PART_BYTES = 256 << 20 };
#define WORK_BYTES ((size_t)512 << 20)

/* One metric at a time, so that each needs only the memory of the parts read. */
static enum tw_status add_up(const struct tw_rollup_wide *w, enum tw_rollup_metric m,
        struct tw_arena *a, struct tw_buf *out, struct tw_err *err)
{
	struct tw_rollup r = {.arena = a, .metrics = 1U << m};
	struct tw_sketch *s = tw_arena_zalloc(a, 1, sizeof *s);
	enum tw_status st = s ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < w->n; i++)
		st = tw_rollup_add_part(&r, m, (const uint8_t *)w->cells[i].parts[m].ptr,
		        w->cells[i].parts[m].len, err);
	return st == TW_OK ? tw_rollup_write_part(&r, m, s, out, err) : st;
}

static enum tw_status make(
        struct tw_catalogue *c, struct tw_rollup_wide *w, struct tw_arena *a, struct tw_err *err)
{
	struct tw_str parts[TW_ROLLUP_METRICS] = {{0}};
	struct tw_buf out[TW_ROLLUP_METRICS];
	enum tw_status st = tw_catalogue_wide_load(c, w, a, err);

	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++) {
		tw_buf_init(&out[m], PART_BYTES);
		if (st == TW_OK && w->n > 1)
			st = add_up(w, m, a, &out[m], err);
		parts[m] = (struct tw_str){(const char *)out[m].data, out[m].len};
	}
	if (st == TW_OK)
		st = tw_catalogue_wide_store(c, w, parts, err);
	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++)
		tw_buf_done(&out[m]);
	return st;
}

/* If it cannot be made, readers use the single cells; it is retried when one of them changes. */
static enum tw_status make_or_leave(
        struct tw_catalogue *c, struct tw_rollup_wide *w, struct tw_arena *a, struct tw_err *err)
{
	static const struct tw_str none[TW_ROLLUP_METRICS];
	struct tw_err why;
	enum tw_status st = make(c, w, a, &why);

	if (st == TW_OK)
		return st;
	tw_log_err(TW_LOG_ERROR, "wide_rollup_not_made", w->project_id, &why);
	w->n = 0;
	return tw_catalogue_wide_store(c, w, none, err);
}

enum tw_status tw_rollup_wides_add(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(WORK_BYTES);
	struct tw_arena *list = tw_arena_new(1 << 20);
	struct tw_rollup_wide *due = NULL;
	size_t n = 0;
	enum tw_status st =
	        a && list ? tw_catalogue_wides_due(c, day, MADE_AT_ONCE, list, &due, &n, err)
	                  : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(a);
		st = make_or_leave(c, &due[i], a, err);
	}
	tw_arena_free(list);
	tw_arena_free(a);
	*ret_more = st == TW_OK && n > 0;
	return st;
}

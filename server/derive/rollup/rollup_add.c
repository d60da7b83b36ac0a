/*
 * rollup_add.c - merges parts and deltas of cells into new parts; and a project's labels.
 */
#include <jansson.h>
#include <stdio.h>

#include "server/base/age_clock.h"
#include "server/base/log.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/derive/rollup/rollup_writer_int.h"

enum { PART_BYTES = 256 << 20, ADDED_AT_ONCE = 32 };

static enum tw_status add_head(const struct tw_rollup_cell *cell, struct tw_rollup_head *h,
        struct tw_arena *a, struct tw_str *ret, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st =
	        tw_rollup_head_merge(h, (const uint8_t *)cell->head.ptr, cell->head.len, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; i < cell->n_deltas; i++)
		tw_rollup_head_add(h, cell->deltas[i].trace_id, cell->deltas[i].duration_ns);
	tw_buf_init(&out, PART_BYTES);
	tw_rollup_head_write(h, &out);
	return tw_rollup_copy(&out, a, ret, err);
}

static enum tw_status collect(
        const struct tw_rollup_cell *cell, struct tw_rollup *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		st = tw_rollup_add_part(
		        r, m, (const uint8_t *)cell->parts[m].ptr, cell->parts[m].len, err);
	for (size_t i = 0; st == TW_OK && i < cell->n_deltas; i++) {
		const struct tw_rollup_delta *d = &cell->deltas[i];

		st = tw_rollup_add_facts(
		        r, d->trace_id, (const uint8_t *)d->facts.ptr, d->facts.len, err);
	}
	return st;
}

enum tw_status tw_rollup_cell_add(const struct tw_rollup_cell *cell, struct tw_arena *a,
        struct tw_str *ret_head, struct tw_str ret_parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_rollup r = {.arena = a, .metrics = TW_ROLLUP_ALL};
	struct tw_rollup_head *h = tw_arena_zalloc(a, 1, sizeof *h);
	enum tw_status st;

	if (!h)
		return tw_oom(err);
	st = add_head(cell, h, a, ret_head, err);
	if (st == TW_OK)
		st = collect(cell, &r, err);
	tw_rollup_head_clear(h);
	for (unsigned m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++) {
		struct tw_buf out;

		tw_buf_init(&out, PART_BYTES);
		st = tw_rollup_write_part(&r, m, &h->lengths, &out, err);
		if (st == TW_OK)
			st = tw_rollup_copy(&out, a, &ret_parts[m], err);
		else
			tw_buf_done(&out);
	}
	return st;
}

/* --- cells that are due --- */

/* Succeeds if another process merged the cell in the meantime. */
static enum tw_status add_one(struct tw_rollup_worker *f, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_str parts[TW_ROLLUP_METRICS] = {{0}};
	struct tw_rollup_cell cell;
	struct tw_str head;
	enum tw_status st = tw_catalogue_rollup_load(f->parts.catalogue, of, a, &cell, err);

	if (st == TW_OK)
		st = tw_rollup_cell_add(&cell, a, &head, parts, err);
	if (st == TW_OK)
		st = tw_catalogue_rollup_store(
		        f->parts.catalogue, of->project_id, &cell, &head, parts, err);
	if (st == TW_OK)
		st = tw_rollup_pack_index(f->parts.catalogue, of, a, err);
	return st == TW_CONFLICT || st == TW_NOT_FOUND ? TW_OK : st;
}

/* Cells of the next projects, in rotation. */
static enum tw_status next_due(struct tw_rollup_worker *f, struct tw_rollup_when *when,
        struct tw_rollup_due **ret, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st;

	when->after_project = f->add_turn;
	st = tw_catalogue_rollup_due(
	        f->parts.catalogue, when, ADDED_AT_ONCE, f->arena, ret, ret_n, err);
	if (st == TW_OK && *ret_n == 0 && f->add_turn[0]) {
		f->add_turn[0] = '\0';
		st = tw_catalogue_rollup_due(
		        f->parts.catalogue, when, ADDED_AT_ONCE, f->arena, ret, ret_n, err);
	}
	if (st == TW_OK && *ret_n)
		(void)snprintf(
		        f->add_turn, sizeof f->add_turn, "%s", (*ret)[*ret_n - 1].project_id);
	return st;
}

static enum tw_status add_or_postpone(struct tw_rollup_worker *f, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err)
{
	struct tw_err why;
	enum tw_status st = add_one(f, of, a, &why);

	atomic_fetch_add(st == TW_OK ? &f->cells : &f->cells_failed, 1);
	if (st == TW_OK)
		return st;
	tw_log_err(TW_LOG_ERROR, "rollup_not_merged", of->project_id, &why);
	return tw_catalogue_rollup_postpone(f->parts.catalogue, of, tw_wait_ms(), err);
}

enum tw_status tw_rollup_worker_add(
        struct tw_rollup_worker *f, uint32_t most, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_rollup_when when = {
	        .least = most < TW_ROLLUP_DELTAS_MIN ? most : TW_ROLLUP_DELTAS_MIN,
	        .most = most,
	        .day = day,
	        .now_ms = tw_wait_ms()};
	struct tw_arena *a = tw_arena_new(TW_ROLLUP_WORKER_BYTES);
	struct tw_rollup_due *due = NULL;
	size_t n = 0;
	enum tw_status st;

	*ret_more = false;
	if (!a)
		return tw_oom(err);
	tw_arena_reset(f->arena);
	st = next_due(f, &when, &due, &n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(a);
		st = add_or_postpone(f, &due[i], a, err);
	}
	tw_arena_free(a);
	*ret_more = st == TW_OK && n > 0;
	return st;
}

/* --- labels --- */

static enum tw_status check_labels(const json_t *doc, struct tw_err *err)
{
	const json_t *labels = json_object_get(doc, "labels"), *label;
	size_t i;

	if (!json_is_array(labels))
		return tw_fail(err, TW_BAD_REQUEST, "labels must be a list");
	json_array_foreach(labels, i, label)
	{
		if (!json_is_string(label))
			return tw_fail(err, TW_BAD_REQUEST, "each label must be a text");
	}
	return TW_OK;
}

const struct tw_setting tw_rollup_setting = {TW_SETTING_ROLLUPS, check_labels};

enum tw_status tw_rollup_labels(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const char *ret[TW_ROLLUP_LABELS_MAX], size_t *ret_n, struct tw_err *err)
{
	int64_t updated_ms;
	json_t *doc;
	const json_t *labels;
	bool fits = true;
	enum tw_status st =
	        tw_setting_load(c, project_id, &tw_rollup_setting, &doc, &updated_ms, err);

	*ret_n = 0;
	if (st != TW_OK)
		return st;
	labels = json_object_get(doc, "labels");
	for (size_t i = 0; i < json_array_size(labels) && i < TW_ROLLUP_LABELS_MAX; i++) {
		ret[*ret_n] =
		        tw_arena_str(a, tw_str_of(json_string_value(json_array_get(labels, i))));
		fits = fits && ret[(*ret_n)++];
	}
	json_decref(doc);
	return fits ? TW_OK : tw_oom(err);
}

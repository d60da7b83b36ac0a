/*
 * api_lane.c - lanes and sums of notes for the timeline, and the activity of threads.
 */
#include <string.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/base/text/json_write.h"
#include "server/query/query_notes.h"

enum { CELLS_DEFAULT = 1024, STRIPS_MAX = 1 << 20 };

struct answer {
	struct tw_trace_query *of;
	struct tw_lanes_query q; /* the range and the number of cells */
	const struct tw_thread_info *threads;
	uint32_t n_threads;
};

static const struct tw_param cells_params[] = {
        TW_PARAM_NUMBER("cells", CELLS_DEFAULT, 1, TW_LANE_CELLS_MAX,
                "Number of cells, equal parts of the range; events shorter than a cell are "
                "merged."),
        {0},
};

static struct answer begin(struct tw_trace_query *q)
{
	const struct tw_trace_info *info = tw_trace_file_info(q->v.file);
	struct answer a = {.of = q,
	        .q = {.sel = &q->sel,
	                .cells = (uint32_t)tw_req_number_or(q->v.req, "cells", CELLS_DEFAULT),
	                .from_ns = q->sel.ranged ? q->sel.from_ns : info->start_ns,
	                .to_ns = q->sel.ranged ? q->sel.to_ns : info->end_ns}};

	if (a.q.to_ns > info->end_ns)
		a.q.to_ns = info->end_ns;
	if (a.q.to_ns <= a.q.from_ns)
		a.q.to_ns = a.q.from_ns + 1;
	a.threads = tw_trace_file_threads(q->v.file, &a.n_threads);
	tw_json_open(&q->j, '{');
	return a;
}

static void put_range(struct answer *a)
{
	TW_JSON_MEMBERS(&a->of->j, &a->q, from_ns, to_ns);
}

/* --- lanes --- */

static const struct tw_param kinds_params[] = {
        TW_PARAM_TEXT("kind", 0, "Kinds of events, separated by commas. The default is all."),
        {0},
};

static enum tw_status read_kinds(const struct answer *a, uint64_t *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_text_or_empty(a->of->v.req, "kind"));

	*ret = 0;
	while (rest.len) {
		struct tw_str one = tw_str_split(&rest, ',');
		char name[32] = "";

		if (one.len < sizeof name)
			memcpy(name, one.ptr, one.len);
		if (tw_note_of_name(name) == TW_NOTE_COUNT)
			return tw_fail(err, TW_BAD_REQUEST, "unknown event kind %.*s",
			        one.len > 64 ? 64 : (int)one.len, one.ptr);
		*ret |= UINT64_C(1) << tw_note_of_name(name);
	}
	if (!*ret)
		*ret = UINT64_MAX;
	return TW_OK;
}

enum column { STEP, DUR, TEXT, VALUE, NOTES, LOW, HIGH };
static const char *const columns[] = {"step_ns", "dur_ns", "text", "value", "notes", "low", "high"};

static int64_t field(const struct tw_lane_run *r, const struct tw_lane_run *before, int64_t from_ns,
        enum column which)
{
	switch (which) {
	case STEP:
		return r->ts_ns - (before ? before->ts_ns : from_ns);
	case DUR:
		return r->dur_ns;
	case TEXT:
		return r->text;
	case VALUE:
		return r->value;
	case NOTES:
		return r->notes;
	case LOW:
		return r->low;
	case HIGH:
		return r->high;
	}
	return 0;
}

static void put_lane(struct answer *a, const struct tw_lane *l)
{
	bool counter = l->kind == TW_NOTE_counter;

	tw_json_open(&a->of->j, '{');
	tw_json_key_text(&a->of->j, "kind", tw_note_info(l->kind)->name);
	tw_trace_put_tid(&a->of->j, a->of->v.file, l->thread_id);
	tw_json_key_str(&a->of->j, "name", l->name);
	tw_json_key_int(&a->of->j, "row", l->row);
	tw_json_key_text(&a->of->j, "outcome", tw_note_outcome_name(l->outcome));
	for (enum column c = STEP; c <= (counter ? HIGH : NOTES); c++) {
		tw_json_key_open(&a->of->j, columns[c], '[');
		for (uint32_t i = 0; i < l->n; i++)
			tw_json_int(&a->of->j,
			        field(&l->runs[i], i ? &l->runs[i - 1] : NULL, a->q.from_ns, c));
		tw_json_close(&a->of->j, ']');
	}
	tw_json_close(&a->of->j, '}');
}

/* Numbers the texts of the runs: many runs have the same text. */
static enum tw_status put_texts(struct answer *a, const struct tw_lanes *l, struct tw_err *err)
{
	uint32_t *number = tw_arena_zalloc(a->of->arena, (size_t)l->n_texts + 1, sizeof *number);
	uint32_t n = 0;

	if (!number)
		return tw_oom(err);
	tw_json_key_open(&a->of->j, "texts", '[');
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->lanes[i].n; k++) {
			uint32_t *text = &l->lanes[i].runs[k].text;

			if (!number[*text]) {
				tw_json_str(&a->of->j, l->texts[*text]);
				number[*text] = ++n;
			}
			*text = number[*text] - 1;
		}
	tw_json_close(&a->of->j, ']');
	return TW_OK;
}

static enum tw_status answer_lanes(struct tw_trace_query *q, struct tw_err *err)
{
	struct answer one = begin(q), *const a = &one;
	struct tw_lanes lanes = {0};
	enum tw_status st = read_kinds(a, &a->q.kinds, err);

	if (st == TW_OK)
		st = tw_query_lanes(
		        a->of->v.file, &a->q, &a->of->deadline, a->of->arena, &lanes, err);
	if (st == TW_OK)
		st = put_texts(a, &lanes, err);
	if (st != TW_OK)
		return st;
	put_range(a);
	tw_json_key_open(&a->of->j, "lanes", '[');
	for (uint32_t i = 0; i < lanes.n; i++)
		put_lane(a, &lanes.lanes[i]);
	tw_json_close(&a->of->j, ']');
	tw_json_key_bool(&a->of->j, "partial", lanes.partial);
	tw_json_close(&a->of->j, '}');
	return TW_OK;
}

/* --- sums --- */

static enum tw_status answer_sums(struct tw_trace_query *q, struct tw_err *err)
{
	struct answer one = begin(q), *const a = &one;
	struct tw_note_sums sums = {0};
	enum tw_status st = tw_query_note_sums(
	        a->of->v.file, &a->of->sel, &a->of->deadline, a->of->arena, &sums, err);

	if (st != TW_OK)
		return st;
	tw_json_key_open(&a->of->j, "sums", '[');
	for (uint32_t i = 0; i < sums.n; i++) {
		const struct tw_note_sum *s = &sums.sums[i];

		tw_json_open(&a->of->j, '{');
		tw_json_key_text(&a->of->j, "kind", tw_note_info(s->kind)->name);
		tw_trace_put_tid(&a->of->j, a->of->v.file, s->thread_id);
		TW_JSON_MEMBERS(&a->of->j, s, text, notes, dur_ns);
		tw_json_close(&a->of->j, '}');
	}
	tw_json_close(&a->of->j, ']');
	tw_json_key_bool(&a->of->j, "partial", sums.partial);
	tw_json_close(&a->of->j, '}');
	return TW_OK;
}

/* --- activity --- */

static enum tw_status put_strip(
        struct answer *a, const struct tw_thread_info *t, struct tw_err *err)
{
	uint8_t cells[TW_LANE_CELLS_MAX];
	enum tw_status st = tw_query_activity_range(a->of->v.file, t, &a->q, cells, err);

	if (st != TW_OK)
		return st;
	tw_json_open(&a->of->j, '{');
	tw_trace_put_tid(&a->of->j, a->of->v.file, t->thread_id);
	tw_json_key_open(&a->of->j, "activity", '[');
	for (uint32_t i = 0; i < a->q.cells; i++)
		tw_json_int(&a->of->j, cells[i]);
	tw_json_close(&a->of->j, ']');
	tw_json_close(&a->of->j, '}');
	return TW_OK;
}

static enum tw_status answer_activity(struct tw_trace_query *q, struct tw_err *err)
{
	struct answer one = begin(q), *const a = &one;
	enum tw_status st = TW_OK;
	bool partial = false;
	uint64_t left = STRIPS_MAX;

	st = tw_view_waits(&q->v, q->arena, &a->q.waits, err);
	put_range(a);
	tw_json_key_int(&a->of->j, "cells", a->q.cells);
	tw_json_key_open(&a->of->j, "threads", '[');
	for (uint32_t i = 0; st == TW_OK && !partial && i < a->n_threads; i++) {
		if (!a->threads[i].slices || !tw_selection_has(&a->of->sel, &a->threads[i]))
			continue;
		partial = left < a->q.cells || tw_deadline_passed(&a->of->deadline);
		if (!partial)
			st = put_strip(a, &a->threads[i], err);
		left -= a->q.cells;
	}
	tw_json_close(&a->of->j, ']');
	tw_json_key_bool(&a->of->j, "partial", partial);
	tw_json_close(&a->of->j, '}');
	return st;
}

const struct tw_route tw_routes_lane[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/notes/lanes", TW_NEED_READ,
                "Events by kind and thread; short ones are merged",
                .params = TW_PARAMS(
                        tw_api_thread_params, tw_view_range_params, cells_params, kinds_params),
                .trace_query = answer_lanes),
        TW_ROUTE("GET", "/api/v1/traces/{id}/notes/sums", TW_NEED_READ,
                "Number and durations of events by kind",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params),
                .trace_query = answer_sums),
        TW_ROUTE("GET", "/api/v1/traces/{id}/activity", TW_NEED_READ,
                "How busy threads are over time",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params, cells_params),
                .trace_query = answer_activity),
        {0},
};

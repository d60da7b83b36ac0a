/*
 * stage_findings.c - runs detectors on ready traces and stores their findings.
 */
#include "server/derive/stages.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"
#include "decoder/base/sum.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/detecting.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer_int.h"
#include "server/fleet/found.h"
#include "server/query/detect/frame_rules.h"
#include "server/trace/trace_readers.h"

#define WORK_BYTES ((size_t)256 << 20)

/* The time limit per trace is five times what ten million calls take; later findings are lost. */
enum { INSPECTED_AT_ONCE = 64, LONGEST_MS = 5000, TOGETHER_MS = 1000, DATA_BYTES = 1 << 20 };

struct detector_runner {
	struct tw_rollup_worker
	        *worker; /* names methods, and owns the memory of traces in `batch` */
	struct tw_arena *project_arena; /* rules and waiting traces of a project */
	struct tw_detect_memo *memo;
	struct tw_found_trace batch[INSPECTED_AT_ONCE]; /* inspected, and not yet stored */
	size_t n_batch;
	int64_t batch_ms; /* monotonic: when it must be stored */
};

/* --- rules --- */

/* Raise it when the code's findings change, so that traces are inspected again. */
enum { FINDS_VERSION = 3 };

/* Identifies the content of the rules rather than their version, as built-in rules change too. */
static int64_t rules_number(struct tw_arena *a, const json_t *doc, const char *frames)
{
	char *rules = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	const int64_t number = rules ? tw_rules_number(a, FINDS_VERSION, rules, frames) : 0;

	free(rules);
	return number;
}

static enum tw_status parse(struct tw_found_rules *r, struct tw_arena *a, const char *project_id,
        const char *rules, const char *frames, struct tw_err *err)
{
	enum tw_status st = tw_setting_of_text(project_id, &tw_detect_setting, rules, &r->doc, err);

	if (st != TW_OK)
		return st;
	if (!r->doc)
		r->doc = tw_detect_defaults();
	r->number = r->doc ? rules_number(a, r->doc, frames) : 0;
	st = r->number ? tw_detect_rules_new(r->doc, &r->detectors, err) : tw_oom(err);
	if (st != TW_OK)
		json_decref(r->doc);
	return st;
}

enum tw_status tw_found_rules_open(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_found_rules *ret, struct tw_err *err)
{
	const char *frames = NULL;
	struct tw_ruleset set;
	int64_t changed_ms;
	enum tw_status st =
	        tw_catalogue_ruleset(c, project_id, TW_RULESET_DETECTORS, 0, a, &set, err);

	*ret = (struct tw_found_rules){.number = 0};
	if (st == TW_OK)
		st = tw_catalogue_setting_get(
		        c, project_id, TW_SETTING_FRAMES, a, &frames, &changed_ms, err);
	if (st != TW_OK)
		return st;
	ret->version = set.version;
	return parse(ret, a, project_id, set.value, frames, err);
}

void tw_found_rules_done(struct tw_found_rules *r)
{
	tw_detect_rules_free(r->detectors);
	json_decref(r->doc);
	*r = (struct tw_found_rules){.number = 0};
}

/* --- one trace --- */

struct inspection {
	struct tw_rollup_worker *worker;
	struct tw_detecting d;
	struct tw_namer namer;
	struct tw_found found;
	struct tw_rollup_naming *callers; /* their names are not written yet */
	size_t n_callers;
	int64_t until_ms;
};

static bool is_late(void *arg)
{
	const struct inspection *l = arg;

	return tw_monotonic_ms() >= l->until_ms;
}

TW_ORDER_BY(by_caller, struct tw_finding, TW_RISING(rule), TW_RISING(caller))

TW_ORDER_BY(by_time, struct tw_found_caller, TW_FALLING(ns), TW_RISING(method))

/* The id of a method by its index; queues its name to be written. */
static bool number_of(struct inspection *l, uint32_t method, uint64_t *ret)
{
	const struct tw_trace_row *row = &l->d.v.row;
	const struct tw_rollup_space in = {
	        row->project_id, row->meta.build_id, row->meta.mapping_id};
	const struct tw_named what = tw_method_named(&l->d.v.methods[method]);
	struct tw_rollup_naming *m = &l->callers[l->n_callers];
	const char *raw = tw_rollup_worker_raw(l->worker, &what);

	if (!raw)
		return false;
	*ret = tw_rollup_method_id(&in, raw);
	if (tw_rollup_worker_knows(l->worker, *ret))
		return true;
	tw_rollup_worker_remember(l->worker, *ret);
	l->n_callers++;
	*m = (struct tw_rollup_naming){
	        .id = *ret, .build_id = in.build_id, .mapping_id = in.mapping_id, .raw = raw};
	return tw_namer_name(l->worker, &l->namer.names, &what, m);
}

/* Findings of one rule, by caller: the callers with most time. */
static bool take_callers(
        struct inspection *l, const struct tw_finding *list, size_t n, struct tw_found_rule *r)
{
	struct tw_found_caller *all = tw_arena_zalloc(l->d.arena, n + 1, sizeof *all);
	uint32_t n_all = 0;

	if (!all)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || list[i].caller != list[i - 1].caller)
			all[n_all++].method = list[i].caller;
		all[n_all - 1].found++;
		all[n_all - 1].ns = tw_sum_ns(all[n_all - 1].ns, list[i].wall_ns);
		if (list[i].wall_ns > all[n_all - 1].max_ns)
			all[n_all - 1].max_ns = list[i].wall_ns;
	}
	TW_SORT(all, n_all, by_time);
	r->n = n_all < TW_FOUND_CALLERS ? n_all : TW_FOUND_CALLERS;
	for (uint32_t k = 0; k < r->n; k++) {
		r->callers[k] = all[k];
		r->callers[k].method = 0;
		if (all[k].method != TW_NO_METHOD &&
		        !number_of(l, (uint32_t)all[k].method, &r->callers[k].method))
			return false;
	}
	return true;
}

/* For a rule about other threads, the time on main is known only for the stored findings. */
static int64_t on_main(const struct tw_detecting *d, const struct tw_detect_rule *rule,
        const struct tw_detect_sum *sum, const struct tw_finding *list, size_t n)
{
	int64_t ns = 0;

	if (strcmp(rule->threads, "main") == 0)
		return sum->found_ns;
	for (size_t i = 0; i < n; i++)
		if (d->main && list[i].thread_id == d->main->thread_id)
			ns = tw_sum_ns(ns, list[i].wall_ns);
	return ns;
}

static bool take_rules(struct inspection *l)
{
	struct tw_detecting *d = &l->d;
	size_t at = 0;

	l->found.partial = d->cut != 0;
	l->found.frames = d->frames.total;
	l->found.slow_frames = d->frames.slow;
	l->found.frozen_frames = d->frames.frozen;
	l->found.initial_ns = d->start.initial_ns;
	l->found.full_ns = d->start.full_ns;
	TW_SORT(d->list, d->n, by_caller);
	for (uint32_t i = 0; i < d->rules->n; i++) {
		const struct tw_detect_sum *sum = &d->found.sums[i];
		struct tw_found_rule *r = &l->found.rules[l->found.n];
		size_t n = 0;

		while (at + n < d->n && d->list[at + n].rule == i)
			n++;
		if (sum->found) {
			*r = (struct tw_found_rule){tw_str_of(d->rules->rules[i].id), sum->found,
			        sum->found_ns,
			        on_main(d, &d->rules->rules[i], sum, &d->list[at], n), sum->max_ns,
			        0, {{0}}};
			l->found.n++;
			if (n < sum->found) /* callers are known only for the longest findings */
				l->found.partial = true;
			if (!take_callers(l, &d->list[at], n, r))
				return false;
		}
		at += n;
	}
	return true;
}

static enum tw_status run_detectors(struct inspection *l, struct tw_err *err)
{
	struct tw_detecting *d = &l->d;
	const size_t most = (size_t)TW_DETECT_RULES_MAX * TW_FOUND_CALLERS;
	enum tw_status st;

	l->found.rules =
	        tw_arena_zalloc(l->worker->arena, TW_DETECT_RULES_MAX, sizeof *l->found.rules);
	l->callers = tw_arena_alloc(l->worker->arena, most, sizeof *l->callers);
	if (!l->found.rules || !l->callers)
		return tw_oom(err);
	d->deadline = (struct tw_deadline){is_late, l};
	d->keep = TW_DETECT_KEEP_MAX;
	st = tw_detecting_run(d, err);
	if (st == TW_OK && !take_rules(l))
		st = tw_oom(err);
	return st;
}

static enum tw_status open_file(struct inspection *l, struct tw_err *err)
{
	struct tw_view *v = &l->d.v;
	const struct tw_derive_parts *parts = &l->worker->parts;
	enum tw_status st =
	        tw_trace_readers_open(parts->readers, parts->blobs, v->row.id, &v->file, err);

	if (st == TW_OK)
		st = tw_namer_inline(
		        parts, v->row.project_id, v->file, l->worker->arena, &l->namer, err);
	v->names = l->namer.names;
	if (st == TW_OK)
		st = tw_trace_file_method_refs(v->file, &v->methods, &v->n_methods, err);
	if (st != TW_OK)
		return st;
	l->d.arena = tw_arena_new(WORK_BYTES);
	return l->d.arena ? run_detectors(l, err) : tw_oom(err);
}

/* --- storing --- */

static enum tw_status write_names(struct inspection *l, struct tw_err *err)
{
	const struct tw_rollup_names names = {l->d.v.row.project_id, l->callers, l->n_callers,
	        l->worker->known_day, l->namer.ids};
	struct tw_fleet_store *store = l->worker->parts.fleet;

	return l->n_callers ? store->engine->name_methods(store, &names, err) : TW_OK;
}

/* Adds the trace to the batch. */
static enum tw_status add_to_batch(
        struct detector_runner *f, struct inspection *l, struct tw_err *err)
{
	struct tw_arena *a = f->worker->arena;
	struct tw_trace_row *row = tw_arena_alloc(a, 1, sizeof *row);
	struct tw_rollup_dims *cells = tw_arena_alloc(a, TW_ROLLUP_CELLS_MAX, sizeof *cells);
	struct tw_found_trace *t = &f->batch[f->n_batch];
	struct tw_buf out;
	enum tw_status st;

	if (!row || !cells)
		return tw_oom(err);
	*row = l->d.v.row;
	*t = (struct tw_found_trace){
	        {row->project_id, row->id, row->meta.build_id, row->meta.mapping_id}, l->namer.ids,
	        cells, 0, {"", 0}, row, l->namer.natives.libraries};
	st = tw_rollup_cells(
	        row, f->worker->labels, f->worker->n_labels, a, cells, &t->n_cells, err);
	tw_buf_init(&out, DATA_BYTES);
	tw_found_write(&l->found, &out);
	if (st == TW_OK)
		st = tw_rollup_copy(&out, a, &t->data, err);
	else
		tw_buf_done(&out);
	if (st == TW_OK)
		st = write_names(l, err);
	if (st == TW_OK && f->n_batch++ == 0)
		f->batch_ms = tw_monotonic_ms() + TOGETHER_MS;
	return st;
}

static enum tw_status store_batch(
        struct detector_runner *f, const struct tw_turn *turn, int64_t number, struct tw_err *err)
{
	struct tw_fleet_store *store = f->worker->parts.fleet;
	enum tw_status st = TW_OK;

	if (f->n_batch)
		st = store->engine->put_found(store, f->batch, f->n_batch, number, err);
	if (st == TW_OK)
		tw_turn_done(turn, f->n_batch);
	f->n_batch = 0;
	tw_arena_reset(f->worker->arena);
	return st;
}

/* --- work on a project --- */

struct project { /* the project being served */
	struct tw_found_rules rules;
	const struct tw_frame_rules *app;
	struct tw_trace_row *todo;
	size_t n;
};

/* Memory may be short, or the file unreachable, only temporarily. */
static bool may_pass(enum tw_status st)
{
	return tw_is_temporary(st) || st == TW_NOMEM;
}

/* Consecutive traces are often of one build; whether its mappings are still the same is checked
 * when findings are stored. */
static enum tw_status open_namer(struct detector_runner *f, const struct tw_named_trace *of,
        struct tw_namer *ret, struct tw_err *err)
{
	const struct tw_found_trace *before = f->n_batch ? &f->batch[f->n_batch - 1] : NULL;

	if (before && strcmp(before->of.build_id, of->build_id) == 0 &&
	        strcmp(before->of.mapping_id, of->mapping_id) == 0)
		return tw_namer_open_by(&f->worker->parts, &before->by, of->build_id, ret, err);
	return tw_namer_open(&f->worker->parts, of, f->worker->arena, ret, err);
}

/* *ret_own: the failure is that of the trace, and permanent. */
static enum tw_status inspect(struct detector_runner *f, const struct project *p,
        const struct tw_trace_row *row, bool *ret_own, struct tw_err *err)
{
	struct inspection l = {.worker = f->worker,
	        .d = {.rules = p->rules.detectors, .app = p->app, .memo = f->memo},
	        .until_ms = tw_monotonic_ms() + LONGEST_MS};
	const struct tw_named_trace of = tw_turn_trace(row);
	enum tw_status st;

	f->memo->number = (uint64_t)p->rules.number;
	l.d.v.row = *row;
	st = open_namer(f, &of, &l.namer, err);
	if (st != TW_OK)
		return st;
	st = open_file(&l, err);
	*ret_own = st != TW_OK && !may_pass(st);
	l.d.v.file = tw_trace_readers_close(f->worker->parts.readers, l.d.v.file);
	if (st == TW_OK)
		st = add_to_batch(f, &l, err);
	if (st != TW_OK) /* names that were to be written with it may be missing */
		tw_rollup_worker_forget(f->worker);
	tw_arena_free(l.d.arena);
	tw_namer_close(&f->worker->parts, &l.namer);
	return st;
}

static enum tw_status inspect_some(struct detector_runner *f, const struct project *p,
        const struct tw_turn *turn, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	tw_rollup_worker_begin_day(f->worker);
	tw_arena_reset(f->worker->arena);
	f->n_batch = 0;
	for (size_t i = 0; st == TW_OK && i < p->n && !tw_turn_is_over(turn); i++) {
		const struct tw_named_trace t = tw_turn_trace(&p->todo[i]);
		bool own = false;
		struct tw_err why;

		st = inspect(f, p, &p->todo[i], &own, &why);
		if (st != TW_OK)
			st = tw_turn_failed(turn, &t, !own, &why, err);
		if (st == TW_OK && f->n_batch && tw_monotonic_ms() >= f->batch_ms)
			st = store_batch(f, turn, p->rules.number, err);
	}
	return st == TW_OK ? store_batch(f, turn, p->rules.number, err) : st;
}

static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct detector_runner *f = state;
	struct tw_catalogue *c = f->worker->parts.catalogue;
	struct project p = {.n = 0};
	int64_t changed_ms;
	enum tw_status st;

	tw_arena_reset(f->project_arena);
	st = tw_found_rules_open(c, turn->project_id, f->project_arena, &p.rules, err);
	if (st != TW_OK)
		return st;
	st = tw_catalogue_found_todo(c, turn->project_id, p.rules.number, INSPECTED_AT_ONCE,
	        f->project_arena, &p.todo, &p.n, err);
	if (st == TW_OK && p.n)
		st = tw_frame_rules_of(
		        c, turn->project_id, f->project_arena, &p.app, &changed_ms, err);
	if (st == TW_OK && p.n)
		st = tw_rollup_labels(c, turn->project_id, f->project_arena, f->worker->labels,
		        &f->worker->n_labels, err);
	if (st == TW_OK && p.n)
		st = inspect_some(f, &p, turn, err);
	tw_found_rules_done(&p.rules);
	*ret_more = p.n > 0;
	return st;
}

static void close_finder(void *state)
{
	struct detector_runner *f = state;

	tw_mem_free(f->memo);
	tw_rollup_worker_free(f->worker);
	tw_arena_free(f->project_arena);
	tw_mem_free(f);
}

static enum tw_status open_finder(const struct tw_derive_parts *p, void **ret, struct tw_err *err)
{
	struct detector_runner *f = tw_mem_zalloc(1, sizeof *f);

	*ret = f;
	if (!f)
		return tw_oom(err);
	f->worker = tw_rollup_worker_new(p);
	f->project_arena = tw_arena_new(WORK_BYTES);
	f->memo = tw_mem_zalloc(1, sizeof *f->memo);
	return f->worker && f->project_arena && f->memo ? TW_OK : tw_oom(err);
}

/* Findings refer to cells of rollups, so traces pass that stage first. */
static const struct tw_stage_sql sql = {.stage = "findings",
        .index = "trace_without_findings",
        .waits = "state=2 AND rollup_state=1 AND detected=0",
        .todo = "state=2 AND rollup_state=1",
        .postpone = "detected=-2",
        .is_postponed = "detected=-2",
        .resume = "detected=0",
        .give_up = "detected=-1"};

const struct tw_stage tw_stage_findings = {.name = "findings",
        .depends = TW_RAISED_BY_MAPPING | TW_RAISED_BY_RULES | TW_RAISED_BY_ROLLUP,
        .half_time = true, /* an entire fleet may be due again: limits that to half a core */
        .sql = &sql,
        .all = "trace", /* those inspected with outdated rules are inspected again */
        .open = open_finder,
        .close = close_finder,
        .run = run};

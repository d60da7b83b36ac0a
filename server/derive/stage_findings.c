#include "server/derive/stage_findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/base/sum.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/derive/detecting.h"
#include "server/derive/rollup/rollup_writer_int.h"
#include "server/fleet/found.h"
#include "server/trace/trace_stored.h"

#define WORK_BYTES ((size_t)256 << 20)

/* A trace has so long, five times what ten million calls take: what is found by then is kept. */
enum { LOOKED_AT_ONCE = 8, LONGEST_MS = 5000, DATA_BYTES = 1 << 20, LATER_MS = 1800000 };

struct tw_finder {
	struct tw_folder *folder;       /* names methods, and has the memory of one trace */
	struct tw_arena *project_arena; /* rules of a project and its traces to look at */
	struct tw_detect_memo *memo;
	char turn[TW_ID_BYTES]; /* the project that was looked at last */
	_Atomic uint64_t looked, unreadable, spent_us;
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_oom(err);
}

struct tw_finder *tw_finder_new(const struct tw_folder_parts *parts)
{
	struct tw_finder *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->folder = tw_folder_new(parts);
	f->project_arena = tw_arena_new(WORK_BYTES);
	f->memo = tw_mem_zalloc(1, sizeof *f->memo);
	return f->folder && f->project_arena && f->memo ? f : tw_finder_free(f);
}

struct tw_finder *tw_finder_free(struct tw_finder *f)
{
	if (!f)
		return NULL;
	tw_mem_free(f->memo);
	tw_folder_free(f->folder);
	tw_arena_free(f->project_arena);
	tw_mem_free(f);
	return NULL;
}

struct tw_finder_counts tw_finder_counts(const struct tw_finder *f)
{
	if (!f) /* a server that does not decode */
		return (struct tw_finder_counts){0};
	return (struct tw_finder_counts){
	        atomic_load(&f->looked), atomic_load(&f->unreadable), atomic_load(&f->spent_us)};
}

/* --- one trace --- */

struct look {
	struct tw_folder *folder;
	struct tw_detecting d;
	struct tw_namer namer;
	struct tw_found found;
	struct tw_rollup_naming *callers; /* whose names are not written yet */
	size_t n_callers;
	int64_t until_ms;
	bool kept;
};

static bool is_late(void *arg)
{
	const struct look *l = arg;

	return tw_monotonic_ms() >= l->until_ms;
}

static int by_caller(const void *pa, const void *pb)
{
	const struct tw_finding *a = pa, *b = pb;

	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return a->caller < b->caller ? -1 : a->caller > b->caller;
}

static int by_time(const void *pa, const void *pb)
{
	const struct tw_found_caller *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->method < b->method ? -1 : a->method > b->method;
}

/* The number of a method by its index; its name is noted to be written. */
static bool number_of(struct look *l, uint32_t method, uint64_t *ret)
{
	const struct tw_trace_row *row = &l->d.v.row;
	const struct tw_rollup_space in = {
	        row->project_id, row->meta.build_id, row->meta.mapping_id};
	const struct tw_named what = tw_method_named(&l->d.v.methods[method]);
	struct tw_rollup_naming *m = &l->callers[l->n_callers];
	const char *raw = tw_folder_raw(l->folder, &what);

	if (!raw)
		return false;
	*ret = tw_rollup_method_id(&in, raw);
	if (tw_folder_knows(l->folder, *ret))
		return true;
	tw_folder_remember(l->folder, *ret);
	l->n_callers++;
	*m = (struct tw_rollup_naming){
	        .id = *ret, .build_id = in.build_id, .mapping_id = in.mapping_id, .raw = raw};
	return tw_namer_name(l->folder, &l->namer.names, &what, m);
}

/* Findings of one rule, by caller; of callers those with most time. */
static bool take_callers(
        struct look *l, const struct tw_finding *list, size_t n, struct tw_found_rule *r)
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
	if (n_all)
		qsort(all, n_all, sizeof *all, by_time);
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

/* Of a rule about other threads what is on main is known of the findings that are kept. */
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

static bool take_rules(struct look *l)
{
	struct tw_detecting *d = &l->d;
	size_t at = 0;

	l->found.partial = d->cut != 0;
	if (d->n)
		qsort(d->list, d->n, sizeof *d->list, by_caller);
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
			if (n < sum->found) /* callers are those of the longest */
				l->found.partial = true;
			if (!take_callers(l, &d->list[at], n, r))
				return false;
		}
		at += n;
	}
	return true;
}

static enum tw_status look_through(struct look *l, struct tw_err *err)
{
	struct tw_detecting *d = &l->d;
	const size_t most = (size_t)TW_DETECT_RULES_MAX * TW_FOUND_CALLERS;
	enum tw_status st;

	l->found.rules =
	        tw_arena_zalloc(l->folder->arena, TW_DETECT_RULES_MAX, sizeof *l->found.rules);
	l->callers = tw_arena_alloc(l->folder->arena, most, sizeof *l->callers);
	if (!l->found.rules || !l->callers)
		return no_memory(err);
	d->deadline = (struct tw_deadline){is_late, l};
	d->keep = TW_DETECT_KEEP_MAX;
	st = tw_detecting_run(d, err);
	if (st == TW_OK && !take_rules(l))
		st = no_memory(err);
	return st;
}

static enum tw_status open_file(struct look *l, struct tw_err *err)
{
	struct tw_view *v = &l->d.v;
	enum tw_status st = tw_trace_stored_open(l->folder->parts.blobs, v->row.id, &v->file, err);

	if (st == TW_OK)
		st = tw_trace_file_method_refs(v->file, &v->methods, &v->n_methods, err);
	if (st != TW_OK)
		return st;
	v->names = l->namer.names;
	l->d.arena = tw_arena_new(WORK_BYTES);
	return l->d.arena ? look_through(l, err) : no_memory(err);
}

/* --- what is kept --- */

static enum tw_status write_names(struct look *l, struct tw_err *err)
{
	const struct tw_rollup_names names = {l->d.v.row.project_id, l->callers, l->n_callers,
	        l->folder->known_day, l->namer.ids};

	return l->n_callers ? tw_catalogue_rollup_name(l->folder->parts.catalogue, &names, err)
	                    : TW_OK;
}

static enum tw_status keep(struct look *l, int64_t number, struct tw_err *err)
{
	struct tw_catalogue *c = l->folder->parts.catalogue;
	const struct tw_trace_row *row = &l->d.v.row;
	struct tw_rollup_dims cells[TW_ROLLUP_CELLS_MAX];
	const char *labels[TW_ROLLUP_LABELS_MAX];
	struct tw_found_trace t = {
	        {row->project_id, row->id, row->meta.build_id, row->meta.mapping_id}, l->namer.ids,
	        cells, 0, {"", 0}};
	struct tw_buf out;
	size_t n = 0;
	enum tw_status st = tw_rollup_labels(c, row->project_id, l->folder->arena, labels, &n, err);

	tw_buf_init(&out, DATA_BYTES);
	if (st == TW_OK)
		st = tw_rollup_cells(row, labels, n, l->folder->arena, cells, &t.n_cells, err);
	tw_found_write(&l->found, &out);
	if (st == TW_OK && tw_buf_status(&out) != TW_OK)
		st = no_memory(err);
	t.data = (struct tw_str){(const char *)out.data, out.len};
	if (st == TW_OK)
		st = write_names(l, err);
	if (st == TW_OK)
		st = tw_catalogue_found_put(c, &t, number, err);
	l->kept = st == TW_OK;
	tw_buf_done(&out);
	return st;
}

/* Its own fault, or one that passes? */
static bool is_for_good(enum tw_status st)
{
	return st != TW_BUSY && st != TW_FULL && st != TW_NOMEM && st != TW_IO;
}

/* A file that went with its row is no fault of it. */
static enum tw_status went_meanwhile(
        struct tw_finder *f, const struct tw_trace_row *row, bool *ret, struct tw_err *err)
{
	struct tw_trace_row now;
	enum tw_status st = tw_catalogue_trace_get(
	        f->folder->parts.catalogue, row->project_id, row->id, f->folder->arena, &now, err);

	*ret = st == TW_NOT_FOUND || (st == TW_OK && now.state != TW_TRACE_READY);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status give_up(struct tw_finder *f, const struct tw_trace_row *row,
        enum tw_status failed, const struct tw_err *why, struct tw_err *err)
{
	bool went = false;
	enum tw_status st = went_meanwhile(f, row, &went, err);

	if (st != TW_OK || went)
		return st;
	if (!is_for_good(failed)) {
		*err = *why;
		return failed;
	}
	tw_log_err(TW_LOG_WARN, "trace_without_findings", row->id, why);
	atomic_fetch_add(&f->unreadable, 1);
	return tw_catalogue_found_skip(f->folder->parts.catalogue, row->project_id, row->id, err);
}

/* --- rounds --- */

struct project { /* whose turn it is */
	const char *id;
	struct tw_found_rules rules;
	const struct tw_frame_rules *app;
	const char **todo;
	size_t n;
};

static enum tw_status look_at(
        struct tw_finder *f, const struct project *p, const char *trace_id, struct tw_err *err)
{
	struct look l = {.folder = f->folder,
	        .d = {.rules = p->rules.detectors, .app = p->app, .memo = f->memo},
	        .until_ms = tw_monotonic_ms() + LONGEST_MS};
	struct tw_trace_row *row = &l.d.v.row;
	struct tw_named_trace of;
	struct tw_err why;
	enum tw_status st;

	tw_arena_reset(f->folder->arena);
	f->memo->number = (uint64_t)p->rules.number;
	st = tw_catalogue_trace_get(
	        f->folder->parts.catalogue, p->id, trace_id, f->folder->arena, row, err);
	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	of = (struct tw_named_trace){p->id, trace_id, row->meta.build_id, row->meta.mapping_id};
	st = tw_namer_open(f->folder, &of, &l.namer, err);
	if (st != TW_OK)
		return st;
	st = open_file(&l, &why);
	tw_trace_file_close(l.d.v.file);
	l.d.v.file = NULL;
	if (st == TW_OK)
		st = keep(&l, p->rules.number, err);
	else
		st = give_up(f, row, st, &why, err);
	if (st != TW_OK || !l.kept) /* names that were to be written with it may not be */
		tw_folder_forget(f->folder);
	tw_arena_free(l.d.arena);
	tw_namer_close(f->folder, &l.namer);
	atomic_fetch_add(&f->looked, st == TW_OK);
	return st;
}

/* One trace's trouble is not the others': it has its turn later. */
static enum tw_status look_or_put_off(
        struct tw_finder *f, const struct project *p, const char *trace_id, struct tw_err *err)
{
	struct tw_err why;

	if (look_at(f, p, trace_id, &why) == TW_OK)
		return TW_OK;
	tw_log_err(TW_LOG_WARN, "findings_put_off", trace_id, &why);
	return tw_catalogue_found_put_off(
	        f->folder->parts.catalogue, p->id, trace_id, tw_unix_ms() + LATER_MS, err);
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static enum tw_status look_at_some(struct tw_finder *f, const struct project *p, struct tw_err *err)
{
	const uint64_t from_us = now_us();
	enum tw_status st = TW_OK;

	tw_folder_begin_day(f->folder);
	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		st = look_or_put_off(f, p, p->todo[i], err);
	atomic_fetch_add(&f->spent_us, now_us() - from_us);
	return st;
}

static enum tw_status serve(struct tw_finder *f, struct project *p, struct tw_err *err)
{
	struct tw_catalogue *c = f->folder->parts.catalogue;
	int64_t changed_ms;
	enum tw_status st = tw_found_rules_open(c, p->id, f->project_arena, &p->rules, err);

	if (st != TW_OK)
		return st;
	st = tw_catalogue_found_back(c, p->id, tw_unix_ms(), err);
	if (st == TW_OK)
		st = tw_catalogue_found_todo(c, p->id, p->rules.number, LOOKED_AT_ONCE,
		        f->project_arena, &p->todo, &p->n, err);
	if (st == TW_OK && p->n)
		st = tw_frame_rules_of(c, p->id, f->project_arena, &p->app, &changed_ms, err);
	if (st == TW_OK && p->n)
		st = look_at_some(f, p, err);
	tw_found_rules_done(&p->rules);
	return st;
}

/* The projects in order of their ids; the one behind the last that was served is the first. */
static int by_id(const void *pa, const void *pb)
{
	return strcmp(
	        ((const struct tw_project_row *)pa)->id, ((const struct tw_project_row *)pb)->id);
}

static size_t first_behind(const struct tw_project_row *projects, size_t n, const char *turn)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(projects[i].id, turn) > 0)
			return i;
	return 0;
}

/* One project's trouble is not the others': it is told, and has its turn again. */
static bool serve_one(struct tw_finder *f, const char *project_id)
{
	struct project p = {.id = project_id};
	struct tw_err err;

	if (serve(f, &p, &err) == TW_OK)
		return p.n > 0;
	tw_log_err(TW_LOG_WARN, "findings_late", project_id, &err);
	return false;
}

enum tw_status tw_finder_look(struct tw_finder *f, bool *ret_more, struct tw_err *err)
{
	struct tw_project_row *projects = NULL;
	size_t n = 0, first;
	enum tw_status st;

	*ret_more = false;
	tw_arena_reset(f->project_arena);
	st = tw_catalogue_projects(
	        f->folder->parts.catalogue, f->project_arena, &projects, &n, err);
	if (st != TW_OK || n == 0)
		return st;
	qsort(projects, n, sizeof *projects, by_id);
	first = first_behind(projects, n, f->turn);
	for (size_t i = 0; i < n && !*ret_more; i++) {
		const char *id = projects[(first + i) % n].id;

		(void)snprintf(f->turn, sizeof f->turn, "%s", id);
		*ret_more = serve_one(f, id);
	}
	return TW_OK;
}

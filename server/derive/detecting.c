/*
 * detecting.c - runs a project's detectors on one trace: classifies its names and collects
 * findings.
 */
#include "server/derive/detecting.h"

#include "decoder/base/hash.h"
#include "decoder/base/order.h"

/* --- names of a trace --- */

static uint64_t name_rules(void *arg, struct tw_str name, uint8_t *ret_role)
{
	struct tw_detecting *d = arg;

	*ret_role = tw_detect_role_of(name);
	return tw_detect_rules_of(d->rules, name);
}

static struct tw_detect_checked classify(struct tw_detecting *d, struct tw_str name, bool known)
{
	struct tw_detect_checked j = {.is_app = tw_frame_rules_app(d->app, name)};

	if (known)
		j.rules = name_rules(d, name, &j.role);
	return j;
}

/* A name replaces the previous one in its slot: frequent names return soon. */
static struct tw_detect_checked classify_memoized(struct tw_detecting *d, struct tw_str name)
{
	const uint64_t key = tw_hash_str(name, d->memo->number) | 1;
	struct tw_detect_checked *at = &d->memo->names[(key >> 1) & (TW_DETECT_MEMO - 1)];

	if (at->key != key) {
		*at = classify(d, name, true);
		at->key = key;
	}
	return *at;
}

static void classify_method(struct tw_detecting *d, uint32_t method)
{
	bool known = true;
	const struct tw_str name = tw_view_name(&d->v, method, d->name, &known);
	const struct tw_detect_checked j =
	        d->memo && known ? classify_memoized(d, name) : classify(d, name, known);

	d->unnamed += !known;
	d->is_app[method] = j.is_app;
	d->by_method[method] = j.rules;
	d->roles[method] = j.role;
}

static bool alloc_tables(struct tw_detecting *d)
{
	const size_t n = (size_t)d->v.n_methods + 1;

	d->name = tw_arena_alloc(d->arena, TW_NAME_BYTES, 1);
	d->by_method = tw_arena_zalloc(d->arena, n, sizeof *d->by_method);
	d->by_thread = tw_arena_zalloc(d->arena, (size_t)d->n_threads + 1, sizeof *d->by_thread);
	d->roles = tw_arena_zalloc(d->arena, n, sizeof *d->roles);
	d->is_app = tw_arena_zalloc(d->arena, n, sizeof *d->is_app);
	return d->name && d->by_method && d->by_thread && d->roles && d->is_app;
}

/* The most frequent methods are first, so that only rare ones are skipped when time runs out.  A
 * single name may be expensive, so the deadline is checked for each. */
static void classify_methods(struct tw_detecting *d)
{
	for (uint32_t i = 0; i < d->v.n_methods && !(d->cut & TW_CUT_TIME); i++) {
		classify_method(d, i);
		if (tw_deadline_passed(&d->deadline))
			d->cut |= TW_CUT_TIME;
	}
	d->by_thread[0] = tw_detect_rules_on(d->rules, NULL, false);
	for (uint32_t i = 0; i < d->n_threads; i++)
		d->by_thread[d->threads[i].thread_id] =
		        tw_detect_rules_on(d->rules, &d->threads[i], &d->threads[i] == d->main);
}

/* --- findings --- */

TW_ORDER_BY(by_begin, struct tw_finding, TW_RISING(start_ns), TW_FALLING(wall_ns), TW_RISING(rule))

static enum tw_status collect_findings(struct tw_detecting *d, struct tw_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < d->rules->n; i++)
		n += d->found.sums[i].n_kept;
	d->list = tw_arena_alloc(d->arena, n + 1, sizeof *d->list);
	if (!d->list)
		return tw_oom(err);
	for (size_t i = 0; i < d->rules->n; i++)
		for (uint32_t k = 0; k < d->found.sums[i].n_kept; k++)
			d->list[d->n++] = d->found.sums[i].kept[k];
	TW_SORT(d->list, d->n, by_begin);
	return TW_OK;
}

static enum tw_status find(struct tw_detecting *d, struct tw_err *err)
{
	struct tw_detect_spec *specs = tw_arena_zalloc(d->arena, d->rules->n + 1, sizeof *specs);
	const struct tw_detect_query query = {.rules = specs,
	        .n_rules = d->rules->n,
	        .by_method = d->by_method,
	        .roles = d->roles,
	        .is_app = d->is_app,
	        .n_methods = d->v.n_methods,
	        .by_thread = d->by_thread,
	        .main_id = d->main ? d->main->thread_id : 0,
	        .by_name = name_rules,
	        .arg = d,
	        .keep = (uint32_t)d->keep,
	        .least_message_ns = d->rules->frozen_ns,
	        .deadline = &d->deadline};
	enum tw_status st;

	if (!specs)
		return tw_oom(err);
	for (size_t i = 0; i < d->rules->n; i++)
		specs[i] = (struct tw_detect_spec){d->rules->rules[i].group,
		        d->rules->rules[i].threshold_ns, d->rules->rules[i].notes};
	st = tw_query_detect(d->v.file, &query, d->arena, &d->found, err);
	d->cut |= d->found.cut;
	return st == TW_OK ? collect_findings(d, err) : st;
}

/* By its id if the trace has the process id, otherwise the only thread named "main". */
static const struct tw_thread_info *find_main(const struct tw_detecting *d)
{
	const struct tw_thread_info *named = NULL;
	unsigned n = 0;

	for (uint32_t i = 0; i < d->n_threads; i++) {
		if (d->threads[i].is_main)
			return &d->threads[i];
		if (!tw_str_eq(d->threads[i].name, TW_STR("main")))
			continue;
		named = &d->threads[i];
		n++;
	}
	return n == 1 ? named : NULL;
}

enum tw_status tw_detecting_run(struct tw_detecting *d, struct tw_err *err)
{
	const struct tw_frame_limits limits = {
	        d->rules->slow_ns, d->rules->frozen_ns, TW_FRAMES_MAX, &d->deadline};
	enum tw_status st;

	d->threads = tw_trace_file_threads(d->v.file, &d->n_threads);
	d->main = find_main(d);
	if (!alloc_tables(d))
		return tw_oom(err);
	classify_methods(d);
	st = find(d, err);
	if (st == TW_OK)
		st = tw_detect_frames(d->v.file, &d->found, &limits, d->arena, &d->frames, err);
	d->cut |= d->frames.cut;
	if (st == TW_OK)
		tw_detect_start(&d->found, &d->start);
	return st;
}

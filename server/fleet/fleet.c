#include "server/fleet/fleet.h"
#include "server/stats/rollup.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/base/order.h"

const unsigned tw_fleet_percents[TW_FLEET_QUANTILES] = {50, 75, 95, 99};
const char *const tw_fleet_by_names[TW_FLEET_BYS + 1] = {
        "all", "day", "version", "build", "scenario", "class", "os", "app", "label", NULL};

enum { DAY_BYTES = 32 };

unsigned tw_fleet_by_dims(enum tw_fleet_by by)
{
	static const unsigned dims[TW_FLEET_BYS] = {[TW_FLEET_DAY] = TW_DIM_DAY,
	        [TW_FLEET_VERSION] = TW_DIM_VERSION,
	        [TW_FLEET_BUILD] = TW_DIM_BUILD,
	        [TW_FLEET_SCENARIO] = TW_DIM_SCENARIO,
	        [TW_FLEET_CLASS] = TW_DIM_CLASS,
	        [TW_FLEET_OS] = TW_DIM_OS,
	        [TW_FLEET_APP] = TW_DIM_APP,
	        [TW_FLEET_LABEL] = TW_DIM_LABEL};

	return dims[by];
}

static void take_stat(const struct tw_sketch *s, struct tw_fleet_stat *ret)
{
	*ret = (struct tw_fleet_stat){s->n, s->sum, tw_sketch_mean(s), s->max, {0}, NULL};
	for (int i = 0; i < TW_FLEET_QUANTILES; i++)
		ret->at[i] = tw_sketch_quantile(s, tw_fleet_percents[i]);
}

/* --- groups --- */

struct keyed { /* a cell and its group key */
	const char *scenario, *key;
	const struct tw_rollup_cell *cell;
};

static const char *day_text(int64_t day, struct tw_arena *a)
{
	time_t s = (time_t)(day * (TW_DAY_MS / 1000));
	char *text = tw_arena_alloc(a, DAY_BYTES, 1);
	struct tm tm;

	if (text && (!gmtime_r(&s, &tm) || !strftime(text, DAY_BYTES, "%Y-%m-%d", &tm)))
		text[0] = '\0';
	return text;
}

static const char *key_of(const struct tw_rollup_cell *c, enum tw_fleet_by by, struct tw_arena *a)
{
	const struct tw_rollup_dims *d = &c->dims;
	const char *keys[TW_FLEET_BYS] = {[TW_FLEET_ALL] = "",
	        [TW_FLEET_VERSION] = d->version_name,
	        [TW_FLEET_BUILD] = d->build_id,
	        [TW_FLEET_SCENARIO] = d->scenario,
	        [TW_FLEET_CLASS] = d->device_class,
	        [TW_FLEET_OS] = d->os,
	        [TW_FLEET_APP] = d->app,
	        [TW_FLEET_LABEL] = d->label};

	return by == TW_FLEET_DAY ? day_text(d->day, a) : keys[by];
}

TW_ORDER_BY(compare_groups, struct keyed, TW_RISING(scenario), TW_RISING(key))

enum tw_status tw_fleet_groups(const struct tw_rollup_cell *cells, size_t n, enum tw_fleet_by by,
        bool scenarios, struct tw_arena *a, struct tw_fleet_group **ret, size_t *ret_n,
        struct tw_err *err)
{
	struct keyed *keyed = tw_arena_alloc(a, n + 1, sizeof *keyed);
	struct tw_fleet_group *groups = tw_arena_alloc(a, n + 1, sizeof *groups);
	const struct tw_rollup_cell **sorted =
	        tw_arena_alloc(a, n + 1, sizeof(const struct tw_rollup_cell *));
	size_t n_groups = 0;

	if (!keyed || !groups || !sorted)
		return tw_rollup_fail_too_large(err);
	for (size_t i = 0; i < n; i++) {
		keyed[i] = (struct keyed){scenarios ? cells[i].dims.scenario : "",
		        key_of(&cells[i], by, a), &cells[i]};
		if (!keyed[i].key)
			return tw_rollup_fail_too_large(err);
	}
	TW_SORT(keyed, n, compare_groups);
	for (size_t i = 0; i < n; i++) {
		sorted[i] = keyed[i].cell;
		if (i == 0 || compare_groups(&keyed[i - 1], &keyed[i]) != 0)
			groups[n_groups++] = (struct tw_fleet_group){
			        keyed[i].scenario, keyed[i].key, 0, &sorted[i], 0};
		groups[n_groups - 1].traces += sorted[i]->traces;
		groups[n_groups - 1].n++;
	}
	*ret = groups;
	*ret_n = n_groups;
	return TW_OK;
}

static void copy_id(char out[TW_ROLLUP_ID + 1], const char *id)
{
	memcpy(out, id ? id : "", id ? TW_ROLLUP_ID : 1);
	out[TW_ROLLUP_ID] = '\0';
}

enum tw_status tw_fleet_lengths(const struct tw_fleet_group *g, struct tw_rollup_head *h,
        struct tw_fleet_lengths *ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	tw_rollup_head_clear(h);
	for (size_t i = 0; st == TW_OK && i < g->n; i++) {
		const struct tw_rollup_cell *c = g->cells[i];

		st = tw_rollup_head_merge(h, (const uint8_t *)c->head.ptr, c->head.len, err);
		for (size_t k = 0; st == TW_OK && k < c->n_deltas; k++)
			tw_rollup_head_add(h, c->deltas[k].trace_id, c->deltas[k].duration_ns);
	}
	if (st != TW_OK)
		return st;
	take_stat(&h->lengths, &ret->stat);
	for (int i = 0; i < TW_FLEET_QUANTILES; i++)
		copy_id(ret->at[i], tw_rollup_head_exemplar(h, ret->stat.at[i]));
	copy_id(ret->longest, tw_rollup_head_exemplar(h, ret->stat.max));
	return TW_OK;
}

/* --- methods --- */

static enum tw_status collect_cell(
        const struct tw_rollup_cell *c, struct tw_rollup *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (unsigned m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		if (c->parts[m].len)
			st = tw_rollup_add_part(
			        r, m, (const uint8_t *)c->parts[m].ptr, c->parts[m].len, err);
	for (size_t i = 0; st == TW_OK && i < c->n_deltas; i++) {
		const struct tw_rollup_delta *d = &c->deltas[i];

		st = tw_rollup_add_facts(
		        r, d->trace_id, (const uint8_t *)d->facts.ptr, d->facts.len, err);
	}
	return st;
}

enum tw_status tw_fleet_collect(const struct tw_rollup_cell *const *cells, size_t n,
        struct tw_rollup *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = collect_cell(cells[i], r, err);
	return st;
}

struct named { /* a method and its name */
	const struct tw_rollup_naming *naming;
	const struct tw_rollup_method *method;
};

/* Methods without a name are distinguished by id. */
TW_ORDER_BY(compare_named, struct named, TW_RISING(naming->name), TW_RISING(naming->descriptor),
        TW_FALLING(naming->named), a->naming->named ? 0 : TW_RISING(naming->id))

enum tw_status tw_fleet_methods(const struct tw_rollup *r, const struct tw_rollup_naming *names,
        struct tw_arena *a, struct tw_fleet_method **ret, size_t *ret_n, struct tw_err *err)
{
	struct named *named = tw_arena_alloc(a, (size_t)r->n + 1, sizeof *named);
	struct tw_fleet_method *list = tw_arena_alloc(a, (size_t)r->n + 1, sizeof *list);
	const struct tw_rollup_method **of =
	        tw_arena_alloc(a, (size_t)r->n + 1, sizeof(const struct tw_rollup_method *));
	size_t n = 0;

	if (!named || !list || !of)
		return tw_rollup_fail_too_large(err);
	for (uint32_t i = 0; i < r->n; i++)
		named[i] = (struct named){&names[i], &r->methods[i]};
	TW_SORT(named, r->n, compare_named);
	for (uint32_t i = 0; i < r->n; i++) {
		of[i] = named[i].method;
		if (i == 0 || compare_named(&named[i - 1], &named[i]) != 0)
			list[n++] =
			        (struct tw_fleet_method){.naming = *named[i].naming, .of = &of[i]};
		list[n - 1].n++;
	}
	*ret = list;
	*ret_n = n;
	return TW_OK;
}

struct tw_str tw_fleet_name(const struct tw_rollup_naming *m, struct tw_arena *a)
{
	const char *text = m->name;

	if (m->id == TW_ROLLUP_OTHER)
		text = "(other methods)";
	else if (!text[0])
		text = "(a method that no longer exists)";
	else if (!m->named && m->build_id[0])
		text = tw_arena_printf(a, "%s of build %s", m->name, m->build_id);
	return tw_str_of(text);
}

enum tw_status tw_fleet_stat(const struct tw_rollup_method *const *of, size_t n,
        enum tw_rollup_metric m, struct tw_sketch *s, struct tw_fleet_stat *ret, struct tw_err *err)
{
	struct tw_rollup_worst worst = {0};
	enum tw_status st = TW_OK;

	tw_sketch_clear(s);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_rollup_sum(of[i], m, s, &worst, err);
	if (st != TW_OK)
		return st;
	take_stat(s, ret);
	ret->worst = worst.trace_id;
	return TW_OK;
}

/* --- labels ---
 *
 * Groups cells by the values of a label: the values with most traces, and the rest as one group.
 */

struct value {
	const char *text;
	uint64_t traces;
};

TW_ORDER_BY(by_text, struct value, TW_RISING(text))

TW_ORDER_BY(by_traces, struct value, TW_FALLING(traces), TW_RISING(text))

/* Distinct values, sorted. Cells without the label are skipped. */
static size_t take_values(const struct tw_rollup_cell *cells, size_t n, struct value *values)
{
	size_t n_values = 0, to = 0;

	for (size_t i = 0; i < n; i++)
		if (cells[i].dims.label[0])
			values[n_values++] = (struct value){cells[i].dims.label, cells[i].traces};
	TW_SORT(values, n_values, by_text);
	for (size_t i = 0; i < n_values; i++)
		if (to && strcmp(values[to - 1].text, values[i].text) == 0)
			values[to - 1].traces += values[i].traces;
		else
			values[to++] = values[i];
	return to;
}

/* The value of "key=value"; keys cannot contain '='. */
static const char *value_of(const char *label)
{
	const char *at = strchr(label, '=');

	return at ? at + 1 : "";
}

enum tw_status tw_fleet_label_values(struct tw_rollup_cell *cells, size_t n, size_t top,
        struct tw_arena *a, struct tw_fleet_values *ret, struct tw_err *err)
{
	struct value *values = tw_arena_alloc(a, n + 1, sizeof *values);
	size_t n_values;

	if (!values)
		return tw_fail(err, TW_TOO_LARGE,
		        "too many rollups for one response; narrow the filter or the time range");
	for (size_t i = 0; i < n; i++) {
		cells[i].label = cells[i].dims.label;
		cells[i].dims.label = value_of(cells[i].dims.label);
	}
	n_values = take_values(cells, n, values);
	*ret = (struct tw_fleet_values){.values = n_values};
	if (n_values <= top + 1)
		return TW_OK;
	ret->rest = n_values - top;
	TW_SORT(values, n_values, by_traces);
	TW_SORT(values, top, by_text);
	for (size_t i = 0; i < n; i++) {
		const struct value key = {cells[i].dims.label, 0};

		if (key.text[0] && !bsearch(&key, values, top, sizeof *values, by_text))
			cells[i].dims.label = TW_FLEET_REST;
	}
	return TW_OK;
}

#include "server/catalogue/fleet/regression_json.h"

#include "server/base/clock.h"

static json_t *trace_or_null(const char *id)
{
	return id[0] ? json_string(id) : json_null();
}

json_t *tw_regression_json(const struct tw_regression *r)
{
	const struct tw_regress_found *f = &r->of;
	const struct tw_change_found *s = &f->shift;
	const json_int_t day_ms = f->day * TW_DAY_MS, fixed_ms = f->fixed_day * TW_DAY_MS;
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:I, s:I, s:f, s:f,"
	                      " s:f, s:f, s:I, s:I}",
	        "id", r->id, "app", f->app, "scenario", f->scenario, "method", f->method,
	        "descriptor", f->descriptor, "base", f->base, "head", f->head, "day_ms", day_ms,
	        "percent", (int)f->percent, "before_ns", (json_int_t)f->before_ns, "after_ns",
	        (json_int_t)f->after_ns, "change", s->change, "low", s->low, "high", s->high,
	        "score", s->score, "traces_before", (json_int_t)s->n_before, "traces_after",
	        (json_int_t)s->n_after);
	json_t *more = json_pack(
	        "{s:s, s:f, s:o, s:o, s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:I}", "kind",
	        tw_regress_kind_names[f->kind], "share", f->share, "before_trace",
	        trace_or_null(f->before_trace), "after_trace", trace_or_null(f->after_trace),
	        "status", tw_regress_status_names[r->status], "fixed_in", f->fixed_in,
	        "fixed_day_ms", fixed_ms, "earlier", r->earlier, "owner", r->owner, "note", r->note,
	        "muted_until_ms", (json_int_t)r->muted_until_ms, "first_ms",
	        (json_int_t)r->first_ms, "last_ms", (json_int_t)r->last_ms);
	bool whole = j && more && json_object_update(j, more) == 0;

	json_decref(more);
	if (whole)
		return j;
	json_decref(j);
	return NULL;
}

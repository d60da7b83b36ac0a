#include "server/derive/jobs_names.h"

#include "server/base/log.h"
#include "server/catalogue/catalogue.h"
#include "server/derive/leader.h"
#include "server/storage/blob.h"
#include "server/trace/symbols.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_stored.h"

enum { AT_ONCE = 16, PATH_BYTES = 1500, LOOK_AGAIN_S = 60 };

/* --- one trace --- */

static struct tw_name_counts count(
        const struct tw_map *map, const struct tw_method_info *methods, uint32_t n)
{
	struct tw_name_counts c = {0};
	struct tw_method_name name;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &methods[i];
		bool known = map && m->has_id && tw_map_find(map, m->id, &name);

		c.ids += m->has_id;
		c.slices += m->has_id ? m->count : 0;
		c.resolved += known;
		c.resolved_slices += known ? m->count : 0;
	}
	return c;
}

static enum tw_status count_file(struct tw_app *app, const struct tw_named_trace *t,
        const struct tw_map *map, struct tw_name_counts *ret, struct tw_err *err)
{
	const struct tw_method_info *methods;
	struct tw_trace_file *f = NULL;
	uint32_t n = 0;
	enum tw_status st = tw_trace_stored_open(app->blobs, t->trace_id, &f, err);

	if (st == TW_OK)
		st = tw_trace_file_methods(f, &methods, &n, err);
	if (st == TW_OK)
		*ret = count(map, methods, n);
	tw_trace_file_close(f);
	return st;
}

/* What cannot be read counts as nothing: it must not be tried for ever.  Storage that is away is
 * waited for. */
static enum tw_status count_trace(
        struct tw_app *app, const struct tw_named_trace *t, struct tw_arena *a, struct tw_err *err)
{
	struct tw_name_counts counts = {0};
	struct tw_symbols_ref *ref = NULL;
	struct tw_mapping_ids ids;
	struct tw_err why;
	enum tw_status st = tw_catalogue_mappings(app->catalogue, t, a, &ids, err);

	if (st != TW_OK)
		return st;
	st = tw_symbols_acquire(app->symbols, ids.map, &ref, &why);
	if (st != TW_OK && st != TW_BUSY)
		tw_log_err(TW_LOG_ERROR, "mapping_unreadable", t->build_id, &why);
	if (st != TW_BUSY)
		st = count_file(app, t, tw_symbols_map(ref), &counts, &why);
	tw_symbols_release(app->symbols, ref);
	if (st == TW_BUSY) {
		*err = why;
		return st;
	}
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "names_not_counted", t->trace_id, &why);
	return tw_catalogue_names_set(app->catalogue, t->project_id, t->trace_id, &counts, err);
}

/* --- all that is to be counted --- */

/* *ret_more: there may be more to do. */
static enum tw_status some(
        struct tw_app *app, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_named_trace *traces = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_names_todo(app->catalogue, AT_ONCE, a, &traces, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = count_trace(app, &traces[i], a, err);
	*ret_more = n > 0;
	if (st == TW_OK && n == 0)
		st = tw_catalogue_names_mark(app->catalogue, a, ret_more, err);
	return st;
}

static void count_all(struct tw_periodic *p, void *arg)
{
	struct tw_arena *a = tw_arena_new(4 << 20);
	struct tw_app *app = arg;
	bool more = a != NULL;
	struct tw_err err;

	while (more && !tw_periodic_stopping(p) && tw_leads(app->leader)) {
		tw_arena_reset(a);
		if (some(app, a, &more, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "names_not_counted", "counting names", &err);
			break; /* it is tried again later */
		}
	}
	tw_arena_free(a);
}

enum tw_status tw_names_job_start(struct tw_app *app, struct tw_periodic **ret, struct tw_err *err)
{
	return tw_periodic_start(&(struct tw_periodic_task){"names", count_all,
	                                 tw_leader_look_s(app->leader, LOOK_AGAIN_S) * 1000},
	        app, ret, err);
}

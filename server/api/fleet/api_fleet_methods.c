/*
 * api_fleet_methods.c - method tables over many traces, and one method over versions or days.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "decoder/symbols/names.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/fleet/api_fleet.h"
#include "server/base/text/match.h"

enum { LIMIT_MAX = 1000 };

/* --- methods --- */

enum stat { STAT_P50, STAT_P75, STAT_P95, STAT_P99, STAT_MEAN, STAT_MAX, STAT_SUM, STATS };

struct table {
	unsigned metrics; /* one bit each */
	enum tw_rollup_metric metric;
	enum stat stat;
	unsigned rising;
	int64_t limit, offset;
	struct tw_fleet_method *list;
	size_t n;
};

static int64_t stat_of(const struct tw_fleet_stat *s, enum stat which)
{
	if (which < STAT_MEAN)
		return s->at[which];
	return which == STAT_MEAN ? s->mean : which == STAT_MAX ? s->max : s->sum;
}

static enum tw_status read_metric(const char *text, size_t len, unsigned *ret, struct tw_err *err)
{
	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++)
		if (tw_str_eq((struct tw_str){text, len}, tw_str_of(tw_rollup_metric_names[m]))) {
			*ret = m;
			return TW_OK;
		}
	return tw_fail(err, TW_BAD_REQUEST,
	        "unknown metric %.*s; the metrics are wall, self, cpu, waiting, calls and call",
	        (int)(len < 40 ? len : 40), text);
}

static enum tw_status read_metrics(
        const struct tw_fleet_request *q, const char *dflt, unsigned *ret, struct tw_err *err)
{
	const char *given = tw_req_text(q->req, "metrics");
	struct tw_str rest = tw_str_of(given && given[0] ? given : dflt);
	enum tw_status st = TW_OK;

	*ret = 0;
	while (st == TW_OK && rest.len) {
		struct tw_str one = tw_str_split(&rest, ',');
		unsigned m = 0;

		st = read_metric(one.ptr, one.len, &m, err);
		*ret |= 1U << m;
	}
	return st;
}

/* "p95_self" */
static enum tw_status read_sort(
        const struct tw_fleet_request *q, struct table *t, struct tw_err *err)
{
	static const char *const names[] = {"p50", "p75", "p95", "p99", "mean", "max", "sum"};
	const char *given = tw_req_text(q->req, "sort");
	struct tw_str rest = tw_str_of(given && given[0] ? given : "p95_self");
	struct tw_str stat = tw_str_split(&rest, '_');
	unsigned metric = 0;
	bool known = read_metric(rest.ptr, rest.len, &metric, NULL) == TW_OK;

	t->metric = (enum tw_rollup_metric)metric;
	t->stat = STATS;
	for (unsigned i = 0; i < STATS; i++)
		if (tw_str_eq(stat, tw_str_of(names[i])))
			t->stat = (enum stat)i;
	if (known && t->stat != STATS)
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "sort is p50, p75, p95, p99, mean, max or sum, then _ and wall, self, cpu, "
	        "waiting, calls or call, as in p95_self, not %.60s",
	        given);
}

#define THREAD_PARAMS                                                                              \
	TW_PARAM_TEXT("thread", 0,                                                                 \
	        "Only calls on one kind of thread: `main` (whatever its name), `others` (all "     \
	        "except main), or a name with # for digits, such as pool-#-thread-#. Requires "    \
	        "ClickHouse."),                                                                    \
	        TW_PARAM_TEXT("threads", 0, "The same as thread.")

/* Kinds of thread are stored by ClickHouse alone. */
static enum tw_status read_thread(struct tw_fleet_request *q, struct tw_err *err)
{
	const char *name = tw_api_thread(q->req);
	char *kind = tw_arena_alloc(q->arena, TW_ROLLUP_THREAD_BYTES, 1);

	if (!kind)
		return tw_oom(err);
	if (!name || !name[0] || strcmp(name, "all") == 0)
		return TW_OK;
	if (!tw_fleet_store_of(q)->engine->threads)
		return tw_fail(err, TW_BAD_REQUEST,
		        "methods are counted by thread only with --analytics: omit thread= or use "
		        "/api/v1/fleet/flame");
	tw_rollup_thread_name(tw_str_of(name), strcmp(name, "main") == 0, kind);
	q->thread = kind;
	return TW_OK;
}

const struct tw_param tw_fleet_methods_params[] = {
        TW_PARAM_TEXT("metrics", 0,
                "Some of wall, self, cpu, waiting, calls and call (wall time per call: percentiles "
                "over traces, of the mean of each), separated by commas. The default is "
                "wall,self,calls."),
        TW_PARAM_TEXT("sort", 0,
                "The column to sort by: p50, p75, p95, p99, mean, max or sum, then _ and a "
                "metric. The default is p95_self."),
        TW_PARAM_ENUM("order", tw_orders, ""),
        TW_PARAM_TEXT("q", 0, "Names that contain this text."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_FLAG("waits", true,
                "`false` omits methods that only wait, such as nativePollOnce, Object.wait and "
                "park "
                "(decoder/symbols/waits.def)."),
        THREAD_PARAMS,
        TW_PARAM_NUMBER("limit", 50, 1, LIMIT_MAX, ""),
        TW_API_OFFSET,
        {0},
};

static enum tw_status read_table(struct tw_fleet_request *q, struct table *t, struct tw_err *err)
{
	enum tw_status st = read_metrics(q, "wall,self,calls", &t->metrics, err);

	if (st == TW_OK)
		st = read_thread(q, err);
	if (st == TW_OK)
		st = read_sort(q, t, err);
	t->rising = (unsigned)tw_req_enum(q->req, "order");
	t->limit = tw_req_number(q->req, "limit");
	t->offset = tw_req_number(q->req, "offset");
	t->metrics |= 1U << t->metric;
	return st;
}

static enum tw_status name_methods(
        struct tw_fleet_request *q, const struct tw_rollup *r, struct table *t, struct tw_err *err)
{
	struct tw_rollup_naming *names = NULL;
	uint64_t *ids = tw_arena_alloc(q->arena, (size_t)r->n + 1, sizeof *ids);
	enum tw_status st;

	if (!ids)
		return tw_oom(err);
	for (uint32_t i = 0; i < r->n; i++)
		ids[i] = r->methods[i].id;
	st = tw_catalogue_rollup_names(
	        tw_api_catalogue(q->req), tw_api_project(q->req), ids, r->n, q->arena, &names, err);
	for (uint32_t i = 0; st == TW_OK && i < r->n; i++)
		if (names[i].id == TW_ROLLUP_OTHER) {
			names[i].name = "(other methods)";
			names[i].named = true;
		}
	return st == TW_OK ? tw_fleet_methods(r, names, q->arena, &t->list, &t->n, err) : st;
}

/* With waits=false, removes methods that only wait. */
static void leave_out_waits(const struct tw_fleet_request *q, struct table *t)
{
	size_t n = 0;

	if (tw_req_flag(q->req, "waits"))
		return;
	for (size_t i = 0; i < t->n; i++)
		if (!tw_name_waits(tw_str_of(t->list[i].naming.name)))
			t->list[n++] = t->list[i];
	t->n = n;
}

/* Keeps methods whose names match q=. */
static enum tw_status match_methods(struct tw_fleet_request *q, struct table *t, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(q->req, "q");
	struct tw_match *match = NULL;
	size_t n = 0;
	enum tw_status st;

	if (!text[0])
		return TW_OK;
	st = tw_match_new(text, tw_req_flag(q->req, "regex"), &match, err);
	for (size_t i = 0; st == TW_OK && i < t->n; i++)
		if (tw_match_has(match, tw_str_of(t->list[i].naming.name)))
			t->list[n++] = t->list[i];
	tw_match_free(match);
	t->n = n;
	return st;
}

TW_ORDER_BY(falling, struct tw_fleet_method, TW_FALLING(rank), TW_RISING(naming.name))

static enum tw_status rank_methods(struct tw_fleet_request *q, struct table *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < t->n; i++) {
		struct tw_fleet_method *m = &t->list[i];

		st = tw_fleet_stat(m->of, m->n, t->metric, q->sketch, &m->sorted_by, err);
		m->rank = stat_of(&m->sorted_by, t->stat);
		m->rank = t->rising ? -m->rank : m->rank;
	}
	if (st == TW_OK && t->n)
		TW_SORT(t->list, t->n, falling);
	return st;
}

static enum tw_status put_metrics(struct tw_fleet_request *q,
        const struct tw_rollup_method *const *of, size_t n, unsigned metrics, struct tw_err *err)
{
	struct tw_fleet_stat s;
	enum tw_status st = TW_OK;

	for (unsigned m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++) {
		if (!(metrics >> m & 1))
			continue;
		st = tw_fleet_stat(of, n, m, q->sketch, &s, err);
		tw_json_key_open(&q->j, tw_rollup_metric_names[m], '{');
		tw_fleet_put_stat(q, &s);
		tw_fleet_put_trace(q, "exemplar", s.worst);
		tw_json_close(&q->j, '}');
	}
	return st;
}

static double share(uint64_t n, uint64_t of)
{
	return of ? (double)(n < of ? n : of) / (double)of : 0;
}

static enum tw_status put_method(struct tw_fleet_request *q, const struct table *t,
        const struct tw_fleet_method *m, uint64_t traces, struct tw_err *err)
{
	enum tw_status st;

	tw_json_open(&q->j, '{');
	TW_JSON_MEMBERS(&q->j, &m->naming, name, descriptor);
	tw_json_key_bool(&q->j, "resolved", m->naming.named);
	tw_json_key_text(&q->j, "build_id", m->naming.named ? "" : m->naming.build_id);
	tw_json_key(&q->j, "share");
	tw_json_double(&q->j, share(m->sorted_by.n, traces));
	st = put_metrics(q, m->of, m->n, t->metrics, err);
	tw_json_close(&q->j, '}');
	return st;
}

static enum tw_status put_table(
        struct tw_fleet_request *q, const struct table *t, struct tw_err *err)
{
	uint64_t traces = tw_fleet_traces(q);
	enum tw_status st = TW_OK;

	tw_fleet_put_head(q);
	tw_json_key_bool(&q->j, "by_thread", tw_fleet_store_of(q)->engine->threads);
	tw_json_key_int(&q->j, "total", (int64_t)t->n);
	tw_json_key_open(&q->j, "methods", '[');
	for (size_t i = (size_t)t->offset; st == TW_OK && i < t->n; i++) {
		if (i >= (size_t)(t->offset + t->limit))
			break;
		st = put_method(q, t, &t->list[i], traces, err);
	}
	tw_json_close(&q->j, ']');
	tw_json_close(&q->j, '}');
	return st;
}

enum tw_status tw_fleet_write_methods(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_fleet_group *all = NULL;
	struct table t = {0};
	struct tw_rollup r = {.arena = q->arena};
	size_t n = 0;
	enum tw_status st = read_table(q, &t, err);

	r.metrics = t.metrics;
	if (st == TW_OK)
		st = tw_fleet_read(q, t.metrics, 0, err);
	if (st == TW_OK)
		st = tw_fleet_groups(
		        q->cells, q->n_cells, TW_FLEET_ALL, false, q->arena, &all, &n, err);
	if (st == TW_OK && n)
		st = tw_fleet_collect(all->cells, all->n, &r, err);
	if (st == TW_OK)
		st = name_methods(q, &r, &t, err);
	if (st == TW_OK)
		leave_out_waits(q, &t);
	if (st == TW_OK)
		st = match_methods(q, &t, err);
	if (st == TW_OK)
		st = rank_methods(q, &t, err);
	return st == TW_OK ? put_table(q, &t, err) : st;
}

/* --- one method --- */

struct series {
	const uint64_t *ids;
	size_t n_ids;
	unsigned metrics;
};

static enum tw_status put_point(struct tw_fleet_request *q, const struct tw_fleet_group *g,
        const struct series *s, struct tw_err *err)
{
	struct tw_rollup r = {
	        .arena = q->arena, .metrics = s->metrics, .only = s->ids, .n_only = s->n_ids};
	const struct tw_rollup_method **of;
	enum tw_status st = tw_fleet_collect(g->cells, g->n, &r, err);

	if (st != TW_OK)
		return st;
	of = tw_arena_alloc(q->arena, (size_t)r.n + 1, sizeof(const struct tw_rollup_method *));
	if (!of)
		return tw_oom(err);
	for (uint32_t i = 0; i < r.n; i++)
		of[i] = &r.methods[i];
	tw_json_open(&q->j, '{');
	tw_fleet_put_key(q, g->key);
	tw_json_key_int(&q->j, "of_traces", (int64_t)g->traces);
	st = put_metrics(q, of, r.n, s->metrics, err);
	tw_json_close(&q->j, '}');
	return st;
}

static enum tw_status put_series(struct tw_fleet_request *q, const char *name, enum tw_fleet_by by,
        const struct series *s, struct tw_err *err)
{
	struct tw_fleet_group *groups = NULL;
	size_t n = 0;
	enum tw_status st =
	        tw_fleet_groups(q->cells, q->n_cells, by, false, q->arena, &groups, &n, err);

	if (st != TW_OK)
		return st;
	tw_fleet_put_head(q);
	tw_json_key_text(&q->j, "name", name);
	tw_fleet_put_by(q, by);
	tw_json_key_open(&q->j, "groups", '[');
	for (size_t i = 0; st == TW_OK && i < n && i < TW_FLEET_GROUPS_MAX; i++)
		st = put_point(q, &groups[i], s, err);
	tw_json_close(&q->j, ']');
	tw_json_close(&q->j, '}');
	return st;
}

const struct tw_param tw_fleet_method_params[] = {
        TW_PARAM_REQUIRED("name", 0, "Name of the method, as in /api/v1/fleet/methods."),
        TW_PARAM_TEXT("metrics", 0,
                "Some of wall, self, cpu, waiting, calls and call (wall time per call: percentiles "
                "over traces, of the mean of each), separated by commas. All when absent."),
        THREAD_PARAMS,
        {0},
};

enum tw_status tw_fleet_write_method(struct tw_fleet_request *q, struct tw_err *err)
{
	const char *name = tw_req_text(q->req, "name");
	struct series s = {0};
	enum tw_fleet_by by = TW_FLEET_DAY;
	uint64_t *ids = NULL;
	enum tw_status st = tw_fleet_read_by(q, "day", &by, err);

	if (st == TW_OK)
		st = read_metrics(q, "wall,self,cpu,waiting,calls,call", &s.metrics, err);
	if (st == TW_OK)
		st = read_thread(q, err);
	if (st == TW_OK)
		st = tw_catalogue_rollup_find(tw_api_catalogue(q->req), tw_api_project(q->req),
		        name, q->arena, &ids, &s.n_ids, err);
	if (st == TW_OK && s.n_ids == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no counted trace has a method of that name");
	s.ids = ids;
	if (st == TW_OK)
		st = tw_fleet_read_only(q,
		        &(struct tw_fleet_query){.metrics = s.metrics,
		                .dims = tw_fleet_by_dims(by),
		                .only = s.ids,
		                .n_only = s.n_ids},
		        err);
	if (st == TW_OK)
		st = tw_fleet_sum_label_values(q, err);
	return st == TW_OK ? put_series(q, name, by, &s, err) : st;
}

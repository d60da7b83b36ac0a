/*
 * api_lock.c - the locks that threads waited for, over many traces.
 *
 * A lock is identified by the method that acquired it: calls give only that, reports also the
 * monitor's class. If the method is unknown, the class identifies it.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/fleet/api_fleet.h"
#include "server/base/text/match.h"
#include "server/catalogue/anr/catalogue_anr_index.h"

struct locks {
	struct tw_lock_query of;
	int64_t limit, offset;
	struct tw_match *match; /* NULL: all locks */
	struct tw_lock_row *rows;
	size_t n;
};

static const char *const threads[] = {"main", "all", NULL};
static const char *const sources[] = {"all", "calls", "reports", NULL};
static const char *const sorts[] = {"total", "max", "traces", "waits", NULL};

static const struct tw_param query_params[] = {
        TW_PARAM_ENUM("threads", threads, "The threads whose waits are counted."),
        TW_PARAM_ENUM("thread", threads, "The same as threads."),
        TW_PARAM_ENUM("source", sources,
                "Source of the waits: traced calls, thread dumps (ANRs), or both."),
        TW_PARAM_ENUM("sort", sorts, ""),
        {0},
};
static const struct tw_param locks_params[] = {
        TW_PARAM_TEXT("q", 0, "Methods and classes that contain this text."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_NUMBER("limit", 100, 1, TW_LOCK_ROWS_MAX, ""),
        TW_API_OFFSET,
        {0},
};

static void read_query(struct tw_fleet_request *q, struct tw_lock_query *ret)
{
	const char *whose = tw_req_text(q->req, "thread") ? "thread" : "threads";

	ret->filter = &q->filter;
	ret->name = "";
	ret->others = tw_req_enum(q->req, whose) == 1;
	ret->dumps = (unsigned)tw_req_enum(q->req, "source");
	ret->sort = (unsigned)tw_req_enum(q->req, "sort");
}

static enum tw_status read_locks(struct tw_fleet_request *q, struct locks *l, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(q->req, "q");

	read_query(q, &l->of);
	l->limit = tw_req_number(q->req, "limit");
	l->offset = tw_req_number(q->req, "offset");
	if (!text[0])
		return TW_OK;
	return tw_match_new(text, tw_req_flag(q->req, "regex"), &l->match, err);
}

/* Sorts "A,B", because the order of traces varies. */
static void put_monitors(struct tw_fleet_request *q, const char *monitors)
{
	enum { CLASSES_MAX = 32 };
	struct tw_str rest = tw_str_of(monitors);
	const char *names[CLASSES_MAX];
	size_t n = 0;

	while (rest.len && n < CLASSES_MAX) {
		names[n] = tw_arena_str(q->arena, tw_str_split(&rest, ','));
		n += names[n] != NULL;
	}
	TW_SORT(names, n, tw_by_text);
	tw_json_key_open(&q->j, "monitors", '[');
	for (size_t i = 0; i < n; i++)
		tw_json_str(&q->j, tw_str_of(names[i]));
	tw_json_close(&q->j, ']');
}

static void put_sums(struct tw_fleet_request *q, const struct tw_lock_row *r)
{
	tw_json_key_int(&q->j, "traces", (int64_t)r->traces);
	tw_json_key_int(&q->j, "reports", (int64_t)r->anrs);
	TW_JSON_MEMBERS(&q->j, r, versions, waits, timed, total_ns, max_ns);
	tw_json_key_int(&q->j, "mean_ns", r->timed ? r->total_ns / (int64_t)r->timed : 0);
	TW_JSON_MEMBERS(&q->j, r, first_ms, last_ms, holder);
	tw_fleet_put_trace(q, "worst", r->worst);
	tw_json_key_text(&q->j, "worst_source", r->worst_in_calls ? "calls" : "reports");
}

static void put_lock(struct tw_fleet_request *q, const struct tw_lock_row *r)
{
	tw_json_open(&q->j, '{');
	tw_json_key_text(&q->j, "name", r->owner[0] ? r->owner : r->monitors);
	tw_json_key_text(&q->j, "owner", r->owner);
	put_monitors(q, r->monitors);
	put_sums(q, r);
	tw_json_close(&q->j, '}');
}

static bool matches(const struct locks *l, const struct tw_lock_row *r)
{
	return !l->match || tw_match_has(l->match, tw_str_of(r->owner)) ||
	       tw_match_has(l->match, tw_str_of(r->monitors));
}

static size_t keep_matching(struct locks *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (matches(l, &l->rows[i]))
			l->rows[n++] = l->rows[i];
	return n;
}

static void put_head(struct tw_fleet_request *q)
{
	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "since_ms", q->filter.first_day * TW_DAY_MS);
	tw_json_key_int(&q->j, "until_ms", (q->filter.last_day + 1) * TW_DAY_MS);
}

static enum tw_status answer_locks(struct tw_fleet_request *q, struct tw_err *err)
{
	struct locks l = {0};
	enum tw_status st = read_locks(q, &l, err);

	if (st == TW_OK)
		st = tw_catalogue_locks(tw_api_catalogue(q->req), tw_api_project(q->req), &l.of,
		        q->arena, &l.rows, &l.n, err);
	if (st == TW_OK) {
		l.n = keep_matching(&l);
		put_head(q);
		tw_json_key_int(&q->j, "total", (int64_t)l.n);
		tw_json_key_open(&q->j, "locks", '[');
		for (size_t i = (size_t)l.offset; i < l.n && i < (size_t)(l.offset + l.limit); i++)
			put_lock(q, &l.rows[i]);
		tw_json_close(&q->j, ']');
		tw_json_close(&q->j, '}');
	}
	tw_match_free(l.match);
	return st;
}

/* --- one lock --- */

static void put_points(struct tw_fleet_request *q, const struct tw_lock_row *rows, size_t n)
{
	tw_json_key_open(&q->j, "groups", '[');
	for (size_t i = 0; i < n; i++) {
		tw_json_open(&q->j, '{');
		tw_json_key_text(&q->j, "key", rows[i].owner);
		put_sums(q, &rows[i]);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static const char *const bys[] = {"version", "day", NULL};

static const struct tw_param lock_params[] = {
        TW_PARAM_REQUIRED("name", 0, "Name of the lock, as in /api/v1/fleet/locks."),
        TW_PARAM_ENUM("by", bys, ""),
        {0},
};

static enum tw_status answer_lock(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_lock_query of;
	struct tw_lock_row *all = NULL, *rows = NULL;
	size_t n_all = 0, n = 0;
	int by;
	struct tw_catalogue *c = tw_api_catalogue(q->req);
	const char *project = tw_api_project(q->req);
	enum tw_status st;

	read_query(q, &of);
	of.name = tw_req_text(q->req, "name");
	by = tw_req_enum(q->req, "by");
	st = tw_catalogue_locks(c, project, &of, q->arena, &all, &n_all, err);
	if (st == TW_OK && n_all == 0)
		st = tw_fail(err, TW_NOT_FOUND,
		        "no thread waited for a lock of that name in that time range and filter");
	if (st == TW_OK)
		st = tw_catalogue_lock_series(c, project, &of, by == 1, q->arena, &rows, &n, err);
	if (st != TW_OK)
		return st;
	put_head(q);
	tw_json_key(&q->j, "lock");
	put_lock(q, all);
	tw_json_key_text(&q->j, "by", bys[by]);
	put_points(q, rows, n);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

const struct tw_route tw_routes_lock[] = {
        TW_ROUTE("GET", "/api/v1/fleet/locks", TW_NEED_READ, "Locks that threads waited for",
                .params = TW_PARAMS(locks_params, query_params, tw_fleet_any_label_params),
                .fleet_query = answer_locks),
        TW_ROUTE("GET", "/api/v1/fleet/lock", TW_NEED_READ, "One lock over versions or days",
                .params = TW_PARAMS(lock_params, query_params, tw_fleet_any_label_params),
                .fleet_query = answer_lock),
        {0},
};

/*
 * api_calls.c - single calls of a trace: all of one method, those longer than a duration, the
 * neighbours of one.
 */
#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/query/query.h"

/* TID.BEGIN.DEPTH, as in the page's URL. */
static enum tw_status read_around(
        const struct tw_req *r, struct tw_call *ret, bool *ret_given, struct tw_err *err)
{
	const char *text = tw_req_text(r, "around");
	struct tw_str rest = tw_str_of(text ? text : "");
	uint64_t parts[3] = {0};

	*ret_given = rest.len > 0;
	for (unsigned i = 0; *ret_given && i < 3; i++)
		if (!tw_str_u64(
		            tw_str_split(&rest, '.'), i < 2 ? INT64_MAX : UINT32_MAX, &parts[i]))
			return tw_fail(err, TW_BAD_REQUEST,
			        "around must be a call as TID.BEGIN_NS.DEPTH, not %.60s", text);
	if (rest.len)
		return tw_fail(err, TW_BAD_REQUEST,
		        "around must be a call as TID.BEGIN_NS.DEPTH, not %.60s", text);
	*ret = (struct tw_call){
	        .tid = parts[0], .start_ns = (int64_t)parts[1], .depth = (uint32_t)parts[2]};
	return TW_OK;
}

static const char *const sorts[] = {"duration", "start", NULL};

static const struct tw_param calls_params[] = {
        TW_PARAM_OPTIONAL_NUMBER("method", 0, UINT32_MAX - 1,
                "Index of the method; without it, calls of every method."),
        TW_PARAM_NUMBER("min_ns", 0, 0, INT64_MAX, "Shortest duration that is listed."),
        TW_PARAM_NUMBER("max_ns", INT64_MAX, 0, INT64_MAX, "Longest duration that is listed."),
        TW_PARAM_ENUM("sort", sorts, "The longest calls, longest first, or the first ones."),
        TW_PARAM_NUMBER("limit", 100, 0, TW_CALLS_MAX, ""),
        TW_PARAM_TEXT("around", 0,
                "A call as TID.BEGIN_NS.DEPTH: it and its neighbours among these calls are "
                "returned, in all threads and (`_here`) in its own."),
        {0},
};

static enum tw_status read_calls(const struct tw_trace_query *q, struct tw_calls_query *ret,
        struct tw_call *around, struct tw_err *err)
{
	const struct tw_req *r = q->v.req;
	const int64_t method = tw_req_number_or(r, "method", -1);
	bool has_around = false;
	enum tw_status st = read_around(r, around, &has_around, err);

	*ret = (struct tw_calls_query){.sel = &q->sel,
	        .min_ns = tw_req_number(r, "min_ns"),
	        .max_ns = tw_req_number(r, "max_ns")};
	if (st == TW_OK && method >= (int64_t)q->v.n_methods)
		st = tw_fail(err, TW_NOT_FOUND, "the trace has no method %lld", (long long)method);
	ret->method = method < 0 ? TW_NO_METHOD : (uint32_t)method;
	ret->limit = (uint32_t)tw_req_number(r, "limit");
	ret->by_time = tw_req_enum(r, "sort") == 1;
	ret->around = has_around ? around : NULL;
	return st;
}

static void put_call(struct tw_trace_query *q, const struct tw_call *c)
{
	tw_json_open(&q->j, '{');
	TW_JSON_MEMBERS(&q->j, c, tid, start_ns, dur_ns);
	tw_json_key_int_or_null(&q->j, "cpu_ns", c->cpu_ns);
	TW_JSON_MEMBERS(&q->j, c, depth, method);
	tw_json_key_str(&q->j, "name", tw_trace_query_name(q, c->method));
	tw_trace_query_put_descriptor(q, c->method);
	tw_json_close(&q->j, '}');
}

static void put_call_or_null(
        struct tw_trace_query *q, const char *key, bool there, const struct tw_call *c)
{
	tw_json_key(&q->j, key);
	if (there)
		put_call(q, c);
	else
		tw_json_null(&q->j);
}

static void put_histogram(struct tw_trace_query *q, const struct tw_calls *c)
{
	tw_json_key_open(&q->j, "histogram", '[');
	for (uint32_t i = 0; i < TW_CALLS_BARS; i++) {
		if (!c->bars[i])
			continue;
		tw_json_open(&q->j, '{');
		tw_json_key_int(&q->j, "from_ns", tw_calls_bar_from(i));
		tw_json_key_int(&q->j, "to_ns",
		        i + 1 < TW_CALLS_BARS ? tw_calls_bar_from(i + 1) : INT64_MAX);
		tw_json_key_int(&q->j, "calls", (int64_t)c->bars[i]);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static enum tw_status answer_calls(struct tw_trace_query *q, struct tw_err *err)
{
	struct tw_calls_query query;
	struct tw_call around;
	struct tw_calls *c = tw_arena_alloc(q->arena, 1, sizeof *c);
	enum tw_status st = c ? read_calls(q, &query, &around, err) : tw_oom(err);

	if (st == TW_OK)
		st = tw_query_calls(q->v.file, &query, &q->deadline, q->arena, c, err);
	if (st != TW_OK)
		return st;
	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "count", (int64_t)c->n);
	tw_json_key_int(&q->j, "sum_ns", c->sum_ns);
	tw_json_key_int(&q->j, "max_ns", c->longest_ns);
	TW_JSON_MEMBERS(&q->j, c, p50_ns, p95_ns);
	put_histogram(q, c);
	tw_json_key_int(&q->j, "total", (int64_t)c->listable);
	tw_json_key_open(&q->j, "calls", '[');
	for (uint32_t i = 0; i < c->n_list; i++)
		put_call(q, &c->list[i]);
	tw_json_close(&q->j, ']');
	put_call_or_null(q, "around", c->has_at, &c->at);
	put_call_or_null(q, "previous", c->has_before, &c->before);
	put_call_or_null(q, "next", c->has_after, &c->after);
	put_call_or_null(q, "previous_here", c->has_before_here, &c->before_here);
	put_call_or_null(q, "next_here", c->has_after_here, &c->after_here);
	tw_json_key_bool(&q->j, "partial", c->partial);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

const struct tw_route tw_routes_calls[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/calls", TW_NEED_READ,
                "Calls of a method: durations, the longest, neighbours of one",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params, calls_params),
                .trace_query = answer_calls),
        {0},
};

/* Uploads that crashed decoders, for the project's admins: list, download, retry, discard. */
#include <string.h>

#include "server/api/api.h"
#include "server/api/ingest/api_ingest.h"
#include "server/base/log.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/derive/delete.h"

static enum tw_status find(
        struct tw_req *r, struct tw_quarantined *ret, const char **ret_id, struct tw_err *err)
{
	enum tw_status st = tw_api_trace_id(r, ret_id, err);

	return st == TW_OK ? tw_catalogue_quarantine_get(tw_api_catalogue(r), tw_api_project(r),
	                             *ret_id, tw_req_arena(r), ret, err)
	                   : st;
}

static const struct tw_param list_params[] = {
        TW_PARAM_NUMBER("limit", 100, 1, 500, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	struct tw_quarantined *rows = NULL;
	const char *cursor = "";
	uint64_t traces, bytes;
	size_t n = 0;
	enum tw_status st = tw_catalogue_quarantine(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_text_or_empty(r, "cursor"), (uint32_t)tw_req_number(r, "limit"),
	        tw_req_arena(r), &rows, &n, &cursor, err);

	if (st == TW_OK)
		st = tw_catalogue_quarantine_size(
		        tw_api_catalogue(r), tw_api_project(r), &traces, &bytes, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{so sI sI ss?}", "quarantine",
	                tw_rows_json(&tw_quarantined_fields, rows, n, sizeof *rows), "total",
	                (json_int_t)traces, "total_bytes", (json_int_t)bytes, "next_cursor",
	                cursor[0] ? cursor : NULL),
	        err);
}

static enum tw_status save(struct tw_req *r, struct tw_err *err)
{
	struct tw_quarantined found;
	const char *id;
	enum tw_status st = find(r, &found, &id, err);

	return st == TW_OK ? tw_api_stream_part(r, id, err) : st;
}

static enum tw_status retry(struct tw_req *r, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	struct tw_quarantined found;
	const char *id;
	enum tw_status st = find(r, &found, &id, err);

	if (st == TW_OK && found.state != TW_TRACE_FAILED)
		st = tw_fail(
		        err, TW_CONFLICT, "the trace is already being decoded: wait for its state");
	if (st == TW_OK)
		st = tw_ingest_has_space(r, found.bytes, err);
	if (st == TW_OK)
		st = tw_catalogue_trace_requeue(api->catalogue, tw_api_project(r), id, err);
	if (st != TW_OK)
		return st;
	tw_jobs_wake(api->jobs);
	tw_log(TW_LOG_INFO, "quarantine_retry", tw_log_text("id", tw_req_id(r)),
	        tw_log_text("trace", id), tw_log_text("key", tw_req_caller(r)->key_id));
	return tw_req_reply_json(r, 202, json_pack("{ss ss}", "id", id, "state", "queued"), err);
}

static enum tw_status discard(struct tw_req *r, struct tw_err *err)
{
	struct tw_quarantined found;
	const char *id;
	enum tw_status st = find(r, &found, &id, err);

	if (st == TW_OK)
		st = tw_delete_trace(&tw_api_of(r)->deleter, tw_api_project(r), id,
		        TW_DELETE_WITH_SUMS, tw_req_arena(r), err);
	if (st != TW_OK)
		return st;
	tw_log(TW_LOG_INFO, "quarantine_discarded", tw_log_text("id", tw_req_id(r)),
	        tw_log_text("trace", id), tw_log_text("key", tw_req_caller(r)->key_id));
	return tw_req_reply_empty(r, 204, err);
}

const struct tw_route tw_routes_quarantine[] = {
        TW_ROUTE("GET", "/api/v1/quarantine", TW_NEED_ADMIN,
                "Quarantined uploads: decoders crashed on them", .params = TW_PARAMS(list_params),
                .end = list),
        TW_ROUTE("GET", "/api/v1/quarantine/{id}/{part}", TW_NEED_ADMIN,
                "The content of a quarantined upload's part", .end = save),
        TW_ROUTE("POST", "/api/v1/quarantine/{id}", TW_NEED_ADMIN,
                "Decodes a quarantined upload again", .end = retry),
        TW_ROUTE("DELETE", "/api/v1/quarantine/{id}", TW_NEED_ADMIN, "Deletes a quarantined upload",
                .end = discard),
        {0},
};

/*
 * api.h - the parts of the server that endpoints use, and all routes; small JSON bodies,
 * JSON of rows, limits of texts.
 */
#ifndef TW_API_H
#define TW_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "server/base/config.h"
#include "server/base/text/json.h"
#include "server/base/text/members.h"
#include "server/catalogue/storage/shared_files.h"
#include "server/derive/delete.h"
#include "server/http/http.h"
#include "server/ingest/commit_upload.h"

struct tw_deadline;
struct tw_part;
struct tw_periodic;
struct tw_trace_row;

struct tw_api { /* borrowed */
	const struct tw_config *config;
	char node_name[33]; /* display name: --node, or the machine's name */
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_fleet_store *fleet;     /* fleet_store.h */
	struct tw_symbols *symbols;       /* open mappings by build */
	struct tw_sources *sources;       /* source_query.h */
	struct tw_resumes *resumes;       /* resume.h */
	struct tw_backlog *backlog;       /* backlog.h; NULL: no limit */
	struct tw_preflights *preflights; /* preflight.h; NULL: none */
	struct tw_recorder *recorder;     /* trace_record.h */
	struct tw_store_job *store_job;   /* jobs_store.h */
	struct tw_commit_parts commit;
	struct tw_deleter deleter;
	struct tw_jobs *jobs;
	struct tw_pipeline *pipeline; /* NULL, as the next three: this server does not decode */
	struct tw_hook_runner *hooks; /* jobs_hook.h */
	struct tw_retention_job *retention; /* jobs_retention.h */
	struct tw_lease *lease;             /* also NULL if there are no other servers */
	struct tw_health *health;
	struct tw_oidc *oidc; /* NULL: no provider */
	struct tw_throttle *throttle;
	struct tw_secret_key *secret_key; /* encrypts secrets of webhooks */
	uint8_t ticket_key[32];           /* ticket.h */
	/* for /metrics */
	struct tw_metrics *metrics;
	struct tw_metric_history *history; /* metric_history.h */
	struct tw_quota *quota;
	struct tw_response_cache *response_cache;
	struct tw_response_memory *response_memory;
};

/* The context of a request's server (http.h). */
static inline struct tw_api *tw_api_of(const struct tw_req *r)
{
	return tw_req_context(r);
}

static inline struct tw_catalogue *tw_api_catalogue(const struct tw_req *r)
{
	return tw_api_of(r)->catalogue;
}

/* The caller's project. */
static inline const char *tw_api_project(const struct tw_req *r)
{
	return tw_req_caller(r)->project_id;
}

enum { TW_MAX_SMALL_BODY = 64 << 10 };

/* A route whose `json` is set takes a small JSON object: completes the route.  TW_BAD_REQUEST with
 * the offset of the error. */
void tw_api_take_json(struct tw_route *route);
/* The deadline of the request's response. */
struct tw_deadline tw_api_deadline(struct tw_req *r);

/* The caller's name, displayed with the texts that they write; valid during the request. */
const char *tw_api_author(struct tw_req *r);

/* The id in the path, or TW_NOT_FOUND if it is not a valid id. */
enum tw_status tw_api_trace_id(struct tw_req *r, const char **ret, struct tw_err *err) TW_MUST_USE;

/* "app-scenario-id" and the suffix, in characters that are safe in all file systems and headers;
 * valid during the request. */
const char *tw_api_file_name(struct tw_req *r, const struct tw_trace_row *row, const char *suffix);

/* A Trace of the API without report and clock bases (NULL: out of memory). */
json_t *tw_api_trace(const struct tw_trace_row *row);

/* Replies with the bytes of the trace's part that the path names, as a download. */
enum tw_status tw_api_stream_part(struct tw_req *r, const char *id, struct tw_err *err) TW_MUST_USE;

/* Stores it as a setting of the caller's project; value NULL: TW_NOMEM. */
enum tw_status tw_api_store_setting(
        struct tw_req *r, const char *key, const json_t *value, struct tw_err *err) TW_MUST_USE;

/* thread= and threads=, which mean the same; NULL: neither. */
extern const struct tw_param tw_api_thread_params[];
const char *tw_api_thread(const struct tw_req *r);

/* A periodic task (periodic.h) that adds a sample to api->history; `arg`: the struct tw_api. */
void tw_api_sample_metrics(struct tw_periodic *p, void *arg);

/* --- routes (routes.c) --- */

/* All routes in matching order, one area after the other.
 *
 * Each area is `const struct tw_route tw_routes_<area>[]` in its api_*.c, ending with an element
 * without method, and is listed in routes.c.  A route states everything about itself (struct
 * tw_route in http.h); schema/openapi.py copies it to schema/openapi.json. */

struct tw_route;
const struct tw_route *tw_routes(size_t *ret_n);

#endif

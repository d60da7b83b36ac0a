/* app.h - the parts of a running server, passed to every route. */
#ifndef TW_APP_H
#define TW_APP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "server/base/caller.h"
#include "server/base/config.h"

struct tw_app {
	const struct tw_config *config;
	const struct tw_route *routes; /* http.h */
	size_t n_routes;
	struct tw_catalogue *catalogue;       /* catalogue.h */
	struct tw_blobs *blobs;               /* blob.h */
	struct tw_resumes *resumes;           /* resume.h: resumable uploads */
	struct tw_resume_cleaner *cleaner;    /* resume_clean.h; NULL: a single server needs none */
	struct tw_backlog *backlog;           /* backlog.h; NULL: no limit */
	char node_name[33];                   /* display name: --node, or the machine's name */
	char node[64];                        /* unique to this process among all servers */
	struct tw_preflights *preflights;     /* preflight.h; NULL: none */
	struct tw_jobs *jobs;                 /* jobs.h */
	struct tw_health *health;             /* health.h */
	struct tw_http_waits *waits;          /* http_wait.h; NULL: no request waits for a job */
	struct tw_periodic *waiters;          /* their thread: woken when a job ends */
	bool storage_unproven;                /* it was unreachable at the start */
	struct tw_store_job *store_job;       /* jobs_store.h */
	struct tw_recorder *recorder;         /* trace_record.h; NULL: no records are written */
	struct tw_lease *leader;              /* lease.h; NULL: there are no other servers */
	struct tw_pipeline *pipeline;         /* pipeline.h; NULL: this server does not decode */
	struct tw_hook_runner *hooks;         /* jobs_hook.h; NULL: this server does not decode */
	struct tw_secret_key *seal;           /* encrypts secrets of webhooks */
	struct tw_retention_job *retention;   /* jobs_retention.h */
	const struct tw_deleter *deleter;     /* delete.h */
	const struct tw_commit_parts *commit; /* commit_upload.h */
	struct tw_fleet_store *fleet;         /* fleet_store.h */
	struct tw_symbols *symbols;           /* symbols.h: open mappings by build */
	struct tw_response_cache *answers;    /* response_cache.h; NULL: no response cache */
	struct tw_answer_memory *answer_memory; /* answer_memory.h; NULL: responses are not
	                                         * counted */
	struct tw_metrics *metrics;             /* metrics.h */
	struct tw_tls *tls;                     /* tls.h; NULL: plain HTTP */
	struct tw_oidc *oidc;                   /* oidc.h; NULL: no provider */
	struct tw_throttle *throttle;           /* auth_throttle.h */
	struct tw_quota *quota;                 /* quota.h; NULL: no limits */
	struct tw_periodic *keep_quota;
	struct tw_sources *sources; /* source_query.h */
	uint8_t ticket_key[32];     /* ticket.h */
	_Atomic bool stopping;      /* the server is stopping: new uploads are refused */
};

#endif

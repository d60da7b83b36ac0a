/*
 * config.h - every setting, its default, and where it may come from.
 *
 * One table (config.def): flag --name, environment TRACEWELL_NAME, line
 * `name = value` of the file named by --config; the flag wins, then the
 * environment, then the file.
 */
#ifndef TW_CONFIG_H
#define TW_CONFIG_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/limits.h"
#include "server/base/proxy.h"
#include "server/base/storage.h"

/* The provider by which people sign in; what each is says config.def.  Read and judged by oidc.c.
 */
struct tw_oidc_config {
	const char *issuer; /* "": none */
	const char *client_id, *client_secret_file;
	const char *name, *scopes, *name_claim, *email_domains;
	const char *role_claim, *roles, *new_roles;
	const char *ca_file;
	bool create, loopback_http;
};

struct tw_config {
	const char *data_dir;
	const char *catalog; /* postgres://..., "": what the folder has */
	struct tw_storage storage;
	const char *listen;          /* "127.0.0.1:8080"; port 0 picks one, told in the log */
	bool behind_proxy;           /* allows another address than loopback: a proxy does TLS */
	const char *trusted_proxies; /* addresses and networks, "" nobody; read into: */
	struct tw_proxies proxies;
	const char *proxy_user_header;  /* names the signed-in person, "" none */
	const char *tls_cert, *tls_key; /* "": plain HTTP */
	const char *public_url;         /* "" : from the request's Host */
	struct tw_oidc_config oidc;
	const char *perfetto_ui; /* https://ui.perfetto.dev */
	const char *speedscope_ui, *firefox_ui;
	unsigned ticket_s;
	unsigned session_idle_s, session_max_s;
	const char *log_level;  /* debug, info, warn, error */
	const char *log_format; /* logfmt, json */
	uint64_t max_body_bytes;
	uint64_t max_mapping_bytes;             /* decoded text */
	unsigned max_open_uploads, keep_open_s; /* resumable, of one key */
	uint64_t max_open_bytes;
	unsigned max_in_flight; /* uploads at once */
	unsigned max_queue;     /* traces that wait to be decoded */
	uint64_t max_queue_bytes;
	unsigned key_requests, device_requests; /* a minute; 0: any number */
	uint64_t key_bytes, device_bytes;       /* a day */
	unsigned connections, connections_per_address, connection_timeout_s;
	unsigned http_threads, query_threads, decode_workers;
	uint64_t worker_memory_bytes;
	unsigned worker_cpu_s, worker_wall_s, worker_tries;
	bool several;             /* other servers are at work in the catalogue and the folder */
	const char *role;         /* what this server does; read into: */
	const char *node;         /* "": the machine's name */
	unsigned roles;           /* role.h */
	const char *repositories; /* folder of clones, "": none */
	bool worker_jail;         /* decoders may make no system call but those they need */
	unsigned min_free_percent;
	uint64_t reserve_bytes;
	unsigned retention_every_s, max_disk_percent, figures_days, audit_days;
	bool adopt;         /* a data folder with traces that the catalogue does not know */
	unsigned lost_days; /* of files in lost/ */
	unsigned flame_nodes, query_deadline_ms;
	uint64_t answer_memory_bytes, response_cache_bytes;
	unsigned drain_s, shutdown_s;
	const char *webhook_private; /* networks that webhooks may reach all the same */
	const char *secret_key_file;
	bool new_secret_key;
	const char *smtp_url, *smtp_user, *smtp_password_file, *smtp_ca_file,
	        *mail_from;         /* "": no mail */
	const char *metrics_listen; /* "": with everything else */
	struct tw_limits limits;    /* of a decode */
};

/* args: the flags after the subcommand; values live in the arena. Unknown flags and bad values
 * are TW_BAD_REQUEST with a sentence. */
enum tw_status tw_config_load(struct tw_arena *a, int argc, char **argv, struct tw_config *ret,
        struct tw_err *err) TW_MUST_USE;
/* Variables TRACEWELL_* of the environment that are no setting but much like one, both as flags are
 * spelled.  Others are let be: orchestrators make such of the names of services. */
void tw_config_each_mistaken(void (*each)(const char *flag, const char *meant));

/* "127.0.0.1:8080", "[::1]:0", "localhost:80" into host (without brackets) and port. */
bool tw_listen_split(const char *listen, char *host, size_t cap, uint16_t *ret_port);

/* Prints every setting with default and meaning (for --help). */
void tw_config_help(void);

#endif

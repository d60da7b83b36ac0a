/*
 * config.h - all settings, their defaults and their sources.
 *
 * One table (config.def): flag --name, environment TRACEWELL_NAME, line `name = value` of the file
 * given by --config.  The flag takes precedence, then the environment, then the file.
 */
#ifndef TW_CONFIG_H
#define TW_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/limits.h"
#include "server/base/proxy.h"
#include "server/base/storage.h"

/* The OpenID provider for sign-in; config.def describes the fields.  Parsed and validated by
 * oidc.c. */
struct tw_oidc_config {
	const char *issuer; /* "": none */
	const char *client_id, *client_secret_file;
	const char *name, *scopes, *name_claim, *email_domains;
	const char *role_claim, *roles, *new_roles;
	const char *ca_file;
	bool create, loopback_http;
};

struct tw_analytics {    /* where sums of many traces are; config.def describes the fields */
	const char *url; /* "": in the catalogue */
	const char *user, *password_file, *ca_file;
};

struct tw_config {
	const char *data_dir;
	const char *catalog; /* postgres://...; "": the data folder's */
	struct tw_storage storage;
	struct tw_analytics analytics;
	const char *listen;          /* "127.0.0.1:8080"; port 0 picks one, which is logged */
	bool behind_proxy;           /* allows a non-loopback address: a proxy terminates TLS */
	const char *trusted_proxies; /* addresses and networks, "" none; parsed into proxies */
	struct tw_proxies proxies;
	const char *proxy_user_header;  /* contains the signed-in person, "" none */
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
	uint64_t max_mapping_bytes;                 /* decoded text */
	unsigned max_open_uploads, upload_expiry_s; /* resumable, per key */
	uint64_t max_open_bytes;
	unsigned max_in_flight; /* concurrent uploads */
	unsigned max_queue;     /* traces waiting to be decoded */
	uint64_t max_queue_bytes;
	unsigned key_requests, device_requests; /* per minute; 0: no limit */
	uint64_t key_bytes, device_bytes;       /* per day */
	unsigned connections, connections_per_address, connection_timeout_s;
	unsigned http_threads, query_threads, decode_workers, decode_group;
	uint64_t worker_memory_bytes;
	unsigned worker_cpu_s, worker_wall_s, worker_attempts;
	bool several;             /* other servers share the catalogue and the folder */
	const char *role;         /* roles of this server; parsed into roles */
	const char *node;         /* "": the machine's name */
	unsigned roles;           /* role.h */
	const char *repositories; /* folder of git clones, "": none */
	bool worker_jail;         /* decoders may make only the system calls they need */
	unsigned min_free_percent;
	uint64_t reserve_bytes;
	unsigned retention_every_s, max_disk_percent, figures_days, audit_days;
	bool adopt;         /* a data folder with traces that the catalogue does not know */
	unsigned lost_days; /* of files in lost/ */
	unsigned flame_nodes, query_deadline_ms;
	uint64_t response_memory_bytes, response_cache_bytes;
	unsigned drain_s, shutdown_s;
	const char *webhook_private; /* private networks that webhooks may reach */
	const char *secret_key_file;
	bool new_secret_key;
	const char *smtp_url, *smtp_user, *smtp_password_file, *smtp_ca_file,
	        *mail_from;         /* "": no mail */
	const char *metrics_listen; /* "": on the main address */
	struct tw_limits limits;    /* of a decode */
};

/* args: the flags after the subcommand; values are allocated in the arena.  Unknown flags and bad
 * values fail with TW_BAD_REQUEST and a message. */
enum tw_status tw_config_load(struct tw_arena *a, int argc, char **argv, struct tw_config *ret,
        struct tw_err *err) TW_MUST_USE;
/* Calls `each` with environment variables TRACEWELL_* that are not settings but resemble one, both
 * spelled as flags.  Others are ignored: orchestrators create such variables from service names. */
void tw_config_each_misspelt(void (*each)(const char *flag, const char *meant));

/* Splits "127.0.0.1:8080", "[::1]:0", "localhost:80" into host (without brackets) and port. */
bool tw_listen_split(const char *listen, char *host, size_t cap, uint16_t *ret_port);

/* Prints every setting with default and meaning, for --help. */
void tw_config_help(void);

/* A file of settings that the server writes for its own next start.
 *
 * One `name = value` per line, as in a configuration file, so that tw_config_load reads it.
 * Thread: one at a time per path. */
struct tw_setting_line {
	const char *name, *value; /* value "": left out */
};

/* Reads such a file into *ret, with strings in the arena.  Leaves *ret unchanged if the file does
 * not exist. */
enum tw_status tw_settings_record_read(const char *path, struct tw_arena *a, struct tw_config *ret,
        struct tw_err *err) TW_MUST_USE;
/* Replaces the file.  `comment` becomes its first line.  If the first setting has no value, the
 * file is deleted instead. */
enum tw_status tw_settings_record_write(const char *path, const char *comment,
        const struct tw_setting_line *lines, size_t n, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * cli_server.h - requests of a subcommand to a server's API: --server, --key, --where K=V.
 */
#ifndef TW_CLI_SERVER_H
#define TW_CLI_SERVER_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "server/cli/client/push_client.h"

enum { TW_CLI_WHERE_MAX = 32, TW_CLI_QUERY_BYTES = 12 << 10 };

struct tw_cli_server {
	const char *server, *key;
	const char *where[TW_CLI_WHERE_MAX];
	size_t n_where;
	struct tw_push_client *client;
	bool misused; /* the failure is not the server's fault */
	bool unsent;  /* the request could not be made */
};

/* Flags of commands that query a server.  The environment keeps the key out of the process list. */
#define TW_CLI_SERVER(to)                                                                          \
	{                                                                                          \
		"server", .value = (to), .needed = true                                            \
	}
#define TW_CLI_KEY(to)                                                                             \
	{                                                                                          \
		"key", .value = (to), .needed = true, .env = "TRACEWELL_KEY"                       \
	}
#define TW_CLI_WHERE(to, most, ret_n)                                                              \
	{                                                                                          \
		"where", .list = (to), .max = (most), .n = (ret_n), .fits = tw_cli_is_where,       \
		         .form = "K=V with a K of lower-case letters"                              \
	}
bool tw_cli_is_where(const char *pair);

/* GET path?where...&pairs; `pairs` are name, value, ..., NULL.  One attempt unless `patient`.  The
 * caller frees *ret with json_decref. */
enum tw_status tw_cli_server_get(struct tw_cli_server *a, const char *path,
        const char *const pairs[], bool patient, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Reports the failure; returns the exit code. */
int tw_cli_server_failed(
        const struct tw_cli_server *a, const char *command, const struct tw_err *err);
void tw_cli_server_end(struct tw_cli_server *a);

#endif

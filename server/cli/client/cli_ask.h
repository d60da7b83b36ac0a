/*
 * cli_ask.h - requests of a subcommand to a server's API: --server, --key, --where K=V.
 */
#ifndef TW_CLI_ASK_H
#define TW_CLI_ASK_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "server/cli/client/push_client.h"

enum { TW_ASK_WHERE = 32, TW_ASK_QUERY_BYTES = 12 << 10 };

struct tw_cli_ask {
	const char *server, *key; /* key NULL: TRACEWELL_KEY */
	const char *where[TW_ASK_WHERE];
	size_t n_where;
	struct tw_push_client *client;
	bool misused; /* the failure is not the server's fault */
	bool unasked; /* the request could not be made */
};

/* False if --server or a key is missing. */
bool tw_cli_ask_begin(struct tw_cli_ask *a);
/* GET path?where...&pairs; `pairs` are name, value, ..., NULL.  One attempt unless `patient`.  The
 * caller frees *ret with json_decref. */
enum tw_status tw_cli_ask_get(struct tw_cli_ask *a, const char *path, const char *const pairs[],
        bool patient, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Reports the failure; returns the exit code. */
int tw_cli_ask_failed(const struct tw_cli_ask *a, const char *command, const struct tw_err *err);
void tw_cli_ask_end(struct tw_cli_ask *a);

#endif

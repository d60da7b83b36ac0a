/*
 * cli_ask.h - a question to a server's API from a subcommand: --server, --key, --where K=V.
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
	bool misused; /* what failed was not the server's fault */
	bool unasked; /* what failed was the asking */
};

/* False when --server or a key is missing. */
bool tw_cli_ask_begin(struct tw_cli_ask *a);
/* GET path?where...&pairs; `pairs` are name, value, ..., NULL.  One try, but for `patient` ones.
 * json_decref(*ret) is owed. */
enum tw_status tw_cli_ask_get(struct tw_cli_ask *a, const char *path, const char *const pairs[],
        bool patient, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Tells what failed; the exit code. */
int tw_cli_ask_failed(const struct tw_cli_ask *a, const char *command, const struct tw_err *err);
void tw_cli_ask_end(struct tw_cli_ask *a);

#endif

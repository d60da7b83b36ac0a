#include "server/cli/client/cli_server.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/cli/cli.h"

enum { MAX_NAME = 64, MAX_RESPONSE = 16 << 20 /* 500 traces with all their texts */ };

bool tw_cli_is_where(const char *pair)
{
	const size_t len = strspn(pair, "abcdefghijklmnopqrstuvwxyz_.");

	return len > 0 && len < MAX_NAME && pair[len] == '=';
}

static enum tw_status add_where(
        struct tw_cli_server *a, struct tw_buf *q, const char *pair, struct tw_err *err)
{
	const char *equals = strchr(pair, '=');
	char name[MAX_NAME];

	(void)snprintf(name, sizeof name, "%.*s", (int)(equals - pair), pair);
	return tw_push_client_query(a->client, q, name, equals + 1, err);
}

static enum tw_status make_query(struct tw_cli_server *a, const char *path,
        const char *const pairs[], struct tw_buf *q, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < a->n_where; i++)
		st = add_where(a, q, a->where[i], err);
	for (; st == TW_OK && *pairs; pairs += 2)
		st = tw_push_client_query(a->client, q, pairs[0], pairs[1], err);
	if (st == TW_OK && (tw_buf_add_u8(q, '\0') != TW_OK || strlen(path) >= MAX_NAME))
		st = tw_fail(err, TW_BAD_REQUEST, "the query is too long");
	a->misused = st == TW_BAD_REQUEST;
	return st;
}

static enum tw_status send_query(
        struct tw_cli_server *a, const char *whole, bool patient, json_t **ret, struct tw_err *err)
{
	enum tw_status st = tw_push_client_send(a->client,
	        &(struct tw_push_request){.method = "GET",
	                .path = whole,
	                .once = !patient,
	                .max_response = MAX_RESPONSE},
	        ret, err);

	a->unsent = st != TW_OK;
	a->misused = st == TW_BAD_REQUEST;
	return st;
}

enum tw_status tw_cli_server_get(struct tw_cli_server *a, const char *path,
        const char *const pairs[], bool patient, json_t **ret, struct tw_err *err)
{
	char whole[TW_CLI_QUERY_BYTES + MAX_NAME];
	struct tw_buf q;
	enum tw_status st = TW_OK;

	if (!a->client)
		st = tw_push_client_new(a->server, a->key, false, &a->client, err);
	a->misused = st == TW_BAD_REQUEST;
	if (st != TW_OK)
		return st;
	tw_buf_init(&q, TW_CLI_QUERY_BYTES);
	st = make_query(a, path, pairs, &q, err);
	if (st == TW_OK) {
		(void)snprintf(whole, sizeof whole, "%s%s", path, (const char *)q.data);
		st = send_query(a, whole, patient, ret, err);
	}
	tw_buf_done(&q);
	return st;
}

int tw_cli_server_failed(
        const struct tw_cli_server *a, const char *command, const struct tw_err *err)
{
	(void)tw_cli_failed(command, err);
	if (a->misused)
		return TW_EXIT_USAGE;
	return a->unsent ? TW_EXIT_SERVER : TW_EXIT_FAILED;
}

void tw_cli_server_end(struct tw_cli_server *a)
{
	a->client = tw_push_client_free(a->client);
}

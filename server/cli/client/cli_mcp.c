/* `tracewell mcp`: offers a server's API to coding assistants, over stdin and stdout. */
#include <stdio.h>

#include "decoder/base/arena.h"
#include "server/base/embedded.h"
#include "server/cli/cli.h"
#include "server/cli/client/cli_server.h"
#include "server/cli/client/mcp.h"
#include "server/cli/client/push_client.h"

enum { MOST_MAX = 4 << 20 };

extern const struct tw_embedded tw_openapi_files[];

static enum tw_status get(void *arg, const char *path, json_t **ret, struct tw_err *err)
{
	return tw_push_client_send(
	        arg, &(struct tw_push_request){.method = "GET", .path = path}, ret, err);
}

/* Skips the rest of an overlong line, which is not a message. */
static bool read_line(char *line, size_t cap, size_t *ret_len)
{
	size_t n = 0;
	bool any = false;
	int c;

	while ((c = getchar()) != EOF && c != '\n') {
		any = true;
		if (n < cap)
			line[n++] = (char)c;
	}
	*ret_len = n < cap ? n : 0;
	return any || c == '\n';
}

static enum tw_status serve(const struct tw_mcp *m, char *line, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	json_t *answer = NULL;
	size_t len;

	while (st == TW_OK && read_line(line, TW_MCP_MESSAGE_BYTES, &len)) {
		st = tw_mcp_handle(m, (struct tw_str){line, len}, &answer, err);
		if (st != TW_OK || !answer)
			continue;
		if (json_dumpf(answer, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF ||
		        fflush(stdout) != 0)
			st = tw_fail(err, TW_IO, "stdout: the reader closed it");
		json_decref(answer);
	}
	return st;
}

static enum tw_status run(struct tw_mcp *m, const char *server, const char *key, struct tw_err *err)
{
	struct tw_push_client *client = NULL;
	char *line = tw_mem_alloc(TW_MCP_MESSAGE_BYTES, 1);
	enum tw_status st = tw_push_client_new(server, key, false, &client, err);

	m->openapi = json_loadb(
	        (const char *)tw_openapi_files[0].data, tw_openapi_files[0].len, 0, NULL);
	if (st == TW_OK && (!line || !m->openapi))
		st = tw_oom(err);
	m->arg = client;
	if (st == TW_OK)
		st = serve(m, line, err);
	json_decref(m->openapi);
	(void)tw_push_client_free(client);
	tw_mem_free(line);
	return st;
}

int tw_cli_mcp(int argc, char **argv)
{
	const char *server = NULL, *key = NULL;
	uint64_t most = 64 << 10;
	const struct tw_flag flags[] = {TW_CLI_SERVER(&server), TW_CLI_KEY(&key),
	        {"max-response", .number = &most, .most = MOST_MAX}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_mcp m = {.get = get};
	struct tw_err err;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	m.most = most;
	return run(&m, server, key, &err) == TW_OK ? TW_EXIT_OK : tw_cli_failed("mcp", &err);
}

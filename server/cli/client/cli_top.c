/* `tracewell top`: the slowest methods of all traces that a filter selects. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/base/text/json.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"
#include "server/cli/client/cli_server.h"

enum { MAX_LIMIT = 200, PRINTED_BYTES = 1 << 20, COLUMN = 9, COLUMNS = 6, LEAST_NAME = 20 };

struct top {
	struct tw_cli_server server;
	const char *metric, *by;
	uint64_t limit;
	bool json;
};

static const char *const metrics[] = {"self", "wall", "cpu", "waiting", "call", "calls", NULL};
static const char *const quantiles[] = {"p50", "p75", "p95", "p99", "mean", "max", "sum", NULL};

static void add_cell(struct tw_buf *out, const char *text)
{
	tw_buf_printf(out, "%*s ", COLUMN, text);
}

static void add_value(
        const struct top *t, struct tw_buf *out, const json_t *metric, const char *key)
{
	const json_t *v = json_object_get(metric, key);
	char text[32] = "-";

	if (json_is_integer(v) && strcmp(t->metric, "calls") == 0)
		(void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(v));
	else if (json_is_integer(v))
		(void)tw_term_time(text, sizeof text, json_integer_value(v));
	add_cell(out, text);
}

static void add_row(const struct top *t, struct tw_buf *out, const json_t *m, unsigned name_columns)
{
	static const char *const keys[] = {"p50", "p95", "max", "sum"};
	const json_t *metric = json_object_get(m, t->metric);
	char share[16];

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		add_value(t, out, metric, keys[i]);
	(void)snprintf(share, sizeof share, "%.1f %%",
	        json_number_value(json_object_get(m, "share")) * 100);
	add_cell(out, share);
	(void)tw_buf_add_u8(out, ' ');
	tw_term_text(out, tw_str_of(tw_json_text(m, "name")), name_columns);
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	(void)tw_buf_add_u8(out, '\n');
}

static void add_head(const struct top *t, struct tw_buf *out)
{
	static const char *const heads[] = {"p50", "p95", "max", "sum", "traces"};

	tw_buf_printf(out, "%s", tw_term_paint(stdout, TW_BOLD));
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		add_cell(out, heads[i]);
	tw_buf_printf(out, " %s by %s%s\n", t->metric, t->by, tw_term_paint(stdout, TW_PLAIN));
}

/* Names are truncated to the window, but not if the output is not a terminal. */
static unsigned name_columns(void)
{
	unsigned columns = tw_term_size(stdout).columns, rest = (COLUMN + 1) * (COLUMNS - 1) + 2;

	if (!tw_term_is(stdout))
		return 0;
	return columns > rest + LEAST_NAME ? columns - rest : LEAST_NAME;
}

static enum tw_status print_text(const struct top *t, const json_t *answer, struct tw_err *err)
{
	unsigned columns = name_columns();
	struct tw_buf out;
	const json_t *m;
	size_t i;
	enum tw_status st;

	tw_buf_init(&out, PRINTED_BYTES);
	add_head(t, &out);
	json_array_foreach(json_object_get(answer, "methods"), i, m) add_row(t, &out, m, columns);
	st = tw_buf_status(&out);
	if (st == TW_OK && fwrite(out.data, 1, out.len, stdout) != out.len)
		st = TW_IO;
	tw_buf_done(&out);
	if (st != TW_OK)
		return tw_fail(err, st, "the output cannot be written");
	(void)fprintf(stderr, "%lld traces, %lld methods\n",
	        (long long)json_integer_value(json_object_get(answer, "traces")),
	        (long long)json_integer_value(json_object_get(answer, "total")));
	return TW_OK;
}

static enum tw_status run(struct top *t, struct tw_err *err)
{
	char sort[32], limit[24];
	const char *const pairs[] = {"metrics", t->metric, "sort", sort, "limit", limit, NULL};
	json_t *answer = NULL;
	enum tw_status st;

	(void)snprintf(limit, sizeof limit, "%" PRIu64, t->limit);
	(void)snprintf(sort, sizeof sort, "%s_%s", t->by, t->metric);
	st = tw_cli_server_get(&t->server, "/api/v1/fleet/methods", pairs, false, &answer, err);
	if (st == TW_OK && !t->json)
		st = print_text(t, answer, err);
	else if (st == TW_OK && (json_dumpf(answer, stdout, JSON_COMPACT) != 0 || puts("") == EOF))
		st = tw_fail(err, TW_IO, "the output cannot be written");
	json_decref(answer);
	return st;
}

int tw_cli_top(int argc, char **argv)
{
	static struct top t = {.metric = "self", .by = "p95", .limit = 20};
	const struct tw_flag flags[] = {
	        TW_CLI_SERVER(&t.server.server),
	        TW_CLI_KEY(&t.server.key),
	        TW_CLI_WHERE(t.server.where, TW_CLI_WHERE_MAX, &t.server.n_where),
	        {"metric", .value = &t.metric, .choices = metrics},
	        {"by", .value = &t.by, .choices = quantiles},
	        {"limit", .number = &t.limit, .least = 1, .most = MAX_LIMIT},
	        {"json", .on = &t.json},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_err err;
	int code;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	code = run(&t, &err) == TW_OK ? TW_EXIT_OK : tw_cli_server_failed(&t.server, "top", &err);
	tw_cli_server_end(&t.server);
	return code;
}

/*
 * cli_compare.c - `tracewell compare`: requests a comparison of two sides of the fleet, and fails
 * if a condition is not met.
 *
 * Exit codes: 0 all conditions pass, 1 one fails, 2 wrong usage or not enough traces, 3 the server
 * cannot be reached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"
#include "server/cli/client/cli_server.h"
#include "server/cli/client/gate.h"
#include "server/cli/client/push_client.h"

enum {
	MAX_GATES = 64,
	MAX_WHERE = 32,
	MAX_QUERY = 12 << 10,
	ARENA = 1 << 20,
	MAX_RESPONSE = 16 << 20
};
enum { EXIT_TOO_LITTLE = 2 };

struct comparing {
	struct tw_arena *arena;
	struct tw_push_client *client;
	const char *server, *key, *base, *head;
	const char *where[MAX_WHERE];
	size_t n_where;
	const char *conditions[MAX_GATES];
	size_t n_conditions;
	struct tw_gate gates[MAX_GATES];
	enum tw_gate_result results[MAX_GATES];
	char why[MAX_GATES][TW_GATE_TEXT_BYTES];
	bool strict, markdown, json;
	json_t *answer; /* the first response: all but single methods */
	bool misused;   /* the usage was wrong, not the server */
};

/* --- requests --- */

static enum tw_status add_pair(struct comparing *c, struct tw_buf *q, const char *prefix,
        struct tw_str pair, struct tw_err *err)
{
	struct tw_str value = pair;
	struct tw_str word = tw_str_split(&value, '=');
	const char *name = tw_arena_printf(c->arena, "%s%.*s", prefix, (int)word.len, word.ptr);
	const char *text = tw_arena_str(c->arena, value);

	if (word.len == pair.len) {
		c->misused = true;
		return tw_fail(err, TW_BAD_REQUEST, "%.*s is not K=V", (int)pair.len, pair.ptr);
	}
	if (!name || !text)
		return tw_oom(err);
	return tw_push_client_query(c->client, q, name, text, err);
}

static enum tw_status add_side(struct comparing *c, struct tw_buf *q, const char *name,
        const char *side, struct tw_err *err)
{
	const char *prefix = tw_arena_printf(c->arena, "%s.", name);
	struct tw_str rest = tw_str_of(side);
	enum tw_status st = TW_OK;

	if (!prefix)
		return tw_oom(err);
	if (!strchr(side, '='))
		return tw_push_client_query(c->client, q, name, side, err);
	while (st == TW_OK && rest.len)
		st = add_pair(c, q, prefix, tw_str_split(&rest, ','), err);
	return st;
}

static enum tw_status make_query(
        struct comparing *c, const char *method, struct tw_buf *q, struct tw_err *err)
{
	enum tw_status st = add_side(c, q, "a", c->base, err);

	if (st == TW_OK)
		st = add_side(c, q, "b", c->head, err);
	for (size_t i = 0; st == TW_OK && i < c->n_where; i++)
		st = add_pair(c, q, "", tw_str_of(c->where[i]), err);
	if (st == TW_OK)
		st = tw_push_client_query(c->client, q, "tree", "0", err);
	if (st == TW_OK)
		st = tw_push_client_query(c->client, q, "only", "significant", err);
	if (st == TW_OK && method)
		st = tw_push_client_query(c->client, q, "method", method, err);
	if (st == TW_OK && tw_buf_add(q, "", 1) != TW_OK)
		st = tw_fail(err, TW_NOMEM, "the query is too long");
	return st;
}

static enum tw_status send_request(
        struct comparing *c, const char *method, json_t **ret, struct tw_err *err)
{
	struct tw_push_request request = {.method = "GET", .max_response = MAX_RESPONSE};
	struct tw_buf q;
	enum tw_status st;

	tw_buf_init(&q, MAX_QUERY);
	st = make_query(c, method, &q, err);
	if (st == TW_OK) {
		request.path =
		        tw_arena_printf(c->arena, "/api/v1/fleet/compare%s", (const char *)q.data);
		st = request.path ? tw_push_client_send(c->client, &request, ret, err)
		                  : tw_oom(err);
	}
	c->misused = st == TW_BAD_REQUEST;
	tw_buf_done(&q);
	return st;
}

static enum tw_status check_all(struct comparing *c, struct tw_err *err)
{
	enum tw_status st = send_request(c, NULL, &c->answer, err);

	for (size_t i = 0; st == TW_OK && i < c->n_conditions; i++) {
		const struct tw_gate *g = &c->gates[i];
		json_t *own = NULL;

		if (g->is_method)
			st = send_request(c, g->name, &own, err);
		if (st == TW_OK)
			c->results[i] =
			        tw_gate_check(g, own ? own : c->answer, c->strict, c->why[i]);
		json_decref(own);
	}
	return st;
}

/* --- the report --- */

static const char *const verdicts[] = {"passes", "FAILS", "too little data"};

static int code_of(const struct comparing *c)
{
	bool fails = false;
	bool lacks = !json_is_true(json_object_get(c->answer, "comparable"));

	for (size_t i = 0; i < c->n_conditions; i++) {
		fails = fails || c->results[i] == TW_GATE_FAILS;
		lacks = lacks || c->results[i] == TW_GATE_TOO_LITTLE;
	}
	return fails ? TW_EXIT_FAILED : lacks ? EXIT_TOO_LITTLE : TW_EXIT_OK;
}

static const char *sentence_of(const struct comparing *c)
{
	const char *text = json_string_value(json_object_get(c->answer, "summary"));

	return text ? text : "";
}

/* Why a different mix of devices counts as a change; "": it does not, or the server is older. */
static const char *mix_note_of(const struct comparing *c)
{
	const char *text =
	        json_string_value(json_object_get(json_object_get(c->answer, "mix"), "note"));

	return text ? text : "";
}

static void print_text(const struct comparing *c)
{
	const char *note = mix_note_of(c);

	tw_term_print(sentence_of(c));
	(void)printf("\nA is the base, %s; B is the head, %s.\n", c->base, c->head);
	(void)printf("%s%s", note, *note ? "\n" : "");
	for (size_t i = 0; i < c->n_conditions; i++)
		(void)printf(
		        "%-15s  %s: %s\n", verdicts[c->results[i]], c->conditions[i], c->why[i]);
}

/* Escapes |, which would end the cell. */
static void print_cell(const char *text)
{
	for (; *text; text++)
		(void)printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown(const struct comparing *c)
{
	(void)printf("**");
	print_cell(sentence_of(c));
	(void)printf("**\n\nA is the base, `%s`; B is the head, `%s`.\n", c->base, c->head);
	if (*mix_note_of(c))
		(void)printf("\n%s\n", mix_note_of(c));
	if (c->n_conditions)
		(void)printf("\n| Fails if | Result | |\n|---|---|---|\n");
	for (size_t i = 0; i < c->n_conditions; i++) {
		(void)printf("| `");
		print_cell(c->conditions[i]);
		(void)printf("` | %s | ", verdicts[c->results[i]]);
		print_cell(c->why[i]);
		(void)printf(" |\n");
	}
}

static void print_json(const struct comparing *c)
{
	json_t *list = json_array();
	json_t *all;

	for (size_t i = 0; i < c->n_conditions; i++)
		(void)json_array_append_new(
		        list, json_pack("{ss ss ss}", "fail_if", c->conditions[i], "result",
		                      verdicts[c->results[i]], "reason", c->why[i]));
	all = json_pack(
	        "{si so sO}", "code", code_of(c), "conditions", list, "comparison", c->answer);
	(void)json_dumpf(all, stdout, JSON_INDENT(2));
	(void)printf("\n");
	json_decref(all);
}

static int report(const struct comparing *c)
{
	if (c->json)
		print_json(c);
	else if (c->markdown)
		print_markdown(c);
	else
		print_text(c);
	return code_of(c);
}

static int compare(struct comparing *c)
{
	struct tw_err err;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < c->n_conditions; i++)
		st = tw_gate_parse(c->conditions[i], &c->gates[i], &err);
	if (st != TW_OK) {
		(void)tw_cli_failed("compare", &err);
		return TW_EXIT_USAGE;
	}
	st = tw_push_client_new(c->server, c->key, false, &c->client, &err);
	c->misused = st == TW_BAD_REQUEST;
	if (st == TW_OK)
		st = check_all(c, &err);
	if (st == TW_OK)
		return report(c);
	(void)tw_cli_failed("compare", &err);
	return c->misused ? TW_EXIT_USAGE : TW_EXIT_SERVER;
}

int tw_cli_compare(int argc, char **argv)
{
	static struct comparing c;
	const struct tw_flag flags[] = {
	        TW_CLI_SERVER(&c.server),
	        TW_CLI_KEY(&c.key),
	        {"base", .value = &c.base, .needed = true},
	        {"head", .value = &c.head, .needed = true},
	        TW_CLI_WHERE(c.where, MAX_WHERE, &c.n_where),
	        {"fail-if", .list = c.conditions, .max = MAX_GATES, .n = &c.n_conditions},
	        {"strict", .on = &c.strict},
	        {"markdown", .on = &c.markdown},
	        {"json", .on = &c.json},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	int code;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	if (c.markdown && c.json)
		return tw_cli_misused(argv[0], "--markdown and --json exclude each other");
	c.arena = tw_arena_new(ARENA);
	code = c.arena ? compare(&c) : TW_EXIT_SERVER;
	json_decref(c.answer);
	c.client = tw_push_client_free(c.client);
	c.arena = tw_arena_free(c.arena);
	return code;
}

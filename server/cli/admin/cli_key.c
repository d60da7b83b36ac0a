/* `tracewell key` and `tracewell link`: change the data folder directly, also while a server
 * runs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/catalogue.h"
#include "server/cli/admin/cli_by_name.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_address.h"
#include "server/cli/cli_out.h"

enum {
	LIST_BYTES = 16 << 20,
	LIST_ROWS = 500, /* per read */
	MAX_TEXT = 512,
	MAX_LINK_HOURS = 24 * 365,
	MAX_SPAN = 1000000,
	MAX_ADDRESS = 2048
};

static bool is_name(const char *name)
{
	return *name && strlen(name) <= MAX_TEXT && !tw_str_has_control(tw_str_of(name));
}

static bool is_label(const char *text)
{
	return !*text || is_name(text);
}

static const char name_form[] = "1 to 512 bytes without control characters";

struct key_flags {
	const char *data, *project, *scope, *name, *expires, *grace;
	bool new_project, json;
};

/* "90d", "12h", "30m" or "45s" in milliseconds. */
static bool parse_span(const char *text, int64_t *ret_ms)
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = {{'d', 86400000}, {'h', 3600000}, {'m', 60000}, {'s', 1000}};
	size_t len = strlen(text);
	uint64_t n;

	for (size_t i = 0; i < sizeof units / sizeof *units && len > 1; i++)
		if (text[len - 1] == units[i].unit &&
		        tw_str_u64((struct tw_str){text, len - 1}, MAX_SPAN, &n)) {
			*ret_ms = (int64_t)n * units[i].ms;
			return true;
		}
	return false;
}

static bool is_span(const char *text)
{
	int64_t ms;

	return parse_span(text, &ms);
}

static bool is_expiry(const char *text)
{
	int64_t ms = 0;

	return strcmp(text, "never") == 0 || (parse_span(text, &ms) && ms > 0);
}

/* The expiry of a key with this lifetime; 0 for "never". */
static int64_t expiry_of(const char *text, int64_t dflt)
{
	int64_t span_ms = 0;

	if (!text)
		return dflt;
	return parse_span(text, &span_ms) ? tw_unix_ms() + span_ms : 0;
}

/* The only time that the secret is shown. */
static enum tw_status print_secret(const char *id, const char *secret, const struct tw_key_new *k,
        bool json, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	if (!json)
		return puts(secret) != EOF ? TW_OK
		                           : tw_fail(err, TW_IO, "the output cannot be written");
	j = tw_cli_line(&line);
	tw_json_key_text(j, "id", id);
	tw_json_key_text(j, "secret", secret);
	tw_json_key_int(j, "expires_ms", k->expires_ms);
	return tw_cli_line_end(&line, err);
}

static enum tw_status create(struct tw_catalogue *c, const char *project_id,
        const struct key_flags *flags, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	char id[TW_ID_BYTES];
	uint8_t hash[32];
	struct tw_key_new k = {
	        .project_id = project_id, .name = flags->name ? flags->name : "", .hash = hash};
	enum tw_status st;

	if (!tw_scope_of_key(flags->scope, &k.scope))
		return tw_fail(err, TW_BUG, "no scope %s", flags->scope);
	k.expires_ms = expiry_of(flags->expires, 0);
	tw_secret_new(tw_key_prefix(k.scope), secret);
	tw_secret_hash(secret, hash);
	st = tw_catalogue_key_add(c, &k, id, err);
	return st == TW_OK ? print_secret(id, secret, &k, flags->json, err) : st;
}

static enum tw_status rotate_row(struct tw_catalogue *c, const struct tw_key_row *row,
        const struct key_flags *flags, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	uint8_t hash[32];
	struct tw_key_new k = {.project_id = row->project_id,
	        .hash = hash,
	        .expires_ms = expiry_of(flags->expires, row->expires_ms)};
	int64_t grace_ms = 0;
	enum tw_status st;

	(void)parse_span(flags->grace, &grace_ms);
	tw_secret_new(tw_key_prefix(row->scope), secret);
	tw_secret_hash(secret, hash);
	st = tw_catalogue_key_rotate(
	        c, &k, row->id, tw_key_old_until(row, tw_unix_ms() + grace_ms), err);
	return st == TW_OK ? print_secret(row->id, secret, &k, flags->json, err) : st;
}

static enum tw_status rotate(struct tw_catalogue *c, const char *project_id, const char *id,
        const struct key_flags *flags, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(LIST_BYTES);
	struct tw_key_row row = {.id = NULL};
	enum tw_status st = a ? tw_catalogue_key_get(c, project_id, id, a, &row, err) : tw_oom(err);

	if (st == TW_OK)
		st = rotate_row(c, &row, flags, err);
	(void)tw_arena_free(a);
	return st;
}

static const char *state_of(const struct tw_key_row *k)
{
	if (k->revoked_ms)
		return "revoked";
	return k->expires_ms && k->expires_ms <= tw_unix_ms() ? "expired" : "valid";
}

static enum tw_status print_text(const struct tw_key_row *k, struct tw_err *err)
{
	char ends[TW_CLI_TIME_BYTES], seen[TW_CLI_TIME_BYTES];
	int n = printf("%s\t%s\t%s\t%s\tends %s\tseen %s%s%s", k->id, tw_scope_name(k->scope),
	        state_of(k), k->name, tw_cli_time(k->expires_ms, ends),
	        tw_cli_time(k->last_seen_ms, seen), k->seen_from[0] ? " from " : "", k->seen_from);

	if (n > 0 && k->old_until_ms > tw_unix_ms())
		n = printf("\tprevious secret ends %s, seen %s", tw_cli_time(k->old_until_ms, ends),
		        tw_cli_time(k->old_seen_ms, seen));
	n = n > 0 ? printf("\n") : n;
	return n > 0 ? TW_OK : tw_fail(err, TW_IO, "the output cannot be written");
}

static enum tw_status print_json(const struct tw_key_row *k, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	tw_json_key_text(j, "id", k->id);
	tw_json_key_text(j, "scope", tw_scope_name(k->scope));
	tw_json_key_text(j, "state", state_of(k));
	TW_JSON_MEMBERS(j, k, name, expires_ms);
	tw_json_key_int(j, "last_used_ms", k->last_seen_ms);
	tw_json_key_text(j, "last_used_address", k->seen_from);
	tw_json_key_int(j, "old_expires_ms", k->old_until_ms);
	tw_json_key_int(j, "old_last_used_ms", k->old_seen_ms);
	return tw_cli_line_end(&line, err);
}

static enum tw_status list(
        struct tw_catalogue *c, const char *project_id, bool json, struct tw_err *err)
{
	char before[TW_ID_BYTES] = "";
	size_t n = LIST_ROWS;
	enum tw_status st = TW_OK;

	while (st == TW_OK && n == LIST_ROWS) {
		struct tw_arena *a = tw_arena_new(LIST_BYTES);
		struct tw_key_row *rows = NULL;

		st = a ? tw_catalogue_keys(c, project_id, before, LIST_ROWS, a, &rows, &n, err)
		       : tw_oom(err);
		for (size_t i = 0; st == TW_OK && i < n; i++)
			st = (json ? print_json : print_text)(&rows[i], err);
		if (st == TW_OK && n > 0)
			(void)snprintf(before, sizeof before, "%s", rows[n - 1].id);
		(void)tw_arena_free(a);
	}
	return st;
}

static enum tw_status key_command(struct tw_catalogue *c, const char *verb, const char *id,
        const struct key_flags *flags, struct tw_err *err)
{
	char project[TW_ID_BYTES];
	const bool makes = strcmp(verb, "create") == 0;
	enum tw_status st =
	        makes ? tw_cli_project_make(c, flags->project, flags->new_project, project, err)
	              : tw_cli_project_find(c, flags->project, project, err);

	if (st != TW_OK)
		return st;
	if (makes)
		return create(c, project, flags, err);
	if (strcmp(verb, "list") == 0)
		return list(c, project, flags->json, err);
	if (strcmp(verb, "rotate") == 0)
		return rotate(c, project, id, flags, err);
	return tw_catalogue_key_revoke(c, project, id, err);
}

static const char *const scopes[] = {"ingest", "read", "write", "admin", NULL};
static const struct tw_verb key_verbs[] = {{"create", "", "scope"}, {"list", "", NULL},
        {"rotate", "ID", NULL}, {"revoke", "ID", NULL}, {NULL}};

int tw_cli_key(int argc, char **argv)
{
	struct key_flags flags = {.data = "./data", .grace = "7d"};
	const struct tw_flag table[] = {
	        {"data", .value = &flags.data},
	        {"project", .value = &flags.project, .needed = true, .fits = is_name,
	                .form = name_form},
	        {"scope", .value = &flags.scope, .choices = scopes},
	        {"name", .value = &flags.name, .fits = is_label, .form = name_form},
	        {"expires", .value = &flags.expires, .fits = is_expiry,
	                .form = "a time from now, like 90d, 12h or 30m, or never"},
	        {"grace", .value = &flags.grace, .fits = is_span,
	                .form = "the time for which the old secret still works, like 7d, 12h or "
	                        "0s"},
	        {"new-project", .on = &flags.new_project},
	        {"json", .on = &flags.json},
	};
	const struct tw_usage usage = {table, sizeof table / sizeof *table, .verbs = key_verbs};
	const int n = tw_cli_flags(&usage, argc, argv);
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;

	if (n < 0)
		return TW_EXIT_USAGE;
	st = tw_cli_data_open_catalogue(flags.data, &c, &err);
	if (st == TW_OK)
		st = key_command(c, argv[1], argv[n], &flags, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("key", &err);
}

static enum tw_status print_link(
        const char *address, int64_t expires_ms, bool json, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	if (!json)
		return puts(address) != EOF ? TW_OK
		                            : tw_fail(err, TW_IO, "the output cannot be written");
	j = tw_cli_line(&line);
	tw_json_key_text(j, "url", address);
	tw_json_key_int(j, "expires_ms", expires_ms);
	return tw_cli_line_end(&line, err);
}

static enum tw_status create_link(
        struct tw_catalogue *c, const char *url, uint64_t hours, bool json, struct tw_err *err)
{
	char address[MAX_ADDRESS];
	char secret[TW_SECRET_BYTES];
	uint8_t hash[32];
	int64_t expires_ms = ((int64_t)time(NULL) + (int64_t)hours * 3600) * 1000;
	size_t len = strlen(url);
	enum tw_status st;

	if (len >= MAX_ADDRESS - 2 * TW_SECRET_BYTES)
		return tw_fail(err, TW_BAD_REQUEST, "--url is too long");
	tw_secret_new("twl_", secret);
	tw_secret_hash(secret, hash);
	st = tw_catalogue_link_add(c, hash, expires_ms, err);
	if (st == TW_OK)
		(void)snprintf(address, sizeof address, "%.*s/signin#%s",
		        (int)(len && url[len - 1] == '/' ? len - 1 : len), url, secret);
	return st == TW_OK ? print_link(address, expires_ms, json, err) : st;
}

#define FIRST_URL "http://127.0.0.1:8080" /* of a server without settings */

int tw_cli_link(int argc, char **argv)
{
	const char *data = "./data";
	const char *url = NULL;
	char stored[TW_CLI_ADDRESS_BYTES];
	uint64_t hours = 24;
	bool json = false;
	const struct tw_flag table[] = {
	        {"data", .value = &data},
	        {"url", .value = &url},
	        {"hours", .number = &hours, .least = 1, .most = MAX_LINK_HOURS},
	        {"json", .on = &json},
	};
	static const struct tw_verb verbs[] = {{"create", "", NULL}, {NULL}};
	const struct tw_usage usage = {table, sizeof table / sizeof *table, .verbs = verbs};
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	tw_cli_address_read(data, stored);
	st = tw_cli_data_open_catalogue(data, &c, &err);
	if (st == TW_OK && !url && !stored[0])
		(void)fprintf(stderr,
		        "%s does not record the address of its server: the link is for %s, unless "
		        "--url sets another\n",
		        data, FIRST_URL);
	if (st == TW_OK)
		st = create_link(c, url ? url : stored[0] ? stored : FIRST_URL, hours, json, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("link", &err);
}

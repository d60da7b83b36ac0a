/* `tracewell key` and `tracewell link`: on the data folder itself, beside a running server or not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "auth_secret.h"
#include "base/arena.h"
#include "catalogue.h"
#include "cli.h"

enum { MAX_PATH_BYTES = 1200, LIST_BYTES = 16 << 20, MAX_TEXT = 512, MAX_LINK_HOURS = 24 * 365 };

static const char key_synopsis[] =
        "key create --data DIR --project NAME --scope ingest|read [--name N]\n"
        "       tracewell key list --data DIR --project NAME\n"
        "       tracewell key revoke --data DIR --project NAME ID";
static const char link_synopsis[] = "link create --data DIR [--url URL] [--hours N]";

static enum tw_status open_catalogue(
        const char *data, struct tw_catalogue **ret, struct tw_err *err)
{
	char path[MAX_PATH_BYTES];
	int len = snprintf(path, sizeof path, "%s/catalogue.db", data);

	if (len < 0 || (size_t)len >= sizeof path)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "--data is too long");
	(void)umask(077);
	if (mkdir(data, 0700) != 0 && errno != EEXIST)
		return tw_fail(
		        err, TW_IO, TW_NO_OFFSET, "cannot make %s: %s", data, strerror(errno));
	return tw_catalogue_open(path, ret, err);
}

static bool is_fit_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return *name && strlen(name) <= MAX_TEXT;
}

struct key_flags {
	const char *data, *project, *scope, *name;
};

static enum tw_status create(struct tw_catalogue *c, const char *project_id,
        const struct key_flags *flags, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	char id[TW_ID_BYTES];
	uint8_t hash[32];
	bool is_read = flags->scope && strcmp(flags->scope, "read") == 0;
	enum tw_status st;

	if (!is_read && (!flags->scope || strcmp(flags->scope, "ingest") != 0))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "--scope must be ingest or read");
	st = tw_secret_new(is_read ? "twr_" : "twi_", secret, err);
	if (st != TW_OK)
		return st;
	tw_secret_hash(secret, hash);
	st = tw_catalogue_key_add(c, project_id, is_read ? TW_SCOPE_READ : TW_SCOPE_INGEST,
	        flags->name ? flags->name : "", hash, id, err);
	if (st == TW_OK)
		(void)puts(secret);
	return st;
}

static enum tw_status list(struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(LIST_BYTES);
	struct tw_key_row *rows = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_keys(c, project_id, a, &rows, &n, err)
	                      : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");

	for (size_t i = 0; st == TW_OK && i < n; i++)
		(void)printf("%s\t%s\t%s\t%s\n", rows[i].id, tw_scope_word(rows[i].scope),
		        rows[i].revoked_ms ? "revoked" : "valid", rows[i].name);
	(void)tw_arena_free(a);
	return st;
}

static enum tw_status key_command(struct tw_catalogue *c, const char *verb, const char *id,
        const struct key_flags *flags, struct tw_err *err)
{
	char project[TW_ID_BYTES];
	bool is_new;
	enum tw_status st = tw_catalogue_project(c, flags->project, project, &is_new, err);

	if (st != TW_OK)
		return st;
	if (strcmp(verb, "create") == 0)
		return create(c, project, flags, err);
	if (strcmp(verb, "list") == 0)
		return list(c, project, err);
	return tw_catalogue_key_revoke(c, project, id, err);
}

static int wrong_usage(const char *synopsis)
{
	(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
	return TW_EXIT_USAGE;
}

int tw_cli_key(int argc, char **argv)
{
	struct key_flags flags = {.data = "./data"};
	const struct tw_flag table[] = {
	        {"data", .value = &flags.data},
	        {"project", .value = &flags.project},
	        {"scope", .value = &flags.scope},
	        {"name", .value = &flags.name},
	};
	int n = tw_cli_flags(key_synopsis, table, sizeof table / sizeof *table, argc, argv);
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;
	bool revokes = n == 2 && strcmp(argv[1], "revoke") == 0;
	bool known = n == 1 && (strcmp(argv[1], "create") == 0 || strcmp(argv[1], "list") == 0);

	if (n < 0)
		return TW_EXIT_USAGE;
	if ((!known && !revokes) || !flags.project || !is_fit_name(flags.project))
		return wrong_usage(key_synopsis);
	if (flags.name && *flags.name && !is_fit_name(flags.name))
		return wrong_usage(key_synopsis);
	st = open_catalogue(flags.data, &c, &err);
	if (st == TW_OK)
		st = key_command(c, argv[1], argv[n], &flags, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("key", &err);
}

static enum tw_status create_link(
        struct tw_catalogue *c, const char *url, uint64_t hours, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	uint8_t hash[32];
	int64_t expires_ms = ((int64_t)time(NULL) + (int64_t)hours * 3600) * 1000;
	size_t len = strlen(url);
	enum tw_status st = tw_secret_new("twl_", secret, err);

	if (st != TW_OK)
		return st;
	tw_secret_hash(secret, hash);
	st = tw_catalogue_link_add(c, hash, expires_ms, err);
	if (st == TW_OK)
		(void)printf("%.*s/signin#%s\n", (int)(len && url[len - 1] == '/' ? len - 1 : len),
		        url, secret);
	return st;
}

int tw_cli_link(int argc, char **argv)
{
	const char *data = "./data";
	const char *url = "http://127.0.0.1:8080";
	const char *hours = "24";
	const struct tw_flag table[] = {
	        {"data", .value = &data},
	        {"url", .value = &url},
	        {"hours", .value = &hours},
	};
	int n = tw_cli_flags(link_synopsis, table, sizeof table / sizeof *table, argc, argv);
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	uint64_t life_h;
	enum tw_status st;

	if (n < 0)
		return TW_EXIT_USAGE;
	if (n != 1 || strcmp(argv[1], "create") != 0 ||
	        !tw_str_u64(tw_str_of(hours), MAX_LINK_HOURS, &life_h))
		return wrong_usage(link_synopsis);
	st = open_catalogue(data, &c, &err);
	if (st == TW_OK)
		st = create_link(c, url, life_h, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("link", &err);
}

/* `tracewell user`: people and their roles; changes the data folder directly, also while a server
 * runs. Passwords are read from stdin, never from arguments. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/auth/auth_password.h"
#include "server/catalogue/access/catalogue_identity.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/cli/admin/cli_by_name.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"

enum { LIST_BYTES = 16 << 20 };

struct user_flags {
	const char *data, *project, *role;
	bool server_admin, json;
};

/* Reads a line of stdin without echo. */
static enum tw_status read_line(const char *prompt, char *out, size_t cap, struct tw_err *err)
{
	struct termios before, silent;
	bool typed = tcgetattr(STDIN_FILENO, &before) == 0;
	const char *got;

	if (typed) {
		silent = before;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		(void)fputs(prompt, stderr);
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
	}
	got = fgets(out, (int)cap, stdin);
	if (typed) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
		(void)fputc('\n', stderr);
	}
	if (!got)
		return tw_fail(err, TW_BAD_REQUEST, "no password on stdin");
	out[strcspn(out, "\r\n")] = '\0';
	return TW_OK;
}

static enum tw_status read_password(
        const char *name, char ret[TW_PASSWORD_HASH_BYTES], struct tw_err *err)
{
	char once[TW_PASSWORD_MAX + 3], again[sizeof once];
	enum tw_status st = read_line("Password: ", once, sizeof once, err);

	if (st == TW_OK)
		st = tw_password_verify(once, name, err);
	if (st == TW_OK && isatty(STDIN_FILENO)) {
		st = read_line("Again: ", again, sizeof again, err);
		if (st == TW_OK && strcmp(once, again) != 0)
			st = tw_fail(err, TW_BAD_REQUEST, "the passwords differ");
	}
	return st == TW_OK ? tw_password_hash(once, ret, err) : st;
}

static enum tw_status create(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	char name[TW_USER_NAME_BYTES], hash[TW_PASSWORD_HASH_BYTES], id[TW_ID_BYTES];
	enum tw_status st = tw_user_name(user_name, name, err);

	if (st == TW_OK)
		st = read_password(name, hash, err);
	return st == TW_OK ? tw_catalogue_user_add(c, name, hash, flags->server_admin, id, err)
	                   : st;
}

static enum tw_status find(
        struct tw_catalogue *c, const char *user_name, struct tw_user *ret, struct tw_err *err)
{
	char name[TW_USER_NAME_BYTES];
	enum tw_status st = tw_user_name(user_name, name, err);

	return st == TW_OK ? tw_catalogue_user_get(c, name, ret, err) : st;
}

static enum tw_status passwd(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	char hash[TW_PASSWORD_HASH_BYTES];
	struct tw_user user;
	enum tw_status st = find(c, user_name, &user, err);

	(void)flags;
	if (st == TW_OK)
		st = read_password(user.name, hash, err);
	return st == TW_OK ? tw_catalogue_user_change(
	                             c, user.id, &(struct tw_user_change){.password = hash}, err)
	                   : st;
}

static enum tw_status give_role(struct tw_catalogue *c, const struct tw_user *user,
        const struct user_flags *flags, struct tw_err *err)
{
	static const struct {
		const char *word;
		enum tw_scope scope;
	} roles[] = {{"viewer", TW_SCOPE_READ}, {"editor", TW_SCOPE_WRITE},
	        {"admin", TW_SCOPE_ADMIN}, {"none", TW_SCOPE_PUBLIC}};
	char project[TW_ID_BYTES];
	enum tw_status st;

	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		if (strcmp(flags->role, roles[i].word) != 0)
			continue;
		st = tw_cli_project_find(c, flags->project, project, err);
		return st == TW_OK
		               ? tw_catalogue_member_set(c, project, user->id, roles[i].scope, err)
		               : st;
	}
	return tw_fail(err, TW_BAD_REQUEST,
	        "with --project, --role must be viewer, editor, admin or none");
}

static enum tw_status role(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	struct tw_user user;
	enum tw_status st = find(c, user_name, &user, err);
	bool server;

	if (st != TW_OK)
		return st;
	if (flags->project)
		return give_role(c, &user, flags, err);
	server = strcmp(flags->role, "server-admin") == 0;
	if (!server && strcmp(flags->role, "none") != 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "without --project, --role must be server-admin or none");
	return tw_catalogue_user_change(
	        c, user.id, &(struct tw_user_change){.sets_admin = true, .is_admin = server}, err);
}

static enum tw_status set_disabled(
        struct tw_catalogue *c, const char *user_name, bool is_disabled, struct tw_err *err)
{
	const struct tw_user_change to = {.sets_disabled = true, .is_disabled = is_disabled};
	struct tw_user user;
	enum tw_status st = find(c, user_name, &user, err);

	return st == TW_OK ? tw_catalogue_user_change(c, user.id, &to, err) : st;
}

static enum tw_status disable(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	(void)flags;
	return set_disabled(c, user_name, true, err);
}

static enum tw_status enable(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	(void)flags;
	return set_disabled(c, user_name, false, err);
}

/* Removes the account's identity at the provider. */
static enum tw_status unlink_provider(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	struct tw_user user;
	enum tw_status st = find(c, user_name, &user, err);

	(void)flags;
	return st == TW_OK ? tw_catalogue_identity_drop(c, user.id, err) : st;
}

static enum tw_status drop(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	struct tw_user user;
	enum tw_status st = find(c, user_name, &user, err);

	(void)flags;
	return st == TW_OK ? tw_catalogue_user_remove(c, user.id, err) : st;
}

/* --- the list --- */

static const char *role_of(const struct tw_user_row *u)
{
	static const char *const names[] = {[TW_SCOPE_READ] = "viewer",
	        [TW_SCOPE_WRITE] = "editor",
	        [TW_SCOPE_ADMIN] = "admin"};

	if (u->scope >= TW_SCOPE_READ && u->scope <= TW_SCOPE_ADMIN)
		return names[u->scope];
	return u->is_admin ? "server-admin" : "none";
}

struct listing {
	struct tw_catalogue *c;
	json_t *roles; /* name to a list of {project, role}; NULL in a list of one project */
};

typedef enum tw_status (*each_user)(
        const struct listing *l, const char *project, const struct tw_user_row *u, struct tw_err *);

/* Lists the people of a project, or all if "", in pages. */
static enum tw_status for_each(const struct listing *l, const char *project_id, const char *project,
        each_user each, struct tw_err *err)
{
	char after[TW_USER_NAME_BYTES] = "";
	struct tw_user_row *rows = NULL;
	size_t n = TW_USERS_MAX;
	enum tw_status st = TW_OK;

	while (st == TW_OK && n == TW_USERS_MAX) {
		struct tw_arena *a = tw_arena_new(LIST_BYTES);

		st = a ? tw_catalogue_users(l->c, project_id, after, a, &rows, &n, err)
		       : tw_oom(err);
		for (size_t i = 0; st == TW_OK && rows && i < n; i++) {
			st = each(l, project, &rows[i], err);
			(void)snprintf(after, sizeof after, "%s", rows[i].name);
		}
		(void)tw_arena_free(a);
	}
	return st;
}

static enum tw_status note_role(const struct listing *l, const char *project,
        const struct tw_user_row *u, struct tw_err *err)
{
	json_t *all = json_object_get(l->roles, u->name);

	if (!all && json_object_set_new(l->roles, u->name, json_array()) == 0)
		all = json_object_get(l->roles, u->name);
	return json_array_append_new(
	               all, json_pack("{s:s, s:s}", "project", project, "role", role_of(u))) == 0
	               ? TW_OK
	               : tw_oom(err);
}

/* "shop: editor, news: viewer", after the role on the server. */
static void print_roles(const struct listing *l, const struct tw_user_row *u)
{
	const json_t *all = json_object_get(l->roles, u->name);
	const json_t *one;
	size_t i;

	if (!l->roles || u->is_admin || json_array_size(all) == 0)
		(void)printf("%s%s", role_of(u), json_array_size(all) ? ", " : "");
	json_array_foreach(all, i, one)
	{
		(void)printf("%s%s: %s", i ? ", " : "",
		        json_string_value(json_object_get(one, "project")),
		        json_string_value(json_object_get(one, "role")));
	}
}

static enum tw_status print_text(const struct listing *l, const char *project,
        const struct tw_user_row *u, struct tw_err *err)
{
	(void)project;
	(void)printf("%s\t", u->name);
	print_roles(l, u);
	return printf("%s%s\n", u->is_disabled ? "\tdisabled" : "",
	               u->is_linked ? "\tlinked" : "") > 0
	               ? TW_OK
	               : tw_fail(err, TW_IO, "the output cannot be written");
}

static enum tw_status print_json(const struct listing *l, const char *project,
        const struct tw_user_row *u, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);
	const json_t *all = json_object_get(l->roles, u->name);
	char *roles = l->roles ? all ? json_dumps(all, JSON_COMPACT) : strdup("[]") : NULL;

	(void)project;
	tw_json_key_text(j, "name", u->name);
	tw_json_key_text(j, "role", role_of(u));
	if (roles) {
		tw_json_key(j, "roles");
		tw_json_raw(j, tw_str_of(roles));
	}
	tw_json_key_bool(j, "disabled", u->is_disabled);
	tw_json_key_bool(j, "linked", u->is_linked);
	free(roles);
	return tw_cli_line_end(&line, err);
}

static enum tw_status note_roles(const struct listing *l, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(LIST_BYTES);
	struct tw_project_row *rows = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_projects(l->c, a, &rows, &n, err) : tw_oom(err);

	for (size_t i = 0; st == TW_OK && rows && i < n; i++)
		st = for_each(l, rows[i].id, rows[i].name, note_role, err);
	(void)tw_arena_free(a);
	return st;
}

static enum tw_status list(struct tw_catalogue *c, const char *user_name,
        const struct user_flags *flags, struct tw_err *err)
{
	struct listing l = {c, flags->project ? NULL : json_object()};
	char project[TW_ID_BYTES] = "";
	enum tw_status st;

	(void)user_name;
	st = flags->project ? tw_cli_project_find(c, flags->project, project, err)
	                    : note_roles(&l, err);
	if (st == TW_OK)
		st = for_each(&l, project, "", flags->json ? print_json : print_text, err);
	json_decref(l.roles);
	return st;
}

typedef enum tw_status (*run_verb)(
        struct tw_catalogue *, const char *, const struct user_flags *, struct tw_err *);

static const struct tw_verb verbs[] = {{"create", "NAME", NULL}, {"passwd", "NAME", NULL},
        {"role", "NAME", "role"}, {"list", "", NULL}, {"remove", "NAME", NULL},
        {"disable", "NAME", NULL}, {"enable", "NAME", NULL}, {"unlink", "NAME", NULL}, {NULL}};
static const char *const roles[] = {"viewer", "editor", "admin", "server-admin", "none", NULL};
static const run_verb runs[] = {create, passwd, role, list, drop, disable, enable, unlink_provider};

int tw_cli_user(int argc, char **argv)
{
	struct user_flags flags = {.data = "./data"};
	const struct tw_flag table[] = {
	        {"data", .value = &flags.data},
	        {"project", .value = &flags.project},
	        {"role", .value = &flags.role, .choices = roles},
	        {"server-admin", .on = &flags.server_admin},
	        {"json", .on = &flags.json},
	};
	const struct tw_usage usage = {table, sizeof table / sizeof *table, .verbs = verbs};
	const int n = tw_cli_flags(&usage, argc, argv);
	struct tw_catalogue *c = NULL;
	size_t verb = 0;
	struct tw_err err;
	enum tw_status st;

	if (n < 0)
		return TW_EXIT_USAGE;
	while (strcmp(argv[1], verbs[verb].word) != 0)
		verb++;
	st = tw_cli_data_open_catalogue(flags.data, &c, &err);
	if (st == TW_OK)
		st = runs[verb](c, argv[n], &flags, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("user", &err);
}

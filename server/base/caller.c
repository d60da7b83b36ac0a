#include "server/base/caller.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const tw_scope_names[] = {"public", "ingest", "read", "write", "admin", "server", NULL};
enum { SCOPES = sizeof tw_scope_names / sizeof *tw_scope_names - 1 };

const char *tw_scope_name(enum tw_scope scope)
{
	return (unsigned)scope < SCOPES ? tw_scope_names[scope] : "public";
}

bool tw_scope_of_key(const char *word, enum tw_scope *ret)
{
	for (unsigned i = TW_SCOPE_INGEST; i <= TW_SCOPE_ADMIN; i++)
		if (strcmp(word, tw_scope_names[i]) == 0) {
			*ret = (enum tw_scope)i;
			return true;
		}
	return false;
}

const char *tw_key_prefix(enum tw_scope scope)
{
	static const char *const prefixes[] = {[TW_SCOPE_INGEST] = "twi_",
	        [TW_SCOPE_READ] = "twr_",
	        [TW_SCOPE_WRITE] = "tww_",
	        [TW_SCOPE_ADMIN] = "twa_"};

	return scope >= TW_SCOPE_INGEST && scope <= TW_SCOPE_ADMIN ? prefixes[scope] : "";
}

/* --- actors --- */

#define SUDO_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const struct tw_actor the_server = {"server", "", "", "", ""};
static _Thread_local struct tw_actor actor;
static _Thread_local bool actor_is_set;

void tw_actor_set(const struct tw_actor *a)
{
	actor_is_set = a != NULL;
	if (a)
		actor = *a;
}

const struct tw_actor *tw_actor_get(void)
{
	return actor_is_set ? &actor : &the_server;
}

/* The user who ran sudo; NULL: none, or not a valid account name. */
static const char *before_sudo(void)
{
	const char *name = getenv("SUDO_USER");
	const size_t len = name ? strlen(name) : 0;

	return len > 0 && len <= 32 && strspn(name, SUDO_LETTERS) == len ? name : NULL;
}

void tw_actor_set_cli(void)
{
	static _Thread_local char name[100];
	struct passwd entry, *found = NULL;
	char space[4096], self[65];
	const char *sudo = before_sudo();

	if (getpwuid_r(getuid(), &entry, space, sizeof space, &found) == 0 && found)
		(void)snprintf(self, sizeof self, "%s", entry.pw_name);
	else
		(void)snprintf(self, sizeof self, "uid %u", (unsigned)getuid());
	if (sudo && strcmp(sudo, self) != 0)
		(void)snprintf(name, sizeof name, "%s as %s", sudo, self);
	else
		(void)snprintf(name, sizeof name, "%s", self);
	tw_actor_set(&(struct tw_actor){"cli", "", name, "", ""});
}

#include "server/base/actor.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	char room[4096], self[65];
	const char *sudo = before_sudo();

	if (getpwuid_r(getuid(), &entry, room, sizeof room, &found) == 0 && found)
		(void)snprintf(self, sizeof self, "%s", entry.pw_name);
	else
		(void)snprintf(self, sizeof self, "uid %u", (unsigned)getuid());
	if (sudo && strcmp(sudo, self) != 0)
		(void)snprintf(name, sizeof name, "%s as %s", sudo, self);
	else
		(void)snprintf(name, sizeof name, "%s", self);
	tw_actor_set(&(struct tw_actor){"cli", "", name, "", ""});
}

/*
 * actor.h - the person or key on whose behalf a thread changes the catalogue.
 *
 * The thread that serves a request (or runs a subcommand) sets its actor once; every change of the
 * catalogue writes its audit entry in the same transaction, so none lacks one.  Threads without an
 * actor act for the server itself.
 * Thread: any; the actor belongs to the thread that set it.
 */
#ifndef TW_ACTOR_H
#define TW_ACTOR_H

struct tw_actor {
	const char *kind; /* "user", "key", "link", "cli", "server", "tracker", "nobody" */
	const char *id, *name;
	const char *address, *request_id; /* "" if none */
};

/* Sets the actor of this thread; its texts must stay valid until the next call.  NULL: the server
 * itself. */
void tw_actor_set(const struct tw_actor *a);
const struct tw_actor *tw_actor_get(void); /* never NULL */
/* Sets the person running this program as the actor. */
void tw_actor_set_cli(void);

#endif

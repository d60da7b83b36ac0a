/*
 * oidc.h - people signed in by an OpenID provider: authorization code flow with PKCE.
 *
 * tw_oidc_begin says where to send the browser, tw_oidc_finish takes what it comes
 * back with and says who it is.  Neither knows HTTP replies or the catalogue.
 * Thread: any; both may block for as long as the provider takes.
 */
#ifndef TW_OIDC_H
#define TW_OIDC_H

#include "server/auth/oidc/oidc_roles.h"
#include "server/auth/oidc/oidc_state.h"
#include "server/base/config.h"

/* Why nobody was signed in: the word that the page is told. */
#define TW_OIDC_WHY_MAP(X)                                                                         \
	X(FAILED, "failed")           /* of us: no memory, no disk */                              \
	X(AWAY, "away")               /* the provider does not answer, or not as it must */        \
	X(REFUSED, "refused")         /* it, or the person there, said no */                       \
	X(STATE, "state")             /* not begun in this browser, too old, used */               \
	X(TOKEN, "token")             /* what it says of the person cannot be believed */          \
	X(CLOCK, "clock")             /* its clock and ours differ */                              \
	X(EMAIL, "email")             /* no verified address of a domain that may sign in */       \
	X(NO_NAME, "no_name")         /* it tells no name for a new account */                     \
	X(NAME_TAKEN, "name_taken")   /* there is an account of that name */                       \
	X(LINKED, "linked")           /* the person is somebody else here */                       \
	X(NOT_INVITED, "not_invited") /* no account, and none is made */                           \
	X(DISABLED, "disabled")       /* the account may not be used */                            \
	X(BUSY, "busy")               /* too many at once, or too many tries */                    \
	X(ELSEWHERE, "elsewhere")     /* begun by another site's page */

enum tw_oidc_why {
#define X(name, word) TW_OIDC_##name,
	TW_OIDC_WHY_MAP(X)
#undef X
};

const char *tw_oidc_why_word(enum tw_oidc_why why);

struct tw_oidc;

/* TW_BAD_REQUEST: a setting is wrong.  Asks nobody; config outlives it. */
enum tw_status tw_oidc_open(
        const struct tw_oidc_config *c, struct tw_oidc **ret, struct tw_err *err) TW_MUST_USE;
/* A sign-in that one server began any of them ends. */
void tw_oidc_share(struct tw_oidc *o, const struct tw_oidc_sharing *with);
struct tw_oidc *tw_oidc_close(struct tw_oidc *o); /* NULL is fine; returns NULL */

const char *tw_oidc_name(const struct tw_oidc *o); /* for people */
const char *tw_oidc_issuer(const struct tw_oidc *o);
struct tw_throttle *tw_oidc_tries(struct tw_oidc *o); /* apart from those of passwords */

struct tw_oidc_turn {             /* one request of a sign-in */
	const char *redirect_uri; /* where the provider sends the browser back to */
	int64_t deadline_ms;      /* monotonic: until then the provider may be waited for */
	struct tw_arena *arena;   /* of all texts that are returned */
	enum tw_oidc_why why;     /* written when a call fails; FAILED before */
	bool no_such_code;        /* it failed by a code that the provider did not give */
};

enum tw_status tw_oidc_begin(struct tw_oidc *o, struct tw_oidc_turn *turn,
        const struct tw_oidc_purpose *for_what, const char **ret_location, const char **ret_cookie,
        struct tw_err *err) TW_MUST_USE;

struct tw_oidc_answer { /* what the browser came back with; NULL where absent */
	const char *cookie, *state, *code, *issuer, *error;
};
struct tw_oidc_person {
	const char *subject;        /* at the provider, for ever */
	const char *name;           /* fit for an account here, "" when it tells none */
	const char *email;          /* "" when not told; for the record alone */
	struct tw_oidc_state begun; /* for whom, from where */
	bool no_role_claim;         /* rules want one, and the provider said none */
	struct tw_grant grants[TW_ROLE_RULES_MAX]; /* ruled by the provider's word */
	size_t n_grants;
	struct tw_grant first[TW_ROLE_RULES_MAX]; /* for a new account */
	size_t n_first;
	bool may_be_new;
};
enum tw_status tw_oidc_finish(struct tw_oidc *o, struct tw_oidc_turn *turn,
        const struct tw_oidc_answer *answer, struct tw_oidc_person *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

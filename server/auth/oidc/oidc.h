/*
 * oidc.h - sign-in through an OpenID provider: authorization code flow with PKCE.
 *
 * tw_oidc_begin returns the address to send the browser to; tw_oidc_finish takes the provider's
 * response from the browser and returns the person.  Neither uses HTTP replies or the catalogue.
 * Thread: any; both may block while waiting for the provider.
 */
#ifndef TW_OIDC_H
#define TW_OIDC_H

#include "server/auth/oidc/oidc_claim.h"
#include "server/auth/oidc/oidc_state.h"
#include "server/base/config.h"

/* Why a sign-in failed: the word passed to the page. */
#define TW_OIDC_WHY_MAP(X)                                                                         \
	X(FAILED, "failed")           /* on our side: no memory, no disk */                        \
	X(AWAY, "away")               /* the provider does not answer, or not as specified */      \
	X(REFUSED, "refused")         /* by the provider, or the person there */                   \
	X(STATE, "state")             /* not begun in this browser, expired, or used */            \
	X(TOKEN, "token")             /* the person's token is not valid */                        \
	X(CLOCK, "clock")             /* the clocks differ */                                      \
	X(EMAIL, "email")             /* no verified address of a domain that may sign in */       \
	X(NO_NAME, "no_name")         /* it has no name for a new account */                       \
	X(NAME_TAKEN, "name_taken")   /* an account with that name exists */                       \
	X(LINKED, "linked")           /* the person is linked to another account */                \
	X(NOT_INVITED, "not_invited") /* no account, and none is created */                        \
	X(DISABLED, "disabled")       /* the account is disabled */                                \
	X(BUSY, "busy")               /* too many in parallel, or too many attempts */             \
	X(ELSEWHERE, "elsewhere")     /* begun by another site's page */

enum tw_oidc_why {
#define X(name, word) TW_OIDC_##name,
	TW_OIDC_WHY_MAP(X)
#undef X
};

const char *tw_oidc_why_name(enum tw_oidc_why why);

struct tw_oidc;

/* TW_BAD_REQUEST: an invalid setting.  Sends no request; the config must outlive it. */
enum tw_status tw_oidc_open(
        const struct tw_oidc_config *c, struct tw_oidc **ret, struct tw_err *err) TW_MUST_USE;
/* Lets any server finish a sign-in that another one began. */
void tw_oidc_share(struct tw_oidc *o, const struct tw_oidc_sharing *with);
struct tw_oidc *tw_oidc_close(struct tw_oidc *o); /* accepts NULL; returns NULL */

const char *tw_oidc_name(const struct tw_oidc *o); /* display name */
const char *tw_oidc_issuer(const struct tw_oidc *o);
struct tw_throttle *tw_oidc_throttle(struct tw_oidc *o); /* separate from password attempts */

struct tw_oidc_call {             /* one request of a sign-in */
	const char *redirect_uri; /* where the provider redirects the browser */
	int64_t deadline_ms;      /* monotonic: latest time to wait for the provider */
	struct tw_arena *arena;   /* for all returned texts */
	enum tw_oidc_why why;     /* set when a call fails; initialise to FAILED */
	bool no_such_code;        /* it failed because the provider did not issue the code */
};

enum tw_status tw_oidc_begin(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_oidc_purpose *for_what, const char **ret_location, const char **ret_cookie,
        struct tw_err *err) TW_MUST_USE;

struct tw_oidc_callback { /* the browser's return from the provider; NULL if absent */
	const char *cookie, *state, *code, *issuer, *error;
};
struct tw_oidc_person {
	const char *subject;        /* permanent identifier at the provider */
	const char *name;           /* valid as an account name here, "" if none */
	const char *email;          /* "" if absent; only for the audit log */
	struct tw_oidc_state begun; /* the purpose and the begin of the sign-in */
	bool no_role_claim;         /* role rules need the claim, and the provider sent none */
	struct tw_grant grants[TW_ROLE_RULES_MAX]; /* granted by the provider's claim */
	size_t n_grants;
	struct tw_grant first[TW_ROLE_RULES_MAX]; /* for a new account */
	size_t n_first;
	bool may_be_new;
};
enum tw_status tw_oidc_finish(struct tw_oidc *o, struct tw_oidc_call *call,
        const struct tw_oidc_callback *answer, struct tw_oidc_person *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

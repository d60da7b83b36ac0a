/*
 * catalogue_identity.h - accounts of people who sign in through an OpenID provider.
 *
 * An account has at most one identity per provider, found only by issuer and subject.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_IDENTITY_H
#define TW_CATALOGUE_IDENTITY_H

#include "server/base/caller.h"
#include "server/catalogue/access/catalogue_user.h"

struct tw_identity {
	const char *issuer, *subject;
	const char *name;             /* for a new account; "" none */
	const char *user_id;          /* the account to link to, "" */
	const uint8_t *requested_by;  /* hash of that account's session, which must still exist */
	bool may_be_new;              /* create an account if there is none */
	const struct tw_grant *first; /* roles of a created account */
	size_t n_first;
	const struct tw_grant *grants; /* roles from now on; unknown projects are ignored */
	size_t n_grants;
};

/* The outcome, in addition to the status. */
enum tw_identity_end {
	TW_IDENTITY_SIGNED_IN,
	TW_IDENTITY_UNKNOWN,    /* TW_DENIED: no account, and none may be created */
	TW_IDENTITY_NO_NAME,    /* TW_DENIED: a new account would have no name */
	TW_IDENTITY_NAME_TAKEN, /* TW_CONFLICT */
	TW_IDENTITY_LINKED, /* TW_CONFLICT: the identity belongs to another account, or the account
	                     * has another identity */
	TW_IDENTITY_DISABLED, /* TW_DENIED */
	TW_IDENTITY_OVER,     /* TW_DENIED: the session that requested the link has ended */
	TW_IDENTITY_FAILED    /* any other status */
};

/* In one transaction: finds, links or creates the account, sets its roles and starts the session
 * (whose user_id is ignored). */
enum tw_status tw_catalogue_identity_sign_in(struct tw_catalogue *c, const struct tw_identity *who,
        const struct tw_session *s, enum tw_identity_end *ret_end, struct tw_err *err) TW_MUST_USE;

/* Sets the account's identity at that provider; "" removes it.  TW_CONFLICT if it belongs to
 * another account. */
enum tw_status tw_catalogue_identity_set(struct tw_catalogue *c, const char *user_id,
        const char *issuer, const char *subject, struct tw_err *err) TW_MUST_USE;
/* Removes the account's identities at all providers, and its sessions.  TW_NOT_FOUND: it has
 * none. */
enum tw_status tw_catalogue_identity_drop(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err) TW_MUST_USE;
/* Whether the account has an identity at that provider. */
enum tw_status tw_catalogue_identity_has(struct tw_catalogue *c, const char *user_id,
        const char *issuer, bool *ret, struct tw_err *err) TW_MUST_USE;

/* Records that a sign-in was completed, for several servers.  *ret_first false: it was already
 * completed.  Beyond TW_SIGNINS_USED, the one that expires first is dropped. */
enum { TW_SIGNINS_USED = 4096 };
enum tw_status tw_catalogue_signin_use(struct tw_catalogue *c, const char *id_prefix,
        int64_t until_ms, bool *ret_first, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * catalogue_identity.h - accounts of people whom an OpenID provider signs in.
 *
 * An account has at most one identity at a provider; it is found by issuer and
 * subject alone.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_IDENTITY_H
#define TW_CATALOGUE_IDENTITY_H

#include "server/base/caller.h"
#include "server/catalogue/access/catalogue_user.h"

struct tw_identity {
	const char *issuer, *subject;
	const char *name;        /* of a new account; "" when it has none */
	const char *user_id;     /* the account it is to be linked to, "" */
	const uint8_t *asked_by; /* hash of that account's session, which must still be there */
	bool may_be_new;         /* an account is made where there is none */
	const struct tw_grant *first; /* roles of an account that is made */
	size_t n_first;
	const struct tw_grant
	        *grants; /* roles from now on; projects that are not here are ignored */
	size_t n_grants;
};

/* What came of it, beside the status. */
enum tw_identity_end {
	TW_IDENTITY_SIGNED_IN,
	TW_IDENTITY_UNKNOWN,    /* TW_DENIED: no account, and none may be made */
	TW_IDENTITY_NO_NAME,    /* TW_DENIED: a new account would have no name */
	TW_IDENTITY_NAME_TAKEN, /* TW_CONFLICT */
	TW_IDENTITY_LINKED, /* TW_CONFLICT: the identity is another account's, or it has another */
	TW_IDENTITY_DISABLED, /* TW_DENIED */
	TW_IDENTITY_OVER,     /* TW_DENIED: the session that asked for the link is over */
	TW_IDENTITY_FAILED    /* any other status */
};

/* Finds, links or makes the account, gives it its roles and begins the session (whose user_id is
 * not looked at): all of it or nothing. */
enum tw_status tw_catalogue_identity_sign_in(struct tw_catalogue *c, const struct tw_identity *who,
        const struct tw_session *s, enum tw_identity_end *ret_end, struct tw_err *err) TW_MUST_USE;

/* The account's identity there becomes that one; "" takes it away.  TW_CONFLICT when it is another
 * account's. */
enum tw_status tw_catalogue_identity_set(struct tw_catalogue *c, const char *user_id,
        const char *issuer, const char *subject, struct tw_err *err) TW_MUST_USE;
/* Takes away what the account has at any provider, and its sessions.  TW_NOT_FOUND: it has none. */
enum tw_status tw_catalogue_identity_drop(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err) TW_MUST_USE;
/* Has the account an identity there? */
enum tw_status tw_catalogue_identity_has(struct tw_catalogue *c, const char *user_id,
        const char *issuer, bool *ret, struct tw_err *err) TW_MUST_USE;

/* Marks a sign-in by a provider as ended, where several servers end them.  *ret_first false: it was
 * before.  Of very many the one that is over first is forgotten. */
enum { TW_SIGNINS_USED = 4096 };
enum tw_status tw_catalogue_signin_use(struct tw_catalogue *c, const char *mark, int64_t until_ms,
        bool *ret_first, struct tw_err *err) TW_MUST_USE;

#endif

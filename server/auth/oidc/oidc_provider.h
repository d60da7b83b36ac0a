/*
 * oidc_provider.h - what the provider says of itself (OpenID Connect Discovery), and its keys.
 *
 * Both are asked for when they are first needed and kept for an hour, so that the
 * server starts, and people with passwords sign in, while the provider is away.
 * Thread: any; may block for as long as a request to it takes.
 */
#ifndef TW_OIDC_PROVIDER_H
#define TW_OIDC_PROVIDER_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "server/base/config.h"

enum { TW_PROVIDER_ANEW_MS = 10000 };

struct tw_provider;

struct tw_provider_says { /* addresses may be asked; they live in the arena that was given */
	const char *authorization, *token;
	const char *userinfo; /* "": none */
	bool by_post;         /* it takes the secret in the form alone */
	bool names_itself;    /* answers to the browser have iss (RFC 9207) */
};

struct tw_provider *tw_provider_new(const struct tw_oidc_config *c); /* NULL: no memory */
struct tw_provider *tw_provider_free(struct tw_provider *p);         /* NULL is fine */

/* TW_IO: it does not answer, or not as it must. */
enum tw_status tw_provider_says(struct tw_provider *p, uint64_t ms, struct tw_arena *a,
        struct tw_provider_says *ret, struct tw_err *err) TW_MUST_USE;
/* A copy of its key set, owed to json_decref; `anew` asks it again, unless it was asked so in the
 * last TW_PROVIDER_ANEW_MS. */
enum tw_status tw_provider_keys(struct tw_provider *p, bool anew, uint64_t ms, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif

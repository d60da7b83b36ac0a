/*
 * oidc_provider.h - the provider's metadata (OpenID Connect Discovery), and its keys.
 *
 * Both are requested when first needed and cached for an hour, so that the server starts, and
 * password sign-in works, while the provider is unreachable.
 * Thread: any; may block for the duration of a request.
 */
#ifndef TW_OIDC_PROVIDER_H
#define TW_OIDC_PROVIDER_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "server/base/config.h"

enum { TW_PROVIDER_REFRESH_MS = 10000 };

struct tw_provider;

struct tw_provider_metadata { /* addresses are checked; strings are in the arena passed in */
	const char *authorization, *token;
	const char *userinfo; /* "": none */
	bool by_post;         /* accepts the secret only in the form */
	bool names_itself;    /* responses to the browser have iss (RFC 9207) */
};

struct tw_provider *tw_provider_new(const struct tw_oidc_config *c); /* NULL: out of memory */
struct tw_provider *tw_provider_free(struct tw_provider *p);         /* accepts NULL */

/* TW_IO: no response, or an invalid one. */
enum tw_status tw_provider_metadata(struct tw_provider *p, uint64_t ms, struct tw_arena *a,
        struct tw_provider_metadata *ret, struct tw_err *err) TW_MUST_USE;
/* A copy of its key set (free with json_decref); `refresh` requests it again, at most every
 * TW_PROVIDER_REFRESH_MS. */
enum tw_status tw_provider_keys(struct tw_provider *p, bool refresh, uint64_t ms, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

#endif

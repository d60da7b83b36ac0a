/*
 * oidc_state.h - the state of a sign-in in progress, stored in the browser.
 *
 * The cookie holds a random number, signed with a key created at the start of the process or shared
 * by all servers on one catalogue.  State, nonce and the PKCE verifier are derived from that number
 * with another key, so that a URL reveals none of the others.  The number is valid once and for ten
 * minutes.  If very many were used in that time, the one that expires first is dropped from the
 * list of used ones (its code is also valid only once at the provider).  Several servers keep that
 * list in the catalogue.
 *
 * The session cookie is not sent on the way back from the provider (SameSite=Strict), so the cookie
 * includes a hash of the session that the browser had at the start.
 * Thread: any.
 */
#ifndef TW_OIDC_STATE_H
#define TW_OIDC_STATE_H

#include "decoder/base/arena.h"
#include "server/auth/auth.h"
#include "server/base/text/base64url.h"

enum { TW_OIDC_STATE_S = 600, TW_OIDC_NEXT_MAX = 1024, TW_OIDC_STATES_USED = 4096 };

struct tw_oidc_states;

/* The purpose of a sign-in. */
struct tw_oidc_purpose {
	const char *user_id;   /* the account to link, or "" */
	const char *next;      /* path where the page continues; any other text becomes "/" */
	const uint8_t *before; /* hash of the browser's session, or NULL */
};

struct tw_oidc_state {
	char user_id[TW_ID_BYTES]; /* the account to link, or "" */
	const char *next;          /* path where the page continues, "/..." */
	bool has_before;
	uint8_t before[32]; /* hash of the browser's session at the start */
	char state[TW_BASE64URL_BYTES(32)];
	char nonce[TW_BASE64URL_BYTES(32)];
	char verifier[TW_BASE64URL_BYTES(32)];
	char challenge[TW_BASE64URL_BYTES(32)]; /* S256 of the verifier */
};

enum tw_status tw_oidc_states_new(struct tw_oidc_states **ret, struct tw_err *err) TW_MUST_USE;
/* State shared by all servers from now on; call before the first sign-in. */
struct tw_oidc_sharing {
	uint8_t cookie_key[32], secret[32]; /* the same on all servers */
	/* Records the use; *ret_first false: it was already used. */
	enum tw_status (*use)(void *arg, const char *id_prefix, int64_t until_ms, bool *ret_first,
	        struct tw_err *err);
	void *arg;
};
void tw_oidc_states_share(struct tw_oidc_states *s, const struct tw_oidc_sharing *with);
struct tw_oidc_states *tw_oidc_states_free(struct tw_oidc_states *s); /* accepts NULL */

enum tw_status tw_oidc_state_begin(struct tw_oidc_states *s, const struct tw_oidc_purpose *for_what,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret, const char **ret_cookie,
        struct tw_err *err) TW_MUST_USE;
/* The sign-in that this browser began and the provider answers.  TW_NO_TOKEN: of another browser,
 * expired, or already used. */
enum tw_status tw_oidc_state_take(struct tw_oidc_states *s, const char *cookie, const char *state,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

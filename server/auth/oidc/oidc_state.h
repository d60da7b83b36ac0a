/*
 * oidc_state.h - a sign-in under way, kept by the browser that began it.
 *
 * The cookie holds a random number, signed with a key that the process makes when
 * it starts, or that all servers on one catalogue have; state, nonce and the PKCE verifier are made
 * from that number with another key, so that whoever reads an address learns none of the others.
 * The number is good once and for ten minutes; of very many that were used in that time the one
 * that ends first is forgotten (its code is the provider's, and is good once there too).  Among
 * servers the catalogue says which were used.
 *
 * The cookie of a session does not travel on the way back from the provider
 * (SameSite=Strict), so the one that the browser began with goes along, hashed.
 * Thread: any.
 */
#ifndef TW_OIDC_STATE_H
#define TW_OIDC_STATE_H

#include "decoder/base/arena.h"
#include "server/auth/auth.h"
#include "server/base/text/base64url.h"

enum { TW_OIDC_STATE_S = 600, TW_OIDC_NEXT_MAX = 1024, TW_OIDC_STATES_USED = 4096 };

struct tw_oidc_states;

/* What a sign-in is begun for. */
struct tw_oidc_purpose {
	const char *user_id;   /* the account that is to be linked, or "" */
	const char *next;      /* where the page goes on; what is no path of ours becomes "/" */
	const uint8_t *before; /* hash of the session that the browser has, or NULL */
};

struct tw_oidc_state {
	char user_id[TW_ID_BYTES]; /* the account that is to be linked, or "" */
	const char *next;          /* where the page goes on, "/..." */
	bool has_before;
	uint8_t before[32]; /* hash of the session that the browser had */
	char state[TW_BASE64URL_BYTES(32)];
	char nonce[TW_BASE64URL_BYTES(32)];
	char verifier[TW_BASE64URL_BYTES(32)];
	char challenge[TW_BASE64URL_BYTES(32)]; /* S256 of the verifier */
};

enum tw_status tw_oidc_states_new(struct tw_oidc_states **ret, struct tw_err *err) TW_MUST_USE;
/* From here on they are those of all who share it: called before the first is begun. */
struct tw_oidc_sharing {
	uint8_t seal[32], secret[32]; /* the same for all */
	/* Marks it as used; *ret_first false: it was before. */
	enum tw_status (*use)(
	        void *arg, const char *mark, int64_t until_ms, bool *ret_first, struct tw_err *err);
	void *arg;
};
void tw_oidc_states_share(struct tw_oidc_states *s, const struct tw_oidc_sharing *with);
struct tw_oidc_states *tw_oidc_states_free(struct tw_oidc_states *s); /* NULL is fine */

enum tw_status tw_oidc_state_begin(struct tw_oidc_states *s, const struct tw_oidc_purpose *for_what,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret, const char **ret_cookie,
        struct tw_err *err) TW_MUST_USE;
/* The one that this browser began and the provider answers.  TW_NO_TOKEN: not of this browser,
 * over, or used already. */
enum tw_status tw_oidc_state_take(struct tw_oidc_states *s, const char *cookie, const char *state,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret,
        struct tw_err *err) TW_MUST_USE;

#endif

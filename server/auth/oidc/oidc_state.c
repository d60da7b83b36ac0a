#include "server/auth/oidc/oidc_state.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "server/auth/ticket.h"

enum {
	ID_BYTES = 32,
	HASH_BYTES = 32,
	ID_TEXT = TW_BASE64URL_BYTES(ID_BYTES) - 1,
	HASH_TEXT = TW_BASE64URL_BYTES(HASH_BYTES) - 1,
	PREFIX_BYTES = 16,
	PREFIX_TEXT = TW_BASE64URL_BYTES(PREFIX_BYTES)
};

struct used {
	uint8_t id_prefix[PREFIX_BYTES]; /* the first bytes of the number */
	int64_t until_ms;
};

struct tw_oidc_states {
	uint8_t cookie_key[TW_TICKET_KEY_BYTES], secret[TW_TICKET_KEY_BYTES];
	struct tw_oidc_sharing with; /* use NULL: not shared */
	pthread_mutex_t lock;
	struct used used[TW_OIDC_STATES_USED];
};

enum tw_status tw_oidc_states_new(struct tw_oidc_states **ret, struct tw_err *err)
{
	struct tw_oidc_states *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return tw_oom(err);
	randombytes_buf(s->cookie_key, sizeof s->cookie_key);
	randombytes_buf(s->secret, sizeof s->secret);
	(void)pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return TW_OK;
}

void tw_oidc_states_share(struct tw_oidc_states *s, const struct tw_oidc_sharing *with)
{
	s->with = *with;
	memcpy(s->cookie_key, with->cookie_key, sizeof s->cookie_key);
	memcpy(s->secret, with->secret, sizeof s->secret);
}

struct tw_oidc_states *tw_oidc_states_free(struct tw_oidc_states *s)
{
	if (!s)
		return NULL;
	(void)pthread_mutex_destroy(&s->lock);
	explicit_bzero(s, sizeof *s);
	tw_mem_free(s);
	return NULL;
}

/* Derives a text from the number, for one purpose. */
static bool derive(const struct tw_oidc_states *s, char purpose, const uint8_t id[ID_BYTES],
        char out[TW_BASE64URL_BYTES(32)])
{
	uint8_t in[1 + ID_BYTES], mac[32];

	in[0] = (uint8_t)purpose;
	memcpy(in + 1, id, ID_BYTES);
	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, s->secret, sizeof s->secret, in, sizeof in, mac) !=
	        0)
		return false;
	tw_base64url_spell(mac, sizeof mac, out);
	return true;
}

static enum tw_status derive_all(const struct tw_oidc_states *s, const uint8_t id[ID_BYTES],
        struct tw_oidc_state *ret, struct tw_err *err)
{
	uint8_t hash[32];

	if (!derive(s, 's', id, ret->state) || !derive(s, 'n', id, ret->nonce) ||
	        !derive(s, 'v', id, ret->verifier) ||
	        gnutls_hash_fast(GNUTLS_DIG_SHA256, ret->verifier, strlen(ret->verifier), hash) !=
	                0)
		return tw_fail(err, TW_NOMEM, "a sign-in could not be signed");
	tw_base64url_spell(hash, sizeof hash, ret->challenge);
	return TW_OK;
}

/* Browsers treat "//host" and "/\host" as other servers. */
static bool is_own_path(const char *next)
{
	return next[0] == '/' && next[1] != '/' && next[1] != '\\' &&
	       strlen(next) <= TW_OIDC_NEXT_MAX && tw_str_is_graphic(tw_str_of(next));
}

/* The cookie's content: the number, the session's hash if any, and the path to continue at, which
 * begins with '/', unlike a hash. */
static const char *write_target(
        struct tw_arena *a, const uint8_t id[ID_BYTES], const struct tw_oidc_state *begun)
{
	char id_text[ID_TEXT + 1], before_text[HASH_TEXT + 1] = "";

	tw_base64url_spell(id, ID_BYTES, id_text);
	if (begun->has_before)
		tw_base64url_spell(begun->before, HASH_BYTES, before_text);
	return tw_arena_printf(a, "%s%s%s", id_text, before_text, begun->next);
}

static bool read_piece(const char **at, size_t len, uint8_t *out)
{
	size_t n = 0;

	if (strlen(*at) <= len || !tw_base64url_read((struct tw_str){*at, len}, out, &n) || n != 32)
		return false;
	*at += len;
	return true;
}

static bool read_target(const char *at, uint8_t ret_id[ID_BYTES + 1], struct tw_oidc_state *ret)
{
	uint8_t before[HASH_BYTES + 1];

	if (!read_piece(&at, ID_TEXT, ret_id))
		return false;
	ret->has_before = *at != '/';
	if (ret->has_before) {
		if (!read_piece(&at, HASH_TEXT, before))
			return false;
		memcpy(ret->before, before, sizeof ret->before);
	}
	ret->next = at;
	return true;
}

enum tw_status tw_oidc_state_begin(struct tw_oidc_states *s, const struct tw_oidc_purpose *for_what,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret, const char **ret_cookie,
        struct tw_err *err)
{
	struct tw_ticket t = {.expires_ms = now_ms + (int64_t)TW_OIDC_STATE_S * 1000};
	struct tw_oidc_state begun = {.next = is_own_path(for_what->next) ? for_what->next : "/",
	        .has_before = for_what->before != NULL};
	uint8_t id[ID_BYTES];
	enum tw_status st;

	randombytes_buf(id, sizeof id);
	memcpy(begun.user_id, for_what->user_id, strlen(for_what->user_id) + 1);
	if (begun.has_before)
		memcpy(begun.before, for_what->before, sizeof begun.before);
	memcpy(t.project_id, begun.user_id, sizeof t.project_id);
	t.target = write_target(a, id, &begun);
	if (!t.target)
		return tw_oom(err);
	st = derive_all(s, id, &begun, err);
	if (st == TW_OK)
		st = tw_ticket_sign(s->cookie_key, &t, a, ret_cookie, err);
	if (st == TW_OK)
		*ret = begun;
	return st;
}

static enum tw_status fail_state(struct tw_err *err)
{
	return tw_fail(err, TW_NO_TOKEN,
	        "this sign-in was not started in this browser, took too long or was already used");
}

static enum tw_status use_shared(
        struct tw_oidc_states *s, const uint8_t id[ID_BYTES], int64_t until_ms, struct tw_err *err)
{
	char id_prefix[PREFIX_TEXT];
	bool first = false;
	enum tw_status st;

	tw_base64url_spell(id, PREFIX_BYTES, id_prefix);
	st = s->with.use(s->with.arg, id_prefix, until_ms, &first, err);
	return st == TW_OK && !first ? fail_state(err) : st;
}

static enum tw_status use_here(struct tw_oidc_states *s, const uint8_t id[ID_BYTES],
        int64_t until_ms, int64_t now_ms, struct tw_err *err)
{
	struct used *earliest = &s->used[0];
	bool is_used = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < TW_OIDC_STATES_USED && !is_used; i++) {
		struct used *u = &s->used[i];

		is_used = u->until_ms > now_ms && memcmp(u->id_prefix, id, PREFIX_BYTES) == 0;
		if (u->until_ms < earliest->until_ms)
			earliest = u;
	}
	if (!is_used) {
		memcpy(earliest->id_prefix, id, PREFIX_BYTES);
		earliest->until_ms = until_ms;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return is_used ? fail_state(err) : TW_OK;
}

enum tw_status tw_oidc_state_take(struct tw_oidc_states *s, const char *cookie, const char *state,
        int64_t now_ms, struct tw_arena *a, struct tw_oidc_state *ret, struct tw_err *err)
{
	struct tw_oidc_state begun = {.next = "/"};
	uint8_t id[ID_BYTES + 1];
	struct tw_ticket t;
	enum tw_status st = tw_ticket_open(s->cookie_key, cookie, now_ms, a, &t, err);

	if (st == TW_NO_TOKEN)
		return fail_state(err);
	if (st != TW_OK)
		return st;
	if (!read_target(t.target, id, &begun))
		return fail_state(err);
	memcpy(begun.user_id, t.project_id, sizeof begun.user_id);
	st = derive_all(s, id, &begun, err);
	if (st != TW_OK)
		return st;
	if (strlen(state) != strlen(begun.state) ||
	        gnutls_memcmp(state, begun.state, strlen(begun.state)) != 0)
		return fail_state(err);
	st = s->with.use ? use_shared(s, id, t.expires_ms, err)
	                 : use_here(s, id, t.expires_ms, now_ms, err);
	if (st == TW_OK)
		*ret = begun;
	return st;
}

/* ticket.c - base64url(MAC, expires_ms, project, target): the MAC covers everything after it. */
#include "server/auth/ticket.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "server/base/text/base64url.h"

enum { MAC_BYTES = 32, HEAD_BYTES = MAC_BYTES + 8, FIXED_BYTES = HEAD_BYTES + TW_ID_BYTES - 1 };

static bool sign(const uint8_t *key, const uint8_t *bytes, size_t n, uint8_t ret_mac[MAC_BYTES])
{
	return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, TW_TICKET_KEY_BYTES, bytes + MAC_BYTES,
	               n - MAC_BYTES, ret_mac) == 0;
}

enum tw_status tw_ticket_sign(const uint8_t key[TW_TICKET_KEY_BYTES], const struct tw_ticket *t,
        struct tw_arena *a, const char **ret, struct tw_err *err)
{
	size_t target = strlen(t->target);
	size_t n = FIXED_BYTES + target;
	uint8_t *bytes = tw_arena_zalloc(a, n, 1);
	char *text = tw_arena_alloc(a, TW_BASE64URL_BYTES(n), 1);

	if (target > TW_TICKET_TARGET_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "the target is too long");
	if (!bytes || !text)
		return tw_oom(err);
	for (unsigned i = 0; i < 8; i++)
		bytes[MAC_BYTES + i] = (uint8_t)((uint64_t)t->expires_ms >> 8 * i);
	memcpy(bytes + HEAD_BYTES, t->project_id, TW_ID_BYTES - 1);
	memcpy(bytes + FIXED_BYTES, t->target, target);
	if (!sign(key, bytes, n, bytes))
		return tw_fail(err, TW_NOMEM, "a ticket could not be signed");
	tw_base64url_spell(bytes, n, text);
	*ret = text;
	return TW_OK;
}

static enum tw_status not_ours(struct tw_err *err)
{
	return tw_fail(err, TW_NO_TOKEN,
	        "this link was created by another server, or before a restart; create a new one on "
	        "the trace's page");
}

enum tw_status tw_ticket_open(const uint8_t key[TW_TICKET_KEY_BYTES], const char *text,
        int64_t now_ms, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err)
{
	size_t cap = strlen(text);
	uint8_t *bytes = tw_arena_alloc(a, cap + 1, 1);
	struct tw_ticket t = {.expires_ms = 0};
	uint8_t mac[MAC_BYTES];
	size_t n = 0;

	if (!bytes)
		return tw_oom(err);
	if (cap > TW_BASE64URL_BYTES(FIXED_BYTES + TW_TICKET_TARGET_MAX) ||
	        !tw_base64url_read((struct tw_str){text, cap}, bytes, &n) || n < FIXED_BYTES)
		return not_ours(err);
	if (!sign(key, bytes, n, mac) || gnutls_memcmp(mac, bytes, MAC_BYTES) != 0)
		return not_ours(err);
	t.expires_ms = (int64_t)tw_u64le(bytes + MAC_BYTES);
	if (now_ms >= t.expires_ms)
		return tw_fail(err, TW_NO_TOKEN,
		        "this link has expired; create a new one on the trace's page");
	memcpy(t.project_id, bytes + HEAD_BYTES, TW_ID_BYTES - 1);
	t.target = tw_arena_str(
	        a, (struct tw_str){(const char *)bytes + FIXED_BYTES, n - FIXED_BYTES});
	if (!t.target)
		return tw_oom(err);
	*ret = t;
	return TW_OK;
}

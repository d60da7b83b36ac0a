/*
 * ticket.c - base64url(MAC, expires_ms, project, target): the MAC covers all behind it.
 */
#include "ticket.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"

enum { MAC_BYTES = 32, HEAD_BYTES = MAC_BYTES + 8, FIXED_BYTES = HEAD_BYTES + TW_ID_BYTES - 1 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum tw_status tw_ticket_key_new(uint8_t ret_key[TW_TICKET_KEY_BYTES], struct tw_err *err)
{
	if (getrandom(ret_key, TW_TICKET_KEY_BYTES, 0) != TW_TICKET_KEY_BYTES)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "no random bytes: %s", strerror(errno));
	return TW_OK;
}

static void spell(const uint8_t *p, size_t n, char *out)
{
	uint32_t bits = 0;
	unsigned n_bits = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | p[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			*out++ = digits[bits >> (n_bits - 6) & 63];
	}
	if (n_bits)
		*out++ = digits[bits << (6 - n_bits) & 63];
	*out = '\0';
}

/* The bytes of base64url text without padding; false for any other text, and for one of several
 * spellings of the same bytes. */
static bool read_spelled(const char *text, uint8_t *out, size_t *ret_n)
{
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t n = 0;

	for (; *text; text++) {
		const char *digit = strchr(digits, *text);

		if (!digit)
			return false;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	*ret_n = n;
	return n_bits < 6 && (bits & ((1u << n_bits) - 1)) == 0;
}

static void sign(const uint8_t *key, const uint8_t *sealed, size_t n, uint8_t ret_mac[MAC_BYTES])
{
	(void)gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, TW_TICKET_KEY_BYTES, sealed + MAC_BYTES,
	        n - MAC_BYTES, ret_mac);
}

enum tw_status tw_ticket_seal(const uint8_t key[TW_TICKET_KEY_BYTES], const struct tw_ticket *t,
        struct tw_arena *a, const char **ret, struct tw_err *err)
{
	size_t target = strlen(t->target);
	size_t n = FIXED_BYTES + target;
	uint8_t *sealed = tw_arena_zalloc(a, n, 1);
	char *text = tw_arena_alloc(a, n * 4 / 3 + 4, 1);

	if (target > TW_TICKET_TARGET_MAX)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "the target is too long");
	if (!sealed || !text)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a ticket");
	for (unsigned i = 0; i < 8; i++)
		sealed[MAC_BYTES + i] = (uint8_t)((uint64_t)t->expires_ms >> 8 * i);
	memcpy(sealed + HEAD_BYTES, t->project_id, TW_ID_BYTES - 1);
	memcpy(sealed + FIXED_BYTES, t->target, target);
	sign(key, sealed, n, sealed);
	spell(sealed, n, text);
	*ret = text;
	return TW_OK;
}

enum tw_status tw_ticket_open(const uint8_t key[TW_TICKET_KEY_BYTES], const char *text,
        int64_t now_ms, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err)
{
	size_t cap = strlen(text);
	uint8_t *sealed = tw_arena_alloc(a, cap + 1, 1);
	struct tw_ticket t = {.expires_ms = 0};
	uint8_t mac[MAC_BYTES];
	size_t n = 0;

	if (!sealed)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a ticket");
	if (cap > (FIXED_BYTES + TW_TICKET_TARGET_MAX) * 4 / 3 + 4 ||
	        !read_spelled(text, sealed, &n) || n < FIXED_BYTES)
		return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET, "this link was not made here");
	sign(key, sealed, n, mac);
	if (gnutls_memcmp(mac, sealed, MAC_BYTES) != 0)
		return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET, "this link was not made here");
	t.expires_ms = (int64_t)tw_u64le(sealed + MAC_BYTES);
	if (now_ms >= t.expires_ms)
		return tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		        "this link is over; make a new one on the trace's page");
	memcpy(t.project_id, sealed + HEAD_BYTES, TW_ID_BYTES - 1);
	t.target = tw_arena_str(
	        a, (struct tw_str){(const char *)sealed + FIXED_BYTES, n - FIXED_BYTES});
	if (!t.target)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a ticket");
	*ret = t;
	return TW_OK;
}

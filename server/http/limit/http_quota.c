/*
 * http_quota.c - enforces the quotas of a request's key and device, and reports the rest.
 *
 * A key's quota is checked with the headers: a request with a Content-Length takes its bytes
 * immediately, so that parallel requests cannot take them twice, and the actual size is settled
 * at the end.  A device is known later, from the upload's own metadata, and is checked by the
 * route.
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/base/clock.h"
#include "server/http/http_int.h"
#include "server/http/limit/quota.h"

enum { MAX_FIELD = 512, MAX_DEVICE = 1024 };

/* The fields of draft-ietf-httpapi-ratelimit-headers: lists of policies, and of remaining
 * quotas. */
static void add_headers(struct tw_req *r, enum tw_quota_who who, const char *id)
{
	struct tw_quota_left left[TW_QUOTA_WHAT];
	char policy[MAX_FIELD] = "";
	char now[MAX_FIELD] = "";
	size_t np = 0;
	size_t nn = 0;

	tw_quota_remaining(r->http->parts.quota, who, id, tw_unix_ms(), left);
	for (enum tw_quota_what what = 0; what < TW_QUOTA_WHAT; what++) {
		const struct tw_quota_left *l = &left[what];

		if (l->limit == 0)
			continue;
		np += (size_t)snprintf(policy + np, sizeof policy - np,
		        "%s\"%s\";q=%" PRIu64 ";w=%u%s", np ? ", " : "", l->name, l->limit,
		        l->window_s, what == TW_QUOTA_BYTES ? ";qu=\"content-bytes\"" : "");
		nn += (size_t)snprintf(now + nn, sizeof now - nn, "%s\"%s\";r=%" PRIu64 ";t=%u",
		        nn ? ", " : "", l->name, l->left, l->reset_s);
	}
	if (np == 0)
		return;
	tw_req_add_to_header(r, "RateLimit-Policy", policy);
	tw_req_add_to_header(r, "RateLimit", now);
}

static void set_retry_after(struct tw_req *r, unsigned wait_s)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", wait_s);
	tw_req_set_header(r, "Retry-After", text);
}

enum tw_status tw_req_take_quota(struct tw_req *r, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	uint64_t bytes = r->declared == UINT64_MAX ? 0 : r->declared;
	unsigned wait_s = 0;
	enum tw_status st;

	if (!q || !r->caller.key_id[0])
		return TW_OK;
	st = tw_quota_take(q, TW_QUOTA_KEY, r->caller.key_id, bytes, tw_unix_ms(), &wait_s, err);
	r->took_quota = st == TW_OK;
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	if (st != TW_OK || r->route->upload)
		add_headers(r, TW_QUOTA_KEY, r->caller.key_id);
	return st;
}

void tw_req_finalize_quota(struct tw_req *r)
{
	uint64_t taken = r->declared == UINT64_MAX ? 0 : r->declared;

	if (r->took_quota && r->got != taken)
		tw_quota_finalize(r->http->parts.quota, TW_QUOTA_KEY, r->caller.key_id,
		        (int64_t)r->got - (int64_t)taken, tw_unix_ms());
	r->took_quota = false;
}

/* False: there is no device, or no quota. */
static bool device_id(const struct tw_req *r, const char *device, char out[MAX_DEVICE])
{
	if (!r->http->parts.quota || !device || !device[0])
		return false;
	(void)snprintf(out, MAX_DEVICE, "%s/%s", r->caller.project_id, device);
	return true;
}

static enum tw_status use_device_quota(
        struct tw_req *r, const char *device, uint64_t bytes, bool take, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	char id[MAX_DEVICE];
	unsigned wait_s = 0;
	enum tw_status st;

	if (!device_id(r, device, id))
		return TW_OK;
	st = take ? tw_quota_take(q, TW_QUOTA_DEVICE, id, bytes, tw_unix_ms(), &wait_s, err)
	          : tw_quota_check(q, TW_QUOTA_DEVICE, id, bytes, tw_unix_ms(), &wait_s, err);
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	if (st != TW_OK || take)
		add_headers(r, TW_QUOTA_DEVICE, id);
	return st;
}

enum tw_status tw_req_check_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err)
{
	return use_device_quota(r, device, bytes, false, err);
}

enum tw_status tw_req_charge_key(struct tw_req *r, uint64_t bytes, struct tw_err *err)
{
	struct tw_quota *q = r->http->parts.quota;
	unsigned wait_s = 0;
	enum tw_status st;

	if (!q || !r->caller.key_id[0])
		return TW_OK;
	st = tw_quota_take(q, TW_QUOTA_KEY, r->caller.key_id, bytes, tw_unix_ms(), &wait_s, err);
	if (st != TW_OK)
		set_retry_after(r, wait_s);
	return st;
}

enum tw_status tw_req_charge_device(
        struct tw_req *r, const char *device, uint64_t bytes, struct tw_err *err)
{
	return use_device_quota(r, device, bytes, true, err);
}

void tw_req_refund_device(struct tw_req *r, const char *device, uint64_t bytes)
{
	char id[MAX_DEVICE];

	if (device_id(r, device, id))
		tw_quota_finalize(
		        r->http->parts.quota, TW_QUOTA_DEVICE, id, -(int64_t)bytes, tw_unix_ms());
}

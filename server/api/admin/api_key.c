/* Keys of a project, for admins: create, rotate, revoke. */

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/catalogue_row.h"

enum { GRACE_S = 7 * 86400, MAX_GRACE_S = 366 * 86400 };

static const struct tw_param keys_params[] = {
        TW_PARAM_NUMBER("limit", 100, 1, 500, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static enum tw_status list_keys(struct tw_req *r, struct tw_err *err)
{
	const uint32_t limit = (uint32_t)tw_req_number(r, "limit");
	struct tw_key_row *rows;
	size_t n;
	enum tw_status st = tw_catalogue_keys(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_text_or_empty(r, "cursor"), limit, tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{so ss?}", "keys", tw_rows_json(&tw_key_fields, rows, n, sizeof *rows),
	                "next_cursor", n == limit ? rows[n - 1].id : NULL),
	        err);
}

/* A key's expiry: a future time, or 0. */
static enum tw_status parse_expiry(
        const json_t *body, int64_t dflt, int64_t *ret, struct tw_err *err)
{
	const json_t *value = json_object_get(body, "expires_ms");
	int64_t at = value ? json_integer_value(value) : dflt;

	if ((value && !json_is_integer(value)) || at > TW_LAST_MS)
		return tw_fail(err, TW_BAD_REQUEST,
		        "expires_ms must be Unix milliseconds, or 0 for never");
	if (at != 0 && at <= tw_unix_ms())
		return tw_fail(err, TW_BAD_REQUEST,
		        value ? "expires_ms is in the past"
		              : "the key has expired; send another expires_ms, or 0 for never");
	*ret = at;
	return TW_OK;
}

static enum tw_status parse_key(const json_t *body, struct tw_key_new *k, struct tw_err *err)
{
	const json_t *name = json_object_get(body, "name");
	const char *scope = json_string_value(json_object_get(body, "scope"));
	enum tw_status st;

	if (name && !json_is_string(name))
		return tw_fail(err, TW_BAD_REQUEST, "name must be a text");
	if (!scope || !tw_scope_of_key(scope, &k->scope))
		return tw_fail(err, TW_BAD_REQUEST, "scope must be ingest, read, write or admin");
	k->name = name ? json_string_value(name) : "";
	st = parse_expiry(body, 0, &k->expires_ms, err);
	return st == TW_OK ? tw_check_text("name", k->name, err) : st;
}

static enum tw_status create_key(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	char id[TW_ID_BYTES];
	uint8_t hash[32];
	struct tw_key_new k = {.project_id = tw_api_project(r), .name = "", .hash = hash};
	enum tw_status st = parse_key(body, &k, err);

	if (st != TW_OK)
		return st;
	tw_secret_new(tw_key_prefix(k.scope), secret);
	tw_secret_hash(secret, hash);
	st = tw_catalogue_key_add(tw_api_catalogue(r), &k, id, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 201, json_pack("{ss ss}", "id", id, "key", secret), err);
}

/* --- rotation --- */

static enum tw_status parse_grace(const json_t *body, int64_t *ret_s, struct tw_err *err)
{
	const json_t *value = json_object_get(body, "grace_s");
	int64_t s = value ? json_integer_value(value) : GRACE_S;

	if ((value && !json_is_integer(value)) || s < 0 || s > MAX_GRACE_S)
		return tw_fail(err, TW_BAD_REQUEST,
		        "grace_s must be a number of seconds from 0 to %d", (int)MAX_GRACE_S);
	*ret_s = s;
	return TW_OK;
}

static enum tw_status rotate(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *id = tw_req_path(r, "id");
	char secret[TW_SECRET_BYTES];
	uint8_t hash[32];
	struct tw_key_new k = {.project_id = tw_api_project(r), .hash = hash};
	struct tw_key_row row = {.id = NULL};
	int64_t grace_s = 0;
	int64_t old_until_ms;
	enum tw_status st = tw_catalogue_key_get(c, k.project_id, id, tw_req_arena(r), &row, err);

	if (st == TW_OK)
		st = parse_grace(body, &grace_s, err);
	if (st == TW_OK)
		st = parse_expiry(body, row.expires_ms, &k.expires_ms, err);
	if (st != TW_OK)
		return st;
	tw_secret_new(tw_key_prefix(row.scope), secret);
	tw_secret_hash(secret, hash);
	old_until_ms = tw_key_old_until(&row, tw_unix_ms() + grace_s * 1000);
	st = tw_catalogue_key_rotate(c, &k, id, old_until_ms, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{ss ss sI}", "id", id, "key", secret, "old_expires_ms",
	                (json_int_t)old_until_ms),
	        err);
}

static enum tw_status revoke_key(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_key_revoke(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_path(r, "id"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

const struct tw_route tw_routes_key[] = {
        TW_ROUTE("GET", "/api/v1/keys", TW_NEED_ADMIN, "Keys of the project",
                .params = TW_PARAMS(keys_params), .end = list_keys),
        TW_ROUTE("POST", "/api/v1/keys", TW_NEED_ADMIN,
                "Creates a key; its secret is shown only here", .json = create_key),
        TW_ROUTE("POST", "/api/v1/keys/{id}/rotate", TW_NEED_ADMIN,
                "Rotates a key; its old secret remains valid for a time", .json = rotate),
        TW_ROUTE("DELETE", "/api/v1/keys/{id}", TW_NEED_ADMIN, "Revokes a key", .end = revoke_key),
        {0},
};

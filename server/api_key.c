/* Keys of a project, for admins. */
#include <string.h>

#include "api.h"
#include "app.h"
#include "auth_secret.h"

static enum tw_status list_keys(struct tw_req *r, struct tw_err *err)
{
	struct tw_key_row *rows;
	json_t *list;
	size_t n;
	enum tw_status st = tw_catalogue_keys(tw_req_app(r)->catalogue,
	        tw_req_caller(r)->project_id, tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(
		        list, json_pack("{ss ss ss sI sI sI}", "id", rows[i].id, "name",
		                      rows[i].name, "scope", tw_scope_word(rows[i].scope),
		                      "created_ms", (json_int_t)rows[i].created_ms, "last_seen_ms",
		                      (json_int_t)rows[i].last_seen_ms, "revoked_ms",
		                      (json_int_t)rows[i].revoked_ms));
	return tw_req_reply_json(r, 200, json_pack("{so}", "keys", list), err);
}

static enum tw_status parse_key(
        const json_t *body, const char **ret_name, enum tw_scope *ret_scope, struct tw_err *err)
{
	const json_t *name = json_object_get(body, "name");
	const char *scope = json_string_value(json_object_get(body, "scope"));

	if (name && !json_is_string(name))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "name must be a text");
	if (!scope || (strcmp(scope, "ingest") != 0 && strcmp(scope, "read") != 0))
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "scope must be ingest or read");
	*ret_scope = *scope == 'i' ? TW_SCOPE_INGEST : TW_SCOPE_READ;
	*ret_name = name ? json_string_value(name) : "";
	return tw_api_check_text("name", *ret_name, err);
}

static enum tw_status make_key(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES];
	char id[TW_ID_BYTES];
	uint8_t hash[32];
	const char *name = "";
	enum tw_scope scope = TW_SCOPE_INGEST;
	enum tw_status st = parse_key(body, &name, &scope, err);

	if (st == TW_OK)
		st = tw_secret_new(scope == TW_SCOPE_INGEST ? "twi_" : "twr_", secret, err);
	if (st != TW_OK)
		return st;
	tw_secret_hash(secret, hash);
	st = tw_catalogue_key_add(
	        tw_req_app(r)->catalogue, tw_req_caller(r)->project_id, scope, name, hash, id, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 201, json_pack("{ss ss}", "id", id, "key", secret), err);
}

static enum tw_status add_key(struct tw_req *r, struct tw_err *err)
{
	json_t *body;
	enum tw_status st = tw_api_json(r, &body, err);

	if (st != TW_OK)
		return st;
	st = make_key(r, body, err);
	json_decref(body);
	return st;
}

static enum tw_status revoke_key(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_key_revoke(
	        tw_req_app(r)->catalogue, tw_req_caller(r)->project_id, tw_req_path(r, "id"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

const struct tw_route tw_routes_key[] = {
        {.method = "GET",
                .path = "/api/v1/keys",
                .scope = TW_SCOPE_ADMIN,
                .slow = true,
                .end = list_keys,
                .summary = "Keys of the project"},
        {.method = "POST",
                .path = "/api/v1/keys",
                .scope = TW_SCOPE_ADMIN,
                .slow = true,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = add_key,
                .summary = "Makes a key; the only time it is shown"},
        {.method = "DELETE",
                .path = "/api/v1/keys/{id}",
                .scope = TW_SCOPE_ADMIN,
                .slow = true,
                .end = revoke_key,
                .summary = "Revokes a key"},
        {0},
};

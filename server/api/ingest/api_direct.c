/*
 * api_direct.c - direct uploads: a device requests a URL, puts its trace into the object store, and
 * reports it as done.
 *
 * Only for object storage: the bytes bypass the server, which reads and commits them like any
 * upload (api_ingest.h) when the device reports `done`. If that response is lost the device can
 * repeat the request for a day.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/api/ingest/api_ingest.h"
#include "server/base/clock.h"
#include "server/base/ulid.h"
#include "server/decode/jobs_store.h"
#include "server/ingest/direct.h"
#include "server/storage/s3/s3.h"

enum { PAIRS_MAX = 64, URL_MAX = 8 << 10 };

struct announced {
	struct tw_direct of;
	const char *key; /* Idempotency-Key */
	int64_t expires_ms;
	struct tw_ingest_pair pairs[PAIRS_MAX];
	size_t n_pairs;
};

/* The owner of the uploads: the key; for people, the project. */
static const char *owner(const struct tw_req *r)
{
	const struct tw_caller *c = tw_req_caller(r);

	return c->key_id[0] ? c->key_id : c->project_id;
}

static struct tw_blobs *blobs(const struct tw_req *r)
{
	return tw_api_of(r)->blobs;
}

/* --- the announcement --- */

static enum tw_status add_pair(struct tw_req *r, struct announced *u, const char *name,
        const json_t *value, struct tw_err *err)
{
	struct tw_arena *a = tw_req_arena(r);
	struct tw_ingest_pair *p = &u->pairs[u->n_pairs];

	if (u->n_pairs == PAIRS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "meta has more than %d members", PAIRS_MAX);
	p->name = tw_arena_str(a, tw_str_of(name));
	if (json_is_string(value))
		p->value = tw_arena_str(a, tw_str_of(json_string_value(value)));
	else if (json_is_integer(value))
		p->value = tw_arena_printf(a, "%lld", (long long)json_integer_value(value));
	else
		return tw_fail(err, TW_BAD_REQUEST,
		        "meta.%.60s must be a text or a number, as in the query of POST "
		        "/api/v1/traces",
		        name);
	if (!p->name || !p->value)
		return tw_oom(err);
	u->n_pairs++;
	return TW_OK;
}

static enum tw_status read_pairs(
        struct tw_req *r, const json_t *meta, struct announced *u, struct tw_err *err)
{
	const char *name;
	const json_t *value;
	void *at;
	enum tw_status st = TW_OK;

	if (meta && !json_is_object(meta))
		return tw_fail(err, TW_BAD_REQUEST, "meta must be an object");
	for (at = json_object_iter((json_t *)(uintptr_t)meta); at && st == TW_OK;
	        at = json_object_iter_next((json_t *)(uintptr_t)meta, at)) {
		name = json_object_iter_key(at);
		value = json_object_iter_value(at);
		st = add_pair(r, u, name, value, err);
	}
	return st;
}

static enum tw_status read_size(
        struct tw_req *r, const json_t *body, struct announced *u, struct tw_err *err)
{
	const json_int_t bytes = json_integer_value(json_object_get(body, "bytes"));
	const char *sha256 = json_string_value(json_object_get(body, "sha256"));
	const uint64_t most = tw_api_of(r)->config->max_body_bytes;

	if (bytes <= 0)
		return tw_fail(err, TW_BAD_REQUEST, "bytes must be the upload's size, 1 or more");
	if ((uint64_t)bytes > most)
		return tw_fail(err, TW_TOO_LARGE,
		        "the upload is over the limit of %" PRIu64 " bytes", most);
	if (!sha256 || strlen(sha256) != TW_SHA256_HEX - 1 ||
	        strspn(sha256, "0123456789abcdef") != TW_SHA256_HEX - 1)
		return tw_fail(err, TW_BAD_REQUEST,
		        "sha256 must be the SHA-256 of the upload: 64 characters of 0 to 9 and a "
		        "to f");
	u->of.bytes = (uint64_t)bytes;
	u->of.sha256 = tw_arena_str(tw_req_arena(r), tw_str_of(sha256));
	return u->of.sha256 ? TW_OK : tw_oom(err);
}

static enum tw_status read_body(
        struct tw_req *r, const json_t *body, struct announced *u, struct tw_err *err)
{
	const char *name;
	json_t *value;
	enum tw_status st;

	json_object_foreach((json_t *)(uintptr_t)body, name, value)
	{
		if (strcmp(name, "bytes") != 0 && strcmp(name, "sha256") != 0 &&
		        strcmp(name, "meta") != 0)
			return tw_fail(err, TW_BAD_REQUEST,
			        "unknown member %.60s: send bytes, sha256 and meta", name);
	}
	st = read_size(r, body, u, err);
	return st == TW_OK ? read_pairs(r, json_object_get(body, "meta"), u, err) : st;
}

static void drop(struct tw_req *r, const struct tw_direct *d)
{
	static const char *const kinds[] = {"", "json"};
	char key[TW_DIRECT_KEY];

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		tw_direct_key(d, kinds[i], key);
		tw_store_drop_key(tw_api_of(r)->store_job, key);
	}
}

/* --- the URL --- */

static enum tw_status has_space(struct tw_req *r, const struct announced *u, struct tw_err *err)
{
	const unsigned most = tw_api_of(r)->config->max_open_uploads;
	struct tw_direct_open open = {.n = 0};
	enum tw_status st = tw_ingest_check(r, u->pairs, u->n_pairs, err);

	if (st == TW_OK)
		st = tw_ingest_has_space(r, u->of.bytes, err);
	if (st == TW_OK)
		st = tw_direct_count(blobs(r), u->of.key_id, tw_unix_ms(), &open, err);
	for (size_t i = 0; st == TW_OK && i < open.n_expired; i++)
		drop(r, &(struct tw_direct){.key_id = u->of.key_id, .id = open.expired[i]});
	if (st == TW_OK && open.n >= most)
		st = tw_fail(err, TW_RATE,
		        "%u direct uploads of this key are not complete; complete them, or wait "
		        "until they expire after an hour",
		        open.n);
	return st == TW_OK ? tw_req_charge_key(r, u->of.bytes, err) : st;
}

static json_t *record_of(const struct announced *u)
{
	json_t *pairs = json_object();

	for (size_t i = 0; pairs && i < u->n_pairs; i++)
		(void)json_object_set_new(pairs, u->pairs[i].name, json_string(u->pairs[i].value));
	return json_pack("{sI ss ss sI so}", "bytes", (json_int_t)u->of.bytes, "sha256",
	        u->of.sha256, "key", u->key, "expires_ms", (json_int_t)u->expires_ms, "meta",
	        pairs);
}

static enum tw_status reply_address(struct tw_req *r, const struct announced *u, struct tw_err *err)
{
	char checksum[TW_S3_CHECKSUM], length[24], done[96];
	struct tw_buf url;
	json_t *o;
	enum tw_status st;

	tw_buf_init(&url, URL_MAX);
	st = tw_direct_address(blobs(r), &u->of, &url, err);
	(void)tw_buf_add_u8(&url, 0);
	if (st != TW_OK || tw_buf_status(&url) != TW_OK) {
		tw_buf_done(&url);
		return st != TW_OK ? st : tw_oom(err);
	}
	tw_s3_checksum(u->of.sha256, checksum);
	(void)snprintf(length, sizeof length, "%" PRIu64, u->of.bytes);
	(void)snprintf(done, sizeof done, "/api/v1/uploads/direct/%s/complete", u->of.id);
	o = json_pack("{ss ss ss s{ss ss} sI ss}", "id", u->of.id, "method", "PUT", "url", url.data,
	        "headers", "Content-Length", length, "x-amz-checksum-sha256", checksum,
	        "expires_ms", (json_int_t)u->expires_ms, "complete_url", done);
	tw_buf_done(&url);
	tw_req_set_header(r, "Cache-Control", "no-store");
	return tw_req_reply_json(r, 201, o, err);
}

static enum tw_status announce(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *key = tw_req_header(r, "Idempotency-Key");
	char id[TW_ID_BYTES];
	struct announced u = {.of = {.key_id = owner(r), .id = id},
	        .expires_ms = tw_unix_ms() + (int64_t)TW_DIRECT_S * 1000};
	json_t *record;
	enum tw_status st = tw_direct_check_supported(blobs(r), err);

	tw_ulid_new(tw_unix_ms(), id);
	if (st == TW_OK)
		st = read_body(r, body, &u, err);
	if (st == TW_OK)
		st = has_space(r, &u, err);
	if (st != TW_OK)
		return st;
	u.key = key && *key ? key : id;
	record = record_of(&u);
	st = tw_direct_store(blobs(r), &u.of, "json", record, err);
	json_decref(record);
	return st == TW_OK ? reply_address(r, &u, err) : st;
}

/* --- done --- */

static enum tw_status reply_trace(
        struct tw_req *r, const char *trace_id, bool is_new, struct tw_err *err)
{
	char url[64];

	(void)snprintf(url, sizeof url, "/api/v1/traces/%.26s", trace_id);
	tw_req_set_header(r, "Location", url);
	return tw_req_reply_json(r, is_new ? 202 : 200,
	        json_pack("{ss ss ss}", "id", trace_id, "state", "queued", "url", url), err);
}

/* The upload is already a trace: repeats the response. */
static enum tw_status done_before(struct tw_req *r, const struct tw_direct *d, struct tw_err *err)
{
	json_t *o = NULL;
	enum tw_status st = tw_direct_read(blobs(r), d, "done", &o, err);
	const char *trace_id = json_string_value(json_object_get(o, "trace"));

	if (st == TW_NOT_FOUND)
		return tw_fail(
		        err, TW_NOT_FOUND, "no upload of this key has that id, or it has expired");
	if (st == TW_OK)
		st = trace_id ? reply_trace(r, trace_id, false, err)
		              : tw_fail(err, TW_BUG, "no trace was stored");
	json_decref(o);
	return st;
}

/* Errors that the client caused: repeating the request cannot succeed. */
static bool is_final(enum tw_status st)
{
	return st == TW_BAD_REQUEST || st == TW_UNSUPPORTED || st == TW_CORRUPT ||
	       st == TW_TOO_LARGE || st == TW_CHECKSUM;
}

static enum tw_status take(struct tw_req *r, const struct announced *u, char ret_id[TW_ID_BYTES],
        bool *ret_new, struct tw_err *err)
{
	struct tw_ingest_body body = {.key = u->key,
	        .pairs = u->pairs,
	        .n_pairs = u->n_pairs,
	        .fd = -1,
	        .received_ms = tw_ulid_ms(u->of.id)};
	json_t *done;
	enum tw_status st = tw_direct_open(blobs(r), &u->of, &body.fd, err);

	if (st != TW_OK)
		return st;
	st = tw_ingest_file(r, &body, ret_id, ret_new, err);
	(void)close(body.fd);
	if (st != TW_OK)
		return st;
	done = json_pack("{ss}", "trace", ret_id);
	/* otherwise the request is repeated with the same key, or the sweep deletes it */
	if (tw_direct_store(blobs(r), &u->of, "done", done, NULL) == TW_OK)
		drop(r, &u->of);
	json_decref(done);
	return TW_OK;
}

static enum tw_status read_record(
        struct tw_req *r, const json_t *o, struct announced *u, struct tw_err *err)
{
	const char *key = json_string_value(json_object_get(o, "key"));
	enum tw_status st = read_size(r, o, u, err);

	if (st == TW_OK)
		st = read_pairs(r, json_object_get(o, "meta"), u, err);
	u->key = tw_arena_str(tw_req_arena(r), tw_str_of(key ? key : u->of.id));
	u->expires_ms = json_integer_value(json_object_get(o, "expires_ms"));
	if (st == TW_OK && !u->key)
		st = tw_oom(err);
	return st;
}

static enum tw_status post_done(struct tw_req *r, struct tw_err *err)
{
	struct announced u = {.of = {.key_id = owner(r), .id = tw_req_path(r, "upload")}};
	char trace_id[TW_ID_BYTES];
	bool is_new = false;
	json_t *o = NULL;
	enum tw_status st = tw_direct_check_supported(blobs(r), err);

	if (st == TW_OK && !tw_ulid_valid(u.of.id))
		st = tw_fail(err, TW_NOT_FOUND, "no upload has that id");
	if (st == TW_OK)
		st = tw_direct_read(blobs(r), &u.of, "json", &o, err);
	if (st == TW_NOT_FOUND && tw_ulid_valid(u.of.id))
		return done_before(r, &u.of, err);
	if (st == TW_OK)
		st = read_record(r, o, &u, err);
	json_decref(o);
	if (st == TW_OK)
		st = take(r, &u, trace_id, &is_new, err);
	if (st == TW_CONFLICT && done_before(r, &u.of, NULL) == TW_OK)
		return TW_OK; /* the object was deleted just now, its record follows */
	if (is_final(st))
		drop(r, &u.of);
	return st == TW_OK ? reply_trace(r, trace_id, is_new, err) : st;
}

const struct tw_route tw_routes_direct[] = {
        TW_ROUTE("POST", "/api/v1/uploads/direct", TW_NEED_INGEST,
                "Creates a URL of the store to which a device uploads a trace directly",
                .any_params = true, .roles = TW_ROLE_INGEST, .json = announce),
        TW_ROUTE("POST", "/api/v1/uploads/direct/{upload}/complete", TW_NEED_INGEST,
                "Completes a direct upload: verifies the object and creates the trace",
                .any_params = true, .roles = TW_ROLE_INGEST, .upload = true, .end = post_done),
        {0},
};

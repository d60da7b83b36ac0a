/*
 * api_resume.c - resumable uploads: the tus protocol, version 1.0.0.
 *
 * Creation (with and without a first piece), offset, checksum, expiration and termination.
 * Upload-Metadata has the same names as the query of POST /api/v1/traces. Pieces are written to
 * disk as they arrive (resume.h). After the last one the upload is committed like any other body
 * (api_ingest.h). Repeated requests create one trace, because the upload has an Idempotency-Key.
 */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/api/ingest/api_ingest.h"
#include "server/base/file/sha256.h"
#include "server/ingest/tus/resume.h"

static const char version[] = "1.0.0";
static const char url_prefix[] = "/api/v1/uploads/";

struct piece {                /* a request with bytes */
	struct tw_resume *of; /* acquired; NULL: none */
	bool created;
	gnutls_hash_hd_t sum; /* NULL: no checksum was sent */
	struct tw_resume_sum expected;
	struct tw_ingest_pair pairs[TW_RESUME_PAIRS];
	size_t n_pairs;
};

static struct tw_resumes *resumes(const struct tw_req *r)
{
	return tw_api_of(r)->resumes;
}

/* --- headers --- */

static enum tw_status check_version(struct tw_req *r, struct tw_err *err)
{
	const char *requested = tw_req_header(r, "Tus-Resumable");

	tw_req_set_header(r, "Tus-Resumable", version);
	tw_req_set_header(r, "Cache-Control", "no-store");
	if (requested && strcmp(requested, version) == 0)
		return TW_OK;
	tw_req_set_header(r, "Tus-Version", version);
	return tw_fail(
	        err, TW_PRECONDITION, "this is tus %s: send Tus-Resumable: %s", version, version);
}

static enum tw_status number_header(
        const struct tw_req *r, const char *name, uint64_t *ret, struct tw_err *err)
{
	const char *text = tw_req_header(r, name);

	if (!text || !tw_str_u64(tw_str_of(text), INT64_MAX, ret))
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a number of bytes", name);
	return TW_OK;
}

static void set_number(struct tw_req *r, const char *name, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%" PRIu64, n);
	tw_req_set_header(r, name, text);
}

static void set_progress_headers(struct tw_req *r, const struct tw_resume *u)
{
	time_t end = (time_t)(u->expires_ms / 1000);
	char text[64];
	struct tm tm;

	set_number(r, "Upload-Offset", u->offset);
	if (u->trace_id[0])
		tw_req_set_header(r, "Tracewell-Trace", u->trace_id);
	if (gmtime_r(&end, &tm) && strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		tw_req_set_header(r, "Upload-Expires", text);
}

/* --- pieces --- */

static enum tw_status read_checksum(struct tw_req *r, struct piece *p, struct tw_err *err)
{
	const char *text = tw_req_header(r, "Upload-Checksum");
	enum tw_status st;

	if (!text)
		return TW_OK;
	st = tw_resume_read_sum(tw_req_arena(r), text, &p->expected, err);
	if (st == TW_OK)
		st = tw_sha256_begin(
		        p->expected.sha1 ? GNUTLS_DIG_SHA1 : GNUTLS_DIG_SHA256, &p->sum, err);
	return st;
}

static enum tw_status check_type(const struct tw_req *r, struct tw_err *err)
{
	const char *type = tw_req_header(r, "Content-Type");

	if (type && strcasecmp(type, "application/offset+octet-stream") == 0)
		return TW_OK;
	return tw_fail(err, TW_UNSUPPORTED,
	        "the Content-Type of a piece must be application/offset+octet-stream");
}

/* NULL if out of memory. */
static struct piece *new_piece(struct tw_req *r, struct tw_err *err)
{
	struct piece *p = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *p);

	if (!p)
		(void)tw_oom(err);
	tw_req_set_state(r, p);
	return p;
}

static enum tw_status check_piece(struct tw_req *r, const struct tw_resume *u, struct tw_err *err)
{
	uint64_t declared = tw_req_content_length(r);

	if (u->trace_id[0])
		return declared
		               ? tw_fail(err, TW_DENIED, "this upload is complete; start a new one")
		               : TW_OK;
	if (declared != UINT64_MAX && declared > u->length - u->offset)
		return tw_fail(err, TW_TOO_LARGE,
		        "the piece exceeds Upload-Length, %" PRIu64 " bytes", u->length);
	return TW_OK;
}

static enum tw_status begin_piece(struct tw_req *r, struct piece *p, struct tw_err *err)
{
	enum tw_status st = check_piece(r, p->of, err);

	if (st == TW_OK)
		st = read_checksum(r, p, err);
	if (st == TW_OK && !p->of->trace_id[0])
		st = tw_resume_begin_piece(resumes(r), p->of, p->sum != NULL, err);
	return st;
}

static enum tw_status begin_patch(struct tw_req *r, struct tw_err *err)
{
	struct piece *p = new_piece(r, err);
	uint64_t offset = 0;
	enum tw_status st;

	if (!p)
		return TW_NOMEM;
	st = check_version(r, err);
	if (st == TW_OK)
		st = check_type(r, err);
	if (st == TW_OK)
		st = number_header(r, "Upload-Offset", &offset, err);
	if (st == TW_OK)
		st = tw_resume_acquire(
		        resumes(r), tw_api_project(r), tw_req_path(r, "upload"), &p->of, err);
	if (st != TW_OK)
		return st;
	if (offset != p->of->offset)
		return tw_fail(err, TW_CONFLICT,
		        "the offset of the upload is %" PRIu64 ", not %" PRIu64
		        "; get it with HEAD",
		        p->of->offset, offset);
	st = p->of->trace_id[0] ? TW_OK : tw_ingest_has_space(r, p->of->length, err);
	return st == TW_OK ? begin_piece(r, p, err) : st;
}

static enum tw_status piece_body(struct tw_req *r, const void *bytes, size_t n, struct tw_err *err)
{
	struct piece *p = tw_req_state(r);
	enum tw_status st = tw_resume_write(resumes(r), p->of, bytes, n, err);

	if (st == TW_OK && p->sum && gnutls_hash(p->sum, bytes, n) != 0)
		st = tw_fail(err, TW_BUG, "hashing failed");
	return st;
}

/* Frees the request's resources; the upload itself remains. */
static void release(struct tw_req *r, struct piece *p)
{
	uint8_t unused[TW_RESUME_SUM];

	if (p->sum)
		gnutls_hash_deinit(p->sum, unused);
	p->sum = NULL;
	if (!p->of)
		return;
	(void)tw_resume_end_piece(resumes(r), p->of, false, NULL);
	tw_resume_release(resumes(r), p->of);
	p->of = NULL;
}

static void abort_piece(struct tw_req *r)
{
	struct piece *p = tw_req_state(r);

	if (p)
		release(r, p);
}

/* --- the end of an upload --- */

/* Errors that the client caused: repeating the request cannot succeed. */
static bool is_final(enum tw_status st)
{
	return st == TW_BAD_REQUEST || st == TW_UNSUPPORTED || st == TW_CORRUPT ||
	       st == TW_TOO_LARGE || st == TW_CONFLICT;
}

static enum tw_status make_trace(
        struct tw_req *r, struct piece *p, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_ingest_body body = {
	        .key = p->of->key, .pairs = p->pairs, .received_ms = tw_ulid_ms(p->of->id)};
	bool is_new;
	enum tw_status st = tw_resume_open(resumes(r), p->of, &body.fd, err);

	if (st != TW_OK)
		return st;
	st = tw_resume_read_metadata(tw_req_arena(r), p->of->metadata, p->pairs, &p->n_pairs, err);
	body.n_pairs = p->n_pairs;
	if (st == TW_OK)
		st = tw_ingest_file(r, &body, ret_id, &is_new, err);
	(void)close(body.fd);
	return st;
}

/* Call when all bytes have arrived, with the upload acquired. */
static enum tw_status finish(struct tw_req *r, struct piece *p, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	enum tw_status st;

	if (p->of->trace_id[0] || p->of->offset < p->of->length)
		return TW_OK;
	st = make_trace(r, p, id, err);
	if (st == TW_OK)
		st = tw_resume_done(resumes(r), p->of, id, err);
	else if (is_final(st))
		(void)tw_resume_drop(resumes(r), p->of, NULL);
	return st;
}

static enum tw_status verify(struct tw_req *r, struct piece *p, struct tw_err *err)
{
	uint8_t sum[TW_RESUME_SUM];

	if (p->sum) {
		gnutls_hash_output(p->sum, sum);
		if (memcmp(sum, p->expected.bytes, p->expected.len) != 0)
			return tw_fail(err, TW_CHECKSUM,
			        "the checksum of the piece does not match; send it again");
	}
	return tw_resume_end_piece(resumes(r), p->of, true, err);
}

static enum tw_status end_piece(struct tw_req *r, struct tw_err *err)
{
	struct piece *p = tw_req_state(r);
	int http = p->created ? 201 : 204;
	enum tw_status st = verify(r, p, err);

	if (st == TW_OK)
		st = finish(r, p, err);
	if (st != TW_OK)
		return st;
	set_progress_headers(r, p->of);
	release(r, p);
	return tw_req_reply_empty(r, http, err);
}

/* --- creation --- */

static enum tw_status check_creation(
        struct tw_req *r, struct piece *p, uint64_t *ret_length, struct tw_err *err)
{
	const char *metadata = tw_req_header(r, "Upload-Metadata");
	uint64_t most = tw_api_of(r)->config->max_body_bytes;
	enum tw_status st;

	if (tw_req_header(r, "Upload-Defer-Length"))
		return tw_fail(err, TW_BAD_REQUEST,
		        "Upload-Defer-Length is not supported: set Upload-Length");
	st = number_header(r, "Upload-Length", ret_length, err);
	if (st == TW_OK && *ret_length == 0)
		st = tw_fail(err, TW_BAD_REQUEST, "Upload-Length is 0: send a trace");
	if (st == TW_OK && *ret_length > most)
		st = tw_fail(err, TW_TOO_LARGE,
		        "Upload-Length is over the limit of %" PRIu64 " bytes", most);
	if (st == TW_OK && metadata && strlen(metadata) > TW_RESUME_METADATA)
		st = tw_fail(err, TW_BAD_REQUEST, "Upload-Metadata is longer than %d bytes",
		        TW_RESUME_METADATA);
	if (st == TW_OK)
		st = tw_resume_read_metadata(tw_req_arena(r), metadata, p->pairs, &p->n_pairs, err);
	if (st == TW_OK)
		st = tw_ingest_check(r, p->pairs, p->n_pairs, err);
	return st == TW_OK ? tw_ingest_has_space(r, *ret_length, err) : st;
}

static enum tw_status create(struct tw_req *r, struct piece *p, uint64_t length, struct tw_err *err)
{
	const char *metadata = tw_req_header(r, "Upload-Metadata");
	const char *key = tw_req_header(r, "Idempotency-Key");
	char id[TW_ID_BYTES];
	char url[sizeof url_prefix + TW_ID_BYTES];
	enum tw_status st = tw_resume_new(resumes(r), tw_req_caller(r), length,
	        metadata ? metadata : "", key ? key : "", id, err);

	if (st == TW_OK)
		st = tw_resume_acquire(resumes(r), tw_api_project(r), id, &p->of, err);
	if (st != TW_OK)
		return st;
	(void)snprintf(url, sizeof url, "%s%s", url_prefix, id);
	tw_req_set_header(r, "Location", url);
	return TW_OK;
}

static enum tw_status begin_create(struct tw_req *r, struct tw_err *err)
{
	bool has_piece = tw_req_content_length(r) != 0;
	struct piece *p = new_piece(r, err);
	uint64_t length = 0;
	enum tw_status st;

	if (!p)
		return TW_NOMEM;
	st = check_version(r, err);
	if (st == TW_OK && has_piece)
		st = check_type(r, err);
	if (st == TW_OK)
		st = check_creation(r, p, &length, err);
	if (st == TW_OK)
		st = create(r, p, length, err);
	if (st != TW_OK)
		return st;
	p->created = true;
	return has_piece ? begin_piece(r, p, err) : TW_OK;
}

/* --- status and termination --- */

static enum tw_status begin_plain(struct tw_req *r, struct tw_err *err)
{
	return new_piece(r, err) ? check_version(r, err) : TW_NOMEM;
}

/* If the server was killed between the last byte and the commit, commits the trace now. */
static enum tw_status finish_late(struct tw_req *r, const char *id, struct tw_err *err)
{
	struct piece *p = tw_req_state(r);
	enum tw_status st = tw_resume_acquire(resumes(r), tw_api_project(r), id, &p->of, err);

	return st == TW_OK ? finish(r, p, err) : st;
}

static enum tw_status head(struct tw_req *r, struct tw_err *err)
{
	const char *id = tw_req_path(r, "upload");
	struct tw_arena *a = tw_req_arena(r);
	struct tw_resume u;
	enum tw_status st = tw_resume_progress_of(resumes(r), tw_api_project(r), id, &u, a, err);

	if (st == TW_OK && !u.trace_id[0] && u.offset == u.length) {
		st = finish_late(r, id, err);
		if (st == TW_OK)
			st = tw_resume_progress_of(resumes(r), tw_api_project(r), id, &u, a, err);
	}
	if (st != TW_OK)
		return st;
	release(r, tw_req_state(r));
	set_progress_headers(r, &u);
	set_number(r, "Upload-Length", u.length);
	if (u.metadata[0])
		tw_req_set_header(r, "Upload-Metadata", u.metadata);
	return tw_req_reply_empty(r, 200, err);
}

static enum tw_status end_upload(struct tw_req *r, struct tw_err *err)
{
	struct piece *p = tw_req_state(r);
	enum tw_status st = tw_resume_acquire(
	        resumes(r), tw_api_project(r), tw_req_path(r, "upload"), &p->of, err);

	if (st == TW_OK)
		st = tw_resume_drop(resumes(r), p->of, err);
	if (st != TW_OK)
		return st;
	release(r, p);
	return tw_req_reply_empty(r, 204, err);
}

static enum tw_status options(struct tw_req *r, struct tw_err *err)
{
	tw_req_set_header(r, "Tus-Resumable", version);
	tw_req_set_header(r, "Tus-Version", version);
	tw_req_set_header(r, "Tus-Extension",
	        "creation,creation-with-upload,checksum,expiration,termination");
	tw_req_set_header(r, "Tus-Checksum-Algorithm", "sha1,sha256");
	set_number(r, "Tus-Max-Size", tw_api_of(r)->config->max_body_bytes);
	return tw_req_reply_empty(r, 204, err);
}

static uint64_t max_piece(const struct tw_config *config)
{
	return config->max_body_bytes;
}

const struct tw_route tw_routes_resume[] = {
        TW_ROUTE("OPTIONS", "/api/v1/uploads", TW_NEED_PUBLIC, "Supported tus extensions",
                .any_params = true, .on_loop = true, .roles = TW_ROLE_INGEST, .end = options),
        TW_ROUTE("POST", "/api/v1/uploads", TW_NEED_INGEST, "Begins a resumable upload",
                .any_params = true, .roles = TW_ROLE_INGEST, .upload = true, .partial = true,
                .max_body = max_piece, .begin = begin_create, .body = piece_body, .end = end_piece,
                .abort = abort_piece),
        TW_ROUTE("OPTIONS", "/api/v1/uploads/{upload}", TW_NEED_PUBLIC, "Supported tus extensions",
                .any_params = true, .on_loop = true, .roles = TW_ROLE_INGEST, .end = options),
        TW_ROUTE("HEAD", "/api/v1/uploads/{upload}", TW_NEED_INGEST,
                "The offset of a resumable upload", .any_params = true, .roles = TW_ROLE_INGEST,
                .by_post = true, .begin = begin_plain, .end = head, .abort = abort_piece),
        TW_ROUTE("PATCH", "/api/v1/uploads/{upload}", TW_NEED_INGEST,
                "Continues a resumable upload", .any_params = true, .roles = TW_ROLE_INGEST,
                .by_post = true, .upload = true, .partial = true, .max_body = max_piece,
                .begin = begin_patch, .body = piece_body, .end = end_piece, .abort = abort_piece),
        TW_ROUTE("DELETE", "/api/v1/uploads/{upload}", TW_NEED_INGEST, "Cancels a resumable upload",
                .any_params = true, .roles = TW_ROLE_INGEST, .by_post = true, .begin = begin_plain,
                .end = end_upload, .abort = abort_piece),
        {0},
};

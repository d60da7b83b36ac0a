/*
 * api_ingest.c - uploads of traces, as a raw body or as a form, written straight to the spool.
 *
 * Each part's first HEAD_BYTES are copied and checked by a preflight process (preflight.h) while
 * the rest arrives, so that an unknown format is refused early.  Only the end of the upload waits
 * for the result, never an event loop.  Nothing else is checked here: a damaged trace with a
 * readable part is a trace (I2), and the decoder reads it.  The answer is sent when the parts and
 * the row are on disk (I1).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "decoder/base/unzip.h"
#include "server/api/api.h"
#include "server/api/ingest/api_ingest.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/preflight.h"
#include "server/ingest/backlog.h"
#include "server/ingest/commit_upload.h"
#include "server/storage/blob.h"

enum { HEAD_BYTES = TW_HEAD_BYTES, MAX_IDEMPOTENCY = 255, MAX_URL = 64 };

struct part {
	const char *name;
	const struct tw_format *forced;
	bool side;
	struct tw_blob_writer *writer; /* NULL until its first byte, and once it has arrived */
	uint8_t *head;
	size_t head_len;
	bool is_checked;                /* its preflight has begun */
	struct tw_preflight *preflight; /* NULL: not begun, or ended */
	uint64_t bytes;
};

enum { PART_TRACE, N_PARTS = 7 };

/* The parts of a form other than meta. */
static const struct {
	const char *name;
	const char *format; /* the only one allowed; NULL: any suitable for the part */
	/* A device may be interrupted while it writes this: damage is accepted and listed in the
	 * trace's report, an empty part is ignored. */
	bool side;
} part_kinds[N_PARTS] = {
        [PART_TRACE] = {"trace", NULL, false},
        {"threads", "threads", false},
        {"atrace", NULL, true},
        {"binder", NULL, true},
        {"names", NULL, true},
        {"anr", NULL, true},
        {"system", NULL, true},
};

struct upload {
	struct tw_req *req;
	struct tw_form *form; /* NULL: the body is the trace */
	struct part parts[N_PARTS];
	struct part *now; /* NULL: the meta part */
	bool in_meta, has_meta;
	char *meta_text;
	size_t meta_len;
	struct tw_trace_meta meta;
	const char *idempotency;
	int64_t received_ms; /* its metadata */
};

static uint64_t max_upload(const struct tw_config *config)
{
	return config->max_body_bytes;
}

/* --- parts --- */

static enum tw_status begin_preflight(
        struct upload *u, struct part *p, bool whole, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(u->req);
	const struct tw_head head = {
	        p->head, p->head_len, whole, p->forced, api->config->limits.max_window_log};

	p->is_checked = true;
	return tw_preflight_begin(
	        api->preflights, tw_api_project(u->req), &head, &p->preflight, err);
}

static bool is_coding(struct tw_str s, const char *name)
{
	return s.len == strlen(name) && strncasecmp(s.ptr, name, s.len) == 0;
}

/* Names the likely cause of a refusal. */
static enum tw_status blame_encoding(
        const struct upload *u, const struct part *p, enum tw_status st, struct tw_err *err)
{
	static const uint8_t gzip[] = {0x1f, 0x8b};
	struct tw_str rest = tw_str_of(tw_req_header(u->req, "Content-Encoding"));
	struct tw_str last = rest;
	bool as_declared = true;

	while (rest.len) /* the last one was applied last */
		last = tw_str_trim(tw_str_split(&rest, ','));
	if (is_coding(last, "gzip") || is_coding(last, "x-gzip"))
		as_declared = p->head_len >= sizeof gzip && memcmp(p->head, gzip, sizeof gzip) == 0;
	else if (is_coding(last, "zstd"))
		as_declared = p->head_len >= 4 && tw_unzip_is_zstd(p->head);
	if (u->form || as_declared)
		return st;
	return tw_fail_at(err, st, 0,
	        "Content-Encoding is %.*s, but the body is not compressed with it and is not a "
	        "trace",
	        (int)last.len, last.ptr);
}

static enum tw_status end_preflight(struct upload *u, struct part *p, struct tw_err *err)
{
	const struct tw_format *found;
	enum tw_status st = tw_preflight_end(p->preflight, &found, err);

	p->preflight = NULL;
	if (st == TW_UNSUPPORTED || st == TW_CORRUPT)
		st = blame_encoding(u, p, st, err);
	if (st == TW_OK && found && !tw_format_fits(found, p->name))
		return tw_fail_at(err, TW_UNSUPPORTED, 0, "%s does not belong in part %s",
		        found->title, p->name);
	return st == TW_CORRUPT && p->side ? TW_OK : st;
}

static enum tw_status part_write(
        struct upload *u, struct part *p, const void *data, size_t n, struct tw_err *err)
{
	size_t space = HEAD_BYTES - p->head_len;
	size_t keep = n < space ? n : space;
	enum tw_status st = TW_OK;

	p->bytes += n;
	memcpy(p->head + p->head_len, data, keep);
	p->head_len += keep;
	if (!p->is_checked && p->head_len == HEAD_BYTES)
		st = begin_preflight(u, p, false, err);
	else if (p->preflight && tw_preflight_is_done(p->preflight))
		st = end_preflight(u, p, err);
	return st == TW_OK ? tw_blob_write(p->writer, data, n, err) : st;
}

static enum tw_status part_begin(struct upload *u, size_t kind, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(u->req);
	struct part *p = &u->parts[kind];

	if (p->name)
		return tw_fail(err, TW_BAD_REQUEST, "part %s is sent twice", p->name);
	u->now = p;
	p->name = part_kinds[kind].name;
	p->side = part_kinds[kind].side;
	if (part_kinds[kind].format)
		p->forced = tw_format_by_name(tw_str_of(part_kinds[kind].format));
	p->head = tw_arena_alloc(tw_req_arena(u->req), HEAD_BYTES, 1);
	if (!p->head)
		return tw_oom(err);
	return tw_blob_begin(api->blobs, api->config->max_body_bytes, &p->writer, err);
}

static enum tw_status part_finish(struct upload *u, struct part *p, struct tw_err *err)
{
	if (p->bytes == 0 && p->side) {
		p->writer = tw_blob_discard(p->writer);
		p->name = NULL;
		return TW_OK;
	}
	if (p->bytes == 0)
		return tw_fail_at(err, TW_BAD_REQUEST, 0, "part %s is empty", p->name);
	return p->is_checked ? TW_OK : begin_preflight(u, p, true, err);
}

/* --- the form --- */

static enum tw_status form_part(void *arg, const char *name, struct tw_err *err)
{
	struct upload *u = arg;

	u->in_meta = strcmp(name, "meta") == 0;
	u->now = NULL;
	if (u->in_meta && u->has_meta)
		return tw_fail(err, TW_BAD_REQUEST, "part meta is sent twice");
	if (u->in_meta) {
		u->has_meta = true;
		u->meta_text = tw_arena_alloc(tw_req_arena(u->req), TW_MAX_SMALL_BODY, 1);
		return u->meta_text ? TW_OK : tw_oom(err);
	}
	for (size_t i = 0; i < N_PARTS; i++)
		if (strcmp(name, part_kinds[i].name) == 0)
			return part_begin(u, i, err);
	return tw_fail(err, TW_BAD_REQUEST,
	        "unknown part %s; the parts are meta, trace, threads, atrace, binder, names, anr "
	        "and system",
	        name);
}

static enum tw_status form_data(void *arg, const void *p, size_t n, struct tw_err *err)
{
	struct upload *u = arg;

	if (u->now)
		return part_write(u, u->now, p, n, err);
	if (n > TW_MAX_SMALL_BODY - u->meta_len)
		return tw_fail_at(err, TW_TOO_LARGE, TW_MAX_SMALL_BODY,
		        "part meta is longer than %d bytes", TW_MAX_SMALL_BODY);
	memcpy(u->meta_text + u->meta_len, p, n);
	u->meta_len += n;
	return TW_OK;
}

static const struct tw_form_ops form_ops = {form_part, form_data};

/* --- headers --- */

/* The compression is detected by content; the header may only name a supported one. */
static enum tw_status check_encoding(const struct tw_req *r, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_header(r, "Content-Encoding"));

	while (rest.len) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, ','));
		bool known = is_coding(one, "zstd") || is_coding(one, "gzip") ||
		             is_coding(one, "x-gzip") || is_coding(one, "identity");

		if (!known)
			return tw_fail(err, TW_UNSUPPORTED,
			        "Content-Encoding may be zstd, gzip or identity");
	}
	return TW_OK;
}

static enum tw_status read_idempotency(struct upload *u, struct tw_err *err)
{
	const char *key = tw_req_header(u->req, "Idempotency-Key");

	u->idempotency = key ? key : "";
	if (strlen(u->idempotency) > MAX_IDEMPOTENCY)
		return tw_fail(err, TW_BAD_REQUEST, "Idempotency-Key is longer than %d bytes",
		        MAX_IDEMPOTENCY);
	for (const char *p = u->idempotency; *p; p++)
		if (*p < ' ' || *p > '~')
			return tw_fail(
			        err, TW_BAD_REQUEST, "Idempotency-Key must be printable ASCII");
	return TW_OK;
}

static enum tw_status read_query_pair(
        void *arg, const char *name, const char *value, struct tw_err *err)
{
	struct upload *u = arg;

	if (strcmp(name, "project") == 0)
		return TW_OK;
	if (strcmp(name, "format") != 0)
		return tw_upload_meta_text(tw_req_arena(u->req), name, value, &u->meta, err);
	if (*value == '\0')
		return TW_OK;
	u->parts[PART_TRACE].forced = tw_format_by_name(tw_str_of(value));
	if (!u->parts[PART_TRACE].forced)
		return tw_fail(err, TW_BAD_REQUEST, "unknown format %.64s", value);
	return TW_OK;
}

enum tw_status tw_ingest_has_space(struct tw_req *r, uint64_t bytes, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	char wait[16];
	enum tw_status st = tw_backlog_check(api->backlog, tw_api_project(r), bytes, err);

	if (st == TW_OK)
		return st;
	(void)snprintf(wait, sizeof wait, "%d", TW_BACKLOG_RETRY_S);
	tw_req_set_header(r, "Retry-After", wait);
	return st;
}

static enum tw_status begin_body(struct upload *u, struct tw_err *err)
{
	uint64_t declared = tw_req_content_length(u->req);
	uint64_t bytes = declared == UINT64_MAX ? 0 : declared;
	enum tw_status st = tw_req_check_device(u->req, u->meta.device, bytes, err);

	if (st == TW_OK)
		st = tw_ingest_has_space(u->req, bytes, err);
	if (st != TW_OK)
		return st;
	if (tw_req_content_length(u->req) == 0)
		return tw_fail_at(err, TW_BAD_REQUEST, 0, "the body is empty: send a trace file");
	if (tw_form_is(u->req))
		return tw_form_new(u->req, &form_ops, u, &u->form, err);
	return part_begin(u, PART_TRACE, err);
}

static struct upload *new_upload(struct tw_req *r, struct tw_err *err)
{
	struct upload *u = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *u);

	if (!u) {
		(void)tw_oom(err);
		return NULL;
	}
	u->req = r;
	u->meta = tw_upload_meta_none();
	u->received_ms = tw_unix_ms();
	return u;
}

static enum tw_status begin_upload(struct tw_req *r, struct tw_err *err)
{
	struct upload *u = new_upload(r, err);
	enum tw_status st;

	if (!u)
		return TW_NOMEM;
	tw_req_set_state(r, u);
	st = check_encoding(r, err);
	if (st == TW_OK)
		st = read_idempotency(u, err);
	if (st == TW_OK)
		st = tw_req_each_query(r, read_query_pair, u, err);
	return st == TW_OK ? begin_body(u, err) : st;
}

static enum tw_status upload_body(struct tw_req *r, const void *p, size_t n, struct tw_err *err)
{
	struct upload *u = tw_req_state(r);

	return u->form ? tw_form_push(u->form, p, n, err) : part_write(u, u->now, p, n, err);
}

static void discard(struct upload *u)
{
	u->form = tw_form_free(u->form);
	for (size_t i = 0; i < N_PARTS; i++) {
		u->parts[i].preflight = tw_preflight_cancel(u->parts[i].preflight);
		u->parts[i].writer = tw_blob_discard(u->parts[i].writer);
	}
}

static void abort_upload(struct tw_req *r)
{
	struct upload *u = tw_req_state(r);

	if (u)
		discard(u);
}

/* --- the end: check all parts, make them durable, add the row --- */

static enum tw_status read_meta_part(struct upload *u, struct tw_err *err)
{
	json_t *json;
	enum tw_status st;

	if (!u->has_meta)
		return TW_OK;
	st = tw_json_object_parse(
	        (struct tw_str){u->meta_text, u->meta_len}, "part meta", &json, err);
	if (st != TW_OK)
		return st;
	st = tw_upload_meta_json(tw_req_arena(u->req), json, &u->meta, err);
	json_decref(json);
	return st;
}

static enum tw_status finish_parts(struct upload *u, struct tw_err *err)
{
	enum tw_status st = u->form ? tw_form_finish(u->form, err) : TW_OK;

	if (st == TW_OK && u->parts[PART_TRACE].bytes == 0)
		st = tw_fail_at(err, TW_BAD_REQUEST, 0,
		        u->form ? "the form has no part named trace, or it is empty"
		                : "the body is empty: send a trace file");
	for (size_t i = 0; i < N_PARTS && st == TW_OK; i++)
		if (u->parts[i].name)
			st = part_finish(u, &u->parts[i], err);
	for (size_t i = 0; i < N_PARTS && st == TW_OK; i++)
		st = end_preflight(u, &u->parts[i], err);
	if (st == TW_OK)
		st = read_meta_part(u, err);
	return st == TW_OK ? tw_upload_meta_check_whole(&u->meta, err) : st;
}

static enum tw_status record(
        struct upload *u, char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_upload_part parts[N_PARTS];
	struct tw_upload up = {.caller = tw_req_caller(u->req),
	        .key = u->idempotency,
	        .meta = &u->meta,
	        .parts = parts};
	uint64_t bytes = 0;
	enum tw_status st;

	u->meta.recorded_ms = tw_upload_meta_recorded(&u->meta, u->received_ms);
	for (size_t i = 0; i < N_PARTS; i++) {
		const struct part *p = &u->parts[i];

		if (p->name)
			parts[up.n_parts++] = (struct tw_upload_part){
			        p->name, p->forced ? p->forced->name : "", p->writer};
		bytes += p->name ? p->bytes : 0;
	}
	st = tw_req_charge_device(u->req, u->meta.device, bytes, err);
	if (st != TW_OK)
		return st;
	st = tw_commit_upload(&tw_api_of(u->req)->commit, &up, ret_id, ret_new, err);
	if (st != TW_OK || !*ret_new) /* a repeat after a lost response costs nothing */
		tw_req_refund_device(u->req, u->meta.device, bytes);
	if (st == TW_OK) /* the first log line of a trace */
		tw_log(TW_LOG_INFO, "accepted", tw_log_text("id", tw_req_id(u->req)),
		        tw_log_text("trace", ret_id),
		        tw_log_text("key", tw_req_caller(u->req)->key_id),
		        tw_log_text("new", *ret_new ? "true" : "false"),
		        tw_log_number("bytes", (int64_t)bytes));
	for (size_t i = 0; i < N_PARTS && st == TW_OK; i++)
		u->parts[i].writer = NULL;
	return st;
}

static enum tw_status take_upload(
        struct tw_req *r, char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct upload *u = tw_req_state(r);
	enum tw_status st = finish_parts(u, err);

	if (st == TW_OK)
		st = record(u, ret_id, ret_new, err);
	if (st == TW_OK)
		u->form = tw_form_free(u->form);
	return st;
}

static enum tw_status end_upload(struct tw_req *r, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	char url[MAX_URL];
	bool is_new;
	enum tw_status st = take_upload(r, id, &is_new, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(url, sizeof url, "/api/v1/traces/%s", id);
	tw_req_set_header(r, "Location", url);
	return tw_req_reply_json(r, is_new ? 202 : 200,
	        json_pack("{ss ss ss}", "id", id, "state", "queued", "url", url), err);
}

/* OpenTelemetry exporters expect 200 and an ExportProfilesServiceResponse, which is empty if
 * everything was accepted. */
static enum tw_status end_otlp(struct tw_req *r, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	bool is_new;
	enum tw_status st = take_upload(r, id, &is_new, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_static(r, 200, "application/x-protobuf", "", 0, err);
}

/* --- bodies that were stored before: resumable and direct uploads --- */

static enum tw_status take_pairs(
        struct upload *u, const struct tw_ingest_pair *pairs, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < n && st == TW_OK; i++)
		st = read_query_pair(u, pairs[i].name, pairs[i].value, err);
	return st;
}

enum tw_status tw_ingest_check(
        struct tw_req *r, const struct tw_ingest_pair *pairs, size_t n, struct tw_err *err)
{
	struct upload *u = new_upload(r, err);
	enum tw_status st = u ? read_idempotency(u, err) : TW_NOMEM;

	if (st == TW_OK)
		st = take_pairs(u, pairs, n, err);
	if (st == TW_OK)
		st = tw_upload_meta_check_whole(&u->meta, err);
	return st == TW_OK ? tw_req_check_device(r, u->meta.device, 0, err) : st;
}

static enum tw_status take_file(struct upload *u, int fd, struct tw_err *err)
{
	uint8_t piece[32768];
	enum tw_status st = part_begin(u, PART_TRACE, err);
	ssize_t n = 0;

	while (st == TW_OK && (n = tw_read_some(fd, piece, sizeof piece)) > 0)
		st = part_write(u, u->now, piece, (size_t)n, err);
	if (st == TW_OK && n < 0)
		st = tw_fail(err, TW_IO, "an upload cannot be read");
	return st == TW_OK ? finish_parts(u, err) : st;
}

enum tw_status tw_ingest_file(struct tw_req *r, const struct tw_ingest_body *body,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct upload *u = new_upload(r, err);
	enum tw_status st;

	if (!u)
		return TW_NOMEM;
	u->idempotency = body->key;
	u->received_ms = body->received_ms;
	st = take_pairs(u, body->pairs, body->n_pairs, err);
	if (st == TW_OK)
		st = take_file(u, body->fd, err);
	if (st == TW_OK)
		st = record(u, ret_id, ret_new, err);
	if (st != TW_OK)
		discard(u);
	return st;
}

static const struct tw_param meta_params[] = {
        TW_PARAM_TEXT("app", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("version_name", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("version_code", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("build_id", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("mapping_id", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("commit", 64,
                "Git commit of the build, 7 to 64 hex digits; requires build_id. The first one "
                "sent is stored."),
        TW_PARAM_TEXT("device", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("os", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("abi", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("process", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("scenario", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("session_id", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("uuid", TW_MAX_TEXT, ""),
        TW_PARAM_TEXT("capture", TW_MAX_TEXT, "The capture rule that recorded this trace."),
        TW_PARAM_TEXT("device_id", TW_MAX_TEXT,
                "As sent to /api/v1/capture; stored as a hash, which counts the users of ANR "
                "groups."),
        TW_PARAM_OPTIONAL_NUMBER("pid", 0, UINT32_MAX, ""),
        TW_PARAM_OPTIONAL_NUMBER("started_at", 0, INT64_MAX,
                "When the recording began, Unix milliseconds by the device's clock. The trace "
                "counts on this day if it is at most 30 days before its arrival."),
        TW_PARAM_OPTIONAL_NUMBER("sent_at", 0, INT64_MAX,
                "Time of the device's clock when the request is sent, Unix milliseconds; corrects "
                "started_at if that clock is wrong."),
        TW_PARAM_TEXT("labels", 0, "A JSON object of texts, numbers and flags, at most 64."),
        TW_PARAM_TEXT("format", 0, "Forces a format instead of recognising it by content."),
        {0},
};

const struct tw_route tw_routes_ingest[] = {
        TW_ROUTE("POST", "/api/v1/traces", TW_NEED_INGEST, "Uploads a trace",
                .params = TW_PARAMS(meta_params), .any_params = true, .roles = TW_ROLE_INGEST,
                .upload = true, .max_body = max_upload, .begin = begin_upload, .body = upload_body,
                .end = end_upload, .abort = abort_upload),
        TW_ROUTE("POST", "/v1development/profiles", TW_NEED_INGEST,
                "Uploads profiles as an OpenTelemetry exporter sends them",
                .params = TW_PARAMS(meta_params), .any_params = true, .roles = TW_ROLE_INGEST,
                .upload = true, .max_body = max_upload, .begin = begin_upload, .body = upload_body,
                .end = end_otlp, .abort = abort_upload),
        {0},
};

#include "server/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/catalogue/access/catalogue_key.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/storage/blob.h"

static uint64_t small_body(const struct tw_config *config)
{
	(void)config;
	return TW_MAX_SMALL_BODY;
}

struct collected {
	char *text;
	size_t len;
};

static enum tw_status collect_begin(struct tw_req *r, struct tw_err *err)
{
	struct collected *c = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *c);

	if (c)
		c->text = tw_arena_alloc(tw_req_arena(r), TW_MAX_SMALL_BODY, 1);
	if (!c || !c->text)
		return tw_oom(err);
	tw_req_set_state(r, c);
	return TW_OK;
}

static enum tw_status collect(struct tw_req *r, const void *p, size_t n, struct tw_err *err)
{
	struct collected *c = tw_req_state(r);

	if (n > TW_MAX_SMALL_BODY - c->len)
		return tw_fail_at(err, TW_TOO_LARGE, TW_MAX_SMALL_BODY, "the body is too large");
	memcpy(c->text + c->len, p, n);
	c->len += n;
	return TW_OK;
}

static enum tw_status end_json(struct tw_req *r, struct tw_err *err)
{
	const struct collected *c = tw_req_state(r);
	json_t *body;
	enum tw_status st =
	        tw_json_object_parse((struct tw_str){c->text, c->len}, "the body", &body, err);

	if (st != TW_OK)
		return st;
	st = tw_req_route(r)->json(r, body, err);
	json_decref(body);
	return st;
}

void tw_api_take_json(struct tw_route *route)
{
	route->max_body = small_body;
	route->begin = collect_begin;
	route->body = collect;
	route->end = end_json;
}

enum tw_status tw_api_trace_id(struct tw_req *r, const char **ret, struct tw_err *err)
{
	const char *id = tw_req_path(r, "id");

	if (!id || strlen(id) != TW_ID_BYTES - 1 ||
	        strspn(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != TW_ID_BYTES - 1)
		return tw_fail(err, TW_NOT_FOUND, "no such trace");
	*ret = id;
	return TW_OK;
}

const char *tw_api_file_name(struct tw_req *r, const struct tw_trace_row *row, const char *suffix)
{
	char *name = tw_arena_printf(tw_req_arena(r), "%.80s-%.40s-%s%s", row->meta.app,
	        row->meta.scenario, row->id, suffix);

	for (char *at = name; at && *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		            (*at >= '0' && *at <= '9') || strchr(".-_", *at)))
			*at = '_';
	return name ? name : "trace";
}

static bool is_or_was_ready(const struct tw_trace_row *row)
{
	return row->state == TW_TRACE_READY || row->state == TW_TRACE_ARCHIVED;
}

static json_t *error_of(const struct tw_trace_row *row)
{
	if (is_or_was_ready(row) || !row->error.msg[0])
		return json_null();
	return json_pack("{ss ss so}", "status", tw_status_name(row->error.code), "message",
	        row->error.msg, "offset",
	        row->error.offset == TW_NO_OFFSET ? json_null()
	                                          : json_integer((json_int_t)row->error.offset));
}

static int set_summary(json_t *trace, const struct tw_trace_row *row)
{
	const struct tw_trace_summary *s = &row->summary;
	json_t *summary = json_object_get(trace, "summary");

	if (!is_or_was_ready(row))
		return json_object_set_new(trace, "summary", json_null());
	return json_object_set_new(summary, "timed", json_boolean(tw_trace_is_timed(s))) |
	       json_object_set_new(summary, "duration_ns",
	               json_integer((json_int_t)(tw_trace_is_timed(s) ? s->duration_ns : 0)));
}

json_t *tw_api_trace(const struct tw_trace_row *row)
{
	json_t *trace = tw_row_json(&tw_trace_fields, row);

	return tw_json_complete(trace, set_summary(trace, row) |
	                                       json_object_set_new(trace, "error", error_of(row)) |
	                                       json_object_set_new(trace, "report", json_null()));
}

enum tw_status tw_api_store_setting(
        struct tw_req *r, const char *key, const json_t *value, struct tw_err *err)
{
	char *text = tw_json_dumps(value, JSON_COMPACT);
	enum tw_status st = text ? tw_catalogue_setting_set(
	                                   tw_api_catalogue(r), tw_api_project(r), key, text, err)
	                         : tw_oom(err);

	free(text);
	return st;
}

const struct tw_param tw_api_thread_params[] = {
        TW_PARAM_TEXT("thread", 0,
                "Threads: all (the default), main, a thread id or a name, or several, separated by "
                "commas. main is the main thread, of each process if a trace has "
                "several."),
        TW_PARAM_TEXT("threads", 0, "The same as thread."),
        {0},
};

const char *tw_api_thread(const struct tw_req *r)
{
	const char *one = tw_req_text(r, "thread");

	return one ? one : tw_req_text(r, "threads");
}

static bool is_late(void *r)
{
	return tw_req_ms_left(r) == 0;
}

struct tw_deadline tw_api_deadline(struct tw_req *r)
{
	return (struct tw_deadline){is_late, r};
}

const char *tw_api_author(struct tw_req *r)
{
	const struct tw_caller *caller = tw_req_caller(r);
	struct tw_key_row key;
	enum tw_status st;

	if (caller->name[0])
		return caller->name;
	st = tw_catalogue_key_get(tw_api_catalogue(r), caller->project_id, caller->key_id,
	        tw_req_arena(r), &key, NULL);
	if (st == TW_OK)
		return key.name[0] ? key.name : "a key without a name";
	return st == TW_NOT_FOUND ? "admin" : "";
}

static enum tw_status read_some(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	ssize_t n = tw_read_some(*(int *)arg, out, cap);

	if (n < 0)
		return tw_fail(err, TW_IO, "the content cannot be read");
	*ret_n = (size_t)n;
	return TW_OK;
}

static void close_fd(void *arg)
{
	(void)close(*(int *)arg);
	tw_mem_free(arg);
}

static const struct tw_stream_ops file_stream = {read_some, close_fd};

enum tw_status tw_api_stream_part(struct tw_req *r, const char *id, struct tw_err *err)
{
	struct tw_part *p = NULL;
	size_t n = 0;
	int *fd;
	char disposition[128];
	enum tw_status st = tw_catalogue_trace_parts(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &p, &n, err);

	if (st != TW_OK)
		return st;
	for (; n && strcmp(p->part, tw_req_path(r, "part")) != 0; n--)
		p++;
	if (n == 0)
		return tw_fail(err, TW_NOT_FOUND, "the trace has no such part");
	fd = tw_mem_alloc(1, sizeof *fd);
	if (!fd)
		return tw_oom(err);
	st = tw_blob_open_by(tw_api_of(r)->blobs, p->sha256,
	        tw_monotonic_ms() + (int64_t)tw_req_ms_left(r), fd, err);
	if (st != TW_OK) {
		tw_mem_free(fd);
		return st;
	}
	(void)snprintf(
	        disposition, sizeof disposition, "attachment; filename=\"%s-%s\"", id, p->part);
	tw_req_set_header(r, "Content-Disposition", disposition);
	return tw_req_reply_stream(r, "application/octet-stream", false, &file_stream, fd, err);
}

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

enum tw_status tw_api_keep_setting(
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

/* Line breaks and tabs are allowed in texts of several lines. */
static bool is_control(char c, bool lines)
{
	if (lines && (c == '\n' || c == '\t'))
		return false;
	return (unsigned char)c < ' ' || c == 0x7f;
}

enum tw_status tw_api_text(const json_t *body, const char *name, size_t max, bool lines,
        const char **ret, struct tw_err *err)
{
	const char *text = json_string_value(json_object_get(body, name));
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be a text", name);
	if (len > max)
		return tw_fail(err, TW_BAD_REQUEST, "%s has %zu bytes; at most %zu are stored",
		        name, len, max);
	for (size_t i = 0; i < len; i++)
		if (is_control(text[i], lines))
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s contains a control character at byte %zu", name, i);
	*ret = text;
	return TW_OK;
}

static enum tw_status read_number(
        const struct tw_member *m, const json_t *at, void *to, struct tw_err *err)
{
	const int64_t v = json_integer_value(at);

	if (!json_is_integer(at) || v < m->min || v > m->max) {
		if (m->refusal)
			return tw_fail(err, TW_BAD_REQUEST, "%s", m->refusal);
		return m->max == INT64_MAX ? tw_fail(err, TW_BAD_REQUEST,
		                                     "%s must be a whole number, %lld or more",
		                                     m->name, (long long)m->min)
		                           : tw_fail(err, TW_BAD_REQUEST,
		                                     "%s must be a whole number from %lld to %lld",
		                                     m->name, (long long)m->min, (long long)m->max);
	}
	if (m->bytes == sizeof(int64_t))
		*(int64_t *)to = v;
	else
		*(uint32_t *)to = (uint32_t)v;
	return TW_OK;
}

static enum tw_status read_member(
        const json_t *body, const struct tw_member *m, void *to, struct tw_err *err)
{
	const json_t *at = json_object_get(body, m->name);
	const char *text = json_string_value(at);

	if ((!at && !m->required) || (m->or_null && json_is_null(at)))
		return TW_OK;
	switch (m->kind) {
	case TW_MEMBER_TEXT:
	case TW_MEMBER_LINES:
		return tw_api_text(
		        body, m->name, (size_t)m->max, m->kind == TW_MEMBER_LINES, to, err);
	case TW_MEMBER_FLAG:
		if (!json_is_boolean(at))
			return tw_fail(err, TW_BAD_REQUEST, "%s must be true or false", m->name);
		*(bool *)to = json_is_true(at);
		return TW_OK;
	case TW_MEMBER_NUMBER:
		return read_number(m, at, to, err);
	case TW_MEMBER_WORD:
		return tw_enum_of_name(m->name, text ? text : "", m->words, to, err);
	case TW_MEMBER_OTHER:
		break;
	}
	return TW_OK;
}

enum tw_status tw_api_members(
        const json_t *body, const struct tw_member *of, void *io, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (; st == TW_OK && of->name; of++)
		st = read_member(body, of, (char *)io + of->offset, err);
	return st;
}

enum tw_status tw_api_only(const json_t *body, const struct tw_member *of, size_t least,
        const char *before, const char *after, struct tw_err *err)
{
	char list[200] = "";
	size_t known = 0, len = 0;

	for (size_t i = 0; of[i].name; i++) {
		known += json_object_get(body, of[i].name) != NULL;
		len += (size_t)snprintf(list + len, len < sizeof list ? sizeof list - len : 0,
		        "%s%s",
		        i == 0           ? ""
		        : of[i + 1].name ? ", "
		                         : " and ",
		        of[i].name);
	}
	return known == json_object_size(body) && known >= least
	               ? TW_OK
	               : tw_fail(err, TW_BAD_REQUEST, "%s%s%s", before, list, after);
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

/*
 * api_annotation.c - annotations at a time or on a method of a trace.
 *
 * Requests name a method by its index. A newer decoder may number methods differently, so a key is
 * stored with the index: the method's id, or its name in the trace.
 */
#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/base/text/json.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_annotation.h"
#include "server/catalogue/traces/catalogue_trace.h"

static void key_of(struct tw_named m, char out[TW_METHOD_KEY_BYTES])
{
	if (m.has_id)
		(void)snprintf(out, TW_METHOD_KEY_BYTES, "#%llu", (unsigned long long)m.id);
	else
		(void)tw_utf8_clean(out, TW_METHOD_KEY_BYTES, m.name);
}

static bool has_key(const struct tw_view *v, int64_t index, const char *key)
{
	char one[TW_METHOD_KEY_BYTES];

	if (index < 0 || index >= v->n_methods)
		return false;
	key_of(tw_method_named(&v->methods[index]), one);
	return strcmp(one, key) == 0;
}

/* The method's current index; -1: it no longer exists. */
static int64_t find_method(const struct tw_view *v, const struct tw_annotation *a)
{
	if (a->method_index < 0 || has_key(v, a->method_index, a->method_key))
		return a->method_index;
	for (int64_t i = 0; i < v->n_methods; i++)
		if (has_key(v, i, a->method_key))
			return i;
	return -1;
}

static json_t *number_or_null(int64_t v)
{
	return v < 0 ? json_null() : json_integer((json_int_t)v);
}

/* v NULL: the trace cannot be read; methods are named by their keys. */
static json_t *annotation_json(
        const struct tw_annotation *a, const struct tw_view *v, char name_buf[TW_NAME_BYTES])
{
	const int64_t method = v ? find_method(v, a) : -1;
	struct tw_str name = tw_str_of(a->method_key);
	json_t *o;

	if (method >= 0)
		name = tw_view_name(v, (uint32_t)method, name_buf, NULL);
	o = tw_row_json(&tw_annotation_fields, a);
	return tw_json_complete(
	        o, json_object_set_new(o, "method", number_or_null(method)) |
	                   json_object_set_new(o, "method_name",
	                           a->method_index < 0 ? json_null()
	                                               : json_stringn_nocheck(name.ptr, name.len)));
}

static json_t *all_json(
        struct tw_req *r, const struct tw_annotation *rows, size_t n, const struct tw_view *v)
{
	char *buf = tw_arena_alloc(tw_req_arena(r), TW_NAME_BYTES, 1);
	json_t *list = json_array();

	for (size_t i = 0; buf && i < n; i++)
		(void)json_array_append_new(list, annotation_json(&rows[i], v, buf));
	return json_pack("{so}", "annotations", list);
}

static enum tw_status list_annotations(struct tw_req *r, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *project_id = tw_api_project(r);
	struct tw_trace_row row;
	struct tw_annotation *rows;
	struct tw_view v;
	struct tw_err why;
	const char *id;
	size_t n = 0;
	bool ready;
	json_t *json;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_trace_get(c, project_id, id, tw_req_arena(r), &row, err);
	if (st == TW_OK)
		st = tw_catalogue_annotations(c, project_id, id, tw_req_arena(r), &rows, &n, err);
	if (st != TW_OK)
		return st;
	ready = n > 0 && tw_view_open_id(r, id, &v, &why) == TW_OK;
	json = all_json(r, rows, n, ready ? &v : NULL);
	if (ready)
		tw_view_close(&v);
	return tw_req_reply_json(r, 200, json, err);
}

#define NUMBER(json, member)                                                                       \
	{                                                                                          \
		.name = (json), .kind = TW_MEMBER_NUMBER, .or_null = true, .max = INT64_MAX,       \
		.offset = offsetof(struct tw_annotation, member), .bytes = sizeof(int64_t)         \
	}
static const struct tw_member position_members[] = {NUMBER("ts_ns", ts_ns),
        NUMBER("dur_ns", dur_ns), NUMBER("tid", tid), NUMBER("method", method_index), {0}};

static enum tw_status check_position(
        const struct tw_view *v, const struct tw_annotation *a, struct tw_err *err)
{
	const struct tw_thread_info *threads;
	uint32_t n;

	if (a->ts_ns < 0 && a->method_index < 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "set the position: ts_ns, a time, or method, the index of a method");
	if (a->ts_ns < 0 && (a->dur_ns > 0 || a->tid >= 0))
		return tw_fail(err, TW_BAD_REQUEST, "dur_ns and tid require ts_ns");
	if (a->dur_ns > INT64_MAX - (a->ts_ns > 0 ? a->ts_ns : 0))
		return tw_fail(err, TW_BAD_REQUEST, "ts_ns and dur_ns are too large");
	if (a->method_index >= v->n_methods)
		return tw_fail(err, TW_NOT_FOUND, "this trace has %u methods, none with that index",
		        v->n_methods);
	threads = tw_trace_file_threads(v->file, &n);
	for (uint32_t i = 0; i < n; i++)
		if (a->tid < 0 || (int64_t)threads[i].tid == a->tid)
			return TW_OK;
	return a->tid < 0 ? TW_OK
	                  : tw_fail(err, TW_NOT_FOUND, "this trace has no thread %lld",
	                            (long long)a->tid);
}

static enum tw_status read_text(const json_t *body, const char **ret, struct tw_err *err)
{
	enum tw_status st = tw_member_text(body, "text", TW_ANNOTATION_BYTES, true, ret, err);

	if (st == TW_OK && strspn(*ret, " \t\n") == strlen(*ret))
		return tw_fail(err, TW_BAD_REQUEST, "text must not be empty");
	return st;
}

static enum tw_status read_annotation(const struct tw_view *v, const json_t *body,
        struct tw_annotation *ret, char key[TW_METHOD_KEY_BYTES], struct tw_err *err)
{
	struct tw_annotation a = {.ts_ns = -1, .tid = -1, .method_index = -1, .method_key = key};
	enum tw_status st = read_text(body, &a.text, err);

	if (st == TW_OK)
		st = tw_members_read(body, position_members, &a, err);
	if (st == TW_OK)
		st = check_position(v, &a, err);
	if (st != TW_OK)
		return st;
	key[0] = '\0';
	if (a.method_index >= 0)
		key_of(tw_method_named(&v->methods[a.method_index]), key);
	*ret = a;
	return TW_OK;
}

static enum tw_status add(
        struct tw_req *r, const struct tw_view *v, const json_t *body, struct tw_err *err)
{
	char key[TW_METHOD_KEY_BYTES];
	char id[TW_ID_BYTES];
	struct tw_annotation a;
	enum tw_status st = read_annotation(v, body, &a, key, err);

	if (st != TW_OK)
		return st;
	a.author = tw_api_author(r);
	st = tw_catalogue_annotation_add(
	        tw_api_catalogue(r), v->row.project_id, v->row.id, &a, id, err);
	if (st == TW_OK)
		tw_record_trace(tw_api_of(r)->recorder, v->row.project_id, v->row.id);
	return st == TW_OK ? tw_req_reply_json(r, 201, json_pack("{ss}", "id", id), err) : st;
}

static enum tw_status add_annotation(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_view v;
	enum tw_status st = tw_view_open(r, &v, err);

	if (st == TW_OK) {
		st = add(r, &v, body, err);
		tw_view_close(&v);
	}
	return st;
}

static enum tw_status edit_annotation(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const char *text = NULL;
	enum tw_status st = read_text(body, &text, err);

	if (st == TW_OK)
		st = tw_catalogue_annotation_edit(tw_api_catalogue(r), tw_api_project(r),
		        tw_req_path(r, "id"), tw_req_path(r, "annotation"), text, err);
	if (st == TW_OK)
		tw_record_trace(tw_api_of(r)->recorder, tw_api_project(r), tw_req_path(r, "id"));
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status delete_annotation(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_annotation_delete(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_path(r, "id"), tw_req_path(r, "annotation"), err);

	if (st == TW_OK)
		tw_record_trace(tw_api_of(r)->recorder, tw_api_project(r), tw_req_path(r, "id"));
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

const struct tw_route tw_routes_annotation[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/annotations", TW_NEED_READ, "Annotations of a trace",
                .end = list_annotations),
        TW_ROUTE("POST", "/api/v1/traces/{id}/annotations", TW_NEED_WRITE,
                "Adds an annotation at a time or on a method", .json = add_annotation),
        TW_ROUTE("PATCH", "/api/v1/traces/{id}/annotations/{annotation}", TW_NEED_WRITE,
                "Changes the text of an annotation", .json = edit_annotation),
        TW_ROUTE("DELETE", "/api/v1/traces/{id}/annotations/{annotation}", TW_NEED_WRITE,
                "Deletes an annotation", .end = delete_annotation),
        {0},
};

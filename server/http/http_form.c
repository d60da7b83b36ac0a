/*
 * http_form.c - wraps libmicrohttpd's post processor.
 *
 * The processor reports a part's bytes with their offset; the next part begins at offset 0 or with
 * another name.
 */
#include "server/http/http.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/http/http_int.h"

enum { WINDOW = 32 << 10, MAX_NAME = 64, MAX_BOUNDARY = 70 };

struct tw_form {
	struct MHD_PostProcessor *pp;
	const struct tw_form_ops *ops;
	void *arg;
	char name[MAX_NAME];
	bool in_part;
	uint64_t part_bytes, total;
	enum tw_status status;
	struct tw_err err;
};

static enum tw_status enter_part(struct tw_form *f, const char *key)
{
	size_t len = key ? strlen(key) : 0;

	if (len == 0 || len >= sizeof f->name)
		return tw_fail_at(&f->err, TW_BAD_REQUEST, f->total,
		        "a part of the form has %s name", len ? "too long a" : "no");
	memcpy(f->name, key, len + 1);
	f->in_part = true;
	f->part_bytes = 0;
	return f->ops->part(f->arg, f->name, &f->err);
}

static enum MHD_Result on_piece(void *cls, enum MHD_ValueKind kind, const char *key,
        const char *filename, const char *content_type, const char *transfer_encoding,
        const char *data, uint64_t off, size_t n)
{
	struct tw_form *f = cls;
	bool same =
	        f->in_part && key && strcmp(key, f->name) == 0 && (off > 0 || f->part_bytes == 0);

	(void)kind;
	(void)filename;
	(void)content_type;
	(void)transfer_encoding;
	if (!same)
		f->status = enter_part(f, key);
	if (f->status == TW_OK && n)
		f->status = f->ops->data(f->arg, data, n, &f->err);
	f->part_bytes += n;
	return f->status == TW_OK ? MHD_YES : MHD_NO;
}

static const char multipart[] = "multipart/form-data", label[] = "boundary=";

bool tw_form_is(const struct tw_req *r)
{
	const char *part_value = tw_req_header(r, "Content-Type");

	return part_value && strncasecmp(part_value, multipart, sizeof multipart - 1) == 0;
}

/* The value of a parameter: a token or a quoted string without escapes. */
static struct tw_str parameter(const char *value)
{
	bool quoted = *value == '"';

	return (struct tw_str){value + quoted, strcspn(value + quoted, quoted ? "\"" : " \t;,")};
}

/* The library takes everything after "boundary=" as the boundary, and refuses one character unless
 * it is quoted.  So the header is rewritten in place: quotes need one byte more than the separator
 * before the parameter gave, and the line's CR LF left two (tw_req_validate_headers). */
static bool isolate_boundary(const char *header)
{
	const char *params = header + sizeof multipart - 1;
	const char *at = strcasestr(params, label);
	char boundary[MAX_BOUNDARY + 1];
	struct tw_str part_value;
	char *out;

	if (!at)
		return false;
	part_value = parameter(at + sizeof label - 1);
	if (at == params ? part_value.ptr[-1] != '"' /* otherwise it was not rewritten before */
	                 : !strchr("; \t", at[-1]))
		return false;
	if (part_value.len == 0 || part_value.len > MAX_BOUNDARY)
		return false;
	memcpy(boundary, part_value.ptr, part_value.len);
	boundary[part_value.len] = '\0';
	memcpy(&out, &header, sizeof out);
	(void)snprintf(out + sizeof multipart - 1, strlen(params) + 2, "%s\"%s\"", label, boundary);
	return true;
}

enum tw_status tw_form_new(const struct tw_req *r, const struct tw_form_ops *ops, void *arg,
        struct tw_form **ret, struct tw_err *err)
{
	struct tw_form *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return tw_oom(err);
	f->ops = ops;
	f->arg = arg;
	if (isolate_boundary(tw_req_header(r, "Content-Type")))
		f->pp = MHD_create_post_processor(r->connection, WINDOW, on_piece, f);
	if (!f->pp) {
		tw_mem_free(f);
		return tw_fail(err, TW_BAD_REQUEST,
		        "Content-Type multipart/form-data needs a boundary of 1 to 70 characters");
	}
	*ret = f;
	return TW_OK;
}

static enum tw_status report_end(struct tw_form *f, struct tw_err *err)
{
	if (f->status != TW_OK)
		tw_err_copy(err, &f->err);
	return f->status;
}

enum tw_status tw_form_push(struct tw_form *f, const void *p, size_t n, struct tw_err *err)
{
	if (f->status == TW_OK && MHD_post_process(f->pp, p, n) != MHD_YES && f->status == TW_OK)
		f->status = tw_fail_at(&f->err, TW_BAD_REQUEST, f->total,
		        "the multipart body is malformed near this offset");
	f->total += n;
	return report_end(f, err);
}

enum tw_status tw_form_finish(struct tw_form *f, struct tw_err *err)
{
	struct MHD_PostProcessor *pp = f->pp;

	f->pp = NULL;
	if (MHD_destroy_post_processor(pp) != MHD_YES && f->status == TW_OK)
		f->status = tw_fail_at(&f->err, TW_BAD_REQUEST, f->total,
		        "the multipart body ends before its closing boundary");
	if (f->status == TW_OK && !f->in_part) /* the processor skips text before the first part */
		f->status =
		        tw_fail_at(&f->err, TW_BAD_REQUEST, 0, "the multipart body has no part");
	return report_end(f, err);
}

struct tw_form *tw_form_free(struct tw_form *f)
{
	if (f && f->pp)
		(void)MHD_destroy_post_processor(f->pp);
	tw_mem_free(f);
	return NULL;
}

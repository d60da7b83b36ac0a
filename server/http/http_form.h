/*
 * http_form.h - streaming parser of multipart/form-data bodies.
 *
 * Buffers only a small window.  A failure is sticky.
 * Thread: the request's.
 */
#ifndef TW_HTTP_FORM_H
#define TW_HTTP_FORM_H

#include "server/http/http.h"

struct tw_form;

struct tw_form_ops {
	/* A part begins.  `name` is from the client: any bytes. */
	enum tw_status (*part)(void *arg, const char *name, struct tw_err *err);
	enum tw_status (*data)(void *arg, const void *p, size_t n, struct tw_err *err);
};

/* Whether the request has Content-Type: multipart/form-data. */
bool tw_form_is(const struct tw_req *r);
/* TW_BAD_REQUEST if the boundary is missing.  Free with tw_form_free. */
enum tw_status tw_form_new(const struct tw_req *r, const struct tw_form_ops *ops, void *arg,
        struct tw_form **ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_form_push(
        struct tw_form *f, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* TW_BAD_REQUEST if the closing boundary is missing. */
enum tw_status tw_form_finish(struct tw_form *f, struct tw_err *err) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_form *tw_form_free(struct tw_form *f);

#endif

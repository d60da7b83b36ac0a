/*
 * http_form.h - multipart/form-data bodies, part by part as they come in.
 *
 * Nothing is kept here but a small window.  A failure is sticky.
 * Thread: the request's.
 */
#ifndef TW_HTTP_FORM_H
#define TW_HTTP_FORM_H

#include "server/http/http.h"

struct tw_form;

struct tw_form_ops {
	/* A part begins.  `name` is what the sender called it: any bytes. */
	enum tw_status (*part)(void *arg, const char *name, struct tw_err *err);
	enum tw_status (*data)(void *arg, const void *p, size_t n, struct tw_err *err);
};

/* Does the request say Content-Type: multipart/form-data? */
bool tw_form_is(const struct tw_req *r);
/* TW_BAD_REQUEST when the boundary is missing.  tw_form_free is owed. */
enum tw_status tw_form_new(const struct tw_req *r, const struct tw_form_ops *ops, void *arg,
        struct tw_form **ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_form_push(
        struct tw_form *f, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* TW_BAD_REQUEST when the closing boundary did not come. */
enum tw_status tw_form_finish(struct tw_form *f, struct tw_err *err) TW_MUST_USE;
/* NULL is fine; returns NULL. */
struct tw_form *tw_form_free(struct tw_form *f);

#endif

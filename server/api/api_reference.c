/* The API's reference as a page, generated from its description by the build
 * (schema/reference.py). */
#include <string.h>

#include "server/base/embedded.h"
#include "server/http/http.h"

extern const struct tw_embedded tw_reference_files[]; /* reference.html, reference.css */

static enum tw_status send(
        struct tw_req *r, const struct tw_embedded *f, const char *type, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st;

	tw_req_set_header(r, "Cache-Control", "no-cache");
	tw_buf_init(&out, f->len);
	(void)tw_buf_add(&out, f->data, f->len);
	st = tw_req_reply_buf(r, 200, type, true, &out, err);
	tw_buf_done(&out);
	return st;
}

static enum tw_status reference(struct tw_req *r, struct tw_err *err)
{
	return send(r, &tw_reference_files[0], "text/html; charset=utf-8", err);
}

static enum tw_status style(struct tw_req *r, struct tw_err *err)
{
	return send(r, &tw_reference_files[1], "text/css; charset=utf-8", err);
}

const struct tw_route tw_routes_reference[] = {
        {.method = "GET",
                .path = "/api/reference",
                .needs = TW_NEED_PUBLIC,
                .any_params = true,
                .end = reference,
                .summary = "API reference as a page"},
        {.method = "GET",
                .path = "/api/reference.css",
                .needs = TW_NEED_PUBLIC,
                .any_params = true,
                .on_loop = true,
                .end = style,
                .summary = "The style sheet of the API reference"},
        {0},
};

/* Unit tests of server/http/http_form.c through a real server: parts come out the same however the
 * body is cut on its way. */
#include "tests/unit/http/http_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "server/http/http.h"
#include "tests/unit/unit.h"

static uint64_t limit_of(const struct tw_config *config)
{
	(void)config;
	return 100000;
}

/* --- a form, returned as "name:bytes:sum " a part --- */

struct parts {
	struct tw_form *form;
	struct tw_buf reported;
	char name[64];
	uint64_t bytes, sum;
};

static void write_part(struct parts *p)
{
	if (p->name[0])
		tw_buf_printf(&p->reported, "%s:%d:%d ", p->name, (int)p->bytes, (int)p->sum);
	p->bytes = p->sum = 0;
}

static enum tw_status parts_part(void *arg, const char *name, struct tw_err *err)
{
	struct parts *p = arg;

	write_part(p);
	(void)snprintf(p->name, sizeof p->name, "%s", name);
	return strcmp(name, "bad") == 0 ? tw_fail_at(err, TW_CONFLICT, 7, "a bad part") : TW_OK;
}

static enum tw_status parts_data(void *arg, const void *data, size_t n, struct tw_err *err)
{
	struct parts *p = arg;

	(void)err;
	p->bytes += n;
	for (size_t i = 0; i < n; i++)
		p->sum += ((const uint8_t *)data)[i];
	return TW_OK;
}

static enum tw_status form_begin(struct tw_req *r, struct tw_err *err)
{
	static const struct tw_form_ops ops = {parts_part, parts_data};
	struct parts *p = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *p);

	tw_req_set_state(r, p);
	tw_buf_init(&p->reported, 1 << 16);
	if (!tw_form_is(r))
		return tw_fail(err, TW_UNSUPPORTED, "no form");
	return tw_form_new(r, &ops, p, &p->form, err);
}

static enum tw_status form_body(struct tw_req *r, const void *data, size_t n, struct tw_err *err)
{
	return tw_form_push(((struct parts *)tw_req_state(r))->form, data, n, err);
}

static void form_abort(struct tw_req *r)
{
	struct parts *p = tw_req_state(r);

	p->form = tw_form_free(p->form);
	tw_buf_done(&p->reported);
}

static enum tw_status form_end(struct tw_req *r, struct tw_err *err)
{
	struct parts *p = tw_req_state(r);
	enum tw_status st = tw_form_finish(p->form, err);

	if (st != TW_OK)
		return st;
	write_part(p);
	st = tw_req_reply_buf(r, 200, "text/plain", false, &p->reported, err);
	if (st == TW_OK)
		form_abort(r);
	return st;
}

static struct tw_route routes[] = {
        {.method = "POST",
                .path = "/form",
                .needs = TW_NEED_INGEST,
                .on_loop = true,
                .max_body = limit_of,
                .begin = form_begin,
                .body = form_body,
                .end = form_end,
                .abort = form_abort},
};

static int start(void **state)
{
	fixture_routes(routes, sizeof routes / sizeof *routes);
	return fixture_start(state);
}

#define FORM       GOOD "Content-Type: multipart/form-data; boundary=XX\r\n"
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

/* Sends body in two pieces, cut at `cut`, and returns the reply. */
static const char *ask_form(struct fixture *f, const char *body, size_t cut)
{
	const struct timespec pause = {.tv_nsec = 700000};
	size_t len = strlen(body);
	char head[256];
	int on = 1;
	int fd = dial(f);

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	(void)snprintf(head, sizeof head,
	        "POST /form HTTP/1.1\r\n" FORM "Content-Length: %zu\r\n\r\n", len);
	say(fd, head);
	if (cut) {
		assert_int_equal(send(fd, body, cut, MSG_NOSIGNAL), cut);
		(void)nanosleep(&pause, NULL);
	}
	say(fd, body + cut);
	return receive(f, fd);
}

static void test_forms_cut_anywhere(void **state)
{
	struct fixture *f = *state;
	static const char body[] = PART("meta") "{}\r\n" PART("trace") "a\r\n--X\r\n-b\r\n" PART(
	        "empty") "\r\n--XX--\r\n";

	for (size_t cut = 0; cut < sizeof body - 1; cut++)
		assert_has(ask_form(f, body, cut), "\r\n\r\nmeta:2:248 trace:10:464 empty:0:0 ");
}

static void test_boundaries(void **state)
{
	static const char *const boundaries[] = {"x", "\"x\"", "x; charset=utf-8", "\"x\"; a=b"};
	static const char body[] =
	        "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n";
	struct fixture *f = *state;
	char text[512];

	for (size_t i = 0; i < sizeof boundaries / sizeof *boundaries; i++) {
		(void)snprintf(text, sizeof text,
		        "POST /form HTTP/1.1\r\n" GOOD
		        "Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: "
		        "%zu\r\n\r\n%s",
		        boundaries[i], sizeof body - 1, body);
		assert_has(ask(f, text), "\r\n\r\na:1:");
	}
}

static void test_forms_that_break(void **state)
{
	struct fixture *f = *state;

	assert_has(ask_form(f, PART("a") "x\r\n", 0), "400 Bad Request");
	assert_has(ask_form(f, PART("a") "x\r\n--XX", 0), "400 Bad Request");
	assert_has(ask_form(f, "nothing like a form", 0), "400 Bad Request");
	assert_has(ask_form(f, "--XX\r\nContent-Type: text/plain\r\n\r\nx\r\n--XX--\r\n", 0),
	        "400 Bad Request");
	assert_has(ask_form(f, PART("a") "x\r\n" PART("bad") "y\r\n--XX--\r\n", 0),
	        "\"message\":\"a bad part\",\"offset\":7");
	assert_has(ask(f, "POST /form HTTP/1.1\r\n" GOOD
	                  "Content-Type: multipart/form-data\r\nContent-Length: 1\r\n\r\nx"),
	        "needs a boundary");
	assert_has(ask(f, "POST /form HTTP/1.1\r\n" GOOD
	                  "Content-Type: multipart/form-data; boundary=\"\"\r\nContent-Length: "
	                  "1\r\n\r\nx"),
	        "of 1 to 70 characters");
	assert_has(ask(f, "POST /form HTTP/1.1\r\n" GOOD
	                  "Content-Type: multipart/form-databoundary=X\r\nContent-Length: "
	                  "1\r\n\r\nx"),
	        "needs a boundary");
	assert_has(ask(f, "POST /form HTTP/1.1\r\n" GOOD "Content-Length: 1\r\n\r\nx"), "415 ");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_cut_anywhere),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_forms_that_break),
};

UNIT_TESTS_WITH("http_form", tests, start, fixture_stop)

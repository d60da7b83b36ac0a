/*
 * Multipart forms with the cut oracle: the first byte chooses how the rest is cut, and the parts
 * that come out must be the same as in one push.  The form processor reads the boundary from a
 * connection, so the target first opens one and leaves its request without a response.
 */
#include <microhttpd.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decoder/base/buf.h"
#include "fuzz.h"
#include "server/http/http.h"
#include "server/http/http_int.h"

static struct tw_req request;
static sem_t has_come;

static enum MHD_Result keep(void *arg, struct MHD_Connection *c, const char *url,
        const char *method, const char *version, const char *body, size_t *body_size, void **state)
{
	(void)arg, (void)url, (void)method, (void)version, (void)body, (void)body_size;
	if (!*state) {
		*state = &request;
		request.connection = c;
		(void)MHD_suspend_connection(c);
		(void)sem_post(&has_come);
	}
	return MHD_YES;
}

static void open_connection(void)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
	                           "Content-Type: multipart/form-data; boundary=bb\r\n\r\n";
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof to;
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct MHD_Daemon *d;

	FUZZ_CHECK(bind(listening, (struct sockaddr *)&to, sizeof to) == 0 &&
	           listen(listening, 1) == 0 &&
	           getsockname(listening, (struct sockaddr *)&to, &len) == 0);
	FUZZ_CHECK(sem_init(&has_come, 0, 0) == 0);
	d = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
	        NULL, keep, NULL, MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_END);
	FUZZ_CHECK(d && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
	FUZZ_CHECK(write(fd, head, sizeof head - 1) == (ssize_t)sizeof head - 1);
	while (sem_wait(&has_come) != 0)
		continue;
}

static enum tw_status on_part(void *arg, const char *name, struct tw_err *err)
{
	(void)err;
	(void)tw_buf_add(arg, "\0part ", 6);
	return tw_buf_add(arg, name, strlen(name) + 1);
}

static enum tw_status on_data(void *arg, const void *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

/* Reads the form in pieces of `step`; the result is in `reported`. */
static enum tw_status run(const uint8_t *p, size_t n, size_t step, struct tw_buf *reported)
{
	static const struct tw_form_ops ops = {on_part, on_data};
	struct tw_err err = {0};
	struct tw_form *f = NULL;
	enum tw_status st = tw_form_new(&request, &ops, reported, &f, &err);

	FUZZ_CHECK(st == TW_OK);
	for (size_t at = 0; st == TW_OK && at < n; at += step)
		st = tw_form_push(f, p + at, n - at < step ? n - at : step, &err);
	if (st == TW_OK)
		st = tw_form_finish(f, &err);
	FUZZ_CHECK(st == TW_OK || err.msg[0]);
	(void)tw_form_free(f);
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_buf whole, pieces;

	if (size < 2)
		return 0;
	if (!request.connection)
		open_connection();
	tw_buf_init(&whole, 4 << 20);
	tw_buf_init(&pieces, 4 << 20);
	if (run(data + 1, size - 1, size, &whole) == TW_OK) {
		FUZZ_CHECK(run(data + 1, size - 1, (size_t)data[0] + 1, &pieces) == TW_OK);
		FUZZ_CHECK(whole.len == pieces.len &&
		           (!whole.len || memcmp(whole.data, pieces.data, whole.len) == 0));
	} else {
		FUZZ_CHECK(run(data + 1, size - 1, (size_t)data[0] + 1, &pieces) != TW_OK);
	}
	tw_buf_done(&whole);
	tw_buf_done(&pieces);
	return 0;
}

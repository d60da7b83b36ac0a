#include "tests/unit/http/http_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/auth/auth.h"
#include "server/base/log.h"
#include "server/base/role.h"
#include "server/http/limit/response_memory.h"
#include "server/http/metrics.h"

enum tw_status tw_auth_caller(struct tw_catalogue *c, const struct tw_credentials *shown,
        struct tw_caller *ret, struct tw_err *err)
{
	(void)c;
	if (!shown->authorization)
		return TW_OK;
	if (strcmp(shown->authorization, "Bearer good") != 0)
		return tw_fail(err, TW_NO_TOKEN, "unknown key");
	*ret = (struct tw_caller){.scope = TW_SCOPE_ADMIN, .project_id = "P"};
	return TW_OK;
}

enum tw_status tw_auth_allows(
        const struct tw_caller *caller, enum tw_need needed, struct tw_err *err)
{
	if (needed == TW_NEED_PUBLIC || caller->scope == TW_SCOPE_ADMIN)
		return TW_OK;
	return tw_fail(err, TW_NO_TOKEN, "send a key");
}

static struct tw_route *routes_now;
static size_t n_routes_now;

void fixture_routes(struct tw_route *routes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		routes[i].roles = TW_ROLE_ALL;
	routes_now = routes;
	n_routes_now = n;
}

int fixture_start(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct tw_err err;

	f->config = (struct tw_config){.roles = TW_ROLE_ALL,
	        .listen = "127.0.0.1:0",
	        .public_url = "",
	        .storage.blobs = "",
	        .oidc.issuer = "",
	        .max_in_flight = 2,
	        .connections = 64,
	        .connection_timeout_s = 2,
	        .http_threads = 2,
	        .query_threads = 2,
	        .query_deadline_ms = 1000};
	f->parts.config = &f->config;
	f->parts.routes = routes_now;
	f->parts.n_routes = n_routes_now;
	f->parts.metrics = tw_metrics_new(routes_now, n_routes_now);
	f->parts.response_memory = tw_response_memory_new(64 << 20, 0);
	(void)tw_log_setup("error", "logfmt");
	*state = f;
	return tw_http_start(&f->parts, &f->http, &err) == TW_OK ? 0 : -1;
}

int fixture_stop(void **state)
{
	struct fixture *f = *state;

	tw_http_drain(f->http, 5);
	f->http = tw_http_stop(f->http);
	tw_metrics_free(f->parts.metrics);
	tw_response_memory_free(f->parts.response_memory);
	free(f);
	return 0;
}

int dial(const struct fixture *f)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	        .sin_port = htons((uint16_t)tw_http_port(f->http)),
	        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

void say(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* the server may have closed already: its response counts */
		text += n;
		len -= (size_t)n;
	}
}

const char *receive(struct fixture *f, int fd)
{
	ssize_t n;

	f->len = 0;
	while (f->len < MAX_REPLY && (n = recv(fd, f->reply + f->len, MAX_REPLY - f->len, 0)) > 0)
		f->len += (size_t)n;
	f->reply[f->len] = '\0';
	close(fd);
	return f->reply;
}

const char *ask(struct fixture *f, const char *text)
{
	int fd = dial(f);

	say(fd, text);
	return receive(f, fd);
}

/*
 * http_fixture.h - the HTTP layer alone on a free port, and a client of raw bytes, for unit tests.
 *
 * Each file of tests has its own routes; callers are the fixture's: "Bearer good" may all, nobody
 * what is public, anyone else nothing.
 */
#ifndef TW_HTTP_FIXTURE_H
#define TW_HTTP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/base/config.h"
#include "server/http/http.h"

enum { MAX_REPLY = 8 << 20 };

struct fixture {
	struct tw_config config;
	struct tw_http_parts parts;
	struct tw_http *http;
	char reply[MAX_REPLY + 1]; /* the last one received */
	size_t len;
};

/* Makes these the routes of the next fixture_start; all roles serve them. */
void fixture_routes(struct tw_route *routes, size_t n);
/* Group setup and teardown of cmocka; *state is the fixture. */
int fixture_start(void **state);
int fixture_stop(void **state);

int dial(const struct fixture *f);
void say(int fd, const char *text);
/* Reads everything until the server closes; closes fd. */
const char *receive(struct fixture *f, int fd);
const char *ask(struct fixture *f, const char *text);

#define HOST "Host: x\r\nConnection: close\r\n"
#define assert_has(text, piece)                                                                    \
	do {                                                                                       \
		if (!strstr((text), (piece)))                                                      \
			fail_msg("no %s in: %.1400s", (piece), (text));                            \
	} while (0)
#define GOOD HOST "Authorization: Bearer good\r\n"

#endif

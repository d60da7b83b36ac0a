/*
 * hook_send.h - sends requests and mails, several in parallel, without blocking each other.
 *
 * Each has a connect timeout and a total timeout; responses are read up to a limit; redirects are
 * not followed, proxies of the environment not used.  Addresses are checked on connect, after the
 * name was resolved, so that the checked address is the one that is used. Thread: one at a time.
 */
#ifndef TW_HOOK_SEND_H
#define TW_HOOK_SEND_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/base/proxy.h"

enum {
	TW_SEND_CONNECT_S = 5,
	TW_SEND_TOTAL_S = 15,
	TW_SEND_MAIL_S = 60,
	TW_SEND_REFUSED_S = 5, /* timeout of a mail server's next reply after a refusal */
	/* the same after its last one, as the result does not depend on its reply to QUIT */
	TW_SEND_BYE_S = 1,
	TW_SEND_RESPONSE_BYTES = 64 << 10,
	TW_SEND_ERROR_BYTES = 200,
	TW_SEND_URL_BYTES = 2048
};

struct tw_sender;
/* allowed: private addresses that may be reached; must outlive it. */
enum tw_status tw_sender_new(
        const struct tw_proxies *allowed, struct tw_sender **ret, struct tw_err *err) TW_MUST_USE;
/* Aborts requests in progress.  Accepts NULL; returns NULL. */
struct tw_sender *tw_sender_free(struct tw_sender *s);

struct tw_hook_post {
	const char *url, *event, *event_id, *signature;
	struct tw_str body; /* JSON; must remain valid until it ended, like the texts of a mail */
	void *arg;
};
enum tw_status tw_sender_post(
        struct tw_sender *s, const struct tw_hook_post *what, struct tw_err *err) TW_MUST_USE;

struct tw_send_request {
	const char *method, *url;
	const char *const *headers; /* "Name: value" */
	size_t n_headers;
	struct tw_str body;      /* JSON; len 0: none; must remain valid until it ended */
	struct tw_buf *response; /* receives the response's body; its limit is the response's */
	void *arg;
};
enum tw_status tw_sender_request(
        struct tw_sender *s, const struct tw_send_request *what, struct tw_err *err) TW_MUST_USE;

struct tw_smtp { /* "" if unset */
	const char *url, *user, *password, *from, *ca_file;
};
struct tw_mail {
	const struct tw_smtp *by;
	const char *to; /* one address */
	struct tw_str message;
	void *arg;
};
enum tw_status tw_sender_mail(
        struct tw_sender *s, const struct tw_mail *what, struct tw_err *err) TW_MUST_USE;

/* Connects to a mail server and signs in, but sends nothing. */
enum tw_status tw_sender_greet(
        struct tw_sender *s, const struct tw_smtp *by, struct tw_err *err) TW_MUST_USE;

struct tw_sent {
	void *arg;
	int64_t http, took_ms, retry_after_s; /* http 0: no response */
	bool truncated;                       /* the response exceeds its limit */
	char location[TW_SEND_URL_BYTES];     /* of a redirect, absolute; "" none */
	bool permanent;                       /* permanent refusal by a mail server */
	char error[TW_SEND_ERROR_BYTES];      /* message; "": delivered */
};
/* Runs for at most a quarter of a second; true: one ended. */
bool tw_sender_step(struct tw_sender *s, struct tw_sent *ret);

/* The server's mail settings. */
enum { TW_SMTP_PASSWORD_BYTES = 512 };

struct tw_smtp_settings { /* "" if unset */
	const char *url, *user, *password_file, *ca_file, *from;
};
/* Validates them and reads the password from its file.  TW_BAD_REQUEST names the setting and the
 * error.  *ret points into settings and password. */
enum tw_status tw_smtp_read(const struct tw_smtp_settings *c, char password[TW_SMTP_PASSWORD_BYTES],
        struct tw_smtp *ret, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * hook_send.h - requests and mails on their way out, several at once, none of which holds up
 * another.
 *
 * Each has a time to connect and a time in all; what is answered is read up to a bound; redirects
 * are not followed, proxies of the environment not used.  Addresses are judged when they are
 * connected to, behind the look-up of the name, so that no name can stand for another address than
 * the one that was judged.
 * Thread: one at a time.
 */
#ifndef TW_HOOK_SEND_H
#define TW_HOOK_SEND_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/base/proxy.h"

enum {
	TW_SEND_CONNECT_S = 5,
	TW_SEND_TOTAL_S = 15,
	TW_SEND_MAIL_S = 60,
	TW_SEND_REFUSED_S = 5, /* for a mail server's next word behind a refusal, and */
	TW_SEND_BYE_S = 1,     /* behind its last one, as nobody waits for its good-bye */
	TW_SEND_ANSWER_BYTES = 64 << 10,
	TW_SEND_ERROR_BYTES = 200
};

struct tw_sender;
/* Private addresses that may be reached all the same; they outlive it. */
enum tw_status tw_sender_new(
        const struct tw_proxies *allowed, struct tw_sender **ret, struct tw_err *err) TW_MUST_USE;
/* Cuts what is under way.  NULL is fine, returns NULL. */
struct tw_sender *tw_sender_free(struct tw_sender *s);

struct tw_post {
	const char *url, *event, *event_id, *signature;
	struct tw_str body; /* JSON; lives until it ended, like the texts of a mail */
	void *arg;
};
enum tw_status tw_sender_post(
        struct tw_sender *s, const struct tw_post *what, struct tw_err *err) TW_MUST_USE;

struct tw_smtp { /* "" where there is none */
	const char *url, *user, *password, *from, *ca_file;
};
struct tw_mail {
	const struct tw_smtp *by;
	const char *const *to;
	size_t n_to;
	struct tw_str message;
	void *arg;
};
/* Whom the server refuses keeps it from nobody else. */
enum tw_status tw_sender_mail(
        struct tw_sender *s, const struct tw_mail *what, struct tw_err *err) TW_MUST_USE;

/* Goes in and out of a mail server, and sends nothing. */
enum tw_status tw_sender_greet(
        struct tw_sender *s, const struct tw_smtp *by, struct tw_err *err) TW_MUST_USE;

struct tw_sent {
	void *arg;
	int64_t http, took_ms, retry_after_s; /* http 0: no answer */
	unsigned refusals;                    /* of receivers, where the mail came through */
	bool in_vain;                         /* a mail server's no for ever */
	char error[TW_SEND_ERROR_BYTES];      /* in words; "": it came through */
};
/* Goes on for at most wait_ms; true: one ended. */
bool tw_sender_step(struct tw_sender *s, int wait_ms, struct tw_sent *ret);

#endif

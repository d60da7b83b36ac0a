/* Checks of the mail server: settings, connection, certificate, sign-in. Sends no mail. */
#include <string.h>

#include "server/base/clock.h"
#include "server/notify/hook_send.h"
#include "server/ops/doctor.h"

enum { STEP_MS = 250, TIMEOUT_MS = 30000 };

/* False: the connection did not begin, or took too long. */
static bool sign_in(const struct tw_smtp *by, struct tw_sent *ret)
{
	const struct tw_proxies none = {.n = 0};
	const int64_t until = tw_monotonic_ms() + TIMEOUT_MS;
	struct tw_sender *s = NULL;
	bool ended = false;

	if (tw_sender_new(&none, &s, NULL) != TW_OK)
		return false;
	if (tw_sender_greet(s, by, NULL) == TW_OK)
		while (!ended && tw_monotonic_ms() < until)
			ended = tw_sender_step(s, STEP_MS, ret);
	(void)tw_sender_free(s);
	return ended;
}

static void check_reached(struct tw_doctor *d, const struct tw_smtp *by)
{
	struct tw_sent sent;

	if (!sign_in(by, &sent))
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "%s did not complete the conversation. Check that it is a mail server.",
		        by->url);
	else if (sent.error[0])
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "Mail cannot be sent through %s: %s. Check --smtp-url, its user and "
		        "password, and firewalls.",
		        by->url, sent.error);
	else
		tw_doctor_report(d, TW_DOCTOR_GOOD, "mail", "%s answers%s.", by->url,
		        *by->user ? " and accepts the user" : "");
}

void tw_doctor_mail(struct tw_doctor *d)
{
	char password[TW_SMTP_PASSWORD_BYTES];
	struct tw_smtp by;
	struct tw_err err;

	if (!*d->smtp->url)
		return;
	if (tw_smtp_read(d->smtp, password, &by, &err) != TW_OK) {
		tw_doctor_report(d, TW_DOCTOR_WRONG, "mail",
		        "The mail settings are not valid, so the server will not start: %s.",
		        err.msg);
		return;
	}
	check_reached(d, &by);
	explicit_bzero(password, sizeof password);
	if (!d->public_url || !*d->public_url)
		tw_doctor_report(d, TW_DOCTOR_NOTE, "public_url",
		        "Without --public-url, mails and webhooks contain no links.");
}

/*
 * smtp_settings.h - how this server mails: what its settings say, judged, and the password out of
 * its file.
 *
 * Thread: any.
 */
#ifndef TW_SMTP_SETTINGS_H
#define TW_SMTP_SETTINGS_H

#include "server/notify/hook_send.h"

enum { TW_SMTP_PASSWORD_BYTES = 512 };

struct tw_smtp_settings { /* "" where not said */
	const char *url, *user, *password_file, *ca_file, *from;
};
/* TW_BAD_REQUEST names the setting and what is wrong with it.  *ret points into settings and
 * password. */
enum tw_status tw_smtp_read(const struct tw_smtp_settings *c, char password[TW_SMTP_PASSWORD_BYTES],
        struct tw_smtp *ret, struct tw_err *err) TW_MUST_USE;

#endif

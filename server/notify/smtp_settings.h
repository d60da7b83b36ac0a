/*
 * smtp_settings.h - the server's mail settings: validates them and reads the password from its
 * file.
 *
 * Thread: any.
 */
#ifndef TW_SMTP_SETTINGS_H
#define TW_SMTP_SETTINGS_H

#include "server/notify/hook_send.h"

enum { TW_SMTP_PASSWORD_BYTES = 512 };

struct tw_smtp_settings { /* "" if unset */
	const char *url, *user, *password_file, *ca_file, *from;
};
/* TW_BAD_REQUEST names the setting and the error.  *ret points into settings and password. */
enum tw_status tw_smtp_read(const struct tw_smtp_settings *c, char password[TW_SMTP_PASSWORD_BYTES],
        struct tw_smtp *ret, struct tw_err *err) TW_MUST_USE;

#endif

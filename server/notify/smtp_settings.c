#include "server/notify/smtp_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/notify/hook_mail.h"

static enum tw_status read_password(
        const char *path, char ret[TW_SMTP_PASSWORD_BYTES], struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? tw_read_full(fd, ret, TW_SMTP_PASSWORD_BYTES - 1) : -1;
	const int why = errno;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0)
		return tw_fail(
		        err, TW_BAD_REQUEST, "smtp-password-file: %.100s: %s", path, strerror(why));
	ret[n] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return TW_OK;
}

static enum tw_status check(const struct tw_smtp_settings *c, struct tw_err *err)
{
	if (*c->url && strncmp(c->url, "smtp://", 7) != 0 && strncmp(c->url, "smtps://", 8) != 0)
		return tw_fail(err, TW_BAD_REQUEST, "smtp-url is neither smtp:// nor smtps://");
	if (strchr(c->url, '@')) /* a password in the URL would be sent without TLS too */
		return tw_fail(err, TW_BAD_REQUEST,
		        "smtp-url holds a name or password: give them by --smtp-user and "
		        "--smtp-password-file");
	if (*c->url && !tw_mail_address(c->from))
		return tw_fail(err, TW_BAD_REQUEST,
		        "--smtp-url needs --mail-from: the address that mails come from");
	if (*c->ca_file && access(c->ca_file, R_OK) != 0)
		return tw_fail_errno(err, TW_BAD_REQUEST, "smtp-ca-file: %.100s", c->ca_file);
	if (*c->user && !*c->password_file)
		return tw_fail(err, TW_BAD_REQUEST, "--smtp-user needs --smtp-password-file");
	return TW_OK;
}

enum tw_status tw_smtp_read(const struct tw_smtp_settings *c, char password[TW_SMTP_PASSWORD_BYTES],
        struct tw_smtp *ret, struct tw_err *err)
{
	enum tw_status st = check(c, err);

	password[0] = '\0';
	if (st == TW_OK && *c->password_file)
		st = read_password(c->password_file, password, err);
	*ret = (struct tw_smtp){c->url, c->user, password, c->from, c->ca_file};
	return st;
}

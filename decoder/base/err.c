#include "decoder/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/str.h"

static const struct {
	const char *word;
	int http;
} statuses[] = {
#define X(name, word, http) {word, http},
        TW_STATUS_MAP(X)
#undef X
};

enum { STATUS_COUNT = sizeof statuses / sizeof *statuses };

/* Messages contain untrusted input: keep them one valid line. */
static void make_printable(char *s)
{
	size_t len = strlen(s);
	size_t i = 0;

	while (i < len) {
		size_t n = tw_utf8_len(s + i, len - i);

		if (n == 0 || tw_utf8_is_control(s + i, n)) {
			n = n ? n : 1;
			memset(s + i, '?', n);
		}
		i += n;
	}
}

static enum tw_status __attribute__((format(printf, 4, 0)))
fill(struct tw_err *err, enum tw_status code, uint64_t offset, const char *fmt, va_list ap)
{
	err->code = code;
	err->offset = offset;
	(void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	make_printable(err->msg);
	return code;
}

enum tw_status tw_fail(struct tw_err *err, enum tw_status code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	(void)fill(err, code, TW_NO_OFFSET, fmt, ap);
	va_end(ap);
	return code;
}

enum tw_status tw_fail_at(
        struct tw_err *err, enum tw_status code, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	(void)fill(err, code, offset, fmt, ap);
	va_end(ap);
	return code;
}

enum tw_status tw_fail_errno(struct tw_err *err, enum tw_status code, const char *fmt, ...)
{
	const char *meaning = strerrordesc_np(errno);
	va_list ap;
	size_t len;

	if (!err)
		return code;
	va_start(ap, fmt);
	(void)fill(err, code, TW_NO_OFFSET, fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	(void)snprintf(
	        err->msg + len, sizeof err->msg - len, ": %s", meaning ? meaning : "unknown error");
	return code;
}

void tw_err_copy(struct tw_err *err, const struct tw_err *from)
{
	if (err)
		*err = *from;
}

enum tw_status tw_oom(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, "out of memory");
}

const char *tw_status_name(enum tw_status code)
{
	return (unsigned)code < STATUS_COUNT ? statuses[code].word : "internal";
}

int tw_status_http(enum tw_status code)
{
	return (unsigned)code < STATUS_COUNT ? statuses[code].http : 500;
}

enum tw_status tw_status_of_name(const char *word)
{
	for (unsigned i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].word, word) == 0)
			return (enum tw_status)i;
	return TW_BUG;
}

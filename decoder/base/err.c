#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const struct {
	const char *word;
	int http;
} statuses[] = {
#define X(name, word, http) {word, http},
        TW_STATUS_MAP(X)
#undef X
};

enum { STATUS_COUNT = sizeof statuses / sizeof *statuses };

/* Messages carry pieces of hostile input: keep them one valid line. */
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

enum tw_status tw_fail(
        struct tw_err *err, enum tw_status code, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->offset = offset;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	make_printable(err->msg);
	return code;
}

const char *tw_status_word(enum tw_status code)
{
	return (unsigned)code < STATUS_COUNT ? statuses[code].word : "internal";
}

int tw_status_http(enum tw_status code)
{
	return (unsigned)code < STATUS_COUNT ? statuses[code].http : 500;
}

enum tw_status tw_status_of_word(const char *word)
{
	for (unsigned i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].word, word) == 0)
			return (enum tw_status)i;
	return TW_BUG;
}

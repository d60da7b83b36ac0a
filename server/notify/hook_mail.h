/*
 * hook_mail.h - a mail of two forms, text and HTML, as it goes over the wire.
 *
 * Pure.  Thread: any.
 */
#ifndef TW_HOOK_MAIL_H
#define TW_HOOK_MAIL_H

#include <stdbool.h>

#include "decoder/base/buf.h"

enum { TW_MAIL_ADDRESS_BYTES = 254 };

/* Is it an address that mail may go to: one @, nothing that ends a line or begins another? */
bool tw_mail_address(const char *address);

struct tw_mail_text {
	const char *from, *subject, *id;
	const char *const *to;
	size_t n_to;
	int64_t at_ms;
	struct tw_str text, html;
};
/* Headers hold what they are given in one line each, whatever it is. */
void tw_mail_write(const struct tw_mail_text *m, struct tw_buf *out);

#endif

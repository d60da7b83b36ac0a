/*
 * hook_mail.h - a mail with a text and an HTML part, in wire format.
 *
 * Pure.  Thread: any.
 */
#ifndef TW_HOOK_MAIL_H
#define TW_HOOK_MAIL_H

#include <stdbool.h>

#include "decoder/base/buf.h"

enum { TW_MAIL_ADDRESS_BYTES = 254 };

/* Returns whether mail may be sent to the address: it has one @, and nothing that ends a line or
 * begins another address. */
bool tw_mail_address(const char *address);

struct tw_mail_text {
	const char *from, *to, *subject, *id;
	int64_t at_ms;
	struct tw_str text, html;
};
/* Each header value is written as one line, whatever its content. */
void tw_mail_write(const struct tw_mail_text *m, struct tw_buf *out);

#endif

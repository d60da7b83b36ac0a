/*
 * hook_body.h - the body of a webhook, in the format of its receiver.
 *
 * Pure.  Thread: any.
 */
#ifndef TW_HOOK_BODY_H
#define TW_HOOK_BODY_H

#include "decoder/base/buf.h"
#include "server/catalogue/notify/catalogue_hook.h"

enum { TW_HOOK_BODY_BYTES = 256 << 10 };

/* JSON of the delivery's event for the kind of its hook; base "": without links. */
enum tw_status tw_hook_body(const struct tw_delivery *d, const char *base, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;

#endif

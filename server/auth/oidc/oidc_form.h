/*
 * oidc_form.h - builds forms and queries (application/x-www-form-urlencoded).
 * Thread: one at a time.
 */
#ifndef TW_OIDC_FORM_H
#define TW_OIDC_FORM_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"

enum { TW_FORM_MAX_BYTES = 64 << 10 };

struct tw_form_pair {
	const char *name, *value; /* value NULL: omitted; name NULL: the end */
};

/* `before`, then name=value of each pair, separated by &; NULL if out of memory. */
const char *tw_form_text(struct tw_arena *a, const char *before, const struct tw_form_pair *pairs);
/* One value, escaped; NULL if out of memory. */
const char *tw_form_escaped(struct tw_arena *a, const char *value);

#endif

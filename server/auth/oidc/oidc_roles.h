/*
 * oidc_roles.h - which roles the provider's word gives: "VALUE=viewer:PROJECT, VALUE=server-admin".
 *
 * A project that a rule names is ruled by the rules: whoever signs in has there the
 * highest role that they give, or none.  All other projects are left alone.
 * Thread: any.
 */
#ifndef TW_OIDC_ROLES_H
#define TW_OIDC_ROLES_H

#include <jansson.h>

#include "decoder/base/str.h"
#include "server/auth/auth.h"

enum { TW_ROLE_RULES_MAX = 64, TW_ROLE_PROJECT_BYTES = 129 };

struct tw_role_rules {
	struct tw_role_rule {
		struct tw_str value;                 /* "" where rules need none */
		char project[TW_ROLE_PROJECT_BYTES]; /* its name; "": the server */
		enum tw_scope scope;
	} rules[TW_ROLE_RULES_MAX];
	size_t n;
};

/* "" has no rule.  `by_value`: each begins VALUE=, which may have = in it.  TW_BAD_REQUEST names
 * the rule that is none.  The text must outlive the rules. */
enum tw_status tw_role_rules_parse(
        const char *text, bool by_value, struct tw_role_rules *ret, struct tw_err *err) TW_MUST_USE;
/* What a claim gives (a text, or a list of them; NULL: nothing): one grant for each project that
 * the rules name.  Returns how many; the rules must outlive them. */
size_t tw_role_rules_grant(
        const struct tw_role_rules *r, const json_t *claim, struct tw_grant ret[TW_ROLE_RULES_MAX]);

#endif

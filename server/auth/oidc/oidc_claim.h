/*
 * oidc_claim.h - finds claims about a person, compares them with settings, and maps them to roles
 * by rules: "VALUE=viewer:PROJECT, VALUE=server-admin".
 *
 * In a project named by a rule, roles come only from rules: each sign-in sets the person's highest
 * role by the rules, or removes it.  Other projects are not changed.
 * Thread: any.
 */
#ifndef TW_OIDC_CLAIM_H
#define TW_OIDC_CLAIM_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/str.h"
#include "server/auth/auth.h"

enum { TW_OIDC_NAME_BYTES = 320 };

/* The claim with exactly that name; otherwise, with dots, the one in nested objects
 * ("realm_access.roles").  NULL if absent. */
const json_t *tw_claim_find(const json_t *claims, const char *name);
/* Whether there is an address verified by the provider in one of the domains ("a.example,
 * b.example", ignoring case). */
bool tw_claim_is_of(const json_t *claims, const char *domains);
/* Whether both an address and its verification are present. */
bool tw_claim_has_address(const json_t *claims);
/* Adds claims of `more` that are absent.  An address and its verification are taken as a pair: from
 * the claims, unless only `more` has both.  False: out of memory. */
bool tw_claim_add(json_t *claims, json_t *more);
/* Whether the word is in the list, separated by `sep` and blanks, ignoring case. */
bool tw_claim_lists(const char *list, char sep, const char *word);

enum { TW_ROLE_RULES_MAX = 64, TW_ROLE_PROJECT_BYTES = 129 };

struct tw_role_rules {
	struct tw_role_rule {
		struct tw_str value;                 /* "" in rules without a value */
		char project[TW_ROLE_PROJECT_BYTES]; /* its name; "": the server */
		enum tw_scope scope;
	} rules[TW_ROLE_RULES_MAX];
	size_t n;
};

/* "": no rules.  `by_value`: each begins with VALUE=, and VALUE may contain =.  TW_BAD_REQUEST
 * names the invalid rule.  The text must outlive the rules. */
enum tw_status tw_role_rules_parse(
        const char *text, bool by_value, struct tw_role_rules *ret, struct tw_err *err) TW_MUST_USE;
/* The roles from a claim (a text, or a list of texts; NULL: none): one grant per project named by
 * the rules.  Returns their number; the rules must outlive them. */
size_t tw_role_rules_grant(
        const struct tw_role_rules *r, const json_t *claim, struct tw_grant ret[TW_ROLE_RULES_MAX]);

#endif

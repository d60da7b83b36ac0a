/*
 * oidc_claim.h - finds claims about a person and compares them with settings.
 * Thread: any.
 */
#ifndef TW_OIDC_CLAIM_H
#define TW_OIDC_CLAIM_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/str.h"

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
#endif

/*
 * oidc_claim.h - claims about a person: found by name, held to lists of settings.
 * Thread: any.
 */
#ifndef TW_OIDC_CLAIM_H
#define TW_OIDC_CLAIM_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/str.h"

enum { TW_OIDC_NAME_BYTES = 320 };

/* The claim of that very name; else, with dots, the one inside objects ("realm_access.roles"). NULL
 * when there is none. */
const json_t *tw_claim_find(const json_t *claims, const char *name);
/* Is there an address that the provider has verified, of one of the domains ("a.example,
 * b.example", in any case)? */
bool tw_claim_is_of(const json_t *claims, const char *domains);
/* Are both an address and whether it was verified told? */
bool tw_claim_has_address(const json_t *claims);
/* Adds what `more` tells and the claims do not.  An address and whether it was verified come from
 * one of the two, whole: from the claims unless `more` alone has both.  False: no memory. */
bool tw_claim_add(json_t *claims, json_t *more);
/* Is the word among the list's, between `sep` and blanks, in any case? */
bool tw_claim_lists(const char *list, char sep, const char *word);
#endif

#include "server/auth/oidc/oidc_claim.h"

#include <string.h>
#include <strings.h>

enum { PIECE_BYTES = 129 };

const json_t *tw_claim_find(const json_t *claims, const char *name)
{
	const json_t *found = json_object_get(claims, name);
	struct tw_str rest = tw_str_of(name);
	char piece[PIECE_BYTES];

	if (found || !strchr(name, '.'))
		return found;
	found = claims;
	while (rest.len && found) {
		struct tw_str one = tw_str_split(&rest, '.');

		if (one.len >= sizeof piece)
			return NULL;
		memcpy(piece, one.ptr, one.len);
		piece[one.len] = '\0';
		found = json_object_get(found, piece);
	}
	return found;
}

bool tw_claim_lists(const char *list, char sep, const char *word)
{
	struct tw_str rest = tw_str_of(list);
	size_t n = strlen(word);

	while (rest.len) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, sep));

		if (one.len == n && strncasecmp(one.ptr, word, n) == 0)
			return true;
	}
	return false;
}

static const char address[] = "email", verified[] = "email_verified";

bool tw_claim_has_address(const json_t *claims)
{
	return json_object_get(claims, address) && json_object_get(claims, verified);
}

static void forget_address(json_t *claims)
{
	(void)json_object_del(claims, address);
	(void)json_object_del(claims, verified);
}

bool tw_claim_add(json_t *claims, json_t *more)
{
	bool has_its_own = tw_claim_has_address(claims) ||
	                   (json_object_get(claims, address) && !tw_claim_has_address(more));

	forget_address(has_its_own ? more : claims);
	return json_object_update_missing(claims, more) == 0;
}

bool tw_claim_is_of(const json_t *claims, const char *domains)
{
	const char *email = json_string_value(json_object_get(claims, address));
	const char *at = email ? strrchr(email, '@') : NULL;

	return at && at[1] && json_is_true(json_object_get(claims, verified)) &&
	       tw_claim_lists(domains, ',', at + 1);
}

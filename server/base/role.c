#include "server/base/role.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "decoder/base/str.h"

static const struct word {
	const char *name;
	unsigned role;
} names[] = {{"ingest", TW_ROLE_INGEST}, {"decode", TW_ROLE_DECODE}, {"query", TW_ROLE_QUERY},
        {"all", TW_ROLE_ALL}};

enum { N_ROLES = sizeof names / sizeof *names, ALL_AT = N_ROLES - 1 };

enum tw_status tw_roles_parse(const char *text, unsigned *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	unsigned found = 0;
	bool last;

	do {
		const struct word *word;
		struct tw_str name;

		last = !strchr(rest.ptr, ',');
		name = tw_str_split(&rest, ',');
		word = TW_LOOKUP(names, N_ROLES, name, name);
		if (!word)
			return tw_fail(err, TW_BAD_REQUEST,
			        "--role must be ingest, decode, query or all, not \"%.*s\"",
			        (int)(name.len < 32 ? name.len : 32), name.ptr);
		found |= word->role;
	} while (!last);
	*ret = found;
	return TW_OK;
}

void tw_roles_write(unsigned roles, char *ret, size_t cap)
{
	size_t at = 0;

	if (roles == TW_ROLE_ALL) {
		(void)snprintf(ret, cap, "%s", names[ALL_AT].name);
		return;
	}
	ret[0] = '\0';
	for (size_t i = 0; i < ALL_AT && at < cap; i++)
		if (roles & names[i].role)
			at += (size_t)snprintf(
			        ret + at, cap - at, "%s%s", at ? "," : "", names[i].name);
}

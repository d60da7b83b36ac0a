/* auth_cookie.c - reads one value from a Cookie header. */
#include <string.h>

#include "decoder/base/str.h"
#include "server/auth/auth.h"

bool tw_auth_cookie(const char *header, const char *name, char *out, size_t cap)
{
	struct tw_str rest = tw_str_of(header);

	while (rest.len) {
		struct tw_str value = tw_str_trim(tw_str_split(&rest, ';'));
		struct tw_str key = tw_str_split(&value, '=');

		if (!tw_str_eq(key, tw_str_of(name)))
			continue;
		if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
			value = (struct tw_str){value.ptr + 1, value.len - 2};
		if (value.len == 0 || value.len >= cap)
			return false;
		memcpy(out, value.ptr, value.len);
		out[value.len] = '\0';
		return true;
	}
	return false;
}

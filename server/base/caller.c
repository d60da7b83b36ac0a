#include "server/base/caller.h"

#include <string.h>

const char *const tw_scope_names[] = {"public", "ingest", "read", "write", "admin", "server", NULL};
enum { SCOPES = sizeof tw_scope_names / sizeof *tw_scope_names - 1 };

const char *tw_scope_name(enum tw_scope scope)
{
	return (unsigned)scope < SCOPES ? tw_scope_names[scope] : "public";
}

bool tw_scope_of_key(const char *word, enum tw_scope *ret)
{
	for (unsigned i = TW_SCOPE_INGEST; i <= TW_SCOPE_ADMIN; i++)
		if (strcmp(word, tw_scope_names[i]) == 0) {
			*ret = (enum tw_scope)i;
			return true;
		}
	return false;
}

const char *tw_key_prefix(enum tw_scope scope)
{
	static const char *const prefixes[] = {[TW_SCOPE_INGEST] = "twi_",
	        [TW_SCOPE_READ] = "twr_",
	        [TW_SCOPE_WRITE] = "tww_",
	        [TW_SCOPE_ADMIN] = "twa_"};

	return scope >= TW_SCOPE_INGEST && scope <= TW_SCOPE_ADMIN ? prefixes[scope] : "";
}

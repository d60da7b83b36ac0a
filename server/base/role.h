/*
 * role.h - roles of one of several servers: ingest, decode, query.
 *
 * All servers share the catalogue and the files, so any mix of roles works behind one address.
 * Work for a role that no server has waits until a server has it; nothing is lost.
 *
 * Each route of the API states the roles that serve it.
 * Pure.  Thread: any.
 */
#ifndef TW_ROLE_H
#define TW_ROLE_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

enum tw_role {
	TW_ROLE_INGEST = 1, /* accepts uploads and mappings, sends capture rules to devices */
	TW_ROLE_DECODE = 2, /* decodes, rollups, regression detection, retention, webhooks */
	TW_ROLE_QUERY = 4,  /* the page and the rest of the API */
	TW_ROLE_ALL = 7
};

/* "all", or names of roles separated by commas.  TW_BAD_REQUEST names an unknown one. */
enum tw_status tw_roles_parse(const char *text, unsigned *ret, struct tw_err *err) TW_MUST_USE;
/* The reverse; truncated to cap. */
void tw_roles_write(unsigned roles, char *ret, size_t cap);

#endif

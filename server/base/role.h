/*
 * role.h - what one of several servers does: takes uploads, decodes them, answers questions.
 *
 * They share the catalogue and the files, so that any mix of roles works behind one address. What
 * waits for a role that no server has waits until one has it: nothing is lost.
 *
 * Which areas of the API a role answers stands in routes.def.
 */
#ifndef TW_ROLE_H
#define TW_ROLE_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

enum tw_role {
	TW_ROLE_INGEST = 1, /* takes uploads and mappings, tells devices what to capture */
	TW_ROLE_DECODE =
	        2,         /* decodes, counts, looks for what got slower, expires, tells webhooks */
	TW_ROLE_QUERY = 4, /* the page and all the rest of the API */
	TW_ROLE_ALL = 7
};

/* "all", or names of roles with commas between. TW_BAD_REQUEST names what is none. */
enum tw_status tw_roles_parse(const char *text, unsigned *ret, struct tw_err *err) TW_MUST_USE;
/* The other way; cut to cap. */
void tw_roles_write(unsigned roles, char *ret, size_t cap);

#endif

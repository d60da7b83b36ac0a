/*
 * cli_by_name.h - finds a project by name, for commands on the data folder.
 *
 * Thread: one.
 */
#ifndef TW_CLI_BY_NAME_H
#define TW_CLI_BY_NAME_H

#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;

/* TW_NOT_FOUND, with the most similar name in the message. */
enum tw_status tw_cli_project_find(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* Creates a missing project if `may_create`, or if it is the first one.  Otherwise a misspelled
 * name would create a project that no user opens. */
enum tw_status tw_cli_project_make(struct tw_catalogue *c, const char *name, bool may_create,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

#endif

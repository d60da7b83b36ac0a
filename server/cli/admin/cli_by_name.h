/*
 * cli_by_name.h - a project by its name, for commands on the data folder.
 *
 * Thread: one.
 */
#ifndef TW_CLI_BY_NAME_H
#define TW_CLI_BY_NAME_H

#include "server/catalogue/catalogue.h"

/* TW_NOT_FOUND, with the name that is most like it. */
enum tw_status tw_cli_project_find(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* Makes it when it is new, and tells so on stderr: a slip would else take traces that nobody
 * finds. */
enum tw_status tw_cli_project_make(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

#endif

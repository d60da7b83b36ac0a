/*
 * cli_select.h - which time a subcommand's flags ask for.
 */
#ifndef TW_CLI_SELECT_H
#define TW_CLI_SELECT_H

#include "server/query/query.h"

/* Reads --from and --to: nanoseconds of the trace's time; NULL is its begin or end. */
enum tw_status tw_cli_range(
        const char *from, const char *to, struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;

#endif

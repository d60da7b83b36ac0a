/*
 * cli_select.h - which threads and which time a subcommand's flags ask for.
 */
#ifndef TW_CLI_SELECT_H
#define TW_CLI_SELECT_H

#include "server/query/query.h"

enum { TW_CLI_TIDS = 4096 };

/* Reads --thread: thread ids with commas between them; NULL or "" is all threads.  tids gets them
 * and must outlive the selection.  The selection's time is left as it is. */
enum tw_status tw_cli_threads(const char *text, uint64_t tids[TW_CLI_TIDS],
        struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;
/* Reads --from and --to: nanoseconds of the trace's time; NULL is its begin or end. */
enum tw_status tw_cli_range(
        const char *from, const char *to, struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;

#endif

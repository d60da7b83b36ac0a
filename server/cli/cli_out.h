/*
 * cli_out.h - writes a subcommand's output to the file named by -o.
 */
#ifndef TW_CLI_OUT_H
#define TW_CLI_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

/* Fills up to cap bytes; *ret_n 0: end. */
typedef enum tw_status (*tw_cli_pull_fn)(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);

/* Writes all bytes of pull to path; "-" is standard output.  A file is removed after a failure. */
enum tw_status tw_cli_write_out(
        const char *path, tw_cli_pull_fn pull, void *arg, struct tw_err *err) TW_MUST_USE;

/* Replaces "-o" by "--output". */
void tw_cli_long_output(int argc, char **argv);

#endif

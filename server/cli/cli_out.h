/*
 * cli_out.h - writes a subcommand's output: to the file named by -o, or lines for programs.
 */
#ifndef TW_CLI_OUT_H
#define TW_CLI_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/text/json_write.h"

/* Fills up to cap bytes; *ret_n 0: end. */
typedef enum tw_status (*tw_cli_pull_fn)(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);

/* Writes all bytes of pull to path; "-" is standard output.  A file is removed after a failure. */
enum tw_status tw_cli_write_out(
        const char *path, tw_cli_pull_fn pull, void *arg, struct tw_err *err) TW_MUST_USE;

/* Replaces "-o" by "--output". */
void tw_cli_long_output(int argc, char **argv);

/* "2026-03-01T09:00Z", or a dash for 0. */
enum { TW_CLI_TIME_BYTES = 32 };
const char *tw_cli_time(int64_t ms, char out[TW_CLI_TIME_BYTES]);

/* Results for programs: one JSON object per line on stdout (--json).
 *
 *   struct tw_json *j = tw_cli_line(&line);
 *   tw_json_key_str(j, "id", tw_str_of(id));
 *   st = tw_cli_line_end(&line, &err); */
struct tw_cli_line {
	struct tw_buf text;
	struct tw_json json;
};

struct tw_json *tw_cli_line(struct tw_cli_line *l);
/* Ends the object and writes it to stdout's buffer, without a flush: for very many lines. */
enum tw_status tw_cli_line_put(struct tw_cli_line *l, struct tw_err *err) TW_MUST_USE;
/* The same with a flush, if a reader waits for this line; TW_IO if the reader has closed it. */
enum tw_status tw_cli_line_end(struct tw_cli_line *l, struct tw_err *err) TW_MUST_USE;

#endif

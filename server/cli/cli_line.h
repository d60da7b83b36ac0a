/*
 * cli_line.h - results for programs: one JSON object per line on stdout (--json).
 *
 *   struct tw_json *j = tw_cli_line(&line);
 *   tw_json_key_str(j, "id", tw_str_of(id));
 *   st = tw_cli_line_end(&line, &err);
 */
#ifndef TW_CLI_LINE_H
#define TW_CLI_LINE_H

#include "server/base/text/json_write.h"

struct tw_cli_line {
	struct tw_buf text;
	struct tw_json json;
};

struct tw_json *tw_cli_line(struct tw_cli_line *l);
/* Ends the object and writes it to stdout's buffer, without a flush: for very many lines. */
enum tw_status tw_cli_line_put(struct tw_cli_line *l, struct tw_err *err) TW_MUST_USE;
/* The same with a flush, if a reader waits for this line; TW_IO if the reader is gone. */
enum tw_status tw_cli_line_end(struct tw_cli_line *l, struct tw_err *err) TW_MUST_USE;

#endif

/*
 * cli_decode_json.h - converts the lines of a print sink (formats/sinks/print_sink.h) to JSON, one
 * object per line.
 */
#ifndef TW_CLI_DECODE_JSON_H
#define TW_CLI_DECODE_JSON_H

#include "decoder/base/buf.h"

struct tw_decode_json {
	struct tw_buf line; /* incomplete line */
};

void tw_decode_json_init(struct tw_decode_json *d);
void tw_decode_json_done(struct tw_decode_json *d);
/* Accepts text in pieces of any size; prints complete lines. */
enum tw_status tw_decode_json_text(
        struct tw_decode_json *d, const char *p, size_t n, struct tw_err *err);

#endif

/*
 * preflight_protocol.h - the messages between the server and a preflight process.
 */
#ifndef TW_PREFLIGHT_PROTOCOL_H
#define TW_PREFLIGHT_PROTOCOL_H

#include <stdint.h>

enum { TW_FORMAT_NAME_BYTES = 24 };

struct tw_preflight_request { /* n bytes follow */
	uint32_t n, window_log, whole;
	char forced[TW_FORMAT_NAME_BYTES]; /* "": none */
};

struct tw_preflight_response {
	uint32_t status;
	char format[TW_FORMAT_NAME_BYTES]; /* "": none */
	uint64_t offset;
	char msg[200];
};

#endif

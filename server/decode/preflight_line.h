/*
 * preflight_line.h - what the server and its judges say to each other, over a socket of their own.
 */
#ifndef TW_PREFLIGHT_LINE_H
#define TW_PREFLIGHT_LINE_H

#include <stdint.h>

enum { TW_FORMAT_NAME_BYTES = 24 };

struct tw_preflight_question { /* n bytes follow */
	uint32_t n, window_log, whole;
	char forced[TW_FORMAT_NAME_BYTES]; /* "" none */
};

struct tw_preflight_answer {
	uint32_t status;
	char format[TW_FORMAT_NAME_BYTES]; /* "" none */
	uint64_t offset;
	char msg[200];
};

#endif

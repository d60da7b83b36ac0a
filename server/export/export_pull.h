/*
 * export_pull.h - a source of bytes that are produced on demand.
 */
#ifndef TW_EXPORT_PULL_H
#define TW_EXPORT_PULL_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_pull {
	/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: end. */
	enum tw_status (*read)(
	        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err);
	void (*free)(void *arg);
	void *arg;
};

#endif

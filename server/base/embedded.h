/*
 * embedded.h - files compiled into the binary (schema/embed.py makes them).
 */
#ifndef TW_EMBEDDED_H
#define TW_EMBEDDED_H

#include <stddef.h>

struct tw_embedded {
	const char *name;          /* base name; NULL ends a list */
	const unsigned char *data; /* a NUL stands behind the last byte */
	size_t len;
};

#endif

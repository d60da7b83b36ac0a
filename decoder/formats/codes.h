/*
 * codes.h - names of the transaction codes of binder interfaces.
 *
 * A recording contains "interface:code"; a separate table maps it to the method.  Used by sinks
 * that implement tw_sink_ops.transaction_name.
 */
#ifndef TW_CODES_H
#define TW_CODES_H

#include <stdbool.h>

#include "decoder/base/arena.h"

enum { TW_CODES_MAX = 1 << 17 };

struct tw_code {
	struct tw_str interface, name;
	uint64_t code;
};

struct tw_codes { /* zeroed is empty; all memory is in the arena */
	struct tw_code *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, cap;
	uint64_t salt; /* of the hash */
};

/* The last name wins.  Past TW_CODES_MAX nothing is added.  False: out of memory. */
bool tw_codes_add(struct tw_codes *c, struct tw_arena *a, struct tw_str interface, uint64_t code,
        struct tw_str name);
/* "" if unknown. */
struct tw_str tw_codes_name(const struct tw_codes *c, struct tw_str interface, uint64_t code);

#endif

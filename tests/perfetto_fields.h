/*
 * perfetto_fields.h - the fields of a protobuf message, one by one, for tests.
 *
 * Shares no code with the product's own reader of them.
 */
#ifndef TW_PERFETTO_FIELDS_H
#define TW_PERFETTO_FIELDS_H

#include <stdbool.h>

#include "decoder/base/buf.h"

struct perfetto_field {
	uint32_t number;
	uint64_t value;
	struct tw_str bytes;
};
/* Takes the next field off *m; false at its end or where it is damaged (*bad). */
bool perfetto_next(struct tw_str *m, struct perfetto_field *f, unsigned *bad);
/* The last field of this number; zero when there is none. */
struct perfetto_field perfetto_get(struct tw_str m, uint32_t number);

#endif

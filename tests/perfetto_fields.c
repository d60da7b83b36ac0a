/* perfetto_fields.c - see perfetto_fields.h. */
#include "perfetto_fields.h"

#include <string.h>

bool perfetto_next(struct tw_str *m, struct perfetto_field *f, unsigned *bad)
{
	const uint8_t *p = (const uint8_t *)m->ptr;
	const uint8_t *end = p + m->len;
	uint64_t tag;
	size_t fixed;

	if (m->len == 0)
		return false;
	*f = (struct perfetto_field){0};
	if (!tw_get_varint(&p, end, &tag))
		goto damaged;
	f->number = (uint32_t)(tag >> 3);
	fixed = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
	if (fixed) {
		if (fixed > (size_t)(end - p))
			goto damaged;
		memcpy(&f->value, p, fixed);
		p += fixed;
	} else if (!tw_get_varint(&p, end, &f->value) || ((tag & 7) != 0 && (tag & 7) != 2)) {
		goto damaged;
	}
	if ((tag & 7) == 2) {
		if (f->value > (uint64_t)(end - p))
			goto damaged;
		f->bytes = (struct tw_str){(const char *)p, (size_t)f->value};
		p += f->value;
	}
	*m = (struct tw_str){(const char *)p, (size_t)(end - p)};
	return true;
damaged:
	++*bad;
	m->len = 0;
	return false;
}

struct perfetto_field perfetto_get(struct tw_str m, uint32_t number)
{
	struct perfetto_field f, found = {0};
	unsigned bad = 0;

	while (perfetto_next(&m, &f, &bad))
		if (f.number == number)
			found = f;
	return found;
}

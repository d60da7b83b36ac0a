#include "decoder/symbols/waits.h"

static const struct tw_str waits[] = {
#define WAIT(name) {(name), sizeof(name) - 1},
#include "decoder/symbols/waits.def"
#undef WAIT
};

bool tw_name_waits(struct tw_str name)
{
	const char *open = name.len ? memchr(name.ptr, '(', name.len) : NULL;
	const struct tw_str plain = {name.ptr, open ? (size_t)(open - name.ptr) : name.len};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		if (tw_str_eq(plain, waits[i]))
			return true;
	return false;
}

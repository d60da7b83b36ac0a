/* Symbols of native libraries: ELF files, and images; see mapping.h. */
#include <string.h>

#include "fuzz.h"
#include "oracle/mapping.h"
#include "server/decode/compile_mapping.h"

static void *start(void)
{
	return tw_native_writer_new(4 << 20);
}

static enum tw_status push(void *w, const uint8_t *p, size_t n)
{
	return tw_native_writer_push(w, p, n, NULL);
}

static enum tw_status finish(void *w, struct tw_buf *image, uint8_t reported[FUZZ_REPORT_BYTES])
{
	struct tw_native_stats stats;
	enum tw_status st;

	_Static_assert(sizeof stats <= FUZZ_REPORT_BYTES, "room for them");
	memset(&stats, 0, sizeof stats);
	st = tw_native_writer_finish(w, image, &stats, NULL);
	memcpy(reported, &stats, sizeof stats);
	return st;
}

static void stop(void *w)
{
	(void)tw_native_writer_free(w);
}

static bool ask(const uint8_t *image, size_t image_len, const uint8_t *text, size_t n)
{
	struct tw_native_map map;
	const struct tw_natives natives = {&map, 1};
	struct tw_native_frame f = {0};
	struct tw_str name;
	size_t sum = 0;

	(void)text, (void)n; /* functions are asked for by address */
	if (tw_native_open(image, image_len, &map, NULL) != TW_OK)
		return false;
	f.build_id = tw_str_of(map.build_id);
	for (uint64_t i = 0; i < 64; i++) {
		f.is_offset = i & 1;
		f.address = i < 48 ? i * 0x85 : UINT64_C(1) << i;
		for (size_t k = 0; tw_native_find(&natives, &f, &name) && k < name.len; k++)
			sum += (uint8_t)name.ptr[k];
	}
	FUZZ_CHECK(sum < SIZE_MAX);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_mapping mapping = {start, push, finish, stop, ask};

	fuzz_mapping(&mapping, data, size);
	return 0;
}

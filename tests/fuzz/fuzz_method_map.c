/* Method mappings, as text and as images; see mapping.h. */
#include <string.h>

#include "decoder/symbols/method_map.h"
#include "fuzz.h"
#include "oracle/mapping.h"

static void *start(void)
{
	return tw_map_writer_new(4 << 20, 4096);
}

static enum tw_status push(void *w, const uint8_t *p, size_t n)
{
	return tw_map_writer_push(w, p, n, NULL);
}

static enum tw_status finish(void *w, struct tw_buf *image, uint8_t reported[FUZZ_REPORT_BYTES])
{
	struct tw_map_stats stats;
	enum tw_status st;

	_Static_assert(sizeof stats <= FUZZ_REPORT_BYTES, "room for them");
	memset(&stats, 0, sizeof stats);
	st = tw_map_writer_finish(w, image, &stats, NULL);
	memcpy(reported, &stats, sizeof stats);
	return st;
}

static void stop(void *w)
{
	(void)tw_map_writer_free(w);
}

static bool ask(const uint8_t *image, size_t image_len, const uint8_t *text, size_t n)
{
	struct tw_map map;
	struct tw_method_name name;
	char shown[100];

	(void)text, (void)n; /* methods are asked for by number */
	if (tw_map_open(image, image_len, &map, NULL) != TW_OK)
		return false;
	for (uint64_t id = 0; id < 64; id++) {
		(void)tw_map_find(&map, id, &name);
		(void)tw_map_display(&map, id * id * id, shown, sizeof shown);
		FUZZ_CHECK(memchr(shown, '\0', sizeof shown));
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_mapping mapping = {start, push, finish, stop, ask};

	fuzz_mapping(&mapping, data, size);
	return 0;
}

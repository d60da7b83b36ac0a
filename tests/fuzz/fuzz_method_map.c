/* Method mappings: the text in two cuts gives one image; the bytes as an image are safe to read. */
#include <string.h>

#include "fuzz.h"
#include "symbols/method_map.h"

struct made {
	enum tw_status status;
	struct tw_map_stats stats;
	struct tw_buf image;
};

static struct made make(const uint8_t *p, size_t n, size_t step)
{
	struct tw_map_writer *w = tw_map_writer_new(4 << 20, 4096);
	struct made m = {.status = w ? TW_OK : TW_NOMEM};

	tw_buf_init(&m.image, 16 << 20);
	for (size_t at = 0; m.status == TW_OK && at < n; at += step)
		m.status = tw_map_writer_push(w, p + at, n - at < step ? n - at : step, NULL);
	if (m.status == TW_OK)
		m.status = tw_map_writer_finish(w, &m.image, &m.stats, NULL);
	tw_map_writer_free(w);
	return m;
}

static void look_up(const uint8_t *p, size_t n)
{
	struct tw_map map;
	struct tw_method_name name;
	char text[100];

	if (tw_map_open(p, n, &map, NULL) != TW_OK)
		return;
	for (uint64_t id = 0; id < 64; id++) {
		(void)tw_map_find(&map, id, &name);
		(void)tw_map_display(&map, id * id * id, text, sizeof text);
		FUZZ_CHECK(memchr(text, '\0', sizeof text));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct made a, b;

	if (size == 0)
		return 0;
	a = make(data + 1, size - 1, size);
	b = make(data + 1, size - 1, (size_t)data[0] % 31 + 1);
	FUZZ_CHECK(a.status == b.status && a.image.len == b.image.len);
	if (a.status == TW_OK) {
		struct tw_map map;

		FUZZ_CHECK(memcmp(a.image.data, b.image.data, a.image.len) == 0);
		FUZZ_CHECK(tw_map_open(a.image.data, a.image.len, &map, NULL) == TW_OK);
		look_up(a.image.data, a.image.len);
	}
	look_up(data + 1, size - 1);
	tw_buf_done(&a.image);
	tw_buf_done(&b.image);
	return 0;
}

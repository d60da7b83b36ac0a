/* R8 mappings: the text in two cuts gives one image; the bytes as an image are safe to read. */
#include <string.h>

#include "fuzz.h"
#include "symbols/retrace.h"

enum { LIST = 8 };

struct made {
	enum tw_status status;
	struct tw_retrace_stats stats;
	struct tw_buf image;
};

static struct made make(const uint8_t *p, size_t n, size_t step)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(4 << 20);
	struct made m = {.status = w ? TW_OK : TW_NOMEM};

	tw_buf_init(&m.image, 64 << 20);
	for (size_t at = 0; m.status == TW_OK && at < n; at += step)
		m.status = tw_retrace_writer_push(w, p + at, n - at < step ? n - at : step, NULL);
	if (m.status == TW_OK)
		m.status = tw_retrace_writer_finish(w, &m.image, &m.stats, NULL);
	tw_retrace_writer_free(w);
	return m;
}

/* Names of the question: pieces of the input itself, so that they are often found. */
static struct tw_str word(const uint8_t *p, size_t n, size_t *at)
{
	size_t from = *at;

	while (*at < n && p[*at] > ' ' && p[*at] != ':' && p[*at] != '(')
		++*at;
	return (struct tw_str){(const char *)p + from, *at - from};
}

static void check(const struct tw_retraced *list, size_t n)
{
	size_t bytes = 0;

	FUZZ_CHECK(n <= LIST);
	for (size_t i = 0; i < n; i++) {
		const struct tw_str all[] = {list[i].class_name, list[i].method, list[i].args};

		for (size_t k = 0; k < sizeof all / sizeof *all; k++)
			for (size_t c = 0; c < all[k].len; c++)
				bytes += (unsigned char)all[k].ptr[c];
	}
	FUZZ_CHECK(bytes < SIZE_MAX);
}

static void look_up(const uint8_t *image, size_t image_len, const uint8_t *p, size_t n)
{
	struct tw_retrace r;
	struct tw_retraced list[LIST];
	struct tw_str recent[3] = {TW_STR("a"), TW_STR("a"), TW_STR("(La;I)V")};
	char text[100];

	if (tw_retrace_open(image, image_len, &r, NULL) != TW_OK)
		return;
	for (size_t at = 0, asked = 0; at < n && asked < 64; at++) {
		struct tw_str w = word(p, n, &at);

		if (w.len == 0)
			continue;
		recent[asked++ % 3] = w;
		check(list, tw_retrace_method(&r, recent[0], recent[1], recent[2], list, LIST));
		check(list, tw_retrace_method(&r, recent[1], recent[2], TW_STR(""), list, LIST));
		check(list,
		        tw_retrace_frame(&r, recent[0], recent[1], (uint32_t)w.len, list, LIST));
		check(list, tw_retrace_frame(&r, recent[2], recent[0], 0, list, LIST));
		(void)tw_retrace_display(&r, recent[0], recent[1], recent[2], text, sizeof text);
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
		struct tw_retrace r;

		FUZZ_CHECK(memcmp(a.image.data, b.image.data, a.image.len) == 0);
		FUZZ_CHECK(memcmp(&a.stats, &b.stats, sizeof a.stats) == 0);
		FUZZ_CHECK(tw_retrace_open(a.image.data, a.image.len, &r, NULL) == TW_OK);
		look_up(a.image.data, a.image.len, data + 1, size - 1);
	}
	look_up(data + 1, size - 1, data + 1, size - 1);
	tw_buf_done(&a.image);
	tw_buf_done(&b.image);
	return 0;
}

/* R8 mappings, as text and as images; see mapping.h. */
#include <string.h>

#include "decoder/symbols/retrace.h"
#include "fuzz.h"
#include "oracle/mapping.h"

enum { LIST = 8 };

static void *start(void)
{
	return tw_retrace_writer_new(4 << 20);
}

static enum tw_status push(void *w, const uint8_t *p, size_t n)
{
	return tw_retrace_writer_push(w, p, n, NULL);
}

static enum tw_status finish(void *w, struct tw_buf *image, uint8_t reported[FUZZ_REPORT_BYTES])
{
	struct tw_retrace_stats stats;
	enum tw_status st;

	_Static_assert(sizeof stats <= FUZZ_REPORT_BYTES, "room for them");
	memset(&stats, 0, sizeof stats);
	st = tw_retrace_writer_finish(w, image, &stats, NULL);
	memcpy(reported, &stats, sizeof stats);
	return st;
}

static void stop(void *w)
{
	(void)tw_retrace_writer_free(w);
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

/* Three words of the text in a row are class, method and descriptor, and frames of one stack. */
static void ask_words(const struct tw_retrace *r, const struct tw_str recent[3])
{
	struct tw_retrace_walk walk = {.r = r, .thrown = recent[2]};
	struct tw_retraced list[LIST];
	char shown[100];
	size_t n;
	bool known;
	bool one;

	check(list, tw_retrace_method(r, recent[0], recent[1], recent[2], list, LIST));
	check(list, tw_retrace_method(r, recent[1], recent[2], TW_STR(""), list, LIST));
	for (size_t i = 0; i < 3; i++) {
		const struct tw_retrace_at at = {
		        recent[i], recent[(i + 1) % 3], (uint32_t)(recent[2].len * i)};

		check(list, tw_retrace_frame(r, at.class_name, at.method, at.line, list, LIST));
		n = tw_retrace_next(&walk, &at, list, LIST, &known);
		check(list, n);
		n = tw_retrace_select_one(list, n, &one);
		check(list, n);
		for (size_t k = 0; k < n; k++)
			(void)tw_retrace_file(&list[k], recent[1]);
	}
	(void)tw_retrace_display(r, recent[0], recent[1], recent[2], shown, sizeof shown);
	FUZZ_CHECK(memchr(shown, '\0', sizeof shown));
}

static bool ask(const uint8_t *image, size_t image_len, const uint8_t *text, size_t n)
{
	struct tw_str recent[3] = {TW_STR("a"), TW_STR("a"), TW_STR("(La;I)V")};
	struct tw_retrace r;

	if (tw_retrace_open(image, image_len, &r, NULL) != TW_OK)
		return false;
	for (size_t at = 0, asked = 0; at < n && asked < 64; at++) {
		struct tw_str w = word(text, n, &at);

		if (w.len == 0)
			continue;
		recent[asked++ % 3] = w;
		ask_words(&r, recent);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_mapping mapping = {start, push, finish, stop, ask};

	fuzz_mapping(&mapping, data, size);
	return 0;
}

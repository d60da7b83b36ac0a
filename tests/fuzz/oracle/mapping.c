#include "tests/fuzz/oracle/mapping.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

#define IMAGE_MAX_BYTES ((size_t)64 << 20)

struct made {
	enum tw_status status;
	uint8_t reported[FUZZ_REPORT_BYTES];
	struct tw_buf image;
};

static void make(
        const struct fuzz_mapping *m, const uint8_t *p, size_t n, size_t step, struct made *ret)
{
	void *w = m->start();

	memset(ret, 0, sizeof *ret);
	ret->status = w ? TW_OK : TW_NOMEM;
	tw_buf_init(&ret->image, IMAGE_MAX_BYTES);
	for (size_t at = 0; ret->status == TW_OK && at < n; at += step)
		ret->status = m->push(w, p + at, n - at < step ? n - at : step);
	if (ret->status == TW_OK)
		ret->status = m->finish(w, &ret->image, ret->reported);
	m->stop(w);
}

void fuzz_mapping(const struct fuzz_mapping *m, const uint8_t *data, size_t size)
{
	struct made whole, cut;
	const uint8_t *text = data + 1;
	size_t n = size - 1;

	if (size == 0)
		return;
	make(m, text, n, size, &whole);
	make(m, text, n, (size_t)data[0] % 31 + 1, &cut);
	FUZZ_CHECK(whole.status == cut.status && whole.image.len == cut.image.len);
	if (whole.status == TW_OK) {
		FUZZ_CHECK(memcmp(whole.image.data, cut.image.data, whole.image.len) == 0);
		FUZZ_CHECK(memcmp(whole.reported, cut.reported, sizeof whole.reported) == 0);
		FUZZ_CHECK(m->ask(whole.image.data, whole.image.len, text, n));
	}
	(void)m->ask(text, n, text, n);
	tw_buf_done(&whole.image);
	tw_buf_done(&cut.image);
}

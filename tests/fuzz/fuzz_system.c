/* Any bytes as the device's system trace: scan and copy are the same for every range, refusals have
 * a message, and complete packets are copied unchanged. */
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/export/perfetto/system/export_system.h"
#include "server/export/perfetto/system/export_system_facts.h"

static int file_of(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/tracewell-fuzz-XXXXXX";
	int fd = mkstemp(path);

	FUZZ_CHECK(fd >= 0);
	(void)unlink(path);
	FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
	return fd;
}

/* The copy; a gap for our packets is emitted once. */
static void copy(
        int fd, struct tw_system *s, const struct tw_system_range *range, struct tw_buf *out)
{
	struct tw_system_copy *c = NULL;
	unsigned gaps = 0;
	bool done = false;

	FUZZ_CHECK(tw_system_copy_open(fd, s, range, &c, NULL) == TW_OK);
	while (!done) {
		size_t before = out->len;
		size_t gap;

		FUZZ_CHECK(tw_system_copy_step(c, out, &gap, &done, NULL) == TW_OK);
		FUZZ_CHECK(gap == SIZE_MAX || (gap >= before && gap <= out->len));
		gaps += gap != SIZE_MAX;
	}
	FUZZ_CHECK(gaps == 1);
	FUZZ_CHECK(tw_system_copy_packets(c) <= s->packets);
	tw_system_copy_close(c);
}

/* A copy of the copy is equal to it. */
static void copy_again(const struct tw_buf *first)
{
	const struct tw_system_range all = {0};
	int fd = file_of(first->data, first->len);
	struct tw_system *s = NULL;
	struct tw_buf again;

	tw_buf_init(&again, 256 << 20);
	FUZZ_CHECK(tw_system_scan(fd, &s, NULL) == TW_OK);
	if (s->fault == TW_SYSTEM_FINE) {
		copy(fd, s, &all, &again);
		FUZZ_CHECK(
		        again.len == first->len && memcmp(again.data, first->data, again.len) == 0);
	}
	tw_system_free(s);
	tw_buf_done(&again);
	(void)close(fd);
}

/* The stored facts are read back equal. */
static void keep(const struct tw_system *s)
{
	struct tw_system *back = NULL;
	struct tw_buf facts;
	struct tw_buf again;

	tw_buf_init(&facts, TW_SYSTEM_FACTS_BYTES);
	tw_buf_init(&again, TW_SYSTEM_FACTS_BYTES);
	FUZZ_CHECK(tw_system_pack(s, &facts, NULL) == TW_OK && facts.len);
	FUZZ_CHECK(tw_system_unpack((struct tw_str){(const char *)facts.data, facts.len}, &back,
	                   NULL) == TW_OK);
	FUZZ_CHECK(tw_system_pack(back, &again, NULL) == TW_OK);
	FUZZ_CHECK(again.len == facts.len && memcmp(again.data, facts.data, again.len) == 0);
	tw_system_free(back);
	tw_buf_done(&facts);
	tw_buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tw_system_range all = {0};
	struct tw_system_range cut = {.cut = true};
	struct tw_system *s = NULL;
	struct tw_buf out;
	int fd = file_of(data, size);

	tw_buf_init(&out, 256 << 20);
	FUZZ_CHECK(tw_system_scan(fd, &s, NULL) == TW_OK);
	keep(s);
	if (s->fault == TW_SYSTEM_FINE) {
		copy(fd, s, &all, &out);
		copy_again(&out);
		tw_buf_clear(&out);
		cut.from_ns = s->first_ns / 2 + s->last_ns / 2;
		cut.to_ns = s->last_ns;
		copy(fd, s, &cut, &out);
	}
	tw_system_free(s);
	tw_buf_done(&out);
	(void)close(fd);
	return 0;
}

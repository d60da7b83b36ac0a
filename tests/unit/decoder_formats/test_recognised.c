/* Every golden input, and every real file next to the source tree, is recognised by its first bytes
 * as its format and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { HEAD_BYTES = 256 << 10, PATH_BYTES = 4096 };

static uint8_t head[HEAD_BYTES];

/* "": no such file; "none": not recognised. */
static const char *recognise(const char *path)
{
	struct tw_limits limits = tw_limits_default();
	const struct tw_format *found = NULL;
	size_t n;
	FILE *f;

	f = fopen(path, "rbe");
	if (!f)
		return "";
	n = fread(head, 1, sizeof head, f);
	(void)fclose(f);
	if (tw_decoder_preflight(head, n, false, NULL, &limits, &found, NULL) != TW_OK)
		return "none";
	return found->name;
}

static void test_golden(void **state)
{
	static const char *const cases[] = {"minimal", "realistic", "truncated"};
	size_t n_formats;
	const struct tw_format *const *formats = tw_formats(&n_formats);

	(void)state;
	for (size_t i = 0; i < n_formats; i++)
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
			char name[256];
			const char *as;

			(void)snprintf(name, sizeof name, "tests/golden/%s/%s/input",
			        formats[i]->name, cases[k]);
			as = recognise(unit_source(name));
			if (strcmp(as, formats[i]->name) != 0)
				fail_msg("%s is taken for %s", name, *as ? as : "nothing");
		}
}

static void test_samples(void **state)
{
	static const struct {
		const char *name, *format;
	} files[] = {{"systrace/android_systrace.txt", "atrace"},
	        {"systrace/atrace_data", "atrace"},
	        {"systrace/compressed_atrace_data.txt", "atrace"},
	        {"systrace/decompressed_atrace_data.txt", "atrace"},
	        {"systrace/trivial_systrace.html", "systrace"},
	        {"btrace2/javac-single/rhea-atrace.bin.zst", "btrace2"},
	        {"btrace2/javac-single/threads.txt", "threads"}, {"anr/thread_dump.txt", "anr"},
	        {"anr/anr_stacktrace_one.txt", "anr"},
	        {"profilo/override-main-23725-2018-1-16T12-52-49-GeHZavrJSAb.log", "profilo"},
	        {"mapping/mapping_basic.txt", "none"}, {"README.md", "none"}};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *as = recognise(unit_sample(files[i].name));

		if (strcmp(as, files[i].format) != 0)
			fail_msg("%s is taken for %s", files[i].name, as);
	}
}

static const char *look(const struct tw_buf *b, size_t n)
{
	struct tw_limits limits = tw_limits_default();
	const struct tw_format *found = NULL;

	return tw_decoder_preflight(b->data, n, false, NULL, &limits, &found, NULL) == TW_OK &&
	                       found
	               ? found->name
	               : "none";
}

/* Recordings of busy threads compress badly, so that the first block is larger than small heads. */
static struct tw_buf large_block(void)
{
	const size_t cap = ZSTD_compressBound(1 << 20);
	uint64_t dice = 1;
	struct tw_buf plain, packed;

	tw_buf_init(&plain, 1 << 20);
	btrace2_header(&plain, 4711, 987654321000123u, 123456789012345u, 123456790000000u);
	for (unsigned i = 0; i < 20000; i++) {
		dice = dice * 6364136223846793005u + 1442695040888963407u;
		btrace2_record(
		        &plain, i * 1000 + (dice >> 56), dice >> 40, 7, (dice >> 33) & 0x7fff);
	}
	tw_buf_init(&packed, cap);
	assert_int_equal(tw_buf_reserve(&packed, cap), TW_OK);
	packed.len = ZSTD_compress(packed.data, cap, plain.data, plain.len, 1);
	assert_true(!ZSTD_isError(packed.len) && packed.len > TW_DECODER_HEAD_BYTES);
	tw_buf_done(&plain);
	return packed;
}

static void test_large_block(void **state)
{
	struct tw_buf packed = large_block();

	(void)state;
	assert_string_equal(look(&packed, 64 << 10), "none"); /* no block is whole */
	assert_string_equal(look(&packed, TW_DECODER_HEAD_BYTES), "btrace2");
	tw_buf_done(&packed);
}

static void test_large_block_in_tar(void **state)
{
	struct tw_buf packed = large_block(), tar;
	struct event_log log;
	char h[512] = "rhea-atrace.bin.zst";
	unsigned sum = 0;

	(void)state;
	(void)snprintf(h + 124, 12, "%011o", (unsigned)packed.len);
	memset(h + 148, ' ', 8);
	h[156] = '0';
	memcpy(h + 257,
	        "ustar\0"
	        "00",
	        8);
	for (size_t i = 0; i < sizeof h; i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum);
	tw_buf_init(&tar, 4 << 20);
	(void)tw_buf_add(&tar, h, sizeof h);
	(void)tw_buf_add(&tar, packed.data, packed.len);
	while (tar.len % 512 || tar.len < packed.len + 2048)
		(void)tw_buf_add_u8(&tar, 0);
	event_log_run_bundle(&log, tar.data, tar.len, 0, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_string_equal(log.format->name, "btrace2");
	event_log_done(&log);
	tw_buf_done(&tar);
	tw_buf_done(&packed);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_large_block),
        cmocka_unit_test(test_large_block_in_tar),
};

UNIT_TESTS("recognised", tests)

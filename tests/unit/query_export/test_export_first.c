/* The first bytes of a Perfetto file come before what takes long: before a device's trace is looked
 * through, before a call to align at is looked for, and through compression. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "server/export/perfetto/export_plan.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

static const struct tw_perfetto_options plain = {0};

static void make(struct merged *x)
{
	struct system_shape s = merged_usual();

	merged_make(x, &s, 400 * S, 500 * S, &plain);
}

/* What of a compressed beginning can be unfolded already. */
static size_t unfold(
        enum tw_perfetto_compression how, uint8_t *p, size_t n, uint8_t *to, size_t cap)
{
	if (how == TW_PERFETTO_GZIP) {
		z_stream z = {
		        .next_in = p, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)cap};

		assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
		assert_int_equal(inflate(&z, Z_SYNC_FLUSH), Z_OK);
		assert_int_equal(inflateEnd(&z), Z_OK);
		return cap - z.avail_out;
	}
	if (how == TW_PERFETTO_ZSTD) {
		ZSTD_DCtx *d = ZSTD_createDCtx();
		ZSTD_inBuffer in = {p, n, 0};
		ZSTD_outBuffer out = {to, cap, 0};

		assert_false(ZSTD_isError(ZSTD_decompressStream(d, &out, &in)));
		ZSTD_freeDCtx(d);
		return out.pos;
	}
	memcpy(to, p, n);
	return n;
}

/* An unreadable system trace: this is detected later, and the file names its trace before. */
static void test_before_the_device(void **state)
{
	static const enum tw_perfetto_compression compressions[] = {
	        TW_PERFETTO_AS_IS, TW_PERFETTO_GZIP, TW_PERFETTO_ZSTD, TW_PERFETTO_PACKETS};
	static uint8_t out[1 << 16], head[1 << 16];
	struct merged x;

	(void)state;
	make(&x);
	(void)close(x.fd);
	x.fd = open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	assert_true(x.fd >= 0);
	for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++) {
		const struct tw_perfetto_options o = {.compression = compressions[i]};
		struct tw_perfetto_source source = merged_source(&x);
		struct tw_perfetto *p = NULL;
		size_t n = 0;
		size_t reported;

		assert_int_equal(tw_perfetto_open(&source, 1, &o, &p, NULL), TW_OK);
		assert_int_equal(tw_perfetto_read(p, out, sizeof out, &n, NULL), TW_OK);
		assert_true(n > 0);
		reported = unfold(compressions[i], out, n, head, sizeof head);
		assert_true(reported > 0 && head[0] == 0x0A);
		assert_true(tw_str_find((struct tw_str){(char *)head, reported},
		                    TW_STR("https://t.example/traces/01ABC")) < reported);
		assert_int_equal(tw_perfetto_read(p, out, sizeof out, &n, NULL), TW_IO);
		tw_perfetto_close(p);
	}
	merged_done(&x);
}

/* Nothing is held back until something came: the first piece is there, whole. */
static void test_packed(void **state)
{
	static const enum tw_perfetto_compression compressions[] = {
	        TW_PERFETTO_GZIP, TW_PERFETTO_ZSTD};
	static uint8_t out[1 << 16], head[1 << 20], first[1 << 20];
	struct tw_perfetto_source source;
	struct tw_perfetto *p = NULL;
	struct merged x;
	size_t n, n_first;

	(void)state;
	make(&x);
	source = merged_source(&x);
	source.system_fd = -1;
	assert_int_equal(tw_perfetto_open(&source, 1, &plain, &p, NULL), TW_OK);
	assert_int_equal(tw_perfetto_read(p, first, sizeof first, &n_first, NULL), TW_OK);
	tw_perfetto_close(p);
	for (size_t i = 0; i < 2; i++) {
		const struct tw_perfetto_options o = {.compression = compressions[i]};

		assert_int_equal(tw_perfetto_open(&source, 1, &o, &p, NULL), TW_OK);
		assert_int_equal(tw_perfetto_read(p, out, sizeof out, &n, NULL), TW_OK);
		assert_int_equal(unfold(compressions[i], out, n, head, sizeof head), n_first);
		assert_memory_equal(head, first, n_first);
		tw_perfetto_close(p);
	}
	merged_done(&x);
}

static struct tw_plan *plan(
        const struct merged *x, const struct tw_perfetto_options *o, bool ranged, bool one_thread)
{
	static const uint64_t tids[] = {MODEL_PID};
	struct tw_perfetto_source sources[] = {merged_source(x), merged_source(x)};
	struct tw_plan *p = NULL;

	for (size_t i = 0; i < 2; i++) {
		sources[i].system_fd = -1;
		sources[i].sel.ranged = ranged;
		sources[i].sel.to_ns = INT32_MAX;
		sources[i].sel.all_threads = !one_thread;
		sources[i].sel.tids = tids;
		sources[i].sel.n_tids = one_thread;
	}
	assert_int_equal(tw_plan_new(sources, 2, o, &p, NULL), TW_OK);
	return p;
}

/* A call is looked for after the first bytes, but only where it is known to be there: a name that
 * is not in the traces must be a separate result. */
static void test_slice(void **state)
{
	struct tw_perfetto_options o = {.align = TW_PERFETTO_BY_SLICE};
	struct tw_perfetto_source source;
	struct tw_plan *p;
	struct merged x;
	size_t at = 0;
	char name[40];

	(void)state;
	make(&x);
	while (x.m.slices[at].tid != MODEL_PID)
		at++;
	(void)snprintf(name, sizeof name, "unknown:%u", x.m.slices[at].method_id);
	o.slice = name;
	p = plan(&x, &o, false, false);
	assert_false(p->finalized);
	assert_int_equal(tw_plan_finalize(p, NULL), TW_OK);
	assert_true(p->finalized);
	assert_int_equal(p->ours[1].sync.choice, TW_CLOCK_SYNC_SLICE);
	tw_plan_free(p);
	p = plan(&x, &o, true, false);
	assert_true(p->finalized);
	tw_plan_free(p);
	p = plan(&x, &o, false, true);
	assert_true(p->finalized);
	tw_plan_free(p);
	o.form = TW_PERFETTO_TAR; /* begins with the decided part */
	p = plan(&x, &o, false, false);
	assert_true(p->finalized);
	tw_plan_free(p);
	o.form = TW_PERFETTO_PLAIN;
	o.slice = "unknown:none";
	source = merged_source(&x);
	source.system_fd = -1;
	assert_int_equal(
	        tw_plan_new((struct tw_perfetto_source[]){source, source}, 2, &o, &p, NULL),
	        TW_NOT_FOUND);
	merged_done(&x);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_device),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_slice),
};

UNIT_TESTS("export_first", tests)

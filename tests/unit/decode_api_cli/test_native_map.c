/* Unit tests of native symbols: a library that the test compiles itself, names of
 * native frames, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/symbols/names.h"
#include "server/decode/compile_mapping.h"
#include "tests/unit/unit.h"

#define BUILD_ID "0123456789abcdef0123456789abcdef01234567"

static const char source[] =
        "int shop_total(int n) { return n * 3 + 1; }\n"
        "int _ZN4shop4Cart3payEii(int a, int b) { return shop_total(a) - b; }\n"
        "int _RNvCs1234_4shop4main(int a) { return a ^ 5; }\n"
        "static __attribute__((noinline)) int hidden(int a) { return a / 3; }\n"
        "int shown(int a) { return hidden(a) + 1; }\n";

struct library {
	char folder[64];
	uint8_t *data;
	size_t len;
};

/* Compiles the source; options are those of cc. */
static struct library compile(const char *options)
{
	struct library l = {.folder = "/tmp/tw-native-XXXXXX"};
	char path[96], command[512];
	FILE *f;

	assert_non_null(mkdtemp(l.folder));
	(void)snprintf(path, sizeof path, "%s/a.c", l.folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs(source, f);
	(void)fclose(f);
	(void)snprintf(command, sizeof command,
	        "cd %s && cc -shared -fPIC -nostdlib -O1 -g -Wl,-soname,libshop.so %s -o a.so a.c",
	        l.folder, options);
	assert_int_equal(system(command), 0);
	(void)snprintf(path, sizeof path, "%s/a.so", l.folder);
	f = fopen(path, "rb");
	assert_non_null(f);
	l.data = malloc(1 << 20);
	l.len = fread(l.data, 1, 1 << 20, f);
	(void)fclose(f);
	(void)snprintf(command, sizeof command, "rm -r %s", l.folder);
	assert_int_equal(system(command), 0);
	return l;
}

struct made {
	enum tw_status status;
	struct tw_err err;
	struct tw_native_stats stats;
	struct tw_buf image;
	struct tw_native_map map;
};

static struct made make(const uint8_t *p, size_t len, size_t step, uint64_t max)
{
	struct tw_native_writer *w = tw_native_writer_new(max);
	struct made m = {.status = w ? TW_OK : TW_NOMEM};

	tw_buf_init(&m.image, 1 << 24);
	for (size_t at = 0; m.status == TW_OK && at < len; at += step)
		m.status =
		        tw_native_writer_push(w, p + at, len - at < step ? len - at : step, &m.err);
	if (m.status == TW_OK)
		m.status = tw_native_writer_finish(w, &m.image, &m.stats, &m.err);
	tw_native_writer_free(w);
	if (m.status == TW_OK)
		m.status = tw_native_open(m.image.data, m.image.len, &m.map, &m.err);
	return m;
}

/* The address and size of a function of the image, by its name. */
static uint64_t start_of(const struct made *m, const char *name, uint64_t *ret_bytes)
{
	for (uint32_t i = 0; i < m->map.n_functions; i++) {
		const uint8_t *f = m->map.functions + (size_t)24 * i;
		const struct tw_str text = {m->map.names + tw_u32le(f + 16), tw_u32le(f + 20)};

		if (tw_str_eq(text, tw_str_of(name))) {
			*ret_bytes = tw_u64le(f + 8);
			return tw_u64le(f);
		}
	}
	fail_msg("no function %s", name);
	return 0;
}

static const char *shown(const struct made *m, const char *name)
{
	static char out[256];
	const struct tw_natives natives = {&m->map, 1};
	const struct tw_names names = {.natives = &natives};

	assert_true(tw_names_display(
	        &names, &(struct tw_named){.name = tw_str_of(name)}, out, sizeof out));
	return out;
}

static const char *shown_at(const struct made *m, uint64_t address, const char *tail)
{
	char name[TW_NATIVE_FRAME_BYTES];

	(void)snprintf(name, sizeof name, "libshop.so+0x%llx(BuildId:%s)",
	        (unsigned long long)address, tail);
	return shown(m, name);
}

static void test_functions_by_address(void **state)
{
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID);
	struct made m = make(l.data, l.len, l.len, 1 << 20);
	uint64_t bytes, at;
	char id[TW_BUILD_ID_HEX];

	(void)state;
	assert_int_equal(m.status, TW_OK);
	assert_string_equal(m.stats.build_id, BUILD_ID);
	assert_string_equal(m.stats.name, "libshop.so");
	assert_true(m.stats.functions >= 5);
	assert_true(tw_native_build_id((struct tw_str){(const char *)l.data, l.len}, id));
	assert_string_equal(id, BUILD_ID);
	at = start_of(&m, "shop::Cart::pay(int, int)", &bytes);
	assert_true(bytes > 4);
	assert_string_equal(shown_at(&m, at, BUILD_ID), "shop::Cart::pay(int, int)");
	assert_string_equal(shown_at(&m, at + bytes - 1, BUILD_ID), "shop::Cart::pay(int, int)");
	at = start_of(&m, "shop::main", &bytes);
	assert_string_equal(shown_at(&m, at, BUILD_ID), "shop::main");
	at = start_of(&m, "hidden", &bytes);
	assert_string_equal(shown_at(&m, at + 1, BUILD_ID), "hidden");
	/* not in a function, another library, not an address */
	assert_string_equal(shown_at(&m, 0, BUILD_ID), "[libshop.so]");
	assert_string_equal(shown_at(&m, UINT64_MAX, BUILD_ID), "[libshop.so]");
	assert_string_equal(shown_at(&m, at, "0123456789abcdef"), "[libshop.so]");
	assert_string_equal(shown(&m, "libshop.so+0x10"), "libshop.so+0x10");
	tw_buf_done(&m.image);
	free(l.data);
}

static void test_offsets_in_the_file(void **state)
{
	/* the code's address is not its offset */
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID " -Wl,-Ttext-segment=0x400000");
	struct made m = make(l.data, l.len, l.len, 1 << 20);
	const uint8_t *first = m.map.segments;
	uint64_t bytes, at;

	(void)state;
	assert_int_equal(m.status, TW_OK);
	at = start_of(&m, "shop_total", &bytes);
	assert_int_equal(tw_u64le(first), 0x400000);
	assert_int_equal(tw_u64le(first + 8), 0);
	assert_string_equal(shown_at(&m, at - 0x400000, BUILD_ID ",offset"), "shop_total");
	assert_string_equal(shown_at(&m, at, BUILD_ID ",offset"), "[libshop.so]");
	assert_string_equal(shown_at(&m, at, BUILD_ID), "shop_total");
	tw_buf_done(&m.image);
	free(l.data);
}

static void test_exported_names_of_a_stripped_library(void **state)
{
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID " -s");
	struct made m = make(l.data, l.len, l.len, 1 << 20);
	uint64_t bytes;

	(void)state;
	assert_int_equal(m.status, TW_OK);
	(void)start_of(&m, "shown", &bytes);
	for (uint32_t i = 0; i < m.map.n_functions; i++)
		assert_int_not_equal(
		        tw_u32le(m.map.functions + (size_t)24 * i + 20), strlen("hidden"));
	tw_buf_done(&m.image);
	free(l.data);
}

static void refuses(
        const uint8_t *p, size_t len, uint64_t max, enum tw_status status, const char *message)
{
	struct made m = make(p, len, 4096, max);

	assert_int_equal(m.status, status);
	assert_non_null(strstr(m.err.msg, message));
	assert_int_equal(m.image.len, 0);
	tw_buf_done(&m.image);
}

static void test_refused(void **state)
{
	struct library none = compile("-Wl,--build-id=none");
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID);

	(void)state;
	refuses(none.data, none.len, 1 << 20, TW_UNSUPPORTED, "without a build id");
	refuses(l.data, l.len, 1000, TW_TOO_LARGE, "more than 1000 bytes");
	refuses((const uint8_t *)"hello", 5, 1 << 20, TW_CORRUPT, "not an ELF file");
	refuses(l.data, 0, 1 << 20, TW_CORRUPT, "not an ELF file");
	refuses(l.data, 20, 1 << 20, TW_CORRUPT, "damaged");
	free(none.data);
	free(l.data);
}

/* Any bytes end with an image that can be read, or an error; pieces change nothing. */
static void check_damaged(const uint8_t *p, size_t len)
{
	struct made m = make(p, len, len ? len : 1, 1 << 20);
	struct tw_native_frame f = {.build_id = tw_str_of(m.stats.build_id)};
	const struct tw_natives natives = {&m.map, 1};
	struct tw_str name;

	for (f.address = 0; m.status == TW_OK && f.address < 0x3000; f.address += 13) {
		f.is_offset = !f.is_offset;
		if (tw_native_find(&natives, &f, &name))
			assert_true(name.len > 0 && name.ptr[name.len - 1] != '\0');
	}
	if (m.status != TW_OK)
		assert_true(m.err.msg[0] != '\0');
	tw_buf_done(&m.image);
}

static void test_damaged_files(void **state)
{
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID);
	struct made whole = make(l.data, l.len, l.len, 1 << 20);
	struct made pieces = make(l.data, l.len, 7, 1 << 20);
	uint64_t r = 7;

	(void)state;
	assert_int_equal(whole.image.len, pieces.image.len);
	assert_memory_equal(whole.image.data, pieces.image.data, whole.image.len);
	for (size_t n = 0; n < l.len; n += n < 1024 ? 1 : 97)
		check_damaged(l.data, n);
	for (int i = 0; i < 4000; i++) {
		size_t at;
		uint8_t was;

		r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
		at = (size_t)(r >> 33) % (i % 2 ? l.len : 1024); /* half of them in the headers */
		was = l.data[at];
		l.data[at] ^= (uint8_t)(1 << (r >> 29 & 7));
		check_damaged(l.data, l.len);
		l.data[at] = was;
	}
	tw_buf_done(&whole.image);
	tw_buf_done(&pieces.image);
	free(l.data);
}

static void test_damaged_images(void **state)
{
	struct library l = compile("-Wl,--build-id=0x" BUILD_ID);
	struct made m = make(l.data, l.len, l.len, 1 << 20);
	const struct tw_natives natives = {&m.map, 1};
	struct tw_native_frame f = {.build_id = TW_STR(BUILD_ID)};
	struct tw_str name;

	(void)state;
	for (size_t n = 0; n < m.image.len; n++)
		assert_int_not_equal(tw_native_open(m.image.data, n, &m.map, NULL), TW_OK);
	for (size_t i = 0; i < m.image.len; i++) {
		m.image.data[i] ^= 0xff;
		if (tw_native_open(m.image.data, m.image.len, &m.map, NULL) == TW_OK)
			for (f.address = 0x1000; f.address < 0x1100; f.address += 5)
				if (tw_native_find(&natives, &f, &name))
					assert_true(name.len <= m.image.len);
		m.image.data[i] ^= 0xff;
	}
	tw_buf_done(&m.image);
	free(l.data);
}

static void test_names_of_frames(void **state)
{
	char out[TW_NATIVE_FRAME_BYTES], id[TW_BUILD_ID_HEX];
	char path[600];
	struct tw_native_frame f = {.module = TW_STR("/data/app/lib a+b(1).so"),
	        .build_id = TW_STR("00ff00ff"),
	        .address = UINT64_MAX};
	struct tw_native_frame back;
	struct tw_str name = tw_native_frame_name(&f, out);
	static const char *const others[] = {"", ")", "a.b.m(:12)", "lib.so+0x1(BuildId:)",
	        "lib.so+0x1(BuildId:0)", "lib.so+0x1(BuildId:00FF00FF)",
	        "lib.so+0x1(BuildId:00ff00ff,)", "lib.so+0x1(BuildId:00ff00ff,offset",
	        "lib.so+0x(BuildId:00ff00ff)", "lib.so+1(BuildId:00ff00ff)",
	        "lib.so(BuildId:00ff00ff)", "lib.so+0x11111111111111111(BuildId:00ff00ff)",
	        "(BuildId:00ff00ff)", "lib.so+0xg(BuildId:00ff00ff)"};

	(void)state;
	assert_true(tw_str_eq(name, TW_STR("lib a+b(1).so+0xffffffffffffffff(BuildId:00ff00ff)")));
	assert_true(tw_native_frame_parse(name, &back));
	assert_true(tw_str_eq(back.module, TW_STR("lib a+b(1).so")));
	assert_true(tw_str_eq(back.build_id, f.build_id));
	assert_true(back.address == UINT64_MAX && !back.is_offset);
	assert_true(tw_str_eq(tw_names_plain(name), TW_STR("lib a+b(1).so+0xffffffffffffffff")));
	memset(path, 'x', sizeof path);
	f.module = (struct tw_str){path, sizeof path};
	f.is_offset = true;
	assert_true(tw_native_frame_parse(tw_native_frame_name(&f, out), &back));
	assert_true(back.is_offset && back.module.len == 200);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(tw_native_frame_parse(tw_str_of(others[i]), &back));
	assert_true(tw_build_id_clean(TW_STR("00Ff00fF"), id));
	assert_string_equal(id, "00ff00ff");
	assert_false(tw_build_id_clean(TW_STR("00ff00"), id));
	assert_false(tw_build_id_clean(TW_STR("00ff00f"), id));
	assert_false(tw_build_id_clean(TW_STR("00ff00fg"), id));
	assert_false(tw_build_id_hex((const uint8_t *)path, 33, id));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_by_address),
        cmocka_unit_test(test_offsets_in_the_file),
        cmocka_unit_test(test_exported_names_of_a_stripped_library),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_damaged_images),
        cmocka_unit_test(test_names_of_frames),
};

UNIT_TESTS("native_map", tests)

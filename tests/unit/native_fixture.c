#include "tests/unit/native_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct tw_native_map native_symbols(struct tw_buf *image)
{
	static const uint8_t id[32] = {0xaa, 0xbb, 0xcc, 0xdd};
	struct tw_native_map map;

	tw_buf_init(image, 1 << 12);
	(void)tw_buf_add(image, "TWELF1\0", 8);
	(void)tw_buf_add_u32le(image, 2);
	(void)tw_buf_add_u32le(image, 0);
	(void)tw_buf_add_u64le(image, 7);
	(void)tw_buf_add_u64le(image, 4);
	(void)tw_buf_add(image, id, sizeof id);
	for (uint32_t i = 0; i < 2; i++) {
		(void)tw_buf_add_u64le(image, 0x100 + 0x100 * i);
		(void)tw_buf_add_u64le(image, 0x80);
		(void)tw_buf_add_u32le(image, 3 * i);
		(void)tw_buf_add_u32le(image, 3 + i);
	}
	(void)tw_buf_add(image, "paytail", 7);
	assert_int_equal(tw_buf_status(image), TW_OK);
	assert_int_equal(tw_native_open(image->data, image->len, &map, NULL), TW_OK);
	return map;
}

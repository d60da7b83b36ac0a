/* In the decoder, large arrays are mapped whatever was freed before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/base/arena.h"
#include "server/decode/worker.h"
#include "tests/unit/unit.h"

static void test_large_arrays_are_mapped(void **state)
{
	size_t mapped;
	void *p;

	(void)state;
	if (mallinfo2().arena == 0) /* another malloc, as of sanitizers */
		skip();
	tw_worker_set_heap();
	tw_mem_free(tw_mem_alloc(16 << 20, 1));
	mapped = mallinfo2().hblks;
	p = tw_mem_alloc(4 << 20, 1);
	assert_int_equal(mallinfo2().hblks, mapped + 1);
	tw_mem_free(p);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_arrays_are_mapped),
};

UNIT_TESTS("worker_heap", tests)

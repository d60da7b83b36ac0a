/* Which methods wait: the list, and how names may be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/symbols/names.h"
#include "tests/unit/unit.h"

static void each_name_of_the_list_waits(void **state)
{
	static const char *const all[] = {
#define WAIT(name) name,
#include "decoder/symbols/waits.def"
#undef WAIT
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		assert_true(tw_name_waits(tw_str_of(all[i])));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(all[i], all[k]);
	}
}

static void names_may_carry_a_descriptor_or_a_line(void **state)
{
	(void)state;
	assert_true(tw_name_waits(TW_STR("java.lang.Object.wait(J)V")));
	assert_true(tw_name_waits(TW_STR("java.lang.Object.wait(:12)")));
	assert_true(tw_name_waits(TW_STR("android.os.MessageQueue.nativePollOnce(JI)V")));
	assert_true(
	        tw_name_waits(TW_STR("art::ConditionVariable::WaitHoldingLocks(art::Thread*)")));
}

/* Messages, binder calls and lock owners are requested work. */
static void work_does_not_wait(void **state)
{
	static const char *const work[] = {"", "android.os.MessageQueue.next",
	        "android.os.Looper.loop", "android.os.BinderProxy.transactNative",
	        "java.lang.Object.waiter", "com.acme.java.lang.Object.wait",
	        "java.lang.Object.notify", "Object.wait", "android.os.Handler.dispatchMessage",
	        "read", "selector"};

	(void)state;
	for (size_t i = 0; i < sizeof work / sizeof *work; i++)
		assert_false(tw_name_waits(tw_str_of(work[i])));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_of_the_list_waits),
        cmocka_unit_test(names_may_carry_a_descriptor_or_a_line),
        cmocka_unit_test(work_does_not_wait),
};

UNIT_TESTS("waits", tests)

/* Conditions of the gate: parsed, refused with a message, evaluated on a response. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/cli/client/gate.h"
#include "tests/unit/unit.h"

static void test_conditions_are_read(void **state)
{
	struct tw_gate g;

	(void)state;
	assert_int_equal(tw_gate_parse("p95(cold_start) > +10%", &g, NULL), TW_OK);
	assert_string_equal(g.stat, "p95");
	assert_string_equal(g.name, "cold_start");
	assert_true(g.relative && !g.below && !g.is_method && g.limit > 9.99 && g.limit < 10.01);
	assert_int_equal(tw_gate_parse(" mean( method:a.B.<init>(I) )<-5 ms ", &g, NULL), TW_OK);
	assert_string_equal(g.name, "a.B.<init>(I)");
	assert_true(!g.relative && g.below && g.is_method && g.limit < -4999999);
	assert_int_equal(tw_gate_parse("share(method:a.b)>2%", &g, NULL), TW_OK);
	assert_true(g.is_share);
}

static void test_others_are_refused_in_words(void **state)
{
	static const char *const wrong[] = {"", "p95", "p95(x)", "p95(x) 5%", "p95(x) = 5%",
	        "p95() > 5%", "p95(method:) > 5%", "p42(x) > 5%", "p95(x) > five%", "p95(x) > 5",
	        "p95(x) > 5 m", "p95(x) > nan%", "p95(x) > inf%", "share(x) > 5%",
	        "share(method:x) > 5ms", ")p95( > 5%"};
	struct tw_gate g;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct tw_err err = {0};

		if (tw_gate_parse(wrong[i], &g, &err) != TW_BAD_REQUEST)
			fail_msg("%s is taken", wrong[i]);
		assert_non_null(strstr(err.msg, "is not a condition"));
		assert_non_null(strstr(err.msg, "or share)")); /* not truncated */
	}
}

static json_t *answer(double change, double low, double high, int sure)
{
	return json_pack("{s[{ss s{s{s{sf} s{sf} s{sf sf sf} sb sb}}}]}", "scenarios", "scenario",
	        "x", "stats", "p50", "a", "value", 1e9, "b", "value", 1e9 * (1 + change), "change",
	        "value", change, "low", low, "high", high, "enough_traces", 1, "significant", sure);
}

static enum tw_gate_result verified(const char *text, const json_t *of, bool strict)
{
	char why[TW_GATE_TEXT_BYTES];
	struct tw_gate g;

	assert_int_equal(tw_gate_parse(text, &g, NULL), TW_OK);
	return tw_gate_check(&g, of, strict, why);
}

static void test_judging(void **state)
{
	json_t *slower = answer(0.2, 0.1, 0.3, 1);
	json_t *chance = answer(0.2, -0.1, 0.5, 0);
	json_t *empty = json_object();

	(void)state;
	assert_int_equal(verified("p50(x) > 10%", slower, false), TW_GATE_FAILS);
	assert_int_equal(verified("p50(x) > 20.1%", slower, false), TW_GATE_PASSES);
	assert_int_equal(verified("p50(x) > +150ms", slower, false), TW_GATE_FAILS);
	assert_int_equal(verified("p50(x) > +0.21s", slower, false), TW_GATE_PASSES);
	assert_int_equal(verified("p50(x) < -10%", slower, false), TW_GATE_PASSES);
	assert_int_equal(verified("p50(x) > 1100ms", slower, false), TW_GATE_FAILS);
	assert_int_equal(verified("p50(x) > 1300ms", slower, false), TW_GATE_PASSES);
	assert_int_equal(verified("p50(x) > 1100ms", chance, false), TW_GATE_FAILS);
	assert_int_equal(verified("p50(x) < 1.3 s", slower, false), TW_GATE_FAILS);
	assert_int_equal(verified("p50(x) > 10%", chance, false), TW_GATE_PASSES);
	assert_int_equal(verified("p50(x) > 10%", chance, true), TW_GATE_FAILS);
	assert_int_equal(verified("p75(x) > 10%", slower, false), TW_GATE_TOO_LITTLE);
	assert_int_equal(verified("p50(y) > 10%", slower, false), TW_GATE_TOO_LITTLE);
	assert_int_equal(verified("p50(method:y) > 10%", slower, false), TW_GATE_TOO_LITTLE);
	assert_int_equal(verified("p50(x) > 10%", empty, false), TW_GATE_TOO_LITTLE);
	json_decref(slower);
	json_decref(chance);
	json_decref(empty);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_conditions_are_read),
        cmocka_unit_test(test_others_are_refused_in_words), cmocka_unit_test(test_judging)};

UNIT_TESTS("gate", tests)

/* Unit tests of capture.c: which rules a device gets, which devices a share selects, which rules
 * are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/catalogue/access/capture.h"
#include "tests/unit/unit.h"

static const struct tw_capture_device nobody = {"", "", "", "", "", ""};

static json_t *read_doc(const char *text)
{
	json_error_t why;
	json_t *doc = json_loads(text, 0, &why);

	if (!doc)
		print_message("%s at %d\n", why.text, why.position);
	assert_non_null(doc);
	return doc;
}

static uint64_t none_taken(void *arg, const char *rule)
{
	(void)arg, (void)rule;
	return 0;
}

static uint64_t all_taken(void *arg, const char *rule)
{
	(void)rule;
	return *(uint64_t *)arg;
}

/* The names of the rules that the device gets, with commas. */
static const char *reported(
        const char *doc_text, const struct tw_capture_device *d, uint64_t taken, char out[256])
{
	json_t *doc = read_doc(doc_text);
	json_t *answer;
	json_t *c;
	size_t i;

	assert_int_equal(tw_capture_check(doc, NULL), TW_OK);
	answer = tw_capture_response(doc, d, all_taken, &taken);
	out[0] = '\0';
	json_array_foreach(json_object_get(answer, "captures"), i, c)
	{
		size_t len = strlen(out);

		(void)snprintf(out + len, 256 - len, "%s%s", i ? "," : "",
		        json_string_value(json_object_get(c, "rule")));
	}
	json_decref(answer);
	json_decref(doc);
	return out;
}

static void test_rules_match_what_a_device_sends(void **state)
{
	static const char doc[] =
	        "{\"rules\":["
	        "{\"name\":\"any\"},"
	        "{\"name\":\"off\",\"enabled\":false},"
	        "{\"name\":\"v83\",\"where\":{\"version_name\":[\"8.3.*\",\"9.?\"]}},"
	        "{\"name\":\"pixel\",\"where\":{\"device\":[\"Pixel*\"],\"os\":[\"1[45]\"]}},"
	        "{\"name\":\"cold\",\"scenario\":\"cold_start\"},"
	        "{\"name\":\"mine\",\"where\":{\"app\":[\"com.acme.shop\"]}}]}";
	struct tw_capture_device d = nobody;
	char out[256];

	(void)state;
	assert_string_equal(reported(doc, &d, 0, out), "any,cold");
	d.version_name = "8.3.1";
	assert_string_equal(reported(doc, &d, 0, out), "any,v83,cold");
	d.version_name = "8.31";
	assert_string_equal(reported(doc, &d, 0, out), "any,cold");
	d.version_name = "9.1";
	assert_string_equal(reported(doc, &d, 0, out), "any,v83,cold");
	d.device = "Pixel 8";
	assert_string_equal(reported(doc, &d, 0, out), "any,v83,cold");
	d.os = "14";
	d.version_name = "";
	assert_string_equal(reported(doc, &d, 0, out), "any,pixel,cold");
	d.scenario = "scroll";
	d.app = "com.acme.shop";
	assert_string_equal(reported(doc, &d, 0, out), "any,pixel,mine");
}

static void test_a_days_room_is_kept(void **state)
{
	static const char doc[] = "{\"rules\":[{\"name\":\"ten\",\"per_day\":10},"
	                          "{\"name\":\"any\",\"per_day\":0}]}";
	char out[256];

	(void)state;
	assert_string_equal(reported(doc, &nobody, 9, out), "ten,any");
	assert_string_equal(reported(doc, &nobody, 10, out), "any");
	assert_string_equal(reported(doc, &nobody, 11, out), "any");
}

/* Of `n` devices. */
static unsigned chosen(double share, unsigned n, uint8_t *by_device)
{
	char text[128];
	char id[32];
	char out[256];
	struct tw_capture_device d = nobody;
	unsigned got = 0;

	(void)snprintf(text, sizeof text, "{\"rules\":[{\"name\":\"r\",\"share\":%g}]}", share);
	d.id = id;
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(id, sizeof id, "install-%u", i);
		by_device[i] = reported(text, &d, 0, out)[0] == 'r';
		got += by_device[i];
	}
	return got;
}

/* Five standard deviations around the share; and a larger share adds, it never swaps. */
static void test_a_share_is_kept_and_grows(void **state)
{
	enum { N = 20000 };
	static uint8_t few[N];
	static uint8_t more[N];

	(void)state;
	assert_in_range(chosen(0.05, N, few), 1000 - 155, 1000 + 155);
	assert_in_range(chosen(0.25, N, more), 5000 - 307, 5000 + 307);
	for (unsigned i = 0; i < N; i++)
		assert_true(!few[i] || more[i]);
	assert_int_equal(chosen(0, 100, few), 0);
	assert_int_equal(chosen(1, 100, few), 100);
}

static void test_devices_without_an_id_draw(void **state)
{
	json_t *doc = read_doc("{\"max_age_s\":600,\"rules\":[{\"name\":\"r\",\"share\":0.5,"
	                       "\"record\":{\"max_seconds\":20}}]}");
	json_t *answer = tw_capture_response(doc, &nobody, none_taken, NULL);
	json_t *c = json_array_get(json_object_get(answer, "captures"), 0);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(answer, "max_age_s")), 600);
	assert_true(json_real_value(json_object_get(c, "share")) == 0.5);
	assert_int_equal(
	        json_integer_value(json_object_get(json_object_get(c, "record"), "max_seconds")),
	        20);
	json_decref(answer);
	json_decref(doc);
	answer = tw_capture_response(NULL, &nobody, none_taken, NULL);
	assert_int_equal(json_array_size(json_object_get(answer, "captures")), 0);
	json_decref(answer);
}

static void test_wrong_rules_are_named(void **state)
{
	static const struct {
		const char *doc, *says;
	} cases[] = {
	        {"{}", "rules must be a list"},
	        {"{\"rules\":[],\"max_age_s\":59}", "from 60 to 86400"},
	        {"{\"rules\":[],\"max_age_s\":86401}", "from 60 to 86400"},
	        {"{\"rules\":[3]}", "rule 1: a name has"},
	        {"{\"rules\":[{\"name\":\"a b\"}]}", "rule 1: a name has"},
	        {"{\"rules\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "the name is used twice"},
	        {"{\"rules\":[{\"name\":\"a\",\"sahre\":1}]}", "rule a: unknown member sahre"},
	        {"{\"rules\":[{\"name\":\"a\",\"share\":1.01}]}", "from 0 to 1"},
	        {"{\"rules\":[{\"name\":\"a\",\"share\":\"1\"}]}", "from 0 to 1"},
	        {"{\"rules\":[{\"name\":\"a\",\"per_day\":-1}]}", "whole number of traces"},
	        {"{\"rules\":[{\"name\":\"a\",\"where\":{\"abi\":[]}}]}",
	                "rule a: where: unknown member abi"},
	        {"{\"rules\":[{\"name\":\"a\",\"where\":{\"app\":\"x\"}}]}",
	                "a list of 0 to 20 texts"},
	        {"{\"rules\":[{\"name\":\"a\",\"where\":{\"app\":[\"*****\"]}}]}", "4 stars"},
	        {"{\"rules\":[{\"name\":\"a\",\"where\":{\"app\":[\"\"]}}]}", "1 to 64 bytes"},
	        {"{\"rules\":[{\"name\":\"a\",\"enabled\":1}]}", "true or false"},
	        {"{\"rules\":[{\"name\":\"a\",\"scenario\":1}]}", "scenario must be a text of"},
	        {"{\"rules\":[{\"name\":\"a\",\"record\":[]}]}", "must be an object"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *doc = read_doc(cases[i].doc);
		struct tw_err err = {0};

		assert_int_equal(tw_capture_check(doc, &err), TW_BAD_REQUEST);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("%s: %s", cases[i].doc, err.msg);
		json_decref(doc);
	}
}

static void test_as_many_rules_as_there_may_be(void **state)
{
	json_t *rules = json_array();
	json_t *doc = json_pack("{s:O}", "rules", rules);
	char name[16];

	(void)state;
	for (int i = 0; i < TW_CAPTURE_RULES_MAX; i++) {
		(void)snprintf(name, sizeof name, "r%d", i);
		(void)json_array_append_new(rules, json_pack("{s:s}", "name", name));
	}
	assert_int_equal(tw_capture_check(doc, NULL), TW_OK);
	(void)json_array_append_new(rules, json_pack("{s:s}", "name", "more"));
	assert_int_equal(tw_capture_check(doc, NULL), TW_BAD_REQUEST);
	json_decref(rules);
	json_decref(doc);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_match_what_a_device_sends),
        cmocka_unit_test(test_a_days_room_is_kept),
        cmocka_unit_test(test_a_share_is_kept_and_grows),
        cmocka_unit_test(test_devices_without_an_id_draw),
        cmocka_unit_test(test_wrong_rules_are_named),
        cmocka_unit_test(test_as_many_rules_as_there_may_be),
};

UNIT_TESTS("capture", tests)

/* The protocol of `tracewell mcp`: the response to each message, and the address of each call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/embedded.h"
#include "server/cli/client/mcp.h"
#include "tests/unit/unit.h"

extern const struct tw_embedded tw_openapi_files[];

static json_t *openapi;
static char asked[1024]; /* the last call's request to the server */

static enum tw_status get(void *arg, const char *path, json_t **ret, struct tw_err *err)
{
	(void)arg;
	(void)snprintf(asked, sizeof asked, "%s", path);
	if (strstr(path, "missing"))
		return tw_fail(err, TW_NOT_FOUND, "no such trace");
	*ret = json_pack("{ss}", "path", path);
	return *ret ? TW_OK : tw_oom(err);
}

static json_t *say(const char *message)
{
	const struct tw_mcp m = {openapi, 1000, get, NULL};
	json_t *answer = NULL;

	asked[0] = '\0';
	assert_int_equal(tw_mcp_handle(&m, tw_str_of(message), &answer, NULL), TW_OK);
	return answer;
}

/* The text of the result, "" for none; *ret_code is an error's code. */
static const char *text_of(const json_t *answer, int *ret_code)
{
	const json_t *error = json_object_get(answer, "error");
	const json_t *content = json_object_get(json_object_get(answer, "result"), "content");
	const char *text = json_string_value(json_object_get(
	        error ? error : json_array_get(content, 0), error ? "message" : "text"));

	*ret_code = (int)json_integer_value(json_object_get(error, "code"));
	return text ? text : "";
}

static void test_greeting(void **state)
{
	static const struct {
		const char *asks, *gets;
	} versions[] = {{"2024-11-05", "2024-11-05"}, {"2025-06-18", "2025-06-18"},
	        {"2031-01-01", "2025-06-18"}};

	(void)state;
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		char message[200];
		json_t *answer;

		(void)snprintf(message, sizeof message,
		        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"initialize\",\"params\":"
		        "{\"protocolVersion\":\"%s\"}}",
		        versions[i].asks);
		answer = say(message);
		assert_string_equal(json_string_value(json_object_get(answer, "id")), "x");
		assert_string_equal(json_string_value(json_object_get(
		                            json_object_get(answer, "result"), "protocolVersion")),
		        versions[i].gets);
		json_decref(answer);
	}
}

static void test_wrong_messages(void **state)
{
	static const struct {
		const char *message;
		int code;
	} wrong[] = {
	        {"", -32700},
	        {"{", -32700},
	        {"[]", -32600},
	        {"3", -32600},
	        {"{}", -32600},
	        {"{\"id\":1}", -32600},
	        {"{\"id\":{},\"method\":\"ping\"}", -32600},
	        {"{\"id\":1,\"method\":\"tools/burn\"}", -32601},
	        {"{\"id\":1,\"method\":\"tools/call\"}", -32602},
	        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"burn\"}}", -32602},
	        {"{\"id\":1,\"method\":\"tools/"
	         "call\",\"params\":{\"name\":\"trace\",\"arguments\":[]}}",
	                -32602},
	        /* cut inside a character */
	        {"{\"id\":1,\"method\":"
	         "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\u4e2d\u4e2d\"}",
	                -32601},
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		json_t *answer = say(wrong[i].message);
		int code;

		(void)text_of(answer, &code);
		assert_int_equal(code, wrong[i].code);
		assert_string_equal(asked, "");
		json_decref(answer);
	}
	assert_null(say("{\"method\":\"notifications/initialized\"}"));
}

/* Each tool is a described route, and accepts its parameters. */
static void test_tools_are_the_api(void **state)
{
	json_t *answer = say("{\"id\":1,\"method\":\"tools/list\"}");
	json_t *tools = json_object_get(json_object_get(answer, "result"), "tools");
	const json_t *tool;
	size_t i;

	(void)state;
	assert_true(json_array_size(tools) > 15);
	json_array_foreach(tools, i, tool)
	{
		const json_t *schema = json_object_get(tool, "inputSchema");
		const json_t *properties = json_object_get(schema, "properties");

		assert_true(json_object_size(properties) > 0);
		assert_true(json_is_true(
		        json_object_get(json_object_get(tool, "annotations"), "readOnlyHint")));
		assert_non_null(json_object_get(properties, "project"));
	}
	json_decref(answer);
}

static void test_calls(void **state)
{
	static const struct {
		const char *params, *path, *says;
	} calls[] = {
	        {"{\"name\":\"list_traces\"}", "/api/v1/traces", NULL},
	        {"{\"name\":\"list_traces\",\"arguments\":{\"limit\":7,\"cursor\":null}}",
	                "/api/v1/traces?limit=7", NULL},
	        {"{\"name\":\"list_traces\",\"arguments\":{\"label\":[\"a=1\",\"b=2\"]}}",
	                "/api/v1/traces?label=a%3D1&label=b%3D2", NULL},
	        {"{\"name\":\"search_calls\",\"arguments\":{\"method\":\"a&b=c "
	         "#%\\u4e2d\",\"regex\":true}}",
	                "/api/v1/fleet/search?method=a%26b%3Dc%20%23%25%E4%B8%AD&regex=true", NULL},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":\"../keys?x\"}}",
	                "/api/v1/traces/..%2Fkeys%3Fx", NULL},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":\"..\"}}", "", "id is none"},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":\"\"}}", "", "id is none"},
	        {"{\"name\":\"trace\"}", "", "trace wants {id}"},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":[1]}}", "",
	                "id is too long, or not a text, number, true or false"},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":\"A\",\"burn\":1}}", "",
	                "trace has no parameter \"burn\""},
	        {"{\"name\":\"trace\",\"arguments\":{\"id\":\"missing\"}}",
	                "/api/v1/traces/missing", "no such trace"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		char message[500];
		json_t *answer;
		int code;

		(void)snprintf(message, sizeof message,
		        "{\"id\":1,\"method\":\"tools/call\",\"params\":%s}", calls[i].params);
		answer = say(message);
		assert_string_equal(asked, calls[i].path);
		if (calls[i].says)
			assert_string_equal(text_of(answer, &code), calls[i].says);
		assert_int_equal(
		        json_is_true(json_object_get(json_object_get(answer, "result"), "isError")),
		        calls[i].says != NULL);
		json_decref(answer);
	}
}

static void test_an_answer_that_is_too_long(void **state)
{
	const struct tw_mcp m = {openapi, 10, get, NULL};
	json_t *answer = NULL;
	int code;

	(void)state;
	assert_int_equal(tw_mcp_handle(&m,
	                         TW_STR("{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
	                                "\"list_traces\"}}"),
	                         &answer, NULL),
	        TW_OK);
	assert_non_null(strstr(text_of(answer, &code), "narrow it"));
	json_decref(answer);
}

static int setup(void **state)
{
	(void)state;
	openapi = json_loadb(
	        (const char *)tw_openapi_files[0].data, tw_openapi_files[0].len, 0, NULL);
	return openapi ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(openapi);
	return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greeting),
        cmocka_unit_test(test_wrong_messages),
        cmocka_unit_test(test_tools_are_the_api),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_an_answer_that_is_too_long),
};

UNIT_TESTS_WITH("mcp", tests, setup, teardown)

/* The history of metrics: sums over labels, the current sample, and a ring that drops the oldest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "server/http/metric_history.h"
#include "tests/unit/unit.h"

static double at(const json_t *history, const char *series, size_t i)
{
	const json_t *values = json_object_get(json_object_get(history, "series"), series);

	assert_true(i < json_array_size(values));
	return json_number_value(json_array_get(values, i));
}

static void test_sums_and_labels(void **state)
{
	static const char text[] =
	        "tracewell_queue_traces 7\n"
	        "tracewell_queue_traces_other 100\n"
	        "tracewell_queue_oldest_seconds 1.250\n"
	        "tracewell_requests_total{method=\"POST\",route=\"/api/v1/traces\",status=\"202\"} "
	        "3\n"
	        "tracewell_requests_total{method=\"GET\",route=\"/api/v1/traces\",status=\"200\"} "
	        "50\n"
	        "tracewell_requests_total{method=\"GET\",route=\"/a\",status=\"500\"} 2\n"
	        "tracewell_requests_total{method=\"GET\",route=\"/b\",status=\"500\"} 1\n"
	        "tracewell_requests_total{method=\"POST\",route=\"/api/v1/uploads/direct/{upload}/"
	        "complete\",status=\"202\"} 20\n"
	        "tracewell_requests_total{method=\"POST\",route=\"/api/v1/uploads/direct/{upload}/"
	        "complete\",status=\"200\"} 9\n"
	        "tracewell_resumable_total{step=\"finished\"} 4\n"
	        "tracewell_decodes_total{format=\"btrace2\",outcome=\"ready\"} 10\n"
	        "tracewell_decodes_total{format=\"\",outcome=\"retry\"} 5\n"
	        "tracewell_decodes_total{format=\"\",outcome=\"corrupt\"} 2\n"
	        "tracewell_disk_free_bytes 83121188864\n";
	struct tw_metric_history *h = tw_metric_history_new();
	json_t *j = tw_metric_history_json(h, 99, tw_str_of(text));

	(void)state;
	assert_int_equal(json_array_size(json_object_get(j, "at_ms")), 1);
	assert_true(at(j, "queue_traces", 0) == 7 && at(j, "queue_oldest_seconds", 0) == 1.25);
	assert_true(at(j, "uploads", 0) == 27 && at(j, "errors", 0) == 3);
	assert_true(at(j, "decoded", 0) == 10 && at(j, "failed", 0) == 2);
	assert_true(at(j, "disk_free_bytes", 0) == 83121188864 && at(j, "refused", 0) == 0);
	json_decref(j);
	(void)tw_metric_history_free(h);
}

static void test_the_oldest_is_dropped(void **state)
{
	struct tw_metric_history *h = tw_metric_history_new();
	char text[64];
	json_t *j;

	(void)state;
	for (int i = 0; i < TW_METRIC_HISTORY_SAMPLES + 5; i++) {
		(void)snprintf(text, sizeof text, "tracewell_queue_traces %d\n", i);
		tw_metric_history_add(h, i, tw_str_of(text));
	}
	j = tw_metric_history_json(h, 10000, tw_str_of("tracewell_queue_traces 42\n"));
	assert_int_equal(
	        json_array_size(json_object_get(j, "at_ms")), TW_METRIC_HISTORY_SAMPLES + 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(j, "at_ms"), 0)), 5);
	assert_true(at(j, "queue_traces", 0) == 5);
	assert_true(at(j, "queue_traces", TW_METRIC_HISTORY_SAMPLES - 1) ==
	            TW_METRIC_HISTORY_SAMPLES + 4);
	assert_true(at(j, "queue_traces", TW_METRIC_HISTORY_SAMPLES) == 42);
	json_decref(j);
	(void)tw_metric_history_free(h);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_and_labels),
        cmocka_unit_test(test_the_oldest_is_dropped),
};

UNIT_TESTS("metric_history", tests)

/*
 * jobs_answer.c - converts a child's result for the catalogue and the metrics.
 */
#include "server/decode/jobs_internal.h"
#include "server/http/metrics.h"

uint64_t tw_jobs_count_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

struct tw_trace_summary tw_jobs_summary_of(const json_t *o)
{
	const char *format = json_string_value(json_object_get(o, "format"));
	const char *anr = json_string_value(json_object_get(o, "anr"));

	return (struct tw_trace_summary){
	        .slices = tw_jobs_count_of(o, "slices"),
	        .input_bytes = tw_jobs_count_of(o, "input_bytes"),
	        .decoded_bytes = tw_jobs_count_of(o, "decoded_bytes"),
	        .file_bytes = tw_jobs_count_of(o, "file_bytes"),
	        .threads = (uint32_t)tw_jobs_count_of(o, "threads"),
	        .methods = (uint32_t)tw_jobs_count_of(o, "methods"),
	        .max_depth = (uint32_t)tw_jobs_count_of(o, "max_depth"),
	        .losses = (uint32_t)tw_jobs_count_of(o, "losses"),
	        .repairs = (uint32_t)tw_jobs_count_of(o, "repairs"),
	        .duration_ns = json_integer_value(json_object_get(o, "duration_ns")),
	        .format = format ? format : "",
	        .anr = anr ? anr : "",
	        .decoder_version = (uint32_t)tw_jobs_count_of(o, "decoder_version"),
	};
}

void tw_jobs_count_repairs(struct tw_app *app, const json_t *told)
{
	const char *name;
	json_t *count;

	json_object_foreach(json_object_get(told, "repairs_by_name"), name, count)
	{
		tw_metrics_repair(app->metrics, name, (uint64_t)json_integer_value(count));
	}
}

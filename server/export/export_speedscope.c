/*
 * export_speedscope.c - speedscope's own file format: an evented profile per thread.
 *
 * Times are nanoseconds of trace time in all threads. Frames are written after the profiles, when
 * the called methods are known. The schema is public:
 * https://www.speedscope.app/file-format-schema.json
 */
#include "server/export/export_format.h"

static void head(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_open(&x->j, '{');
	tw_json_key_str(
	        &x->j, "$schema", TW_STR("https://www.speedscope.app/file-format-schema.json"));
	tw_json_key_str(&x->j, "exporter", TW_STR("tracewell " TW_VERSION));
	tw_json_key_text(&x->j, "name", x->facts.title);
	tw_json_key_int(&x->j, "activeProfileIndex", 0);
	tw_json_key_open(&x->j, "profiles", '[');
}

static void profile(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "type", TW_STR("evented"));
	tw_json_key_str(&x->j, "name", tw_export_thread_name(x));
	tw_json_key_str(&x->j, "unit", TW_STR("nanoseconds"));
	tw_json_key_int(&x->j, "startValue", tw_export_from(x, x->thread));
	tw_json_key_int(&x->j, "endValue", tw_export_to(x, x->thread));
	tw_json_key_open(&x->j, "events", '[');
}

static void event(struct tw_export *x, uint32_t i)
{
	if (i)
		(void)tw_buf_add(&x->out, ",", 1);
	(void)tw_buf_add_str(&x->out, x->edge.begin ? TW_STR("{\"type\":\"O\",\"frame\":")
	                                            : TW_STR("{\"type\":\"C\",\"frame\":"));
	tw_export_decimal(&x->out, tw_export_number(x, x->edge.method) - 1, 0);
	(void)tw_buf_add(&x->out, ",\"at\":", 6);
	tw_export_decimal(&x->out, x->edge.ts_ns, 0);
	(void)tw_buf_add(&x->out, "}", 1);
}

static void profile_end(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_close(&x->j, ']');
	tw_json_close(&x->j, '}');
}

static void frames(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_close(&x->j, ']');
	tw_json_key_open(&x->j, "shared", '{');
	tw_json_key_open(&x->j, "frames", '[');
}

static void frame(struct tw_export *x, uint32_t i)
{
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "name", tw_export_name(x, x->used[i]));
	tw_json_close(&x->j, '}');
}

static void tail(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_close(&x->j, ']');
	tw_json_close(&x->j, '}');
	tw_json_close(&x->j, '}');
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, head},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_ONCE, profile},
        {TW_WALK_EDGES, event},
        {TW_WALK_ONCE, profile_end},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_ONCE, frames},
        {TW_WALK_METHODS, frame},
        {TW_WALK_ONCE, tail},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_speedscope = {
        .kind = {.name = "speedscope",
                .suffix = ".speedscope.json",
                .type = "application/json",
                .summary = "every call in time order, for speedscope"},
        .program = program,
        .metrics = 1 << TW_EXPORT_WALL,
};

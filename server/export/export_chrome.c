/*
 * export_chrome.c - Chrome's trace event format: begins and ends per thread, as read by
 * chrome://tracing, Perfetto, speedscope and others.
 *
 * Pairs of B and E events instead of complete (X) events: readers of X events lose the nesting of
 * zero-length calls. An end repeats its name, because speedscope matches by it. Times are
 * microseconds with three decimals.
 */
#include "server/export/export_format.h"

struct process {
	int64_t pid;
};

static int64_t pid_of(const struct tw_export *x)
{
	return x->thread->pid ? x->thread->pid : x->info->pid;
}

static void fact(struct tw_export *x, const char *key, const char *text)
{
	if (text[0])
		tw_json_key_text(&x->j, key, text);
}

static void head(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "displayTimeUnit", TW_STR("ns"));
	tw_json_key_open(&x->j, "otherData", '{');
	tw_json_key_str(&x->j, "exporter", TW_STR("tracewell " TW_VERSION));
	fact(x, "title", x->facts.title);
	fact(x, "trace", x->facts.trace_id);
	fact(x, "url", x->facts.url);
	fact(x, "app", x->facts.app);
	fact(x, "version_name", x->facts.version_name);
	fact(x, "build_id", x->facts.build_id);
	fact(x, "device", x->facts.device);
	fact(x, "scenario", x->facts.scenario);
	tw_json_close(&x->j, '}');
	tw_json_key_open(&x->j, "traceEvents", '[');
}

static void begin_meta(struct tw_export *x, const char *name)
{
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "ph", TW_STR("M"));
	tw_json_key_int(&x->j, "pid", pid_of(x));
	tw_json_key_int(&x->j, "tid", (int64_t)x->thread->tid);
	tw_json_key_text(&x->j, "name", name);
	tw_json_key_open(&x->j, "args", '{');
}

static void end_meta(struct tw_export *x)
{
	tw_json_close(&x->j, '}');
	tw_json_close(&x->j, '}');
}

static void thread(struct tw_export *x, uint32_t i)
{
	struct process *p = x->state;
	const char *process = x->facts.process[0] ? x->facts.process : x->facts.app;

	(void)i;
	if (process[0] && p->pid != pid_of(x) && pid_of(x) == x->info->pid) {
		begin_meta(x, "process_name");
		tw_json_key_text(&x->j, "name", process);
		end_meta(x);
	}
	p->pid = pid_of(x);
	begin_meta(x, "thread_name");
	tw_json_key_str(&x->j, "name", tw_export_thread_name(x));
	end_meta(x);
	begin_meta(x, "thread_sort_index");
	tw_json_key_int(&x->j, "sort_index", x->thread->thread_id);
	end_meta(x);
}

/* Every event follows the thread's metadata, so a comma always precedes it. */
static void event(struct tw_export *x, uint32_t i)
{
	struct tw_buf *out = &x->out;

	(void)i;
	(void)tw_buf_add_str(out, x->edge.begin ? TW_STR(",{\"ph\":\"B\",\"pid\":")
	                                        : TW_STR(",{\"ph\":\"E\",\"pid\":"));
	tw_export_decimal(out, pid_of(x), 0);
	(void)tw_buf_add(out, ",\"tid\":", 7);
	tw_export_decimal(out, (int64_t)x->thread->tid, 0);
	(void)tw_buf_add(out, ",\"ts\":", 6);
	tw_export_decimal(out, x->edge.ts_ns, 3);
	tw_json_key_str(&x->j, "name", tw_export_name(x, x->edge.method));
	(void)tw_buf_add(out, "}", 1);
}

static void tail(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_close(&x->j, ']');
	tw_json_close(&x->j, '}');
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, head},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_ONCE, thread},
        {TW_WALK_EDGES, event},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_ONCE, tail},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_chrome = {
        .kind = {.name = "chrome",
                .suffix = ".trace.json",
                .type = "application/json",
                .summary = "every call as Chrome trace events"},
        .program = program,
        .state_bytes = sizeof(struct process),
        .metrics = 1 << TW_EXPORT_WALL,
};

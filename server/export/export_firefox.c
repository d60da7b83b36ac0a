/*
 * export_firefox.c - a processed profile of the Firefox Profiler, format version 70.
 *
 * Tables are columns, and all threads share one stack, frame and function table. The stack table
 * contains the threads' call trees one after another. Frames and functions are the methods, with
 * equal numbers. A thread's samples are ranges of one stack, from each begin or end of a call to
 * the next, weighted by their length ("tracing-ms"), so that the profiler's times are exact. A
 * range without a call has no stack. Format:
 * https://github.com/firefox-devtools/profiler/tree/main/docs-developer
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/export/export_format.h"

enum { GECKO_VERSION = 36, FORMAT_VERSION = 70, MS_DIGITS = 6 /* digits of a nanosecond */ };

struct columns {
	uint64_t base;   /* index of the thread's first node in the stack table */
	uint64_t n;      /* number of values in the current column, or in the previous one */
	int64_t from_ns; /* of the range */
	uint32_t at;     /* its stack */
	unsigned glue;   /* index in `shared` of the next text */
};

/* Text between the columns of the tables; # is the length of the previous column. */
static const char *const shared[] = {
        "],\"shared\":{\"stackTable\":{\"frame\":[",
        "],\"prefixOffset\":[",
        "],\"length\":#},\"frameTable\":{\"address\":[",
        "],\"lib\":[",
        "],\"inlineDepth\":[",
        "],\"category\":[",
        "],\"subcategory\":[",
        "],\"func\":[",
        "],\"nativeSymbol\":[",
        "],\"innerWindowID\":[",
        "],\"line\":[",
        "],\"column\":[",
        "],\"originalLocation\":[",
        "],\"length\":#},\"funcTable\":{\"name\":[",
        "],\"isJS\":[",
        "],\"relevantForJS\":[",
        "],\"resource\":[",
        "],\"source\":[",
        "],\"lineNumber\":[",
        "],\"columnNumber\":[",
        "],\"originalLocation\":[",
        "],\"length\":#},\"resourceTable\":{\"length\":0,\"name\":[],\"host\":[],\"type\":[]},"
        "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
        "\"length\":0},\"sources\":{\"length\":0,\"id\":[],\"filename\":[],\"startLine\":[],"
        "\"startColumn\":[],\"sourceMapURL\":[],\"content\":[]},\"sourceLocationTable\":"
        "{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\"stringArray\":[",
        "]}}",
};

static void put_glue(struct tw_export *x, const char *text)
{
	struct columns *c = x->state;
	const char *hash = strchr(text, '#');
	size_t n = hash ? (size_t)(hash - text) : strlen(text);

	(void)tw_buf_add(&x->out, text, n);
	if (hash) {
		tw_export_decimal(&x->out, (int64_t)c->n, 0);
		(void)tw_buf_add_str(&x->out, tw_str_of(hash + 1));
	}
	x->j.comma = false;
	c->n = 0;
}

static void next_column(struct tw_export *x, uint32_t i)
{
	struct columns *c = x->state;

	(void)i;
	put_glue(x, shared[c->glue++]);
}

/* --- the profile's own facts --- */

static void put_extra(struct tw_export *x, const char *label, const char *text)
{
	if (!text[0])
		return;
	tw_json_open(&x->j, '{');
	tw_json_key_text(&x->j, "label", label);
	tw_json_key_str(&x->j, "format", TW_STR("string"));
	tw_json_key_text(&x->j, "value", text);
	tw_json_close(&x->j, '}');
}

static void put_extras(struct tw_export *x)
{
	tw_json_key(&x->j, "extra");
	tw_json_raw(&x->j, TW_STR("[{\"label\":\"Trace\",\"entries\":["));
	x->j.comma = false;
	put_extra(x, "Trace", x->facts.trace_id);
	put_extra(x, "Link", x->facts.url);
	put_extra(x, "Version", x->facts.version_name);
	put_extra(x, "Build", x->facts.build_id);
	put_extra(x, "Scenario", x->facts.scenario);
	put_extra(x, "Exported by", "tracewell " TW_VERSION);
	(void)tw_buf_add(&x->out, "]}]", 3);
	x->j.comma = true;
}

static void head(struct tw_export *x, uint32_t i)
{
	const struct tw_export_facts *f = &x->facts;

	(void)i;
	tw_json_open(&x->j, '{');
	tw_json_key_open(&x->j, "meta", '{');
	tw_json_key_int(&x->j, "interval", 1);
	tw_json_key_int(&x->j, "startTime", f->started_ms);
	tw_json_key_int(&x->j, "processType", 0);
	tw_json_key(&x->j, "categories");
	tw_json_raw(&x->j,
	        TW_STR("[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
	               "{\"name\":\"Method\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}]"));
	tw_json_key_text(&x->j, "product", f->title[0] ? f->title : "tracewell");
	tw_json_key_int(&x->j, "stackwalk", 0);
	tw_json_key_int(&x->j, "version", GECKO_VERSION);
	tw_json_key_int(&x->j, "preprocessedProfileVersion", FORMAT_VERSION);
	tw_json_key_bool(&x->j, "symbolicated", true);
	tw_json_key_bool(&x->j, "symbolicationNotSupported", true);
	tw_json_key_bool(&x->j, "usesOnlyOneStackType", true);
	tw_json_key_bool(&x->j, "sourceCodeIsNotOnSearchfox", true);
	tw_json_key_bool(&x->j, "keepProfileThreadOrder", true);
	tw_json_key_str(&x->j, "platform", TW_STR("Android"));
	if (f->device[0])
		tw_json_key_text(&x->j, "device", f->device);
	tw_json_key_str(&x->j, "importedFrom", TW_STR("tracewell"));
	tw_json_key(&x->j, "markerSchema");
	tw_json_raw(&x->j, TW_STR("[]"));
	put_extras(x);
	tw_json_close(&x->j, '}');
	put_glue(x, ",\"libs\":[],\"threads\":[");
}

/* --- threads --- */

static void put_ms(struct tw_export *x, int64_t ns)
{
	if (x->j.comma)
		(void)tw_buf_add(&x->out, ",", 1);
	tw_export_decimal(&x->out, ns, MS_DIGITS);
	x->j.comma = true;
}

static void thread(struct tw_export *x, uint32_t i)
{
	const struct tw_thread_info *t = x->thread;
	const char *process = x->facts.process[0] ? x->facts.process : x->facts.app;
	char pid[24];

	(void)i;
	(void)snprintf(pid, sizeof pid, "%" PRIu32, t->pid ? t->pid : x->info->pid);
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "processType", TW_STR("default"));
	tw_json_key_text(&x->j, "processName", process);
	tw_json_key_int(&x->j, "processStartupTime", 0);
	tw_json_key(&x->j, "processShutdownTime");
	tw_json_null(&x->j);
	tw_json_key(&x->j, "registerTime");
	put_ms(x, tw_export_from(x, t));
	tw_json_key(&x->j, "unregisterTime");
	put_ms(x, tw_export_to(x, t));
	tw_json_key(&x->j, "pausedRanges");
	tw_json_raw(&x->j, TW_STR("[]"));
	tw_json_key_str(&x->j, "name", tw_export_thread_name(x));
	tw_json_key_bool(&x->j, "isMainThread", t->is_main);
	tw_json_key_text(&x->j, "pid", pid);
	tw_json_key_int(&x->j, "tid", (int64_t)t->tid);
	tw_json_key(&x->j, "markers");
	tw_json_raw(&x->j, TW_STR("{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
	                          "\"phase\":[],\"category\":[],\"length\":0}"));
	put_glue(x, ",\"samples\":{\"weightType\":\"tracing-ms\",\"stack\":[");
}

/* Tracks the ranges. True: a non-empty one has just ended and is in *ret. */
static bool next_range(struct tw_export *x, uint32_t i, struct columns *ret)
{
	struct columns *c = x->state;
	bool ended = i > 0 && x->edge.ts_ns > c->from_ns;

	*ret = *c;
	if (i == 0 || ended)
		c->from_ns = x->edge.ts_ns;
	c->at = x->follow.at;
	c->n += ended;
	return ended;
}

static void stack(struct tw_export *x, uint32_t i)
{
	struct columns s;

	if (!next_range(x, i, &s))
		return;
	if (s.at)
		tw_json_int(&x->j, (int64_t)(s.base + s.at - 1));
	else
		tw_json_null(&x->j);
}

static void time(struct tw_export *x, uint32_t i)
{
	struct columns s;

	if (next_range(x, i, &s))
		put_ms(x, s.from_ns);
}

static void weight(struct tw_export *x, uint32_t i)
{
	struct columns s;

	if (next_range(x, i, &s))
		put_ms(x, x->edge.ts_ns - s.from_ns);
}

/* A sample without a stack ends the last range. */
static void last_stack(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_null(&x->j);
	put_glue(x, "],\"time\":[");
}

static void last_time(struct tw_export *x, uint32_t i)
{
	const struct columns *c = x->state;

	(void)i;
	put_ms(x, c->from_ns);
	put_glue(x, "],\"weight\":[");
}

static void last_weight(struct tw_export *x, uint32_t i)
{
	struct columns *c = x->state;

	(void)i;
	put_ms(x, 0);
	c->n++;
	put_glue(x, "],\"length\":#}}");
	x->j.comma = true;
	c->base += x->tree.n - 1;
}

/* --- shared tables --- */

static void put_int(struct tw_export *x, int64_t v)
{
	struct columns *c = x->state;

	tw_json_int(&x->j, v);
	c->n++;
}

static void node_frame(struct tw_export *x, uint32_t i)
{
	put_int(x, tw_export_number(x, x->tree.nodes[i].method) - 1);
}

static void node_prefix(struct tw_export *x, uint32_t i)
{
	uint32_t parent = x->tree.nodes[i].parent;

	put_int(x, parent ? i - parent : 0);
}

static void none(struct tw_export *x, uint32_t i)
{
	(void)i;
	put_int(x, -1);
}

static void zero(struct tw_export *x, uint32_t i)
{
	(void)i;
	put_int(x, 0);
}

static void one(struct tw_export *x, uint32_t i)
{
	(void)i;
	put_int(x, 1);
}

static void same(struct tw_export *x, uint32_t i)
{
	put_int(x, i);
}

static void null(struct tw_export *x, uint32_t i)
{
	struct columns *c = x->state;

	(void)i;
	tw_json_null(&x->j);
	c->n++;
}

static void no(struct tw_export *x, uint32_t i)
{
	(void)i;
	tw_json_bool(&x->j, false);
}

static void name(struct tw_export *x, uint32_t i)
{
	tw_json_str(&x->j, tw_export_name(x, x->used[i]));
}

/* clang-format off */
#define COLUMN(put) {TW_WALK_ONCE, next_column}, {TW_WALK_METHODS, put}
static const struct tw_export_step program[] = {
	{TW_WALK_ONCE, head},
	{TW_WALK_THREADS, NULL},
	{TW_WALK_ONCE, thread},
	{TW_WALK_STACKS, stack}, {TW_WALK_ONCE, last_stack},
	{TW_WALK_STACKS, time}, {TW_WALK_ONCE, last_time},
	{TW_WALK_STACKS, weight}, {TW_WALK_ONCE, last_weight},
	{TW_WALK_NEXT_THREAD, NULL},
	{TW_WALK_ONCE, next_column},
	{TW_WALK_THREADS, NULL}, {TW_WALK_NODES, node_frame}, {TW_WALK_NEXT_THREAD, NULL},
	{TW_WALK_ONCE, next_column},
	{TW_WALK_THREADS, NULL}, {TW_WALK_NODES, node_prefix}, {TW_WALK_NEXT_THREAD, NULL},
	/* frames: address, lib, inline depth, category and the one below, function, ... */
	COLUMN(none), COLUMN(none), COLUMN(zero), COLUMN(one), COLUMN(zero), COLUMN(same),
	COLUMN(null), COLUMN(null), COLUMN(null), COLUMN(null), COLUMN(null),
	/* functions: name, of JavaScript, relevant for it, resource, source, line, column, ... */
	COLUMN(same), COLUMN(no), COLUMN(no), COLUMN(none), COLUMN(null), COLUMN(null),
	COLUMN(null), COLUMN(null),
	COLUMN(name),
	{TW_WALK_ONCE, next_column},
	{TW_WALK_END, NULL},
};
#undef COLUMN
/* clang-format on */

const struct tw_export_format tw_export_firefox = {
        .kind = {.name = "firefox",
                .suffix = ".firefox.json",
                .type = "application/json",
                .summary = "a processed profile of the Firefox Profiler"},
        .program = program,
        .state_bytes = sizeof(struct columns),
        .metrics = 1 << TW_EXPORT_WALL,
};

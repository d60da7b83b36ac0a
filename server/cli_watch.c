/*
 * cli_watch.c - `tracewell watch`: the traces of a server as they come.
 *
 * On a terminal the newest of them, drawn anew in place; else (or with --json) a line for each
 * trace when it is seen first and when its state changes, the oldest first.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "cli_ask.h"
#include "cli_term.h"

enum { PAGE = 100, MAX_EVERY_S = 3600, SCREEN_BYTES = 1 << 20, ID_BYTES = 33, STATE_BYTES = 16 };

static const char synopsis[] =
        "watch --server URL --key KEY [--where K=V]... [--every SECONDS] [--once] [--json]\n"
        "  K: app, version_name, build_id, device, os, scenario, process, state, tag, pinned, q, "
        "project";

struct seen {
	char id[ID_BYTES], state[STATE_BYTES];
};

struct watch {
	struct tw_cli_ask ask;
	const char *every;
	bool once, json, lines;
	struct seen seen[PAGE]; /* of the page before */
	size_t n_seen;
};

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static enum tw_paint paint_of(const char *state)
{
	if (strcmp(state, "failed") == 0)
		return TW_RED;
	if (strcmp(state, "ready") == 0)
		return TW_GREEN;
	return strcmp(state, "archived") == 0 ? TW_DIM : TW_YELLOW;
}

static void add_when(struct tw_buf *out, const json_t *trace)
{
	time_t s = (time_t)(json_integer_value(json_object_get(trace, "created_ms")) / 1000);
	char text[32] = "-";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		(void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	tw_buf_printf(out, "%s  ", text);
}

/* What people call it; else why it failed; else its device. */
static const char *about(const json_t *trace)
{
	const char *title = text_of(trace, "title");
	const char *why = text_of(json_object_get(trace, "error"), "message");

	if (*title)
		return title;
	return *why ? why : text_of(json_object_get(trace, "meta"), "device");
}

static void add_row(struct tw_buf *out, const json_t *trace, unsigned rest)
{
	const json_t *meta = json_object_get(trace, "meta");
	const json_t *summary = json_object_get(trace, "summary");
	const char *state = text_of(trace, "state");
	char time[32] = "-";

	add_when(out, trace);
	tw_buf_printf(out, "%s", tw_term_paint(stdout, paint_of(state)));
	tw_term_text(out, state, 8);
	tw_buf_printf(out, "%s  ", tw_term_paint(stdout, TW_PLAIN));
	if (json_is_object(summary))
		(void)tw_term_time(time, sizeof time,
		        json_integer_value(json_object_get(summary, "duration_ns")));
	tw_buf_printf(out, "%8s  ", time);
	tw_term_text(out, text_of(meta, "scenario"), 14);
	tw_buf_printf(out, "  ");
	tw_term_text(out, text_of(meta, "version_name"), 10);
	tw_buf_printf(out, "  ");
	tw_term_text(out, text_of(trace, "id"), 26);
	tw_buf_printf(out, "  ");
	tw_term_text(out, about(trace), rest);
}

static enum tw_status put(const struct tw_buf *out, struct tw_err *err)
{
	if (tw_buf_status(out) != TW_OK || fwrite(out->data, 1, out->len, stdout) != out->len ||
	        fflush(stdout) != 0)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "standard output cannot be written");
	return TW_OK;
}

/* --- a terminal --- */

static void add_head(const struct watch *w, struct tw_buf *out, const json_t *page)
{
	tw_buf_printf(out, "\033[H%s", tw_term_paint(stdout, TW_BOLD));
	tw_term_text(out, w->ask.server, 0);
	tw_buf_printf(out, "%s  %lld traces; Ctrl-C ends\033[K\n\033[K\n",
	        tw_term_paint(stdout, TW_PLAIN),
	        (long long)json_integer_value(json_object_get(page, "total")));
}

static enum tw_status draw(const struct watch *w, const json_t *page, struct tw_err *err)
{
	enum { BEFORE = 91 };
	const struct tw_term_size size = tw_term_size(stdout);
	const json_t *traces = json_object_get(page, "traces");
	unsigned rest = size.columns > BEFORE + 8 ? size.columns - BEFORE : 8;
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, SCREEN_BYTES);
	add_head(w, &out, page);
	for (size_t i = 0; i < json_array_size(traces) && i + 3 < size.rows; i++) {
		add_row(&out, json_array_get(traces, i), rest);
		tw_buf_printf(&out, "\033[K\n");
	}
	tw_buf_printf(&out, "\033[J");
	st = put(&out, err);
	tw_buf_done(&out);
	return st;
}

/* --- lines --- */

static bool is_new(const struct watch *w, const json_t *trace)
{
	const char *id = text_of(trace, "id");

	for (size_t i = 0; i < w->n_seen; i++)
		if (strcmp(w->seen[i].id, id) == 0)
			return strcmp(w->seen[i].state, text_of(trace, "state")) != 0;
	return true;
}

static void remember(struct watch *w, const json_t *traces)
{
	w->n_seen = 0;
	for (size_t i = 0; i < json_array_size(traces) && i < PAGE; i++) {
		const json_t *trace = json_array_get(traces, i);
		struct seen *s = &w->seen[w->n_seen++];

		(void)snprintf(s->id, sizeof s->id, "%s", text_of(trace, "id"));
		(void)snprintf(s->state, sizeof s->state, "%s", text_of(trace, "state"));
	}
}

static void add_line(const struct watch *w, struct tw_buf *out, const json_t *trace)
{
	char *text = w->json ? json_dumps(trace, JSON_COMPACT) : NULL;

	if (text)
		(void)tw_buf_add_str(out, tw_str_of(text));
	else
		add_row(out, trace, 0);
	(void)tw_buf_add_u8(out, '\n');
	free(text); /* NOLINT: jansson's */
}

static enum tw_status tell(struct watch *w, const json_t *page, struct tw_err *err)
{
	const json_t *traces = json_object_get(page, "traces");
	const size_t n = json_array_size(traces);
	enum tw_status st = TW_OK;
	size_t told = 0;

	for (size_t i = n; st == TW_OK && i-- > 0;) {
		const json_t *trace = json_array_get(traces, i);
		struct tw_buf out;

		if (!is_new(w, trace))
			continue;
		told++;
		tw_buf_init(&out, SCREEN_BYTES);
		add_line(w, &out, trace);
		st = put(&out, err);
		tw_buf_done(&out);
	}
	if (w->n_seen && told == PAGE)
		(void)fputs("tracewell watch: more came than one answer holds; some are left out\n",
		        stderr);
	remember(w, traces);
	return st;
}

/* --- */

static enum tw_status look(struct watch *w, bool patient, struct tw_err *err)
{
	static const char limit[] = "100"; /* PAGE */
	const char *const pairs[] = {"sort", "created", "order", "desc", "limit", limit, NULL};
	json_t *page = NULL;
	enum tw_status st = tw_cli_ask_get(&w->ask, "/api/v1/traces", pairs, patient, &page, err);

	if (st == TW_OK)
		st = w->lines ? tell(w, page, err) : draw(w, page, err);
	json_decref(page);
	return st;
}

/* A server that is started again is waited for; one that was never there is not. */
static enum tw_status run(struct watch *w, uint64_t every_s, struct tw_err *err)
{
	const struct timespec pause = {.tv_sec = (time_t)every_s};
	enum tw_status st;

	if (!w->lines)
		(void)fputs("\033[2J", stdout);
	for (st = look(w, false, err); st == TW_OK && !w->once; st = look(w, true, err))
		(void)nanosleep(&pause, NULL);
	return st;
}

int tw_cli_watch(int argc, char **argv)
{
	static struct watch w = {.every = "2"};
	const struct tw_flag flags[] = {
	        {"server", .value = &w.ask.server},
	        {"key", .value = &w.ask.key},
	        {"where", .list = w.ask.where, .max = TW_ASK_WHERE, .n = &w.ask.n_where},
	        {"every", .value = &w.every},
	        {"once", .on = &w.once},
	        {"json", .on = &w.json},
	};
	struct tw_err err;
	uint64_t every_s;
	int n = tw_cli_flags(synopsis, flags, sizeof flags / sizeof *flags, argc, argv);
	int code;

	if (n < 0)
		return TW_EXIT_USAGE;
	if (n > 0 || !tw_str_u64(tw_str_of(w.every), MAX_EVERY_S, &every_s) || every_s == 0 ||
	        !tw_cli_ask_begin(&w.ask)) {
		(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	w.lines = w.json || w.once || !tw_term_is(stdout);
	code = run(&w, every_s, &err) == TW_OK ? TW_EXIT_OK
	                                       : tw_cli_ask_failed(&w.ask, "watch", &err);
	tw_cli_ask_end(&w.ask);
	return code;
}

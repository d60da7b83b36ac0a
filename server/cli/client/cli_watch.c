/*
 * cli_watch.c - `tracewell watch`: prints a server's traces as they arrive.
 *
 * A terminal shows the newest ones and is redrawn in place. Otherwise, or with --json, each trace
 * gets a line when it is first seen and when its state changes, oldest first.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"
#include "server/cli/client/cli_server.h"

enum {
	PAGE = 100,
	PAGES = 20, /* at most, per poll */
	MAX_EVERY_S = 3600,
	SCREEN_BYTES = 1 << 20,
	LINE_BYTES = 1 << 20,
	ID_BYTES = 33,
	STATE_BYTES = 16,
	WIDE = 120, /* columns from which dates are shown */
	ALL = 0     /* columns: text is not truncated */
};

struct seen {
	int64_t created_ms;
	char id[ID_BYTES], state[STATE_BYTES];
};

struct watch {
	struct tw_cli_server server;
	uint64_t every_s;
	bool once, json, lines;
	struct seen seen[PAGES * PAGE]; /* at the previous poll, newest first */
	size_t n_seen;
	bool looked;
	struct seen bottom; /* traces that are not newer existed at the first poll */
};

static enum tw_paint paint_of(const char *state)
{
	if (strcmp(state, "failed") == 0)
		return TW_RED;
	if (strcmp(state, "ready") == 0)
		return TW_GREEN;
	return strcmp(state, "archived") == 0 ? TW_DIM : TW_YELLOW;
}

/* A row, truncated to the window's width. */
struct row {
	struct tw_buf *out;
	unsigned left; /* columns */
	bool is_cut;
};

static void add_cell(struct row *r, const char *text, unsigned columns)
{
	if (!r->is_cut) {
		tw_term_text(r->out, tw_str_of(text), columns);
	} else if (r->left) {
		unsigned shown = columns && columns < r->left ? columns : r->left;

		tw_term_text(r->out, tw_str_of(text), shown);
		r->left -= shown;
	}
}

static void add_when(struct row *r, const json_t *trace)
{
	time_t s = (time_t)(json_integer_value(json_object_get(trace, "created_ms")) / 1000);
	bool is_short = r->is_cut && r->left < WIDE;
	char text[32] = "-";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		(void)strftime(
		        text, sizeof text, is_short ? "%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%SZ", &tm);
	add_cell(r, text, is_short ? 9 : 20);
	add_cell(r, "  ", 2);
}

/* The trace's title, or why it failed, or its device. */
static const char *about(const json_t *trace)
{
	const char *title = tw_json_text(trace, "title");
	const char *why = tw_json_text(json_object_get(trace, "error"), "message");

	if (*title)
		return title;
	return *why ? why : tw_json_text(json_object_get(trace, "meta"), "device");
}

static void add_duration(struct row *r, const json_t *trace)
{
	const json_t *summary = json_object_get(trace, "summary");
	char time[32] = "-", text[40];

	if (json_is_true(json_object_get(summary, "timed")))
		(void)tw_term_time(time, sizeof time,
		        json_integer_value(json_object_get(summary, "duration_ns")));
	(void)snprintf(text, sizeof text, "%8s  ", time);
	add_cell(r, text, 10);
}

static void add_row(struct tw_buf *out, const json_t *trace, unsigned columns)
{
	struct row r = {.out = out, .left = columns, .is_cut = columns != ALL};
	const json_t *meta = json_object_get(trace, "meta");
	const char *state = tw_json_text(trace, "state");

	add_when(&r, trace);
	tw_buf_printf(out, "%s", tw_term_paint(stdout, paint_of(state)));
	add_cell(&r, state, 8);
	tw_buf_printf(out, "%s", tw_term_paint(stdout, TW_PLAIN));
	add_cell(&r, "  ", 2);
	add_duration(&r, trace);
	add_cell(&r, tw_json_text(meta, "scenario"), 14);
	add_cell(&r, "  ", 2);
	add_cell(&r, tw_json_text(meta, "version_name"), 10);
	add_cell(&r, "  ", 2);
	add_cell(&r, tw_json_text(trace, "id"), 26);
	add_cell(&r, "  ", 2);
	add_cell(&r, about(trace), ALL);
}

static enum tw_status put(const struct tw_buf *out, struct tw_err *err)
{
	if (tw_buf_status(out) != TW_OK || fwrite(out->data, 1, out->len, stdout) != out->len ||
	        fflush(stdout) != 0)
		return tw_fail(err, TW_IO, "the output cannot be written");
	return TW_OK;
}

/* --- a terminal --- */

static void add_head(
        const struct watch *w, struct tw_buf *out, const json_t *page, unsigned columns)
{
	char count[64];
	int n = snprintf(count, sizeof count, "  %lld%s traces; Ctrl-C ends",
	        (long long)json_integer_value(json_object_get(page, "total")),
	        json_is_true(json_object_get(page, "total_is_capped")) ? "+" : "");
	unsigned space = columns > (unsigned)n + 9 ? columns - (unsigned)n - 1 : 8;

	tw_buf_printf(out, "\033[H%s", tw_term_paint(stdout, TW_BOLD));
	tw_term_text(
	        out, tw_str_of(w->server.server), strlen(w->server.server) > space ? space : ALL);
	tw_buf_printf(out, "%s%s\033[K\n\033[K\n", tw_term_paint(stdout, TW_PLAIN), count);
}

/* Wrapping is off while drawing: rows are truncated by characters, but some take two columns. */
static enum tw_status draw(const struct watch *w, const json_t *page, struct tw_err *err)
{
	const struct tw_term_size size = tw_term_size(stdout);
	const json_t *traces = json_object_get(page, "traces");
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, SCREEN_BYTES);
	tw_buf_printf(&out, "\033[?7l");
	add_head(w, &out, page, size.columns);
	for (size_t i = 0; i < json_array_size(traces) && i + 3 < size.rows; i++) {
		/* clears the end of the line first: after a full row it would clear the last
		 * column */
		tw_buf_printf(&out, "\033[K");
		add_row(&out, json_array_get(traces, i), size.columns);
		tw_buf_printf(&out, "\n");
	}
	tw_buf_printf(&out, "\033[J\033[?7h");
	st = put(&out, err);
	tw_buf_done(&out);
	return st;
}

/* --- lines --- */

static struct seen seen_of(const json_t *trace)
{
	struct seen s = {.created_ms = json_integer_value(json_object_get(trace, "created_ms"))};

	(void)snprintf(s.id, sizeof s.id, "%s", tw_json_text(trace, "id"));
	(void)snprintf(s.state, sizeof s.state, "%s", tw_json_text(trace, "state"));
	return s;
}

static bool is_newer(const struct seen *a, const struct seen *b)
{
	if (a->created_ms != b->created_ms)
		return a->created_ms > b->created_ms;
	return strcmp(a->id, b->id) > 0;
}

static bool is_finished(const struct seen *s)
{
	return strcmp(s->state, "ready") == 0 || strcmp(s->state, "failed") == 0 ||
	       strcmp(s->state, "archived") == 0;
}

/* The state differs from the previous poll; or the trace is new, and not only visible because a
 * newer one was deleted. */
static bool is_new(const struct watch *w, const struct seen *now)
{
	for (size_t i = 0; i < w->n_seen; i++)
		if (strcmp(w->seen[i].id, now->id) == 0)
			return strcmp(w->seen[i].state, now->state) != 0;
	return !w->looked || is_newer(now, &w->bottom);
}

/* Each poll reads back to the newest trace of the previous one, and to those unfinished then. */
static bool is_enough(const struct watch *w, const json_t *traces)
{
	const size_t n = json_array_size(traces);
	const struct seen last = seen_of(n ? json_array_get(traces, n - 1) : NULL);

	if (!w->looked || n == 0)
		return true;
	if (w->n_seen && is_newer(&last, &w->seen[0]))
		return false;
	for (size_t i = 0; i < w->n_seen; i++)
		if (!is_finished(&w->seen[i]) && is_newer(&last, &w->seen[i]))
			return false;
	return true;
}

static void remember(struct watch *w, const json_t *traces, bool is_all)
{
	const size_t n = json_array_size(traces);

	for (w->n_seen = 0; w->n_seen < n && w->n_seen < sizeof w->seen / sizeof *w->seen;
	        w->n_seen++)
		w->seen[w->n_seen] = seen_of(json_array_get(traces, w->n_seen));
	if (!is_all && w->n_seen && is_newer(&w->seen[w->n_seen - 1], &w->bottom))
		w->bottom = w->seen[w->n_seen - 1];
	w->looked = true;
}

static void add_line(const struct watch *w, struct tw_buf *out, const json_t *trace)
{
	char *text = w->json ? json_dumps(trace, JSON_COMPACT) : NULL;

	if (text)
		(void)tw_buf_add_str(out, tw_str_of(text));
	else
		add_row(out, trace, ALL);
	(void)tw_buf_add_u8(out, '\n');
	free(text); /* NOLINT: jansson's */
}

static enum tw_status print_one(const struct watch *w, const json_t *trace, struct tw_err *err)
{
	struct tw_buf out;
	enum tw_status st;

	tw_buf_init(&out, LINE_BYTES);
	add_line(w, &out, trace);
	st = put(&out, err);
	tw_buf_done(&out);
	return st;
}

static enum tw_status print_new(
        struct watch *w, const json_t *traces, bool is_all, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = json_array_size(traces); st == TW_OK && i-- > 0;) {
		const json_t *trace = json_array_get(traces, i);
		const struct seen now = seen_of(trace);

		if (is_new(w, &now))
			st = print_one(w, trace, err);
	}
	if (!is_all && !is_enough(w, traces))
		(void)fprintf(stderr,
		        "tracewell watch: more than %d traces arrived since the last poll; some "
		        "are not shown\n",
		        PAGES * PAGE);
	remember(w, traces, is_all);
	return st;
}

/* --- */

static enum tw_status get_page(
        struct watch *w, const char *cursor, bool patient, json_t **ret, struct tw_err *err)
{
	static const char limit[] = "100"; /* PAGE */
	const char *const pairs[] = {"sort", "created", "order", "desc", "limit", limit,
	        cursor ? "cursor" : NULL, cursor, NULL};

	return tw_cli_server_get(&w->server, "/api/v1/traces", pairs, patient, ret, err);
}

/* Adds the pages after `page` to its traces, up to the limit of a poll. */
static enum tw_status read_pages(
        struct watch *w, json_t *page, bool patient, bool *ret_is_all, struct tw_err *err)
{
	json_t *traces = json_object_get(page, "traces");
	json_t *next = json_incref(json_object_get(page, "next_cursor"));
	enum tw_status st = TW_OK;

	for (int i = 1; st == TW_OK && i < PAGES && json_is_string(next) && !is_enough(w, traces);
	        i++) {
		json_t *more = NULL;

		st = get_page(w, json_string_value(next), patient, &more, err);
		json_decref(next);
		next = json_incref(json_object_get(more, "next_cursor"));
		if (st == TW_OK && json_array_extend(traces, json_object_get(more, "traces")) != 0)
			st = tw_fail(err, TW_IO, "the response has no traces");
		json_decref(more);
	}
	*ret_is_all = !json_is_string(next);
	json_decref(next);
	return st;
}

static enum tw_status poll(struct watch *w, bool patient, struct tw_err *err)
{
	json_t *page = NULL;
	bool is_all = true;
	enum tw_status st = get_page(w, NULL, patient, &page, err);

	if (st == TW_OK && !w->lines)
		st = draw(w, page, err);
	else if (st == TW_OK && (st = read_pages(w, page, patient, &is_all, err)) == TW_OK)
		st = print_new(w, json_object_get(page, "traces"), is_all, err);
	json_decref(page);
	return st;
}

/* Waits for a server that restarts, but not for one that was never reachable. */
static enum tw_status run(struct watch *w, struct tw_err *err)
{
	enum tw_status st;

	if (!w->lines)
		(void)fputs("\033[2J", stdout);
	for (st = poll(w, false, err); st == TW_OK && !w->once; st = poll(w, true, err))
		tw_sleep_ms((int64_t)w->every_s * 1000);
	return st;
}

int tw_cli_watch(int argc, char **argv)
{
	static struct watch w = {.every_s = 2};
	const struct tw_flag flags[] = {
	        TW_CLI_SERVER(&w.server.server),
	        TW_CLI_KEY(&w.server.key),
	        TW_CLI_WHERE(w.server.where, TW_CLI_WHERE_MAX, &w.server.n_where),
	        {"every", .number = &w.every_s, .least = 1, .most = MAX_EVERY_S},
	        {"once", .on = &w.once},
	        {"json", .on = &w.json},
	};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_err err;
	int code;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	w.lines = w.json || w.once || !tw_term_is(stdout);
	code = run(&w, &err) == TW_OK ? TW_EXIT_OK : tw_cli_server_failed(&w.server, "watch", &err);
	tw_cli_server_end(&w.server);
	return code;
}

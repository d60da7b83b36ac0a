/* `tracewell decode`: the events of an upload as text, or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/sinks/print_sink.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/decode/local_trace.h"
#include "server/fleet/anr/anr_names.h"
#include "server/query/note_names.h"

/* --- lines of the print sink as JSON --- */

struct tw_decode_json {
	struct tw_buf line; /* incomplete line */
};

enum { LINE_BYTES = 256 << 20, MAX_FIELDS = 8 };

/* Fields after the event's name, in order: # a number, ! JSON. */
static const struct shape {
	const char *event;
	const char *fields[MAX_FIELDS];
} shapes[] = {
        {"slice", {"#tid", "#ts_ns", "#dur_ns", "name", "#cpu_ns"}},
        {"begin", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"end", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"end_all", {"#tid", "#ts_ns", "name", "#cpu_ns"}},
        {"thread", {"#tid", "name"}},
        {"clock", {"#pid", "#mono_ns", "#boot_ns", "#session_ns", "#some_ns"}},
        {"method", {"#id", "name"}},
        {"note", {"#tid", "#ts_ns", "#dur_ns", "kind", "#value", "text", "detail"}},
        {"process", {"#tid", "#pid"}},
        {"transaction", {"interface", "#code", "name"}},
        {"source", {"#tid", "source", "#interval_ns"}},
        {"repair", {"repair", "#count", "#offset"}},
        {"document", {"kind", "!json"}},
};

static const struct shape *shape_of(struct tw_str event)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (tw_str_eq(event, tw_str_of(shapes[i].event)))
			return &shapes[i];
	return NULL;
}

/* Numbers over 2^63 - 1 (ids) and non-numbers ("-") remain text. */
static void put_field(struct tw_json *j, const char *field, struct tw_str text)
{
	int64_t number;

	tw_json_key(j, field + (*field == '#' || *field == '!'));
	if (tw_str_starts(text, TW_STR("cpu ")) && *field == '#')
		text = tw_str_from(text, 4);
	if (*field == '!')
		tw_json_raw(j, text);
	else if (*field == '#' && tw_str_i64(text, &number))
		tw_json_int(j, number);
	else
		tw_json_str(j, text);
}

static enum tw_status put_line(struct tw_str line, struct tw_err *err)
{
	struct tw_str rest = line, event = tw_str_split(&rest, '\t');
	const struct shape *shape = shape_of(event);
	struct tw_cli_line out;
	struct tw_json *j = tw_cli_line(&out);

	tw_json_key_str(j, "event", event);
	for (size_t i = 0; shape && i < MAX_FIELDS && shape->fields[i] && rest.ptr; i++) {
		bool last = tw_str_find(rest, TW_STR("\t")) == rest.len;
		struct tw_str text;

		text = tw_str_split(&rest, '\t');
		if (strcmp(shape->fields[i], "#tid") == 0 &&
		        tw_str_find(text, TW_STR("/")) < text.len)
			put_field(j, "#pid", tw_str_split(&text, '/')); /* 4000/7 */
		put_field(j, shape->fields[i], text);
		if (last)
			break;
	}
	return tw_cli_line_put(&out, err);
}

static void tw_decode_json_init(struct tw_decode_json *d)
{
	tw_buf_init(&d->line, LINE_BYTES);
}

static void tw_decode_json_done(struct tw_decode_json *d)
{
	tw_buf_done(&d->line);
}

/* Accepts text in pieces of any size; prints complete lines. */
static enum tw_status tw_decode_json_text(
        struct tw_decode_json *d, const char *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && n > 0) {
		const char *end = memchr(p, '\n', n);
		size_t take = end ? (size_t)(end - p) : n;

		if (tw_buf_add(&d->line, p, take) != TW_OK)
			st = tw_fail(err, TW_NOMEM, "a line of the response is too long");
		if (st == TW_OK && end) {
			st = put_line(
			        (struct tw_str){(const char *)d->line.data, d->line.len}, err);
			tw_buf_clear(&d->line);
			take++;
		}
		p += take;
		n -= take;
	}
	return st;
}

static const char synopsis[] =
        "decode FILE [--mapping M] [--retrace R] [--symbols SO]... [--threads T] [--json]";

struct output {
	const struct tw_names *names;
	struct tw_arena *arena;
	struct tw_decode_json json;
	bool is_json;
	struct tw_err err; /* the error that prevented text */
};

static enum tw_status write_text(void *arg, const char *p, size_t n)
{
	struct output *o = arg;

	if (o->is_json)
		return tw_decode_json_text(&o->json, p, n, &o->err);
	return fwrite(p, 1, n, stdout) == n
	               ? TW_OK
	               : tw_fail(&o->err, TW_IO, "standard output cannot be written");
}

static void resolve(void *arg, uint64_t id, char *buf, size_t cap)
{
	(void)tw_names_display(((const struct output *)arg)->names,
	        &(struct tw_named){.has_id = true, .id = id}, buf, cap);
}

static void original(void *arg, struct tw_str name, char *buf, size_t cap)
{
	(void)tw_names_display(
	        ((const struct output *)arg)->names, &(struct tw_named){.name = name}, buf, cap);
}

/* A detail that is not valid JSON is printed unchanged. */
static struct tw_note original_note(void *arg, const struct tw_note *note)
{
	const struct output *o = arg;
	const struct tw_retrace *retrace = o->names->retrace;
	struct tw_note named = *note;
	json_t *detail = retrace && note->detail.len
	                         ? json_loadb(note->detail.ptr, note->detail.len, 0, NULL)
	                         : NULL;
	char *text = json_is_object(detail) && tw_note_detail(retrace, detail)
	                     ? json_dumps(detail, JSON_COMPACT)
	                     : NULL;
	const char *copy = text ? tw_arena_str(o->arena, tw_str_of(text)) : NULL;

	if (retrace)
		named.text = tw_note_text(retrace, note->kind, note->text);
	if (copy)
		named.detail = tw_str_of(copy);
	free(text);
	json_decref(detail);
	return named;
}

static struct tw_str original_document(void *arg, const char *kind, struct tw_str json)
{
	const struct output *o = arg;
	struct tw_str named = {NULL, 0};

	if (strcmp(kind, "anr") == 0)
		named = tw_anr_named(o->arena, json, o->names);
	return named.ptr ? named : json;
}

static enum tw_status print(
        const char *file, const char *threads, struct output *o, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	const struct tw_print_names names = {o, original, original_note, original_document};
	struct tw_print_sink *p =
	        a ? tw_print_sink_new(a, write_text, o->names->map ? resolve : NULL, o) : NULL;
	struct tw_trace_facts facts;
	enum tw_status st = TW_OK;

	if (!p)
		st = tw_oom(err);
	o->arena = a;
	if (p && (o->names->retrace || o->names->natives))
		tw_print_sink_names(p, &names);
	if (st == TW_OK && threads)
		st = tw_local_decode(threads, "threads", tw_print_sink_of(p), NULL, &facts, err);
	if (st == TW_OK)
		st = tw_local_decode(file, NULL, tw_print_sink_of(p), NULL, &facts, err);
	if (p && tw_print_sink_end(p) != TW_OK && st == TW_OK) {
		tw_err_copy(err, &o->err);
		st = o->err.code;
	}
	if (fflush(stdout) != 0 && st == TW_OK)
		st = tw_fail(err, TW_IO, "standard output cannot be written");
	tw_arena_free(a);
	return st;
}

int tw_cli_decode(int argc, char **argv)
{
	struct output o = {0};
	const char *mapping = NULL;
	const char *retrace = NULL;
	const char *threads = NULL;
	const char *symbols[TW_LOCAL_SYMBOLS];
	size_t n_symbols = 0;
	const struct tw_flag flags[] = {{.name = "mapping", .value = &mapping},
	        {.name = "retrace", .value = &retrace}, {.name = "threads", .value = &threads},
	        {.name = "symbols", .list = symbols, .max = TW_LOCAL_SYMBOLS, .n = &n_symbols},
	        {.name = "json", .on = &o.is_json}};
	const struct tw_usage usage = {synopsis, flags, sizeof flags / sizeof *flags, "FILE"};
	struct tw_local_names names;
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	tw_local_names_init(&names);
	st = tw_local_names_read(&names, mapping, retrace, &err);
	if (st == TW_OK)
		st = tw_local_symbols_read(&names, symbols, n_symbols, &err);
	if (st == TW_OK) {
		o.names = &names.names;
		tw_decode_json_init(&o.json);
		st = print(argv[1], threads, &o, &err);
		tw_decode_json_done(&o.json);
	}
	tw_local_names_done(&names);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("decode", &err);
}

/* `tracewell decode`: the events of an upload as text, or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/formats/sinks/print_sink.h"
#include "server/cli/cli.h"
#include "server/cli/client/cli_decode_json.h"
#include "server/decode/local_trace.h"
#include "server/fleet/anr/anr_names.h"
#include "server/query/note_names.h"

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

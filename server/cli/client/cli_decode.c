/* `tracewell decode`: the events of an upload as text, or as JSON. */
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/lookup.h"
#include "decoder/formats/codes.h"
#include "decoder/formats/sink.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/decode/local_trace.h"
#include "server/fleet/anr/anr_names.h"
#include "server/query/note_names.h"

/* --- events as text --- */

/* One event per line, fields separated by tabs:
 *
 *   slice   TID  TS_NS  DUR_NS  NAME      begin/end/end_all  TID  TS_NS  NAME
 *   thread  TID  NAME                     clock      PID  MONO_NS  BOOT_NS  SESSION_NS
 *                                         [SOME_NS], one of the two clocks, unknown which
 *   method  ID  NAME                      named by the trace itself
 *   note    TID  TS_NS  DUR_NS  KIND  VALUE  TEXT  DETAIL
 *   process TID  PID                      the process of a thread that was emitted without one
 *   transaction  INTERFACE  CODE  NAME
 *   repair  NAME  COUNT  OFFSET           (all at the end, print_repairs)
 *
 * TID is PID/TID if another process had a thread of that id before.  The NAME of a method known by
 * its number only is "#<id>" if no mapping names it.  Names are made valid UTF-8 without tabs
 * and line ends.  Golden files have this text. */
enum { NAME_BYTES = 1024, FIRST_CAP = 256, LINE_BYTES = 256 << 20 };

struct label { /* of a track or a method */
	uint64_t id;
	const char *name; /* NULL: only the id */
	uint32_t pid;     /* of a track without a name; 0 unknown */
};

struct labels {
	struct label *list;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash, twice as many as cap */
};

struct print_sink {
	struct tw_sink sink; /* first member */
	struct tw_arena *arena;
	const struct tw_names *names;
	bool is_json;
	struct tw_buf line; /* incomplete line */
	struct labels tracks, symbols;
	struct tw_codes codes;
	uint64_t counts[TW_REPAIR_COUNT], offsets[TW_REPAIR_COUNT];
	struct tw_err err; /* the first error that prevented a line; code TW_OK: none */
};

static enum tw_status put_json(struct tw_str line, struct tw_err *err);

static struct print_sink *sink_of(struct tw_sink *s)
{
	return (struct print_sink *)(void *)s;
}

static void put(struct print_sink *p, struct tw_str text)
{
	if (p->err.code == TW_OK && tw_buf_add_str(&p->line, text) != TW_OK)
		(void)tw_fail(&p->err, TW_NOMEM, "out of memory for a line of output");
}

/* Appends to the line, and prints it if that ends it. */
__attribute__((format(printf, 2, 3))) static void emit(struct print_sink *p, const char *fmt, ...)
{
	char text[3 * NAME_BYTES + 300];
	struct tw_str line;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	put(p, (struct tw_str){text, n > 0 ? (size_t)n : 0});
	line = tw_buf_str(&p->line);
	if (p->err.code != TW_OK || !line.len || line.ptr[line.len - 1] != '\n')
		return;
	if (p->is_json)
		(void)put_json((struct tw_str){line.ptr, line.len - 1}, &p->err);
	else if (fwrite(line.ptr, 1, line.len, stdout) != line.len)
		(void)tw_fail(&p->err, TW_IO, "the output cannot be written");
	tw_buf_clear(&p->line);
}

static struct tw_str original_of(struct print_sink *p, struct tw_str name, char buf[NAME_BYTES])
{
	if (!p->names->retrace && !p->names->natives)
		return name;
	(void)tw_names_display(p->names, &(struct tw_named){.name = name}, buf, NAME_BYTES);
	return tw_str_of(buf);
}

/* Makes it one field of one line. */
static void clean(char out[NAME_BYTES], struct tw_str name)
{
	size_t len = tw_utf8_clean(out, NAME_BYTES, name);

	for (size_t i = 0; i < len;) {
		size_t n = tw_utf8_len(out + i, len - i);

		n = n ? n : 1;
		if (tw_utf8_is_control(out + i, n))
			memset(out + i, ' ', n);
		i += n;
	}
}

static uint32_t *slot_of(const struct labels *l, uint64_t id, const char *name)
{
	uint32_t mask = 2 * l->cap - 1;
	uint64_t h = tw_hash_str(tw_str_of(name ? name : ""), 0);
	uint32_t at = (uint32_t)tw_hash_id(h ^ id, 0) & mask;

	for (; l->slots[at]; at = (at + 1) & mask) {
		const struct label *old = &l->list[l->slots[at] - 1];

		if (old->id == id && !old->name == !name && (!name || !strcmp(old->name, name)))
			break;
	}
	return &l->slots[at];
}

static bool widen(struct print_sink *p, struct labels *l)
{
	if (!TW_WIDEN_FROM(FIRST_CAP, p->arena, l->list, l->n, l->cap, l->slots))
		return false;
	for (uint32_t i = 0; i < l->n; i++)
		*slot_of(l, l->list[i].id, l->list[i].name) = i + 1;
	return true;
}

/* The label's number from 1; 0: out of memory.  Copies name. */
static uint32_t label_of(struct print_sink *p, struct labels *l, uint64_t id, const char *name)
{
	const char *copy = NULL;
	uint32_t *slot;

	if (l->n == l->cap && !widen(p, l)) {
		(void)tw_oom(&p->err);
		return 0;
	}
	slot = slot_of(l, id, name);
	if (*slot)
		return *slot;
	if (name) {
		copy = tw_arena_str(p->arena, tw_str_of(name));
		if (!copy) {
			(void)tw_oom(&p->err);
			return 0;
		}
	}
	l->list[l->n] = (struct label){id, copy, 0};
	return *slot = ++l->n;
}

/* Of a thread: its id, or PID/TID if another process has a thread of that id, too. */
static uint32_t track_of(struct print_sink *p, uint32_t pid, uint64_t tid)
{
	const uint32_t at = label_of(p, &p->tracks, tid, NULL);
	struct label *first = at ? &p->tracks.list[at - 1] : NULL;
	char name[32];

	if (!first || !pid || !first->pid || first->pid == pid) {
		if (first && pid)
			first->pid = pid;
		return at;
	}
	(void)snprintf(name, sizeof name, "%u/%llu", tw_pid_number(pid), (unsigned long long)tid);
	return label_of(p, &p->tracks, tid, name);
}

static uint32_t print_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	(void)kind;
	return track_of(sink_of(s), pid, tid);
}

static uint32_t print_method(struct tw_sink *s, uint64_t id)
{
	return label_of(sink_of(s), &sink_of(s)->symbols, id, NULL);
}

static uint32_t print_name(struct tw_sink *s, struct tw_str name)
{
	char buf[NAME_BYTES];
	char raw[NAME_BYTES];

	clean(buf, original_of(sink_of(s), name, raw));
	return label_of(sink_of(s), &sink_of(s)->symbols, 0, buf);
}

static void print_method_name(struct tw_sink *s, uint64_t id, struct tw_str name)
{
	char buf[NAME_BYTES];
	char raw[NAME_BYTES];

	clean(buf, original_of(sink_of(s), name, raw));
	emit(sink_of(s), "method\t%llu\t%s\n", (unsigned long long)id, buf);
}

static void name_of(struct print_sink *p, uint32_t sym, char buf[NAME_BYTES])
{
	const struct label *l = sym && sym <= p->symbols.n ? &p->symbols.list[sym - 1] : NULL;
	char raw[NAME_BYTES];

	if (!l)
		(void)snprintf(buf, NAME_BYTES, "-");
	else if (l->name)
		(void)snprintf(buf, NAME_BYTES, "%s", l->name);
	else if (p->names->map) {
		(void)tw_names_display(
		        p->names, &(struct tw_named){.has_id = true, .id = l->id}, raw, sizeof raw);
		clean(buf, tw_str_of(raw));
	} else
		(void)snprintf(buf, NAME_BYTES, "#%llu", (unsigned long long)l->id);
}

struct tid {
	char text[32];
};

static struct tid tid_of(const struct print_sink *p, uint32_t track)
{
	const struct label *l = track && track <= p->tracks.n ? &p->tracks.list[track - 1] : NULL;
	struct tid t;

	if (l && l->name)
		(void)snprintf(t.text, sizeof t.text, "%s", l->name);
	else
		(void)snprintf(t.text, sizeof t.text, "%llu", l ? (unsigned long long)l->id : 0);
	return t;
}

static void print_event(struct print_sink *p, const struct tw_event *e)
{
	const struct tid tid = tid_of(p, e->track);
	char name[NAME_BYTES];
	char cpu[32] = "";

	name_of(p, e->sym, name);
	if (e->cpu_ns >= 0)
		(void)snprintf(cpu, sizeof cpu, "\tcpu %lld", (long long)e->cpu_ns);
	if (e->kind == TW_EV_SLICE)
		emit(p, "slice\t%s\t%lld\t%lld\t%s%s\n", tid.text, (long long)e->ts_ns,
		        (long long)e->dur_ns, name, cpu);
	else
		emit(p, "%s\t%s\t%lld\t%s%s\n",
		        e->kind == TW_EV_BEGIN     ? "begin"
		        : e->kind == TW_EV_END_ALL ? "end_all"
		                                   : "end",
		        tid.text, (long long)e->ts_ns, name, cpu);
}

static enum tw_status outcome(const struct print_sink *p, struct tw_err *err)
{
	if (p->err.code == TW_OK)
		return TW_OK;
	tw_err_copy(err, &p->err);
	return p->err.code;
}

static enum tw_status print_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	struct print_sink *p = sink_of(s);

	for (size_t i = 0; i < n && p->err.code == TW_OK; i++)
		print_event(p, &ev[i]);
	return outcome(p, err);
}

static void print_thread(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct print_sink *p = sink_of(s);
	char buf[NAME_BYTES];

	clean(buf, name);
	emit(p, "thread\t%s\t%s\n", tid_of(p, track_of(p, pid, tid)).text, buf);
}

static void print_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	emit(sink_of(s), "process\t%llu\t%u\n", (unsigned long long)tid, tw_pid_number(pid));
}

static void print_transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name)
{
	struct print_sink *p = sink_of(s);
	char where[NAME_BYTES];
	char what[NAME_BYTES];

	clean(where, interface);
	clean(what, name);
	emit(p, "transaction\t%s\t%llu\t%s\n", where, (unsigned long long)code, what);
	if (!tw_codes_add(&p->codes, p->arena, interface, code, name))
		(void)tw_oom(&p->err);
}

static struct tw_str print_transaction_name(
        struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	return tw_codes_name(&sink_of(s)->codes, interface, code);
}

static void print_clock(struct tw_sink *s, const struct tw_clock *c)
{
	emit(sink_of(s), "clock\t%u\t%lld\t%lld\t%lld%s", c->pid, (long long)c->mono_base_ns,
	        (long long)c->boot_base_ns, (long long)c->session_ns, c->some_base_ns ? "" : "\n");
	if (c->some_base_ns)
		emit(sink_of(s), "\t%lld\n", (long long)c->some_base_ns);
}

static void print_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct print_sink *p = sink_of(s);

	if (p->counts[what] == 0)
		p->offsets[what] = offset;
	p->counts[what] += n;
}

static void print_source(
        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns)
{
	emit(sink_of(s), "source\t%s\t%s\t%lld\n", tid_of(sink_of(s), track).text,
	        tw_slice_source_name(source), (long long)interval_ns);
}

/* A detail that is not valid JSON is printed unchanged. */
static struct tw_note original_note(const struct print_sink *p, const struct tw_note *note)
{
	const struct tw_retrace *retrace = p->names->retrace;
	struct tw_note named = *note;
	json_t *detail = retrace && note->detail.len
	                         ? json_loadb(note->detail.ptr, note->detail.len, 0, NULL)
	                         : NULL;
	char *text = json_is_object(detail) && tw_note_detail(retrace, detail)
	                     ? json_dumps(detail, JSON_COMPACT)
	                     : NULL;
	const char *copy = text ? tw_arena_str(p->arena, tw_str_of(text)) : NULL;

	if (retrace)
		named.text = tw_note_text(retrace, note->kind, note->text);
	if (copy)
		named.detail = tw_str_of(copy);
	free(text);
	json_decref(detail);
	return named;
}

static struct tw_str original_document(
        const struct print_sink *p, const char *kind, struct tw_str json)
{
	struct tw_str named = {NULL, 0};

	if (strcmp(kind, "anr") == 0 && (p->names->retrace || p->names->natives))
		named = tw_anr_named(p->arena, json, p->names);
	return named.ptr ? named : json;
}

static enum tw_status print_note(struct tw_sink *s, const struct tw_note *n, struct tw_err *err)
{
	struct print_sink *p = sink_of(s);
	char text[NAME_BYTES];
	char detail[NAME_BYTES];
	const struct tw_note note = original_note(p, n);

	clean(text, note.text);
	clean(detail, note.detail);
	emit(p, "note\t%s\t%lld\t%lld\t%s\t%lld\t%s\t%s\n", tid_of(p, n->track).text,
	        (long long)n->ts_ns, (long long)n->dur_ns, tw_note_info(n->kind)->name,
	        (long long)n->value, text, detail);
	return outcome(p, err);
}

static enum tw_status print_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct print_sink *p = sink_of(s);

	emit(p, "document\t%s\t", kind);
	put(p, original_document(p, kind, json));
	emit(p, "\n");
	return outcome(p, err);
}

static const struct tw_sink_ops ops = {
        .track = print_track,
        .method = print_method,
        .name = print_name,
        .method_name = print_method_name,
        .events = print_events,
        .thread_name = print_thread,
        .thread_process = print_process,
        .transaction = print_transaction,
        .transaction_name = print_transaction_name,
        .clock = print_clock,
        .source = print_source,
        .note = print_note,
        .document = print_document,
        .repair = print_repair,
};

static void print_repairs(struct print_sink *p)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++) {
		char offset[24] = "-";

		if (p->counts[i] == 0)
			continue;
		if (p->offsets[i] != TW_NO_OFFSET)
			(void)snprintf(
			        offset, sizeof offset, "%llu", (unsigned long long)p->offsets[i]);
		emit(p, "repair\t%s\t%llu\t%s\n", tw_repair_info((enum tw_repair)i)->name,
		        (unsigned long long)p->counts[i], offset);
	}
}

/* --- these lines as JSON --- */

enum { MAX_FIELDS = 8 };

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

static enum tw_status put_json(struct tw_str line, struct tw_err *err)
{
	struct tw_str rest = line, event = tw_str_split(&rest, '\t');
	const struct shape *shape = TW_LOOKUP(shapes, sizeof shapes / sizeof *shapes, event, event);
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

static enum tw_status print(const char *file, const char *threads, const struct tw_names *names,
        bool is_json, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	struct print_sink p = {.sink.ops = &ops, .arena = a, .names = names, .is_json = is_json};
	struct tw_trace_facts facts;
	enum tw_status st = a ? TW_OK : tw_oom(err);

	tw_buf_init(&p.line, LINE_BYTES);
	if (st == TW_OK && threads)
		st = tw_local_decode(threads, "threads", &p.sink, NULL, &facts, err);
	if (st == TW_OK)
		st = tw_local_decode(file, NULL, &p.sink, NULL, &facts, err);
	print_repairs(&p);
	if (st == TW_OK && p.err.code != TW_OK) {
		tw_err_copy(err, &p.err);
		st = p.err.code;
	}
	if (fflush(stdout) != 0 && st == TW_OK)
		st = tw_fail(err, TW_IO, "the output cannot be written");
	tw_buf_done(&p.line);
	tw_arena_free(a);
	return st;
}

int tw_cli_decode(int argc, char **argv)
{
	bool is_json = false;
	struct tw_local_files files = {NULL};
	const char *threads = NULL;
	const struct tw_flag flags[] = {TW_CLI_LOCAL_FILES(files),
	        {.name = "threads", .value = &threads}, {.name = "json", .on = &is_json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE"};
	struct tw_local_names names;
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	tw_local_names_init(&names);
	st = tw_local_names_read(&names, &files, &err);
	if (st == TW_OK)
		st = print(argv[1], threads, &names.names, is_json, &err);
	tw_local_names_done(&names);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("decode", &err);
}

#include "decoder/formats/sinks/print_sink.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/formats/codes.h"

enum { NAME_BYTES = 1024, LINE_BYTES = NAME_BYTES + 300, FIRST_CAP = 256 };

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

struct tw_print_sink {
	struct tw_sink sink; /* first member */
	struct tw_arena *arena;
	tw_text_fn out;
	tw_resolve_fn resolve;
	void *arg;
	struct tw_print_names names; /* functions NULL: names unchanged */
	struct labels tracks, symbols;
	struct tw_codes codes;
	uint64_t counts[TW_REPAIR_COUNT], offsets[TW_REPAIR_COUNT];
	enum tw_status status;
};

static struct tw_print_sink *sink_of(struct tw_sink *s)
{
	return (struct tw_print_sink *)(void *)s;
}

static void put(struct tw_print_sink *p, const char *line, int n)
{
	if (p->status == TW_OK && n > 0)
		p->status = p->out(p->arg, line, (size_t)n);
}

static struct tw_str original(struct tw_print_sink *p, struct tw_str name, char buf[NAME_BYTES])
{
	if (!p->names.name)
		return name;
	p->names.name(p->names.arg, name, buf, NAME_BYTES);
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

static bool widen(struct tw_print_sink *p, struct labels *l)
{
	uint32_t cap = l->cap ? l->cap * 2 : FIRST_CAP;
	struct label *list = tw_arena_alloc(p->arena, cap, sizeof *list);
	uint32_t *slots = tw_arena_zalloc(p->arena, cap, 2 * sizeof *slots);

	if (!list || !slots)
		return false;
	if (l->n)
		memcpy(list, l->list, l->n * sizeof *list);
	*l = (struct labels){list, l->n, cap, slots};
	for (uint32_t i = 0; i < l->n; i++)
		*slot_of(l, list[i].id, list[i].name) = i + 1;
	return true;
}

/* The label's number from 1; 0: out of memory.  Copies name. */
static uint32_t label_of(struct tw_print_sink *p, struct labels *l, uint64_t id, const char *name)
{
	const char *copy = NULL;
	uint32_t *slot;

	if (l->n == l->cap && !widen(p, l)) {
		p->status = TW_NOMEM;
		return 0;
	}
	slot = slot_of(l, id, name);
	if (*slot)
		return *slot;
	if (name) {
		copy = tw_arena_str(p->arena, tw_str_of(name));
		if (!copy) {
			p->status = TW_NOMEM;
			return 0;
		}
	}
	l->list[l->n] = (struct label){id, copy, 0};
	return *slot = ++l->n;
}

/* Of a thread: its id, or PID/TID if another process has a thread of that id, too. */
static uint32_t track_of(struct tw_print_sink *p, uint32_t pid, uint64_t tid)
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

	clean(buf, original(sink_of(s), name, raw));
	return label_of(sink_of(s), &sink_of(s)->symbols, 0, buf);
}

static void print_method_name(struct tw_sink *s, uint64_t id, struct tw_str name)
{
	char buf[NAME_BYTES];
	char raw[NAME_BYTES];
	char line[LINE_BYTES];

	clean(buf, original(sink_of(s), name, raw));
	put(sink_of(s), line,
	        snprintf(line, sizeof line, "method\t%llu\t%s\n", (unsigned long long)id, buf));
}

static void name_of(struct tw_print_sink *p, uint32_t sym, char buf[NAME_BYTES])
{
	const struct label *l = sym && sym <= p->symbols.n ? &p->symbols.list[sym - 1] : NULL;
	char raw[NAME_BYTES];

	if (!l)
		(void)snprintf(buf, NAME_BYTES, "-");
	else if (l->name)
		(void)snprintf(buf, NAME_BYTES, "%s", l->name);
	else if (p->resolve) {
		p->resolve(p->arg, l->id, raw, sizeof raw);
		clean(buf, tw_str_of(raw));
	} else
		(void)snprintf(buf, NAME_BYTES, "#%llu", (unsigned long long)l->id);
}

struct tid {
	char text[32];
};

static struct tid tid_of(const struct tw_print_sink *p, uint32_t track)
{
	const struct label *l = track && track <= p->tracks.n ? &p->tracks.list[track - 1] : NULL;
	struct tid t;

	if (l && l->name)
		(void)snprintf(t.text, sizeof t.text, "%s", l->name);
	else
		(void)snprintf(t.text, sizeof t.text, "%llu", l ? (unsigned long long)l->id : 0);
	return t;
}

static void print_event(struct tw_print_sink *p, const struct tw_event *e)
{
	const struct tid tid = tid_of(p, e->track);
	char name[NAME_BYTES];
	char line[LINE_BYTES];
	char cpu[32] = "";
	int n;

	name_of(p, e->sym, name);
	if (e->cpu_ns >= 0)
		(void)snprintf(cpu, sizeof cpu, "\tcpu %lld", (long long)e->cpu_ns);
	if (e->kind == TW_EV_SLICE)
		n = snprintf(line, sizeof line, "slice\t%s\t%lld\t%lld\t%s%s\n", tid.text,
		        (long long)e->ts_ns, (long long)e->dur_ns, name, cpu);
	else
		n = snprintf(line, sizeof line, "%s\t%s\t%lld\t%s%s\n",
		        e->kind == TW_EV_BEGIN     ? "begin"
		        : e->kind == TW_EV_END_ALL ? "end_all"
		                                   : "end",
		        tid.text, (long long)e->ts_ns, name, cpu);
	put(p, line, n);
}

static enum tw_status print_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	struct tw_print_sink *p = sink_of(s);

	for (size_t i = 0; i < n && p->status == TW_OK; i++)
		print_event(p, &ev[i]);
	if (p->status != TW_OK)
		return tw_fail(err, p->status, "the events could not be written");
	return TW_OK;
}

static void print_thread(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct tw_print_sink *p = sink_of(s);
	char buf[NAME_BYTES];
	char line[LINE_BYTES];

	clean(buf, name);
	put(p, line,
	        snprintf(line, sizeof line, "thread\t%s\t%s\n",
	                tid_of(p, track_of(p, pid, tid)).text, buf));
}

static void print_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	char line[LINE_BYTES];

	put(sink_of(s), line,
	        snprintf(line, sizeof line, "process\t%llu\t%u\n", (unsigned long long)tid,
	                tw_pid_number(pid)));
}

static void print_transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name)
{
	struct tw_print_sink *p = sink_of(s);
	char line[LINE_BYTES + NAME_BYTES];
	char where[NAME_BYTES];
	char what[NAME_BYTES];

	clean(where, interface);
	clean(what, name);
	put(p, line,
	        snprintf(line, sizeof line, "transaction\t%s\t%llu\t%s\n", where,
	                (unsigned long long)code, what));
	if (!tw_codes_add(&p->codes, p->arena, interface, code, name))
		p->status = TW_NOMEM;
}

static struct tw_str print_transaction_name(
        struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	return tw_codes_name(&sink_of(s)->codes, interface, code);
}

static void print_clock(struct tw_sink *s, const struct tw_clock *c)
{
	char line[LINE_BYTES];

	put(sink_of(s), line,
	        snprintf(line, sizeof line, "clock\t%u\t%lld\t%lld\t%lld%s", c->pid,
	                (long long)c->mono_base_ns, (long long)c->boot_base_ns,
	                (long long)c->session_ns, c->some_base_ns ? "" : "\n"));
	if (c->some_base_ns)
		put(sink_of(s), line,
		        snprintf(line, sizeof line, "\t%lld\n", (long long)c->some_base_ns));
}

static void print_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct tw_print_sink *p = sink_of(s);

	if (p->counts[what] == 0)
		p->offsets[what] = offset;
	p->counts[what] += n;
}

static void print_source(
        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns)
{
	struct tw_print_sink *p = sink_of(s);
	char line[LINE_BYTES];

	put(p, line,
	        snprintf(line, sizeof line, "source\t%s\t%s\t%lld\n", tid_of(p, track).text,
	                tw_slice_source_name(source), (long long)interval_ns));
}

static enum tw_status outcome(const struct tw_print_sink *p, struct tw_err *err)
{
	if (p->status == TW_OK)
		return TW_OK;
	return tw_fail(err, p->status, "the events could not be written");
}

static enum tw_status print_note(struct tw_sink *s, const struct tw_note *n, struct tw_err *err)
{
	struct tw_print_sink *p = sink_of(s);
	char text[NAME_BYTES];
	char detail[NAME_BYTES];
	char line[LINE_BYTES + 2 * NAME_BYTES];
	const struct tw_note note = p->names.note ? p->names.note(p->names.arg, n) : *n;

	clean(text, note.text);
	clean(detail, note.detail);
	put(p, line,
	        snprintf(line, sizeof line, "note\t%s\t%lld\t%lld\t%s\t%lld\t%s\t%s\n",
	                tid_of(p, n->track).text, (long long)n->ts_ns, (long long)n->dur_ns,
	                tw_note_info(n->kind)->name, (long long)n->value, text, detail));
	return outcome(p, err);
}

static enum tw_status print_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct tw_print_sink *p = sink_of(s);
	char line[LINE_BYTES];

	if (p->names.document)
		json = p->names.document(p->names.arg, kind, json);
	put(p, line, snprintf(line, sizeof line, "document\t%s\t", kind));
	put(p, json.ptr, (int)json.len);
	put(p, "\n", 1);
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

void tw_print_sink_names(struct tw_print_sink *p, const struct tw_print_names *names)
{
	p->names = *names;
}

struct tw_print_sink *tw_print_sink_new(
        struct tw_arena *a, tw_text_fn out, tw_resolve_fn resolve, void *arg)
{
	struct tw_print_sink *p = tw_arena_zalloc(a, 1, sizeof *p);

	if (!p)
		return NULL;
	p->sink.ops = &ops;
	p->arena = a;
	p->out = out;
	p->resolve = resolve;
	p->arg = arg;
	return p;
}

struct tw_sink *tw_print_sink_of(struct tw_print_sink *p)
{
	return &p->sink;
}

enum tw_status tw_print_sink_end(struct tw_print_sink *p)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++) {
		char line[LINE_BYTES];
		char place[24] = "-";

		if (p->counts[i] == 0)
			continue;
		if (p->offsets[i] != TW_NO_OFFSET)
			(void)snprintf(
			        place, sizeof place, "%llu", (unsigned long long)p->offsets[i]);
		put(p, line,
		        snprintf(line, sizeof line, "repair\t%s\t%llu\t%s\n",
		                tw_repair_info((enum tw_repair)i)->name,
		                (unsigned long long)p->counts[i], place));
	}
	return p->status;
}

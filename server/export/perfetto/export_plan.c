/*
 * export_plan.c - see the header.
 *
 * Traces of one device and session share a timeline, aligned by their clocks. Traces of other
 * devices begin together with the first, with pids raised by PID_STEP, which no kernel reaches,
 * and names prefixed with their device.
 */
#include "server/export/perfetto/export_plan.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/export/perfetto/export_calls.h"
#include "server/export/perfetto/export_cursor.h"
#include "server/export/perfetto/system/export_system_facts.h"

/* --- the first call of a name --- */

static bool is_named(const struct tw_export_trace *o, struct tw_named what, const char *name)
{
	char shown[4096];

	(void)tw_names_display(&o->names, &what, shown, sizeof shown);
	return strcmp(shown, name) == 0;
}

/* The begin of the first call of the methods in `wanted` on one thread. */
static enum tw_status first_on(const struct tw_export_trace *o, const struct tw_thread_info *t,
        const bool *wanted, uint32_t n_methods, int64_t *first_ns, struct tw_err *err)
{
	struct tw_cursor c;
	struct tw_edge e;
	enum tw_status st = tw_cursor_open_range(
	        &c, o->file, t->thread_id, UINT16_MAX, o->sel.from_ns, o->sel.to_ns, err);

	while (st == TW_OK && !c.done && c.next_ns < *first_ns) {
		st = tw_cursor_next(&c, &e, err);
		if (st == TW_OK && e.begin && e.method < n_methods && wanted[e.method] &&
		        e.ts_ns < *first_ns)
			*first_ns = e.ts_ns;
	}
	tw_cursor_close(&c);
	return st;
}

/* The begin of the selection's first call of a displayed name.  Reads the calls up to it.
 * TW_NOT_FOUND: no such call. */
static enum tw_status tw_anchor_first(
        const struct tw_export_trace *o, const char *name, int64_t *ret_ns, struct tw_err *err)
{
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(o->file, &n);
	int64_t first = INT64_MAX;
	enum tw_status st = tw_trace_file_method_refs(o->file, &methods, &n_methods, err);
	bool *wanted = st == TW_OK ? tw_mem_zalloc((size_t)n_methods + 1, 1) : NULL;
	bool any = false;

	if (st != TW_OK)
		return st;
	if (!wanted)
		return tw_oom(err);
	for (uint32_t i = 0; i < n_methods; i++) {
		wanted[i] = is_named(o, tw_method_named(&methods[i]), name);
		any = any || wanted[i];
	}
	for (uint32_t i = 0; any && st == TW_OK && i < n; i++)
		if (t[i].slices && tw_selection_has(&o->sel, &t[i]))
			st = first_on(o, &t[i], wanted, n_methods, &first, err);
	tw_mem_free(wanted);
	if (st == TW_OK && first == INT64_MAX)
		return tw_fail(err, TW_NOT_FOUND, "no call of %.100s is in trace %.40s", name,
		        o->facts.trace_id);
	*ret_ns = first;
	return st;
}

/* Returns whether the selection certainly contains a call of this name, without reading calls. */
static bool tw_anchor_is_certain(const struct tw_export_trace *o, const char *name)
{
	const struct tw_method_info *methods;
	uint32_t n;

	if (!o->sel.all_threads || o->sel.ranged ||
	        tw_trace_file_methods(o->file, &methods, &n, NULL) != TW_OK)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (methods[i].count && is_named(o, tw_method_info_named(&methods[i]), name))
			return true;
	return false;
}

enum { ARENA_BYTES = 256 << 20, PID_STEP = 10000000, KEY_BYTES = 64, SUFFIX_BYTES = 16 };
#define MAX_TIME_NS ((int64_t)1 << 61)

/* --- the traces --- */

static bool copy_facts(
        struct tw_plan *p, const struct tw_perfetto_facts *f, struct tw_perfetto_facts *ret)
{
	const char *from[] = {f->trace_id, f->process, f->app, f->version_name, f->build_id,
	        f->device, f->scenario, f->url, f->session_id};
	const char **to[] = {&ret->trace_id, &ret->process, &ret->app, &ret->version_name,
	        &ret->build_id, &ret->device, &ret->scenario, &ret->url, &ret->session_id};

	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		*to[i] = tw_track_text(p->arena, tw_str_of(from[i] ? from[i] : ""));
		if (!*to[i])
			return false;
	}
	return true;
}

static bool copy_selection(
        struct tw_plan *p, const struct tw_selection *from, struct tw_selection *ret)
{
	uint64_t *tids = tw_arena_alloc(p->arena, from->n_tids + 1, sizeof *tids);

	if (!tids)
		return false;
	if (from->n_tids)
		memcpy(tids, from->tids, from->n_tids * sizeof *tids);
	*ret = *from;
	ret->tids = tids;
	ret->from_ns = INT64_MIN;
	ret->to_ns = INT64_MAX;
	return true;
}

static bool same_session(const struct tw_export_trace *a, const struct tw_export_trace *b)
{
	return strcmp(a->facts.device, b->facts.device) == 0 && a->facts.session_id[0] &&
	       strcmp(a->facts.session_id, b->facts.session_id) == 0;
}

static enum tw_status add_source(struct tw_plan *p, const struct tw_perfetto_source *s,
        struct tw_export_trace *o, struct tw_err *err)
{
	enum tw_status st = tw_selection_check(s->file, &s->sel, err);

	if (st != TW_OK)
		return st;
	o->number = (uint32_t)(o - p->ours);
	o->file = s->file;
	o->names = s->names ? *s->names : (struct tw_names){NULL, NULL};
	o->arena = p->arena;
	if (!copy_facts(p, &s->facts, &o->facts) || !copy_selection(p, &s->sel, &o->sel))
		return tw_oom(err);
	o->machine = o->number;
	for (uint32_t i = o->number; i-- > 0;)
		if (same_session(&p->ours[i], o))
			o->machine = p->ours[i].machine;
	o->pid_shift = o->machine * PID_STEP;
	o->prefix = "";
	return TW_OK;
}

/* Prefixes names with their device if there are several. */
static bool label(struct tw_plan *p)
{
	bool one_device = true;

	for (uint32_t i = 0; i < p->n; i++)
		one_device = one_device && p->ours[i].machine == 0;
	for (uint32_t i = 0; i < p->n && !one_device; i++) {
		struct tw_export_trace *o = &p->ours[i];
		const struct tw_perfetto_facts *f = &o->facts;

		const char *device = tw_trace_file_is_sanitized(o->file) ? "" : f->device;

		o->prefix = tw_arena_printf(p->arena, "%u %.80s%s%.40s: ", o->machine + 1, device,
		        device[0] && f->version_name[0] ? " " : "", f->version_name);
		if (!o->prefix)
			return false;
	}
	return true;
}

/* --- the device's trace --- */

/* The facts stored when it was decoded; NULL: none, or they belong to another file. */
static struct tw_system *stored_facts(const struct tw_perfetto_source *src)
{
	struct tw_system *s = NULL;
	struct tw_buf packed;
	struct stat file;

	if (!src->system_as_sent || fstat(src->system_fd, &file) != 0)
		return NULL;
	tw_buf_init(&packed, TW_SYSTEM_FACTS_BYTES);
	if (tw_trace_file_system(src->file, &packed, NULL) == TW_OK &&
	        tw_system_unpack((struct tw_str){(char *)packed.data, packed.len}, &s, NULL) ==
	                TW_OK &&
	        s->bytes != (uint64_t)file.st_size)
		s = tw_system_free(s);
	tw_buf_done(&packed);
	return s;
}

/* The stored facts; otherwise reads them from the file. */
static enum tw_status load_facts(
        struct tw_plan *p, uint32_t i, struct tw_system **ret, struct tw_err *err)
{
	struct tw_system *s = p->facts[i];

	if (!s)
		return tw_system_scan(p->sources[i].system_fd, ret, err);
	p->facts[i] = NULL;
	*ret = s;
	return TW_OK;
}

/* Joins the device's trace of one of ours, if possible. */
static enum tw_status try_system(struct tw_plan *p, struct tw_export_trace *o, struct tw_err *err)
{
	struct tw_system *s = NULL;
	const char *why;
	enum tw_status st = load_facts(p, o->number, &s, err);

	if (st == TW_OK && s->fault == TW_SYSTEM_FINE)
		st = tw_clock_sync_make(tw_trace_file_info(o->file), s, p->arena, &o->sync, err);
	if (st != TW_OK) {
		tw_system_free(s);
		return st;
	}
	why = tw_clock_sync_why_not(s, &o->sync);
	if (why) {
		p->left_out = why;
		tw_system_free(s);
		return TW_OK;
	}
	p->left_out = "";
	p->system = s;
	p->system_fd = p->sources[o->number].system_fd;
	p->system_bytes = s->bytes;
	p->system_of = o->number;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->ours[i].machine == o->machine) {
			p->ours[i].known = s->threads;
			p->ours[i].n_known = s->n_threads;
		}
	return TW_OK;
}

static enum tw_status find_system(struct tw_plan *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < p->n && !p->system; i++)
		if (p->sources[i].system_fd >= 0)
			st = try_system(p, &p->ours[i], err);
	return st;
}

/* --- alignment --- */

/* The time of a trace that is aligned with the same time of the others. */
static enum tw_status anchor_of(const struct tw_plan *p, const struct tw_export_trace *o,
        int64_t *ret_ns, struct tw_err *err)
{
	if (p->options.align == TW_PERFETTO_BY_SLICE)
		return tw_anchor_first(o, p->options.slice, ret_ns, err);
	*ret_ns = tw_trace_file_info(o->file)->start_ns;
	return TW_OK;
}

/* Aligns by the clock readings of two of our traces, without a device's trace. */
static bool by_bases(
        struct tw_plan *p, struct tw_export_trace *o, enum tw_status *st, struct tw_err *err)
{
	const struct tw_trace_info *first = tw_trace_file_info(p->ours[0].file);
	const struct tw_trace_info *i = tw_trace_file_info(o->file);
	int64_t zero_ns = p->ours[0].sync.steps[0].add_ns; /* of the first, in the file */
	int64_t from_ns;

	if (i->mono_base_ns >= 0 && first->mono_base_ns >= 0)
		from_ns = i->mono_base_ns - first->mono_base_ns;
	else if (i->boot_base_ns >= 0 && first->boot_base_ns >= 0)
		from_ns = i->boot_base_ns - first->boot_base_ns;
	else
		return false;
	/* BOOTTIME counts sleep, which MONOTONIC does not */
	if (i->boot_base_ns >= 0 && first->boot_base_ns >= 0)
		from_ns = i->boot_base_ns - first->boot_base_ns;
	*st = tw_clock_sync_at(
	        i->boot_base_ns >= 0 ? TW_CLOCK_SYNC_BOOTTIME : TW_CLOCK_SYNC_MONOTONIC,
	        p->ours[0].sync.clock, 0, zero_ns + from_ns, p->arena, &o->sync, err);
	return true;
}

static enum tw_status by_clock(
        struct tw_plan *p, struct tw_export_trace *o, bool *ret_shared, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret_shared = true;
	if (p->system && o->machine == p->ours[p->system_of].machine) {
		st = tw_clock_sync_make(
		        tw_trace_file_info(o->file), p->system, p->arena, &o->sync, err);
		if (st != TW_OK || o->sync.choice == TW_CLOCK_SYNC_MONOTONIC ||
		        o->sync.choice == TW_CLOCK_SYNC_BOOTTIME)
			return st;
	}
	*ret_shared = by_bases(p, o, &st, err);
	return st;
}

static enum tw_status sync_trace(
        struct tw_plan *p, struct tw_export_trace *o, int64_t anchor_file_ns, struct tw_err *err)
{
	enum tw_perfetto_align how = p->options.align;
	bool shared = false;
	int64_t own_ns = 0;
	enum tw_status st = TW_OK;

	if (how == TW_PERFETTO_BY_CLOCK ||
	        (how == TW_PERFETTO_BY_CLOCK_OR_START && o->machine == p->ours[0].machine))
		st = by_clock(p, o, &shared, err);
	if (st != TW_OK || shared)
		return st;
	st = anchor_of(p, o, &own_ns, err);
	if (st != TW_OK)
		return st;
	return tw_clock_sync_at(
	        how == TW_PERFETTO_BY_SLICE ? TW_CLOCK_SYNC_SLICE : TW_CLOCK_SYNC_START,
	        p->ours[0].sync.clock, own_ns, anchor_file_ns, p->arena, &o->sync, err);
}

static enum tw_status sync_traces(struct tw_plan *p, struct tw_err *err)
{
	struct tw_export_trace *first = &p->ours[0];
	int64_t anchor_ns = 0;
	uint32_t at = 0;
	enum tw_status st;

	if (p->system && first->machine == p->ours[p->system_of].machine)
		st = tw_clock_sync_make(
		        tw_trace_file_info(first->file), p->system, p->arena, &first->sync, err);
	else
		st = tw_clock_sync_make(
		        tw_trace_file_info(first->file), NULL, p->arena, &first->sync, err);
	if (st == TW_OK && p->n > 1)
		st = anchor_of(p, first, &anchor_ns, err);
	anchor_ns = st == TW_OK ? tw_export_trace_time(first, &at, anchor_ns) : 0;
	for (uint32_t i = 1; st == TW_OK && i < p->n; i++)
		st = sync_trace(p, &p->ours[i], anchor_ns, err);
	return st;
}

/* Limits an end of a range so that clock offsets can be added without overflow. */
static int64_t within(int64_t ns)
{
	if (ns > MAX_TIME_NS)
		return MAX_TIME_NS;
	return ns < -MAX_TIME_NS ? -MAX_TIME_NS : ns;
}

/* The range is in the first trace's time; others get the range of the same file time. */
static void cut_all(struct tw_plan *p, const struct tw_selection *requested)
{
	const struct tw_export_trace *first = &p->ours[0];
	const int64_t ends[] = {within(requested->from_ns), within(requested->to_ns)};
	uint32_t at = 0;
	int64_t from_ns;
	int64_t to_ns;

	if (!requested->ranged)
		return;
	from_ns = tw_clock_sync_time(&first->sync, &at, ends[0]);
	to_ns = tw_clock_sync_time(&first->sync, &at, ends[1]);
	for (uint32_t i = 0; i < p->n; i++) {
		struct tw_export_trace *o = &p->ours[i];

		o->sel.from_ns = i ? tw_clock_sync_back(&o->sync, from_ns) : ends[0];
		o->sel.to_ns = i ? tw_clock_sync_back(&o->sync, to_ns) : ends[1];
	}
}

/* --- ids --- */

static enum tw_status assign_ids(struct tw_plan *p, struct tw_err *err)
{
	uint64_t salt = 0x7477656C6C;
	uint32_t next = 1;

	for (uint32_t i = 0; i < p->n; i++)
		for (const char *c = p->ours[i].facts.trace_id; *c; c++)
			salt = tw_track_mix(salt ^ (unsigned char)*c);
	salt = salt >> 16 | (uint64_t)tw_system_prefix(p->system) << 48;
	for (uint32_t i = 0; i < p->n; i++) {
		struct tw_export_trace *o = &p->ours[i];
		struct tw_call_writer *calls = NULL;
		uint32_t lanes = 0;
		enum tw_status st = tw_call_writer_new(o, 0, &calls, &lanes, err);

		if (st != TW_OK)
			return st;
		tw_call_writer_free(calls);
		o->salt = salt;
		o->seqs = tw_arena_alloc(p->arena, (size_t)lanes + 1, sizeof *o->seqs);
		if (!o->seqs)
			return tw_oom(err);
		/* the busiest threads come first and get the short ids */
		for (uint32_t k = 0; k < lanes; k++)
			o->seqs[k] = tw_system_sequence(p->system, &next);
		o->side_seq = tw_system_sequence(p->system, &next);
	}
	return TW_OK;
}

/* --- when to finalize --- */

/* Returns whether everything in the request is known to exist. */
static bool is_certain(const struct tw_plan *p)
{
	if (p->options.align != TW_PERFETTO_BY_SLICE)
		return true;
	for (uint32_t i = 0; i < p->n; i++)
		if (!tw_anchor_is_certain(&p->ours[i], p->options.slice))
			return false;
	return true;
}

/* Searching for a call, or scanning a device's trace, takes time in proportion to its size. */
static bool takes_long(const struct tw_plan *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->sources[i].system_fd >= 0 && !p->facts[i])
			return true;
	return p->n > 1 && p->options.align == TW_PERFETTO_BY_SLICE;
}

static bool may_wait(const struct tw_plan *p)
{
	return p->options.form == TW_PERFETTO_PLAIN && takes_long(p) && is_certain(p);
}

enum tw_status tw_plan_finalize(struct tw_plan *p, struct tw_err *err)
{
	enum tw_status st = find_system(p, err);

	if (st == TW_OK)
		st = sync_traces(p, err);
	if (st == TW_OK) {
		cut_all(p, &p->sources[0].sel);
		st = assign_ids(p, err);
	}
	p->finalized = st == TW_OK;
	return st;
}

/* --- construction --- */

static bool make_tables(struct tw_plan *p, const struct tw_perfetto_source *sources, size_t n)
{
	p->arena = tw_arena_new(ARENA_BYTES);
	if (!p->arena)
		return false;
	p->ours = tw_arena_zalloc(p->arena, n, sizeof *p->ours);
	p->facts = tw_arena_zalloc(p->arena, n, sizeof(struct tw_system *));
	p->sources = tw_arena_alloc(p->arena, n, sizeof *p->sources);
	if (!p->ours || !p->facts || !p->sources)
		return false;
	memcpy(p->sources, sources, n * sizeof *sources);
	p->n = (uint32_t)n;
	return true;
}

static enum tw_status begin(struct tw_plan *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < p->n; i++) {
		st = add_source(p, &p->sources[i], &p->ours[i], err);
		if (st == TW_OK && p->sources[i].system_fd >= 0)
			p->facts[i] = stored_facts(&p->sources[i]);
	}
	if (st == TW_OK && !label(p))
		st = tw_oom(err);
	return st == TW_OK && !may_wait(p) ? tw_plan_finalize(p, err) : st;
}

enum tw_status tw_plan_new(const struct tw_perfetto_source *sources, size_t n,
        const struct tw_perfetto_options *options, struct tw_plan **ret, struct tw_err *err)
{
	struct tw_plan *p = tw_mem_zalloc(1, sizeof *p);
	enum tw_status st;

	if (!p)
		return tw_oom(err);
	p->options = *options;
	p->system_fd = -1;
	p->left_out = "";
	st = make_tables(p, sources, n) ? begin(p, err) : tw_oom(err);
	if (st == TW_OK)
		*ret = p;
	else
		tw_plan_free(p);
	return st;
}

struct tw_plan *tw_plan_free(struct tw_plan *p)
{
	if (p) {
		for (uint32_t i = 0; i < p->n; i++)
			tw_system_free(p->facts[i]);
		tw_system_free(p->system);
		tw_arena_free(p->arena);
		tw_mem_free(p);
	}
	return NULL;
}

/* --- facts recorded in the file --- */

static void emit_clock(
        const struct tw_export_trace *o, tw_plan_fact_fn each, void *arg, const char *suffix)
{
	const struct tw_trace_info *i = tw_trace_file_info(o->file);
	int64_t base =
	        o->sync.choice == TW_CLOCK_SYNC_MONOTONIC ? i->mono_base_ns : i->boot_base_ns;
	uint32_t at = 0;
	char key[KEY_BYTES];

	(void)snprintf(key, sizeof key, "clock%s", suffix);
	each(arg, key, tw_clock_sync_name(o->sync.choice), 0);
	(void)snprintf(key, sizeof key, "clock_offset_ns%s", suffix);
	if (base >= 0)
		each(arg, key, NULL,
		        tw_clock_sync_time(&o->sync, &at, i->start_ns) - i->start_ns - base);
	(void)snprintf(key, sizeof key, "clock_residual_ns%s", suffix);
	if (o->sync.residual_ns != INT64_MIN)
		each(arg, key, NULL, o->sync.residual_ns);
}

static void suffix_of(const struct tw_export_trace *o, char suffix[SUFFIX_BYTES])
{
	suffix[0] = '\0';
	if (o->number)
		(void)snprintf(suffix, SUFFIX_BYTES, "_%u", o->number + 1);
}

static void emit_origin(const struct tw_export_trace *o, tw_plan_fact_fn each, void *arg)
{
	const struct {
		const char *key, *text;
	} rows[] = {{"app", o->facts.app}, {"version_name", o->facts.version_name},
	        {"build_id", o->facts.build_id}, {"scenario", o->facts.scenario},
	        /* not if sanitized: */
	        {"tracewell_trace", o->facts.trace_id}, {"tracewell_url", o->facts.url},
	        {"device", o->facts.device}};
	const size_t n = sizeof rows / sizeof *rows - (tw_trace_file_is_sanitized(o->file) ? 3 : 0);
	char suffix[SUFFIX_BYTES];
	char key[KEY_BYTES];

	suffix_of(o, suffix);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(key, sizeof key, "%s%s", rows[i].key, suffix);
		if (rows[i].text[0])
			each(arg, key, rows[i].text, 0);
	}
}

static void emit_facts(const struct tw_export_trace *o, tw_plan_fact_fn each, void *arg)
{
	char suffix[SUFFIX_BYTES];
	char key[KEY_BYTES];

	suffix_of(o, suffix);
	emit_clock(o, each, arg, suffix);
	(void)snprintf(key, sizeof key, "slices%s", suffix);
	each(arg, key, NULL, (int64_t)tw_trace_file_info(o->file)->slices);
	if (o->sel.ranged) {
		(void)snprintf(key, sizeof key, "cut_from_ns%s", suffix);
		each(arg, key, NULL, o->sel.from_ns);
		(void)snprintf(key, sizeof key, "cut_to_ns%s", suffix);
		each(arg, key, NULL, o->sel.to_ns);
	}
}

void tw_plan_origin(const struct tw_plan *p, tw_plan_fact_fn each, void *arg)
{
	each(arg, "tracewell_version", TW_VERSION, 0);
	for (uint32_t i = 0; i < p->n; i++)
		emit_origin(&p->ours[i], each, arg);
}

void tw_plan_facts(const struct tw_plan *p, tw_plan_fact_fn each, void *arg)
{
	for (uint32_t i = 0; i < p->n; i++)
		emit_facts(&p->ours[i], each, arg);
	if (p->left_out[0])
		each(arg, "system_trace_left_out", p->left_out, 0);
	if (!p->system)
		return;
	each(arg, "system_trace_packets", NULL, (int64_t)p->system->packets);
	if (p->system->damages)
		each(arg, "system_trace_damages", NULL, (int64_t)p->system->damages);
	if (p->system->cut)
		each(arg, "system_trace_cut", "its end is missing", 0);
}

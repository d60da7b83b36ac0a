/*
 * stage_anr.c - extracts ANRs and lock waits from ready traces, resolves their names and assigns
 * group keys.
 *
 * Keys are assigned separately from the extraction, so that a new trace, a late mapping and changed
 * rules are handled alike, and none needs the trace's file again.
 */
#include "server/derive/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/db/catalogue_db.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer_int.h"
#include "server/fleet/anr/anr_brief.h"
#include "server/fleet/anr/anr_cause.h"
#include "server/fleet/anr/anr_names.h"
#include "server/query/detect/frame_rules.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_readers.h"

enum { READ_AT_ONCE = 32, KEYED_AT_ONCE = 64, NAME_BYTES = 16384, INLINED_MAX = 32 };
enum { WAITED_NS = 1000000000, WAITED_S = 5 }; /* if the report does not contain them */
#define WORK_BYTES ((size_t)512 << 20)

enum { LATE_DAYS = 64, LATE_MS = 1000, LATE_DOUBLINGS = 11 /* about half an hour */ };

struct late_day { /* its reports could not be counted */
	char project_id[TW_ID_BYTES];
	int64_t day, until_ms; /* monotonic: time of the next attempt; 0: the slot is free */
	unsigned attempts;
};

struct anrs {
	int64_t copy_ms; /* monotonic: time of the next copies */
	struct late_day late[LATE_DAYS];
	struct tw_derive_parts parts;
	struct tw_arena *arena, *project_arena; /* of one trace; of one project */
	char *name;                             /* NAME_BYTES */
};

/* --- extraction from a trace --- */

struct reading {
	const struct tw_trace_row *row;
	struct tw_trace_file *file;
	struct tw_arena *arena;
	json_t *doc, *path;
	bool has_note; /* the trace states that the app did not respond */
	int64_t end_ns, waited_ns;
	struct tw_lock_list locks;
};

static bool take_document(void *arg, struct tw_str kind, struct tw_str json)
{
	struct reading *r = arg;

	if (!r->doc && tw_str_eq(kind, TW_STR("anr")))
		r->doc = json_loadb(json.ptr, json.len, 0, NULL);
	return r->doc == NULL;
}

static bool take_anr_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct reading *r = arg;

	(void)id;
	r->has_note = true;
	if (n->dur_ns > 0) {
		r->waited_ns = n->dur_ns;
		r->end_ns = n->ts_ns + n->dur_ns;
	} else if (n->value > 0 && n->value < INT32_MAX) {
		r->waited_ns = n->value * 1000000;
		if (n->ts_ns >= r->waited_ns)
			r->end_ns = n->ts_ns;
	}
	return false; /* the first ANR is the subject of the trace */
}

/* With calls, or only a note of an ANR in the trace, the path is that of the main thread. */
static enum tw_status find_path(struct reading *r, struct tw_err *err)
{
	if (tw_trace_file_duration_ns(r->file) < 0)
		return TW_OK; /* its samples, if any, are the report */
	return tw_anr_path_of_calls(r->file, r->end_ns, r->waited_ns, r->arena, &r->path, err);
}

static bool is_anr(const struct reading *r)
{
	return r->doc || r->has_note || strcmp(r->row->meta.scenario, "anr") == 0;
}

static enum tw_status read_file(struct reading *r, struct tw_err *err)
{
	const struct tw_note_query q = {
	        .kind = TW_NOTE_anr, .from_ns = INT64_MIN, .to_ns = INT64_MAX, .limit = 1};
	enum tw_status st = tw_trace_file_documents(r->file, take_document, r, err);

	if (st == TW_OK)
		st = tw_trace_file_notes(r->file, &q, take_anr_note, r, err);
	if (st == TW_OK && is_anr(r))
		st = find_path(r, err);
	/* locks of a report alone are read from its stored form, with their holders */
	if (st == TW_OK && (!r->doc || r->path))
		st = tw_locks_of_trace(r->file, r->arena, &r->locks, err);
	return st;
}

static enum tw_status open_and_read(struct anrs *anrs, struct reading *r, struct tw_err *err)
{
	enum tw_status st = tw_trace_readers_open(
	        anrs->parts.readers, anrs->parts.blobs, r->row->id, &r->file, err);

	if (st == TW_OK)
		st = read_file(r, err);
	r->file = tw_trace_readers_close(anrs->parts.readers, r->file);
	return st;
}

/* The affected user, from the labels. */
static const char *user_of(const char *labels, struct tw_arena *a)
{
	static const char *const keys[] = {"user_id", "user", "install_id"};
	json_t *o = labels[0] ? json_loads(labels, 0, NULL) : NULL;
	const char *user = "";

	for (size_t i = 0; !*user && i < sizeof keys / sizeof *keys; i++) {
		const json_t *v = json_object_get(o, keys[i]);

		if (json_is_string(v))
			user = tw_arena_str(a, tw_str_of(json_string_value(v)));
		else if (json_is_integer(v))
			user = tw_arena_printf(a, "%lld", (long long)json_integer_value(v));
		if (!user)
			break;
	}
	json_decref(o);
	return user ? user : "";
}

/* Copies the strings, as the trace's arena is reused. */
static enum tw_status copy_locks(
        struct anrs *anrs, const struct reading *r, struct tw_anr_entry *ret, struct tw_err *err)
{
	struct tw_lock_wait *copy =
	        tw_arena_alloc(anrs->project_arena, r->locks.n + 1, sizeof *copy);

	if (!copy)
		return tw_oom(err);
	for (size_t i = 0; i < r->locks.n; i++) {
		const char **const texts[] = {&copy[i].raw_monitor, &copy[i].raw_owner,
		        &copy[i].source, &copy[i].monitor, &copy[i].owner, &copy[i].holder};

		copy[i] = r->locks.at[i];
		for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
			const char *text = *texts[k];

			*texts[k] =
			        text ? tw_arena_str(anrs->project_arena, tw_str_of(text)) : NULL;
			if (text && !*texts[k])
				return tw_oom(err);
		}
	}
	ret->locks = copy;
	ret->n_locks = r->locks.n;
	return TW_OK;
}

static enum tw_status entry_of(
        struct anrs *anrs, const struct reading *r, struct tw_anr_entry *ret, struct tw_err *err)
{
	const char *labels = r->row->meta.labels;

	*ret = (struct tw_anr_entry){.row = r->row,
	        .device_class = tw_rollup_device_class(labels),
	        .user = user_of(labels, anrs->project_arena),
	        .anr = is_anr(r)};
	if (ret->anr)
		ret->brief = tw_anr_brief(r->doc, r->path, anrs->project_arena);
	if (ret->anr && !ret->brief.ptr)
		return tw_oom(err);
	return copy_locks(anrs, r, ret, err);
}

/* *ret_read false: the failure was recorded. */
static enum tw_status extract(struct anrs *anrs, const struct tw_turn *turn,
        const struct tw_trace_row *row, struct tw_anr_entry *ret, bool *ret_read,
        struct tw_err *err)
{
	struct reading r = {.row = row,
	        .arena = anrs->arena,
	        .end_ns = -1,
	        .waited_ns = WAITED_S * (int64_t)WAITED_NS};
	const struct tw_named_trace t = tw_turn_trace(row);
	struct tw_err why;
	enum tw_status st = open_and_read(anrs, &r, &why);

	*ret_read = st == TW_OK;
	if (st == TW_OK)
		st = entry_of(anrs, &r, ret, err);
	else
		st = tw_turn_failed(turn, &t, tw_is_temporary(st), &why, err);
	json_decref(r.doc);
	json_decref(r.path);
	return st;
}

static enum tw_status extract_some(
        struct anrs *anrs, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct tw_anr_entry entries[READ_AT_ONCE];
	struct tw_trace_row *todo = NULL;
	size_t n_todo = 0, n = 0;
	enum tw_status st =
	        tw_turn_rows(turn, READ_AT_ONCE, anrs->project_arena, &todo, &n_todo, err);

	for (size_t i = 0; st == TW_OK && i < n_todo && !tw_turn_is_over(turn); i++) {
		bool read = false;

		tw_arena_reset(anrs->arena);
		st = extract(anrs, turn, &todo[i], &entries[n], &read, err);
		n += read;
	}
	if (st == TW_NOMEM && n) /* the rest is in a later batch */
		st = TW_OK;
	if (st == TW_OK)
		st = tw_catalogue_anr_put(anrs->parts.catalogue, entries, n, err);
	if (st == TW_OK)
		tw_turn_done(turn, n);
	*ret_more = st == TW_OK && n_todo > 0;
	return st;
}

/* --- rules --- */

struct rules { /* of a project */
	int64_t number;
	json_t *groups, *frames;
	struct tw_anr_rules *anr;
	const struct tw_frame_rules *app;
};

static enum tw_status read_rules(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const char **ret_groups, const char **ret_frames, struct tw_err *err)
{
	struct tw_ruleset set;
	int64_t changed_ms;
	enum tw_status st = tw_catalogue_ruleset(c, project_id, TW_RULESET_ANR, 0, a, &set, err);

	*ret_groups = set.value;
	if (st == TW_OK)
		st = tw_catalogue_setting_get(
		        c, project_id, TW_SETTING_FRAMES, a, ret_frames, &changed_ms, err);
	return st;
}

/* Raise it when the code finds causes differently, so that all reports get new keys. */
enum { CAUSES_VERSION = 1 };

enum tw_status tw_anr_rules_number(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, int64_t *ret, struct tw_err *err)
{
	const char *groups = NULL;
	const char *frames = NULL;
	enum tw_status st = read_rules(c, project_id, a, &groups, &frames, err);

	if (st != TW_OK)
		return st;
	*ret = tw_rules_number(a, CAUSES_VERSION, groups, frames);
	return *ret ? TW_OK : tw_oom(err);
}

static void close_rules(struct rules *r)
{
	tw_anr_rules_free(r->anr);
	json_decref(r->groups);
	json_decref(r->frames);
}

/* Call close_rules, also on failure. */
static enum tw_status open_rules(
        struct anrs *anrs, const char *project_id, struct rules *r, struct tw_err *err)
{
	struct tw_arena *a = anrs->project_arena;
	const char *groups = NULL;
	const char *frames = NULL;
	enum tw_status st = read_rules(anrs->parts.catalogue, project_id, a, &groups, &frames, err);

	if (st != TW_OK)
		return st;
	r->number = tw_rules_number(a, CAUSES_VERSION, groups, frames);
	st = tw_setting_of_text(project_id, &tw_anr_setting, groups, &r->groups, err);
	if (st == TW_OK)
		st = tw_setting_of_text(project_id, &tw_frame_setting, frames, &r->frames, err);
	if (st == TW_OK)
		st = tw_anr_rules_new(r->groups, &r->anr, err);
	return st == TW_OK ? tw_frame_rules_new(r->frames, a, &r->app, err) : st;
}

/* --- naming and keying --- */

struct mappings { /* of the build that was named last */
	const char *build_id, *mapping_id;
	struct tw_namer namer;
};

static enum tw_status open_mappings(
        struct anrs *anrs, const struct tw_anr_stale *s, struct mappings *m, struct tw_err *err)
{
	const struct tw_named_trace of = {s->project_id, s->trace_id, s->build_id, s->mapping_id};
	enum tw_status st;

	if (m->build_id && strcmp(m->build_id, s->build_id) == 0 &&
	        strcmp(m->mapping_id, s->mapping_id) == 0)
		return TW_OK;
	tw_namer_close(&anrs->parts, &m->namer);
	m->build_id = NULL;
	st = tw_namer_open(&anrs->parts, &of, anrs->arena, &m->namer, err);
	if (st == TW_OK) {
		m->build_id = s->build_id;
		m->mapping_id = s->mapping_id;
	}
	return st;
}

/* --- native frames --- */

/* Of report and path. */
static enum tw_status find_build_ids(
        const json_t *brief, struct tw_arena *a, struct tw_list *ids, struct tw_err *err)
{
	const json_t *processes = json_object_get(json_object_get(brief, "doc"), "processes");
	const json_t *path = json_object_get(json_object_get(brief, "path"), "frames");
	const json_t *process, *thread, *frame;
	struct tw_native_frame native;
	enum tw_status st = TW_OK;
	size_t i, k, m;

	json_array_foreach(processes, i, process)
	        json_array_foreach(json_object_get(process, "threads"), k, thread)
	                json_array_foreach(json_object_get(thread, "frames"), m, frame)
	{
		const char *id = json_string_value(json_object_get(frame, "build_id"));

		if (st == TW_OK && id)
			st = tw_natives_add_id(ids, a, tw_str_of(id), err);
	}
	json_array_foreach(path, i, frame)
	{
		const char *name = json_string_value(json_object_get(frame, "name"));

		if (st == TW_OK && name && tw_native_frame_parse(tw_str_of(name), &native))
			st = tw_natives_add_id(ids, a, native.build_id, err);
	}
	return st;
}

/* Of one report, in the arena.  Close with close_natives. */
static enum tw_status open_natives(struct anrs *anrs, const json_t *brief, struct tw_anr_stale *s,
        struct mappings *m, struct tw_err *err)
{
	struct tw_natives_open *n = &m->namer.natives;
	struct tw_list ids = {0};
	enum tw_status st = find_build_ids(brief, anrs->arena, &ids, err);

	if (st == TW_OK && ids.n)
		st = tw_natives_libraries_of(&ids, anrs->arena, &n->libraries, err);
	if (st == TW_OK && ids.n)
		st = tw_natives_open_libraries(anrs->parts.catalogue, anrs->parts.symbols,
		        s->project_id, anrs->arena, n, err);
	m->namer.names.natives = &n->natives;
	s->natives =
	        (struct tw_used_libraries){n->libraries, s->build_id, tw_unix_ms() / TW_DAY_MS};
	return st;
}

static void close_natives(struct anrs *anrs, struct mappings *m)
{
	tw_natives_close(anrs->parts.symbols, &m->namer.natives);
	m->namer.names.natives = NULL;
}

/* The report with the names of its build, classified; NULL: no report, or out of memory. */
static json_t *named_doc(struct anrs *anrs, const json_t *brief, const struct mappings *m)
{
	char *text = tw_json_dumps(json_object_get(brief, "doc"), JSON_COMPACT);
	struct tw_str named = {NULL, 0};

	if (text)
		named = tw_anr_named(anrs->arena, tw_str_of(text), &m->namer.names);
	free(text);
	return named.ptr ? json_loadb(named.ptr, named.len, 0, NULL) : NULL;
}

/* Adds the methods that a frame represents, innermost first; none for compiler-generated frames. */
static void add_named(struct anrs *anrs, const struct mappings *m, const struct tw_named *what,
        struct tw_retrace_walk *walk, json_t *list)
{
	struct tw_retraced frames[INLINED_MAX];
	size_t n = 0;

	if (!tw_names_frames(&m->namer.names, what, walk, frames, INLINED_MAX, &n)) {
		*walk = (struct tw_retrace_walk){.r = m->namer.names.retrace};
		(void)tw_names_display(&m->namer.names, what, anrs->name, NAME_BYTES);
		(void)json_array_append_new(list, json_string(anrs->name));
	}
	for (size_t i = 0; i < n; i++) {
		size_t len = tw_utf8_clean(anrs->name, NAME_BYTES, frames[i].class_name);

		if (len)
			len += tw_utf8_clean(anrs->name + len, NAME_BYTES - len, TW_STR("."));
		(void)tw_utf8_clean(anrs->name + len, NAME_BYTES - len, frames[i].method);
		(void)json_array_append_new(list, json_string(anrs->name));
	}
}

static json_t *named_path(struct anrs *anrs, const json_t *brief, const struct mappings *m)
{
	const json_t *path = json_object_get(brief, "path");
	const json_t *frames = json_object_get(path, "frames");
	json_t *list = json_array();
	struct tw_retrace_walk walk = {.r = m->namer.names.retrace};

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);
		const json_t *id = json_object_get(frame, "id");
		const char *name = json_string_value(json_object_get(frame, "name"));
		const struct tw_named what = {
		        id != NULL, (uint64_t)json_integer_value(id), tw_str_of(name ? name : "")};

		add_named(anrs, m, &what, &walk, list);
	}
	if (!path) {
		json_decref(list);
		return NULL;
	}
	return json_pack("{s:o, s:O, s:O}", "frames", list, "ns", json_object_get(path, "ns"),
	        "window_ns", json_object_get(path, "window_ns"));
}

static enum tw_status find_cause_of(struct anrs *anrs, struct tw_anr_stale *s, const json_t *brief,
        const struct rules *r, const struct mappings *m, struct tw_err *err)
{
	json_t *doc = json_object_get(brief, "doc") ? named_doc(anrs, brief, m) : NULL;
	json_t *path = named_path(anrs, brief, m);
	struct tw_lock_list locks = {s->locks, s->n_locks, (uint32_t)s->n_locks};
	const struct tw_anr_blame blame = {r->anr, r->app, path};
	bool lost = !brief || (!doc && json_object_get(brief, "doc"));
	const struct tw_anr_blame no_path = {r->anr, r->app, NULL};
	struct tw_anr_cause cause;
	enum tw_status st =
	        lost ? TW_NOMEM : tw_anr_cause_of(doc, &blame, anrs->arena, &cause, err);

	/* a report that is too large has no known cause, and does not block others */
	if (st == TW_NOMEM)
		st = tw_anr_cause_of(NULL, &no_path, anrs->arena, &cause, err);
	if (st == TW_OK)
		st = tw_locks_of_anr(doc, anrs->arena, &locks, err);
	s->locks = locks.at;
	s->n_locks = locks.n;
	if (st == TW_OK)
		st = tw_catalogue_anr_keyed(anrs->parts.catalogue, s, r->number, &cause, err);
	json_decref(path);
	json_decref(doc);
	return st;
}

static enum tw_status find_cause(struct anrs *anrs, struct tw_anr_stale *s, const struct rules *r,
        struct mappings *m, struct tw_err *err)
{
	json_t *brief = tw_anr_brief_read(s->brief);
	enum tw_status st = open_natives(anrs, brief, s, m, err);

	if (st == TW_OK)
		st = find_cause_of(anrs, s, brief, r, m, err);
	close_natives(anrs, m);
	json_decref(brief);
	return st;
}

/* Locks in the report are read from it again. */
static void drop_dumped(struct tw_anr_stale *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_locks; i++)
		if (!s->locks[i].dump)
			s->locks[n++] = s->locks[i];
	s->n_locks = n;
}

static enum tw_status key_one(struct anrs *anrs, struct tw_anr_stale *s, const struct rules *r,
        struct mappings *m, struct tw_err *err)
{
	struct tw_lock_list locks;
	enum tw_status st = open_mappings(anrs, s, m, err);

	drop_dumped(s);
	locks = (struct tw_lock_list){s->locks, s->n_locks, (uint32_t)s->n_locks};
	if (st == TW_OK)
		st = tw_locks_name(m->namer.names.retrace, anrs->arena, &locks, err);
	if (st != TW_OK)
		return st;
	return s->anr ? find_cause(anrs, s, r, m, err)
	              : tw_catalogue_anr_keyed(anrs->parts.catalogue, s, r->number, NULL, err);
}

/* --- counting --- */

static struct late_day *late_day(struct anrs *anrs, const char *project_id, int64_t day)
{
	for (size_t i = 0; i < LATE_DAYS; i++)
		if (anrs->late[i].until_ms && anrs->late[i].day == day &&
		        strcmp(anrs->late[i].project_id, project_id) == 0)
			return &anrs->late[i];
	return NULL;
}

/* One that is free, or whose time has passed; NULL: none. */
static struct late_day *take_slot(struct anrs *anrs, const char *project_id, int64_t day)
{
	struct late_day *l = &anrs->late[0];

	for (size_t i = 1; i < LATE_DAYS; i++)
		if (anrs->late[i].until_ms < l->until_ms)
			l = &anrs->late[i];
	if (l->until_ms > tw_monotonic_ms())
		return NULL;
	*l = (struct late_day){.day = day};
	(void)snprintf(l->project_id, sizeof l->project_id, "%s", project_id);
	return l;
}

/* False: later days wait too. */
static bool postpone(struct anrs *anrs, const char *project_id, int64_t day)
{
	struct late_day *l = late_day(anrs, project_id, day);

	if (!l)
		l = take_slot(anrs, project_id, day);
	if (!l)
		return false;
	l->until_ms = tw_monotonic_ms() + ((int64_t)LATE_MS << l->attempts);
	l->attempts += l->attempts < LATE_DOUBLINGS;
	return true;
}

struct day_filter {
	struct anrs *anrs;
	const char *project_id;
};

static bool is_late(void *arg, int64_t day)
{
	const struct day_filter *f = arg;
	const struct late_day *l = late_day(f->anrs, f->project_id, day);

	return l && tw_monotonic_ms() < l->until_ms;
}

/* Queries read days without counts row by row, so a day that cannot be counted is logged and
 * retried later.  Keys are assigned and other days counted regardless. */
static void count_or_log(struct anrs *anrs, const char *project_id, int64_t rules, bool *ret_more)
{
	struct day_filter f = {anrs, project_id};
	const struct tw_anr_rollup_due due = {project_id, rules, tw_unix_ms(),
	        TW_ANR_ROLLUP_REPORTS_MIN, .skips = is_late, .arg = &f};
	struct tw_anr_rollup_done done = {.day = -1};
	struct late_day *l;
	struct tw_err err;
	enum tw_status st = tw_catalogue_anr_rollup(anrs->parts.catalogue, &due, &done, &err);

	*ret_more = done.more;
	if (st == TW_OK) {
		l = done.packed ? NULL : late_day(anrs, project_id, done.day);
		if (l)
			l->until_ms = 0;
		return;
	}
	if (done.day >= 0 && !done.packed)
		*ret_more = err.code != TW_BUSY && err.code != TW_FULL &&
		            postpone(anrs, project_id, done.day);
	tw_log(TW_LOG_WARN, done.packed ? "anr_day_not_packed" : "anr_counts_not_updated",
	        tw_log_text("project", project_id), tw_log_number("day", done.day),
	        tw_log_text("reason", err.msg));
}

static enum tw_status key_some(
        struct anrs *anrs, const char *project_id, bool *io_more, struct tw_err *err)
{
	struct tw_anr_stale *stale = NULL;
	struct mappings m = {0};
	struct rules r = {0};
	bool counted = false;
	size_t n = 0;
	enum tw_status st = open_rules(anrs, project_id, &r, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_stale(anrs->parts.catalogue, project_id, r.number,
		        KEYED_AT_ONCE, anrs->project_arena, &stale, &n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(anrs->arena);
		st = key_one(anrs, &stale[i], &r, &m, err);
	}
	if (st == TW_OK && n < KEYED_AT_ONCE) /* ANRs with outdated keys are not counted */
		count_or_log(anrs, project_id, r.number, &counted);
	tw_namer_close(&anrs->parts, &m.namer);
	close_rules(&r);
	*io_more = *io_more || (st == TW_OK && (n > 0 || counted));
	return st;
}

/* --- copies in an engine for ad-hoc queries --- */

enum { COPIED_AT_ONCE = 256, COPY_AGAIN_MS = 5000 };

/* An engine that does not respond does not delay the rest. */
static enum tw_status copy_some(struct anrs *anrs, bool *io_more, struct tw_err *err)
{
	struct tw_fleet_store *fleet = anrs->parts.fleet;
	struct tw_anr_copy *of = NULL;
	size_t n = 0;
	enum tw_status st;

	if (!fleet || !fleet->engine->put_anrs || tw_monotonic_ms() < anrs->copy_ms)
		return TW_OK;
	tw_arena_reset(anrs->project_arena);
	st = tw_catalogue_anr_uncopied(
	        anrs->parts.catalogue, COPIED_AT_ONCE, anrs->project_arena, &of, &n, err);
	if (st == TW_OK && n)
		st = fleet->engine->put_anrs(fleet, of, n, err);
	anrs->copy_ms = st == TW_OK ? 0 : tw_monotonic_ms() + COPY_AGAIN_MS;
	*io_more = *io_more || (st == TW_OK && n == COPIED_AT_ONCE);
	return st;
}

/* --- the stage --- */

static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct anrs *anrs = state;
	enum tw_status st;

	tw_arena_reset(anrs->project_arena);
	st = extract_some(anrs, turn, ret_more, err);
	return st == TW_OK ? key_some(anrs, turn->project_id, ret_more, err) : st;
}

/* Marks ANRs that a mapping names differently.  Counts of reports are retained like rollups. */
static enum tw_status maintain(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct anrs *anrs = state;
	bool expired = false;
	enum tw_status st = tw_catalogue_anr_renames(anrs->parts.catalogue, ret_more, err);

	if (st == TW_OK && !tw_turn_is_last(turn) && anrs->parts.figures_days)
		st = tw_catalogue_anr_expire(anrs->parts.catalogue,
		        tw_age_ms() / TW_DAY_MS - anrs->parts.figures_days, &expired, err);
	*ret_more = *ret_more || expired;
	return st == TW_OK ? copy_some(anrs, ret_more, err) : st;
}

static void close_anrs(void *state)
{
	struct anrs *anrs = state;

	tw_mem_free(anrs->name);
	tw_arena_free(anrs->project_arena);
	tw_arena_free(anrs->arena);
	tw_mem_free(anrs);
}

static enum tw_status open_anrs(const struct tw_derive_parts *p, void **ret, struct tw_err *err)
{
	struct anrs *anrs = tw_mem_zalloc(1, sizeof *anrs);

	*ret = anrs;
	if (!anrs)
		return tw_oom(err);
	anrs->parts = *p;
	anrs->arena = tw_arena_new(WORK_BYTES);
	anrs->project_arena = tw_arena_new(WORK_BYTES);
	anrs->name = tw_mem_alloc(NAME_BYTES, 1);
	return anrs->arena && anrs->project_arena && anrs->name ? TW_OK : tw_oom(err);
}

/* Reports without a key, past days with uncounted reports, and days to pack */
static const struct tw_stage_sql sql = TW_STAGE_SQL("anr", "anr_state",
        .also = {"anr_trace WHERE keyed=0",
                "anr_day WHERE waiting=1 AND day<" TW_EITHER("unixepoch()/86400",
                        "CAST(floor(extract(epoch FROM now())/86400) AS BIGINT)"),
                "anr_day WHERE pack_ms>0 AND pack_ms<=" TW_EITHER("unixepoch()*1000",
                        "CAST(floor(extract(epoch FROM now())*1000) AS BIGINT)")});

const struct tw_stage tw_stage_anr = {.name = "anr",
        .depends = TW_RAISED_BY_DECODER | TW_RAISED_BY_MAPPING | TW_RAISED_BY_RULES,
        .sql = &sql,
        .all = "anr_day", /* keys of old reports depend on the rules */
        .open = open_anrs,
        .close = close_anrs,
        .run = run,
        .maintain = maintain};

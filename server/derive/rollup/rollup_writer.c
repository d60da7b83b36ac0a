/*
 * rollup_writer.c - adds traces to rollups: reads and counts each, and stores the results as deltas
 * of its cells.
 *
 * A trace file is read and its facts are computed outside of any transaction.  A set of method ids
 * records which methods were written already, so that a trace of a known build writes none.
 */
#include <string.h>

#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/derive/rollup/rollup_writer_int.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_readers.h"

enum { PATH_BYTES = 1500, KNOWN_SLOTS = 1 << 18, FACTS_BYTES = 1 << 20, TREE_BYTES = 256 << 20 };

struct tw_rollup_worker *tw_rollup_worker_new(const struct tw_derive_parts *parts)
{
	struct tw_rollup_worker *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->parts = *parts;
	f->arena = tw_arena_new(TW_ROLLUP_WORKER_BYTES);
	f->name = tw_mem_alloc(TW_ROLLUP_WORKER_NAME_BYTES, 1);
	f->known = tw_mem_zalloc(KNOWN_SLOTS, sizeof *f->known);
	return f->arena && f->name && f->known ? f : tw_rollup_worker_free(f);
}

struct tw_rollup_worker *tw_rollup_worker_free(struct tw_rollup_worker *f)
{
	if (!f)
		return NULL;
	tw_mem_free(f->known);
	tw_mem_free(f->name);
	tw_arena_free(f->arena);
	tw_mem_free(f);
	return NULL;
}

/* --- methods already written --- */

static uint64_t *known_slot(struct tw_rollup_worker *f, uint64_t id)
{
	uint32_t at = (uint32_t)id & (KNOWN_SLOTS - 1);

	while (f->known[at] && f->known[at] != id)
		at = (at + 1) & (KNOWN_SLOTS - 1);
	return &f->known[at];
}

void tw_rollup_worker_forget(struct tw_rollup_worker *f)
{
	memset(f->known, 0, KNOWN_SLOTS * sizeof *f->known);
	f->n_known = 0;
}

bool tw_rollup_worker_knows(struct tw_rollup_worker *f, uint64_t id)
{
	return *known_slot(f, id) != 0;
}

void tw_rollup_worker_remember(struct tw_rollup_worker *f, uint64_t id)
{
	uint64_t *slot;

	if (f->n_known >
	        KNOWN_SLOTS / 2) /* a forgotten method only costs a write that changes nothing */
		tw_rollup_worker_forget(f);
	slot = known_slot(f, id);
	f->n_known += *slot == 0;
	*slot = id;
}

/* --- one trace --- */

struct reading { /* state of a trace being counted */
	struct tw_trace_row row;
	struct tw_rollup_dims cells[TW_ROLLUP_CELLS_MAX];
	size_t n_cells;
	struct tw_rollup_fact *facts;
	size_t n_facts;
	uint64_t *ids;                    /* of the file's methods; 0: not called */
	uint8_t *in_tree;                 /* 1: a node of its tree belongs to the method */
	struct tw_str tree;               /* its call trees, serialized */
	struct tw_rollup_naming *methods; /* those that may be new */
	size_t n_methods;
	struct tw_mapping_ids by; /* the mappings that named them */
	struct tw_libraries natives;
	struct tw_str index_entries;
	struct tw_str threads; /* facts by kind of thread */
	bool is_first;         /* first of its batch, so all memory is available to it */
};

const char *tw_rollup_worker_raw(struct tw_rollup_worker *f, const struct tw_named *m)
{
	char raw[TW_ROLLUP_RAW_BYTES];

	tw_rollup_raw(m, raw);
	return tw_arena_str(f->arena, tw_str_of(raw));
}

static enum tw_status take_facts(struct tw_rollup_worker *f, struct reading *r,
        const struct tw_method_info *infos, uint32_t n, struct tw_err *err)
{
	const struct tw_rollup_space in = {
	        r->row.project_id, r->row.meta.build_id, r->row.meta.mapping_id};

	r->facts = tw_arena_alloc(f->arena, (size_t)n + 1, sizeof *r->facts);
	r->ids = tw_arena_zalloc(f->arena, (size_t)n + 1, sizeof *r->ids);
	if (!r->facts || !r->ids)
		return tw_oom(err);
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &infos[i];
		const struct tw_named what = tw_method_info_named(m);
		const char *raw = m->count ? tw_rollup_worker_raw(f, &what) : "";

		if (!raw)
			return tw_oom(err);
		if (!m->count)
			continue;
		r->ids[i] = tw_rollup_method_id(&in, raw);
		r->facts[r->n_facts++] = (struct tw_rollup_fact){
		        r->ids[i], m->count, m->total_ns, m->self_ns, m->sum_ns, m->cpu_ns, i};
	}
	r->n_facts = tw_rollup_bound(r->facts, r->n_facts);
	return TW_OK;
}

enum tw_status tw_rollup_copy(
        struct tw_buf *out, struct tw_arena *a, struct tw_str *ret, struct tw_err *err)
{
	char *copy = NULL;

	if (tw_buf_status(out) == TW_OK)
		copy = tw_arena_alloc(a, out->len ? out->len : 1, 1);
	if (copy && out->len)
		memcpy(copy, out->data, out->len);
	*ret = (struct tw_str){copy, copy ? out->len : 0};
	tw_buf_done(out);
	return copy ? TW_OK : tw_oom(err);
}

/* In a separate arena: a trace whose trees are too large is counted without them. */
static enum tw_status take_tree(struct tw_rollup_worker *f, struct reading *r,
        struct tw_trace_file *file, uint32_t n, struct tw_err *err)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(TREE_BYTES)};
	uint8_t *used = NULL;
	struct tw_buf out, levels; /* the tree of one trace has no levels */
	enum tw_status st =
	        t.arena ? tw_rollup_trace_tree(file, r->ids, n, &t, &used, err) : tw_oom(err);

	tw_buf_init(&out, FACTS_BYTES);
	r->in_tree = tw_arena_zalloc(f->arena, (size_t)n + 1, 1);
	if (st == TW_OK && r->in_tree && used) {
		memcpy(r->in_tree, used, n);
		tw_buf_init(&levels, FACTS_BYTES);
		st = tw_rollup_tree_write(&t, &out, &levels, err);
		tw_buf_done(&levels);
	}
	tw_arena_free(t.arena);
	if (st == TW_OK && r->in_tree)
		return tw_rollup_copy(&out, f->arena, &r->tree, err);
	tw_buf_done(&out);
	if (st == TW_NOMEM && r->in_tree) {
		tw_log_err(TW_LOG_WARN, "trace_without_tree", r->row.id, err);
		return TW_OK;
	}
	return st == TW_OK ? tw_oom(err) : st;
}

static bool name_method_of(struct tw_rollup_worker *f, struct reading *r,
        const struct tw_names *names, uint64_t id, const struct tw_method_info *info)
{
	const struct tw_named what = tw_method_info_named(info);
	struct tw_rollup_naming *m = &r->methods[r->n_methods++];

	*m = (struct tw_rollup_naming){.id = id,
	        .build_id = r->row.meta.build_id,
	        .mapping_id = r->row.meta.mapping_id,
	        .raw = tw_rollup_worker_raw(f, &what)};
	tw_rollup_worker_remember(f, m->id);
	return m->raw && tw_namer_name(f, names, &what, m);
}

/* Names the methods of facts and tree that are not written yet. */
static enum tw_status name_methods(struct tw_rollup_worker *f, struct reading *r,
        const struct tw_namer *namer, const struct tw_method_info *infos, uint32_t n,
        struct tw_err *err)
{
	bool fits;

	for (size_t i = 0; i < r->n_facts; i++) /* methods of the tree are named below */
		r->in_tree[r->facts[i].at] |= r->facts[i].method != TW_ROLLUP_OTHER;
	r->methods = tw_arena_alloc(f->arena, (size_t)n + 1, sizeof *r->methods);
	fits = r->methods != NULL;
	for (uint32_t i = 0; fits && i < n; i++)
		if (r->in_tree[i] && !tw_rollup_worker_knows(f, r->ids[i]))
			fits = name_method_of(f, r, &namer->names, r->ids[i], &infos[i]);
	r->by = namer->ids;
	return fits ? TW_OK : tw_oom(err);
}

/* Methods without facts are not in the search index. */
static enum tw_status take_entries(struct tw_rollup_worker *f, struct reading *r,
        struct tw_trace_file *file, uint32_t n, struct tw_err *err)
{
	uint64_t *numbers = tw_arena_zalloc(f->arena, (size_t)n + 1, sizeof *numbers);
	const struct tw_rollup_indexing of = {file, r->row.id, numbers, n};
	enum tw_status st;

	if (!numbers)
		return tw_oom(err);
	for (size_t i = 0; i < r->n_facts; i++)
		if (r->facts[i].method != TW_ROLLUP_OTHER)
			numbers[r->facts[i].at] = r->facts[i].method;
	st = tw_rollup_take_index(f, &of, &r->index_entries, err);
	if (st == TW_NOMEM) /* a trace with too many entries is counted without them */
		st = TW_OK;
	if (st == TW_OK && f->parts.fleet->engine->threads)
		st = tw_rollup_take_threads(f, &of, &r->threads, err);
	return st;
}

static enum tw_status read_open_file(struct tw_rollup_worker *f, struct reading *r,
        struct tw_namer *namer, struct tw_trace_file *file, struct tw_err *err)
{
	const struct tw_method_info *infos;
	uint32_t n = 0;
	enum tw_status st =
	        tw_namer_inline(&f->parts, r->row.project_id, file, f->arena, namer, err);

	r->natives = namer->natives.libraries;
	if (st == TW_OK)
		st = tw_trace_file_methods(file, &infos, &n, err);
	if (st == TW_OK)
		st = take_facts(f, r, infos, n, err);
	if (st == TW_OK)
		st = take_tree(f, r, file, n, err);
	if (st == TW_OK)
		st = take_entries(f, r, file, n, err);
	if (st == TW_OK)
		st = name_methods(f, r, namer, infos, n, err);
	return st;
}

/* Traces of a batch are often of one build.  Its mappings are compared again when names are
 * stored. */
static enum tw_status open_namer(struct tw_rollup_worker *f, const struct tw_trace_row *row,
        struct tw_namer *ret, struct tw_err *err)
{
	const struct tw_named_trace of = {
	        row->project_id, row->id, row->meta.build_id, row->meta.mapping_id};
	enum tw_status st;

	if (f->named_build && strcmp(f->named_build, of.build_id) == 0 &&
	        strcmp(f->named_mapping, of.mapping_id) == 0)
		return tw_namer_open_by(&f->parts, &f->named_by, of.build_id, ret, err);
	f->named_build = NULL;
	st = tw_namer_open(&f->parts, &of, f->arena, ret, err);
	if (st == TW_OK) {
		f->named_build = of.build_id;
		f->named_mapping = of.mapping_id;
		f->named_by = ret->ids;
	}
	return st;
}

static enum tw_status read_file(struct tw_rollup_worker *f, struct reading *r, struct tw_err *err)
{
	struct tw_trace_file *file = NULL;
	struct tw_namer namer = {0};
	enum tw_status st;

	if (r->n_cells == 0)
		return TW_OK;
	st = tw_trace_readers_open(f->parts.readers, f->parts.blobs, r->row.id, &file, err);
	if (st == TW_OK)
		st = open_namer(f, &r->row, &namer, err);
	if (st == TW_OK)
		st = read_open_file(f, r, &namer, file, err);
	tw_trace_readers_close(f->parts.readers, file);
	tw_namer_close(&f->parts, &namer);
	return st;
}

static enum tw_status find_cells(struct tw_rollup_worker *f, struct reading *r, struct tw_err *err)
{
	/* nothing to aggregate; without calls its duration is only that of the recording */
	if (!tw_trace_is_timed(&r->row.summary) || r->row.summary.slices == 0)
		return TW_OK;
	return tw_rollup_cells(
	        &r->row, f->labels, f->n_labels, f->arena, r->cells, &r->n_cells, err);
}

/* The day of a trace is not after today, unless the clock was set back. */
static int64_t day_of(const struct tw_rollup_worker *f, const struct reading *r)
{
	return r->n_cells && r->cells[0].day > f->known_day ? r->cells[0].day : f->known_day;
}

static enum tw_status write_facts(struct tw_rollup_worker *f, const struct reading *r,
        struct tw_rollup_reading *ret, struct tw_err *err)
{
	struct tw_buf out;

	tw_buf_init(&out, FACTS_BYTES);
	tw_rollup_write_facts(r->facts, r->n_facts, &out);
	*ret = (struct tw_rollup_reading){r->row.project_id, r->row.id, r->cells, r->n_cells,
	        r->row.summary.duration_ns, {"", 0}, r->tree, r->index_entries, r->threads, &r->row,
	        {r->natives, r->row.meta.build_id, day_of(f, r)}};
	return tw_rollup_copy(&out, f->arena, &ret->facts, err);
}

enum tw_status tw_rollup_worker_read(struct tw_rollup_worker *f, const struct tw_trace_row *row,
        struct tw_rollup_reading *ret, struct tw_err *err)
{
	struct reading *r;
	enum tw_status st;

	tw_arena_reset(f->arena);
	f->named_build = NULL;
	r = tw_arena_zalloc(f->arena, 1, sizeof *r);
	if (!r)
		return tw_oom(err);
	r->row = *row;
	st = tw_rollup_labels(
	        f->parts.catalogue, row->project_id, f->arena, f->labels, &f->n_labels, err);
	if (st == TW_OK)
		st = find_cells(f, r, err);
	if (st == TW_OK)
		st = read_file(f, r, err);
	return st == TW_OK ? write_facts(f, r, ret, err) : st;
}

/* *ret_readable false: the file was deleted or is unreadable (recorded), or needs more than all of
 * the memory.  TW_NOMEM if others of the batch used some of it. */
static enum tw_status count_trace(struct tw_rollup_worker *f, const struct tw_turn *turn,
        struct reading *r, struct tw_rollup_reading *ret, bool *ret_readable, struct tw_err *err)
{
	const struct tw_named_trace t = tw_turn_trace(&r->row);
	struct tw_err why;
	enum tw_status st = find_cells(f, r, err);

	*ret_readable = false;
	if (st != TW_OK)
		return st;
	st = read_file(f, r, &why);
	if (st == TW_OK)
		st = write_facts(f, r, ret, &why);
	if (st == TW_NOMEM && !r->is_first) {
		tw_err_copy(err, &why);
		return st;
	}
	if (st != TW_OK)
		return tw_turn_failed(turn, &t, tw_is_temporary(st), &why, err);
	*ret_readable = true;
	return TW_OK;
}

/* --- batches --- */

static enum tw_status name_one(
        struct tw_rollup_worker *f, const struct reading *r, struct tw_err *err)
{
	const int64_t day = day_of(f, r);
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < r->n_methods; i += TW_ROLLUP_NAMED_AT_ONCE) {
		size_t rest = r->n_methods - i;
		const struct tw_rollup_names names = {r->row.project_id, r->methods + i,
		        rest < TW_ROLLUP_NAMED_AT_ONCE ? rest : TW_ROLLUP_NAMED_AT_ONCE, day,
		        r->by};

		st = f->parts.fleet->engine->name_methods(f->parts.fleet, &names, err);
	}
	return st;
}

/* Names are written first, so that each counted method has a name. */
static enum tw_status store_batch(struct tw_rollup_worker *f, const struct reading *readings,
        const struct tw_rollup_reading *results, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = name_one(f, &readings[i], err);
	if (st == TW_OK && n)
		st = f->parts.fleet->engine->put(f->parts.fleet, results, n, err);
	return st;
}

/* Names are written once per day, so that rows record when they were last seen. */
void tw_rollup_worker_begin_day(struct tw_rollup_worker *f)
{
	int64_t today = tw_unix_ms() / TW_DAY_MS;

	if (today != f->known_day)
		tw_rollup_worker_forget(f);
	f->known_day = today;
}

enum tw_status tw_rollup_worker_count(
        struct tw_rollup_worker *f, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	const uint32_t most = f->parts.fleet->engine->batch;
	struct tw_rollup_reading *results;
	struct tw_trace_row *todo = NULL;
	struct reading *readings;
	size_t n = 0, n_todo = 0;
	enum tw_status st;

	*ret_more = false;
	tw_arena_reset(f->arena);
	f->named_build = NULL;
	tw_rollup_worker_begin_day(f);
	readings = tw_arena_zalloc(f->arena, most, sizeof *readings);
	results = tw_arena_zalloc(f->arena, most, sizeof *results);
	if (!readings || !results)
		return tw_oom(err);
	st = tw_turn_rows(turn, most, f->arena, &todo, &n_todo, err);
	if (st == TW_OK && n_todo)
		st = tw_rollup_labels(f->parts.catalogue, turn->project_id, f->arena, f->labels,
		        &f->n_labels, err);
	for (size_t i = 0; st == TW_OK && i < n_todo; i++) {
		bool readable;

		readings[n] = (struct reading){.row = todo[i], .is_first = i == 0};
		st = count_trace(f, turn, &readings[n], &results[n], &readable, err);
		n += readable;
	}
	if (st != TW_OK)
		tw_rollup_worker_forget(f);
	if (st == TW_NOMEM && n) /* the rest is in a later batch */
		st = TW_OK;
	if (st == TW_OK)
		st = store_batch(f, readings, results, n, err);
	if (st == TW_OK)
		tw_turn_done(turn, n);
	else
		tw_rollup_worker_forget(f);
	*ret_more = st == TW_OK && n_todo > 0;
	return st;
}

struct tw_rollup_worker_counts tw_rollup_worker_counts(const struct tw_rollup_worker *f)
{
	if (!f) /* a server that does not decode */
		return (struct tw_rollup_worker_counts){0};
	return (struct tw_rollup_worker_counts){
	        atomic_load(&f->cells), atomic_load(&f->cells_failed)};
}

/* --- several levels ---
 *
 * Merges the parts of the cells of a past day over scenarios, device classes and OS versions.
 */

enum { MADE_AT_ONCE = 16, PART_BYTES = 256 << 20 };
#define WORK_BYTES ((size_t)512 << 20)

/* One metric at a time, so that each needs only the memory of the parts read. */
static enum tw_status add_up(const struct tw_rollup_merged *w, enum tw_rollup_metric m,
        struct tw_arena *a, struct tw_buf *out, struct tw_err *err)
{
	struct tw_rollup r = {.arena = a, .metrics = 1U << m};
	struct tw_sketch *s = tw_arena_zalloc(a, 1, sizeof *s);
	enum tw_status st = s ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < w->n; i++)
		st = tw_rollup_add_part(&r, m, (const uint8_t *)w->cells[i].parts[m].ptr,
		        w->cells[i].parts[m].len, err);
	return st == TW_OK ? tw_rollup_write_part(&r, m, s, out, err) : st;
}

static enum tw_status make(
        struct tw_catalogue *c, struct tw_rollup_merged *w, struct tw_arena *a, struct tw_err *err)
{
	struct tw_str parts[TW_ROLLUP_METRICS] = {{0}};
	struct tw_buf out[TW_ROLLUP_METRICS];
	enum tw_status st = tw_catalogue_merged_load(c, w, a, err);

	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++) {
		tw_buf_init(&out[m], PART_BYTES);
		if (st == TW_OK && w->n > 1)
			st = add_up(w, m, a, &out[m], err);
		parts[m] = (struct tw_str){(const char *)out[m].data, out[m].len};
	}
	if (st == TW_OK)
		st = tw_catalogue_merged_store(c, w, parts, err);
	for (unsigned m = 0; m < TW_ROLLUP_METRICS; m++)
		tw_buf_done(&out[m]);
	return st;
}

/* If it cannot be made, readers use the single cells; it is retried when one of them changes. */
static enum tw_status make_or_leave(
        struct tw_catalogue *c, struct tw_rollup_merged *w, struct tw_arena *a, struct tw_err *err)
{
	static const struct tw_str none[TW_ROLLUP_METRICS];
	struct tw_err why;
	enum tw_status st = make(c, w, a, &why);

	if (st == TW_OK)
		return st;
	tw_log_err(TW_LOG_ERROR, "merged_rollup_not_stored", w->project_id, &why);
	w->n = 0;
	return tw_catalogue_merged_store(c, w, none, err);
}

enum tw_status tw_rollup_merged_add(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(WORK_BYTES);
	struct tw_arena *list = tw_arena_new(1 << 20);
	struct tw_rollup_merged *due = NULL;
	size_t n = 0;
	enum tw_status st =
	        a && list ? tw_catalogue_merged_due(c, day, MADE_AT_ONCE, list, &due, &n, err)
	                  : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(a);
		st = make_or_leave(c, &due[i], a, err);
	}
	tw_arena_free(list);
	tw_arena_free(a);
	*ret_more = st == TW_OK && n > 0;
	return st;
}

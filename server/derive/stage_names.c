/*
 * stage_names.c - counts how many of a trace's methods its mappings name.
 *
 * Every ready trace of a build is counted once, and again after a mapping of its build (I8).  The
 * sums are in the catalogue, so that reading them costs a row.
 */
#include <string.h>

#include "server/base/log.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"
#include "server/trace/trace_file.h"
#include "server/trace/trace_readers.h"

enum { AT_ONCE = 32 };

struct names {
	struct tw_derive_parts parts;
	struct tw_arena *arena;
};

static struct tw_name_counts count(
        const struct tw_map *map, const struct tw_method_info *methods, uint32_t n)
{
	struct tw_name_counts c = {0};
	struct tw_method_name name;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &methods[i];
		bool known = map && m->has_id && tw_map_find(map, m->id, &name);

		c.ids += m->has_id;
		c.slices += m->has_id ? m->count : 0;
		c.resolved += known;
		c.resolved_slices += known ? m->count : 0;
	}
	return c;
}

static enum tw_status count_file(struct names *s, const struct tw_named_trace *t,
        const struct tw_map *map, struct tw_name_counts *ret, struct tw_err *err)
{
	const struct tw_method_info *methods;
	struct tw_trace_file *f = NULL;
	uint32_t n = 0;
	enum tw_status st =
	        tw_trace_readers_open(s->parts.readers, s->parts.blobs, t->trace_id, &f, err);

	if (st == TW_OK)
		st = tw_trace_file_methods(f, &methods, &n, err);
	if (st == TW_OK)
		*ret = count(map, methods, n);
	tw_trace_readers_close(s->parts.readers, f);
	return st;
}

/* Consecutive traces are often of one build. */
static enum tw_status find_mappings(struct names *s, const struct tw_trace_names *before,
        struct tw_trace_names *of, struct tw_err *err)
{
	const struct tw_named_trace *t = &of->trace;

	if (!before || strcmp(t->build_id, before->trace.build_id) != 0 ||
	        strcmp(t->mapping_id, before->trace.mapping_id) != 0)
		return tw_catalogue_mappings(s->parts.catalogue, t, s->arena, &of->by, err);
	of->by = before->by;
	return TW_OK;
}

/* A damaged mapping names nothing; one that is temporarily unreadable is retried. */
static enum tw_status count_trace(struct names *s, const struct tw_trace_names *of,
        struct tw_name_counts *ret, struct tw_err *err)
{
	struct tw_symbols_ref *ref = NULL;
	enum tw_status st = tw_symbols_acquire(s->parts.symbols, of->by.map, &ref, err);

	if (st == TW_BUSY)
		return st;
	if (st != TW_OK)
		tw_log_err(TW_LOG_ERROR, "mapping_unreadable", of->trace.build_id, err);
	st = count_file(s, &of->trace, tw_symbols_map(ref), ret, err);
	tw_symbols_release(s->parts.symbols, ref);
	return st;
}

struct batch { /* counted traces, to be stored together */
	struct tw_trace_names names[AT_ONCE];
	struct tw_name_counts counts[AT_ONCE];
	size_t n, done; /* done: without damaged ones */
};

/* A damaged trace counts no methods. */
static enum tw_status count_one(struct names *s, const struct tw_turn *turn,
        const struct tw_named_trace *t, struct batch *io, struct tw_err *err)
{
	struct tw_trace_names *of = &io->names[io->n];
	struct tw_err why;
	enum tw_status st;
	bool may_pass;

	*of = (struct tw_trace_names){.trace = *t, .counts = &io->counts[io->n]};
	io->counts[io->n] = (struct tw_name_counts){0};
	st = find_mappings(s, io->n ? of - 1 : NULL, of, &why);
	if (st == TW_OK)
		st = count_trace(s, of, &io->counts[io->n], &why);
	may_pass = tw_is_temporary(st);
	io->n += !may_pass;
	io->done += st == TW_OK;
	return st == TW_OK ? TW_OK : tw_turn_failed(turn, t, may_pass, &why, err);
}

static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct tw_named_trace *traces = NULL;
	struct names *s = state;
	struct batch batch = {.n = 0};
	size_t n = 0;
	enum tw_status st;

	tw_arena_reset(s->arena);
	st = tw_turn_traces(turn, AT_ONCE, s->arena, &traces, &n, err);
	for (size_t i = 0; st == TW_OK && i < n && !tw_turn_is_over(turn); i++)
		st = count_one(s, turn, &traces[i], &batch, err);
	if (st == TW_OK)
		st = tw_catalogue_names_set(s->parts.catalogue, batch.names, batch.n, err);
	if (st == TW_OK)
		tw_turn_done(turn, batch.done);
	*ret_more = n > 0;
	return st;
}

/* Processes builds with a new mapping, and updates the numbers of traces per build. */
static enum tw_status maintain(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	struct names *s = state;
	enum tw_status st = tw_catalogue_counts_add(s->parts.catalogue, err);

	(void)turn;
	if (st != TW_OK)
		return st;
	tw_arena_reset(s->arena);
	return tw_catalogue_names_mark_stale(s->parts.catalogue, s->arena, ret_more, err);
}

static void close_names(void *state)
{
	struct names *s = state;

	tw_arena_free(s->arena);
	tw_mem_free(s);
}

static enum tw_status open_names(const struct tw_derive_parts *p, void **ret, struct tw_err *err)
{
	struct names *s = tw_mem_zalloc(1, sizeof *s);

	*ret = s;
	if (!s)
		return tw_oom(err);
	s->parts = *p;
	s->arena = tw_arena_new(4 << 20);
	return s->arena ? TW_OK : tw_oom(err);
}

static const struct tw_stage_sql sql = {.stage = "names",
        .index = "trace_stage_names",
        .waits = "state=2 AND named>=0 AND named<>1 AND build_id<>''",
        .postpone = "named=-2-named",
        .is_postponed = "named<-1",
        .resume = "named=-2-named"};

const struct tw_stage tw_stage_names = {.name = "names",
        .depends = TW_RAISED_BY_DECODER | TW_RAISED_BY_MAPPING,
        .raises = TW_RAISED_BY_MAPPING, /* it lets the traces of a new mapping wait again in all
                                           stages */
        .sql = &sql,
        .open = open_names,
        .close = close_names,
        .run = run,
        .maintain = maintain};

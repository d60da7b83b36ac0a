/* fleet_embedded.c - the fleet store in the catalogue: rollup cells, search index, findings. */
#include "server/base/clock.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/fleet/fleet_tree.h"
#include "server/fleet/store/fleet_store.h"

enum { BATCH = 16 };
#define CELL_BYTES ((size_t)128 << 20)

/* --- counting --- */

static enum tw_status put(
        struct tw_fleet_store *s, const struct tw_rollup_reading *of, size_t n, struct tw_err *err)
{
	return tw_catalogue_rollup_put(s->catalogue, of, n, err);
}

static enum tw_status name(
        struct tw_fleet_store *s, const struct tw_rollup_names *names, struct tw_err *err)
{
	return tw_catalogue_rollup_name(s->catalogue, names, err);
}

static enum tw_status put_found(struct tw_fleet_store *s, const struct tw_found_trace *of, size_t n,
        int64_t number, struct tw_err *err)
{
	return tw_catalogue_found_put(s->catalogue, of, n, number, err);
}

/* --- reading --- */

static enum tw_status cells(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        struct tw_arena *a, struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err)
{
	const bool may_merge = !(query->dims & (TW_DIM_SCENARIO | TW_DIM_CLASS | TW_DIM_OS));

	return tw_catalogue_rollup_read(s->catalogue, query->project_id, &query->filter,
	        query->metrics | (query->metrics && may_merge ? TW_ROLLUP_MERGED : 0), a, ret,
	        ret_n, err);
}

static enum tw_status count(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        uint64_t *ret, struct tw_err *err)
{
	return tw_catalogue_rollup_count(s->catalogue, query->project_id, &query->filter, ret, err);
}

/* All sets by one statement. */
static enum tw_status trees(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, size_t n, struct tw_rollup_tree *to, struct tw_err *err)
{
	struct tw_tree_cell *read = NULL;
	int64_t *ids;
	size_t n_ids = 0, at = 0, of_all = 0;
	enum tw_status st;

	for (size_t k = 0; k < n; k++) {
		n_ids += of[k].n;
		of_all = of[k].of_all > of_all ? of[k].of_all : of_all; /* an empty set has none */
	}
	ids = tw_arena_alloc(to->arena, n_ids + 1, sizeof *ids);
	if (!ids)
		return tw_oom(err);
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < of[k].n; i++)
			ids[at++] = of[k].list[i]->cell_id;
	st = tw_catalogue_trees_read(s->catalogue, query->project_id, ids, n_ids,
	        of_all > TW_ROLLUP_TREES_WHOLE, to->arena, &read, err);
	for (size_t k = 0; st == TW_OK && k < n; k++) {
		st = tw_fleet_trees(read, of[k].n, &to[k], err);
		read += of[k].n;
	}
	return st;
}

struct scan {
	struct tw_search *search;
	const struct tw_fleet_query *query;
};

static enum tw_status row_in_time(
        void *arg, size_t cell, unsigned slot, const struct tw_index_row *row, struct tw_err *err)
{
	const struct scan *k = arg;

	if (k->query->until_ms && tw_monotonic_ms() >= k->query->until_ms)
		return tw_fail(err, TW_DEADLINE,
		        "the index of these traces could not be read in time; narrow the filter or "
		        "the time");
	return tw_search_row(k->search, cell, slot, row, err);
}

static enum tw_status search(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_rollup_cell *cells_of, size_t n, struct tw_search *io, struct tw_err *err)
{
	struct scan k = {io, query};
	struct tw_index_query index = {query->project_id, cells_of, n, 0, row_in_time, &k};
	enum tw_status st;

	for (size_t i = 0; i < io->n_methods; i++)
		index.slots |= 1U << tw_index_slot(io->numbers[i]);
	io->arena = tw_arena_new(CELL_BYTES);
	if (!io->arena)
		return tw_oom(err);
	st = io->n_methods ? tw_catalogue_index_read(s->catalogue, &index, err) : TW_OK;
	io->arena = tw_arena_free(io->arena);
	tw_search_sort(io);
	for (size_t i = 0; i < io->n; i++)
		io->found[i].dims = &cells_of[io->found[i].cell].dims;
	return st;
}

static enum tw_status found(struct tw_fleet_store *s, const struct tw_fleet_query *query,
        const struct tw_fleet_cells_of *of, const struct tw_fleet_findings *to, struct tw_err *err)
{
	const struct tw_found_reading reading = {
	        query->project_id, of->list, of->n, to->take, to->arg};

	return tw_catalogue_found_read(s->catalogue, &reading, err);
}

/* --- recounting and expiry --- */

static enum tw_status reset(struct tw_fleet_store *s, const char *project_id, const char *build_id,
        struct tw_rollup_reset *ret, struct tw_err *err)
{
	return build_id[0] ? tw_catalogue_rollup_reset_build(
	                             s->catalogue, project_id, build_id, ret, err)
	                   : tw_catalogue_rollup_reset(s->catalogue, project_id, ret, err);
}

static enum tw_status expire(
        struct tw_fleet_store *s, int64_t day, bool *ret_more, struct tw_err *err)
{
	return tw_catalogue_rollup_expire(s->catalogue, day, ret_more, err);
}

static void free_store(struct tw_fleet_store *s)
{
	tw_mem_free(s);
}

static const struct tw_fleet_engine embedded = {.name = "embedded",
        .batch = BATCH,
        .put = put,
        .name_methods = name,
        .put_found = put_found,
        .cells = cells,
        .count = count,
        .trees = trees,
        .search = search,
        .found = found,
        .reset = reset,
        .expire = expire,
        .free = free_store};

struct tw_fleet_store *tw_fleet_embedded_new(struct tw_catalogue *c)
{
	struct tw_fleet_store *s = tw_mem_zalloc(1, sizeof *s);

	if (s)
		*s = (struct tw_fleet_store){&embedded, c};
	return s;
}

struct tw_fleet_store *tw_fleet_store_free(struct tw_fleet_store *s)
{
	if (s)
		s->engine->free(s);
	return NULL;
}

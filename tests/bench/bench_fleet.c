/*
 * bench_fleet.c - the cost of rollups as the fleet grows: counting a trace, and queries.
 *
 * usage: bench_fleet FOLDER [TRACES...]     (1000 20000 when none are given)
 *
 * A simulated fleet (fixtures/fleet_sim.h: 200 methods and 600 nodes a trace, 500 cells) is counted
 * by the server's own code, a new one for each size, day after day: cells of past days are merged,
 * which is included.  CPU time of this process, so that other processes have little influence; each
 * query runs three times and the best is printed.  If the cost does not grow, the last columns
 * remain near 1 or fall, because many traces of a cell are merged together.  The rows that queries
 * read are printed below; methods of a device class are read cell by cell, those of all classes by
 * day.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/db/catalogue_sqlite.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/fleet.h"
#include "server/fleet/fleet_search.h"
#include "server/fleet/fleet_tree.h"
#include "sizes.h"
#include "tests/fixtures/fleet_sim.h"

enum { STEP = 250, DAY0 = 20000 };

struct bench {
	struct tw_catalogue *c;
	struct tw_rollup_worker *folder;
	struct tw_db *db;
	char project[TW_ID_BYTES];
	char path[1000];
};

/* Returns whether there was nothing yet. */
static bool open_all(struct bench *b, const char *folder)
{
	struct tw_derive_parts parts = {0};
	bool is_new;
	int room;

	memset(b, 0, sizeof *b);
	(void)mkdir(folder, 0700);
	(void)snprintf(b->path, sizeof b->path, "%s/catalogue.db", folder);
	bench_must(tw_catalogue_open(b->path, &b->c, NULL) == TW_OK, "opening the catalogue");
	bench_must(
	        tw_catalogue_project(b->c, "p", b->project, &is_new, NULL) == TW_OK, "a project");
	bench_must(tw_db_sqlite_open(b->path, TW_DB_WRITE, &b->db, &room, NULL) == TW_OK,
	        "a second connection");
	parts.catalogue = b->c;
	b->folder = tw_rollup_worker_new(&parts);
	bench_must(b->folder != NULL, "memory");
	return is_new;
}

static void close_all(struct bench *b)
{
	(void)tw_rollup_worker_free(b->folder);
	tw_db_close(b->db);
	b->c = tw_catalogue_close(b->c);
}

static void add_cells(struct bench *b, int64_t today)
{
	for (bool more = true; more;)
		bench_must(tw_rollup_worker_add(
		                   b->folder, TW_ROLLUP_DELTAS_MAX, today, &more, NULL) == TW_OK,
		        "adding up");
}

static void add_trees(struct bench *b, int64_t today)
{
	for (bool more = true; more;)
		bench_must(tw_rollup_trees_add(
		                   b->c, TW_ROLLUP_TREE_DELTAS_MAX, today, &more, NULL) == TW_OK,
		        "adding up trees");
}

static void add_merged(struct bench *b, int64_t today)
{
	for (bool more = true; more;)
		bench_must(tw_rollup_merged_add(b->c, today, &more, NULL) == TW_OK,
		        "adding up days that are over");
}

/* Milliseconds of CPU for each of n traces; their rows are not measured. */
static double count(struct bench *b, uint64_t n)
{
	double spent = 0;

	for (uint64_t i = 0; i < n; i += STEP) {
		uint64_t end = i + STEP < n ? i + STEP : n;
		int64_t today = DAY0 + (int64_t)((end - 1) / sim_per_day);
		double start;

		bench_must(sim_rows(b->db, b->project, i, end, DAY0), "rows");
		start = bench_cpu_ms();
		bench_must(sim_fold(b->c, b->project, i, end, DAY0), "counting");
		add_cells(b, today);
		add_trees(b, today);
		add_merged(b, today);
		spent += bench_cpu_ms() - start;
	}
	return spent / (double)n;
}

static void ask_scenarios(struct bench *b, const struct tw_rollup_filter *f, struct tw_arena *a)
{
	struct tw_rollup_head *h = tw_arena_zalloc(a, 1, sizeof *h);
	struct tw_fleet_group *groups;
	struct tw_fleet_lengths l;
	struct tw_rollup_cell *cells;
	size_t n, n_groups;

	bench_must(
	        h && tw_catalogue_rollup_read(b->c, b->project, f, 0, a, &cells, &n, NULL) == TW_OK,
	        "reading");
	bench_must(tw_fleet_groups(cells, n, TW_FLEET_VERSION, true, a, &groups, &n_groups, NULL) ==
	                   TW_OK,
	        "groups");
	for (size_t i = 0; i < n_groups; i++)
		bench_must(tw_fleet_lengths(&groups[i], h, &l, NULL) == TW_OK, "lengths");
}

static void ask_methods(struct bench *b, const struct tw_rollup_filter *f, struct tw_arena *a)
{
	struct tw_sketch *s = tw_arena_zalloc(a, 1, sizeof *s);
	struct tw_rollup r = {.arena = a, .metrics = 1 << TW_ROLLUP_SELF};
	struct tw_rollup_naming *names;
	struct tw_fleet_method *list;
	struct tw_fleet_stat stat;
	struct tw_rollup_cell *cells;
	uint64_t *ids;
	size_t n, n_list;

	bench_must(s && tw_catalogue_rollup_read(b->c, b->project, f, r.metrics | TW_ROLLUP_MERGED,
	                        a, &cells, &n, NULL) == TW_OK,
	        "reading");
	for (size_t i = 0; i < n; i++) {
		const struct tw_rollup_cell *one = &cells[i];

		bench_must(tw_fleet_collect(&one, 1, &r, NULL) == TW_OK, "collecting");
	}
	ids = tw_arena_alloc(a, r.n + 1, sizeof *ids);
	for (uint32_t i = 0; ids && i < r.n; i++)
		ids[i] = r.methods[i].id;
	bench_must(ids && tw_catalogue_rollup_names(b->c, b->project, ids, r.n, a, &names, NULL) ==
	                           TW_OK,
	        "names");
	bench_must(tw_fleet_methods(&r, names, a, &list, &n_list, NULL) == TW_OK, "methods");
	for (size_t i = 0; i < n_list; i++)
		bench_must(tw_fleet_stat(list[i].of, list[i].n, TW_ROLLUP_SELF, s, &stat, NULL) ==
		                   TW_OK,
		        "quantiles");
}

/* Merged, named and drawn, as /api/v1/fleet/flame does. */
static void ask_flame(struct bench *b, const struct tw_rollup_filter *f, struct tw_arena *a)
{
	struct tw_rollup_tree merged = {.arena = a}, named;
	const struct tw_rollup_tree *trees[] = {&merged};
	const struct tw_flame_query whole = {.max_nodes = 20000};
	struct tw_fleet_graph g = {.paths = {.arena = a}};
	struct tw_fleet_names names;
	struct tw_fleet_reading reading = {&names, NULL, TW_NO_METHOD};
	struct tw_rollup_naming *namings;
	struct tw_rollup_cell *cells;
	struct tw_tree_cell *with;
	struct tw_summary_tree summary;
	struct tw_flame flame;
	int64_t *cell_ids;
	uint64_t *ids;
	size_t n, n_ids;

	bench_must(tw_catalogue_rollup_read(b->c, b->project, f, 0, a, &cells, &n, NULL) == TW_OK,
	        "reading");
	cell_ids = tw_arena_alloc(a, n + 1, sizeof *cell_ids);
	for (size_t i = 0; cell_ids && i < n; i++)
		cell_ids[i] = cells[i].cell_id;
	bench_must(cell_ids && tw_catalogue_trees_read(b->c, b->project, cell_ids, n,
	                               n > TW_ROLLUP_TREES_WHOLE, a, &with, NULL) == TW_OK,
	        "reading trees");
	bench_must(tw_fleet_trees(with, n, &merged, NULL) == TW_OK, "merging");
	bench_must(tw_fleet_tree_ids(trees, 1, a, &ids, &n_ids, NULL) == TW_OK, "ids");
	bench_must(
	        tw_catalogue_rollup_names(b->c, b->project, ids, n_ids, a, &namings, NULL) == TW_OK,
	        "names");
	bench_must(
	        tw_fleet_tree_names(trees, 1, namings, n_ids, a, &names, NULL) == TW_OK, "numbers");
	bench_must(tw_fleet_tree_read(&merged, &reading, a, &named, NULL) == TW_OK, "renumbering");
	bench_must(tw_fleet_graph_add(&g, 0, &named, 1, merged.traces, NULL) == TW_OK, "adding");
	summary.rest = names.n;
	bench_must(tw_fleet_graph_tree(&g, 0, false, names.n, a, &summary.tree, NULL) == TW_OK,
	        "a tree");
	bench_must(tw_query_flame_of_summary(&summary, &whole, NULL, a, &flame, NULL) == TW_OK,
	        "a graph");
	bench_must(flame.n > SIM_METHODS, "as many nodes");
}

static void ask_search(struct bench *b, const struct tw_rollup_filter *f, struct tw_arena *a)
{
	const struct tw_index_names of = {b->project, "com.app.C0.m7", NULL, NULL, 1000};
	struct tw_index_query ask = {.project_id = b->project, .each = tw_search_row};
	struct tw_search s = {.over_ns = 1000000, .thread = "main"};
	struct tw_rollup_naming *methods;
	struct tw_rollup_cell *cells;
	uint64_t *numbers;
	bool all;

	bench_must(
	        tw_catalogue_index_names(b->c, &of, a, &methods, &s.n_methods, &all, NULL) == TW_OK,
	        "names");
	bench_must(tw_catalogue_rollup_read(
	                   b->c, b->project, f, 0, a, &cells, &ask.n_cells, NULL) == TW_OK,
	        "reading");
	numbers = tw_arena_alloc(a, s.n_methods + 1, sizeof *numbers);
	s.found = tw_arena_alloc(a, 2 * (size_t)TW_SEARCH_HITS_MAX, sizeof *s.found);
	s.arena = tw_arena_new((size_t)128 << 20);
	bench_must(numbers && s.found && s.arena, "memory");
	for (size_t i = 0; i < s.n_methods; i++) {
		numbers[i] = methods[i].id;
		ask.slots |= 1U << tw_index_slot(numbers[i]);
	}
	s.methods = methods;
	s.numbers = numbers;
	ask.cells = cells;
	ask.arg = &s;
	bench_must(tw_catalogue_index_read(b->c, &ask, NULL) == TW_OK, "searching");
	tw_search_sort(&s);
	bench_must(s.n > 0 && s.matches >= s.n, "finding");
	tw_arena_free(s.arena);
}

static const struct {
	const char *name, *version, *class;
	void (*ask)(struct bench *b, const struct tw_rollup_filter *f, struct tw_arena *a);
} rows[] = {{"methods of a version", "8.3.1", "", ask_methods},
        {"methods of everything", "", "", ask_methods},
        {"methods of a class", "", "mid", ask_methods},
        {"scenarios by version", "", "", ask_scenarios},
        {"flame graph, version", "8.3.1", "", ask_flame},
        {"flame graph, everything", "", "", ask_flame},
        {"search of a version", "8.3.1", "", ask_search},
        {"search of everything", "", "", ask_search}};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double best_of_3(struct bench *b, int row)
{
	const struct tw_rollup_filter f = {
	        "", rows[row].version, "", "", rows[row].class, "", "", DAY0, DAY0 + SIM_DAYS};
	double best = 1e9;

	for (int i = 0; i < 3; i++) {
		struct tw_arena *a = tw_arena_new((size_t)1 << 30);
		double start = bench_cpu_ms(), ms;

		bench_must(a != NULL, "memory");
		rows[row].ask(b, &f, a);
		ms = bench_cpu_ms() - start;
		best = ms < best ? ms : best;
		tw_arena_free(a);
	}
	return best;
}

/* What questions read, so that what grows with traces is seen. */
static void print_numbers(const struct bench *b)
{
	static const char *const reported[][2] = {{"cells", "SELECT count(*) FROM rollup_cell"},
	        {"cells merged over a day",
	                "SELECT count(*) FROM rollup_merged WHERE signature<>0"},
	        {"deltas not merged", "SELECT count(*) FROM rollup_delta"},
	        {"KB a part of a cell",
	                "SELECT avg(length(data))/1024.0 FROM rollup_part WHERE metric=1"},
	        {"KB a part over a day",
	                "SELECT avg(length(data))/1024.0 FROM rollup_merged_part WHERE metric=1"},
	        {"KB of lengths a cell", "SELECT avg(length(head))/1024.0 FROM rollup_cell"},
	        {"KB a merged tree",
	                "SELECT avg(length(data))/1024.0 FROM rollup_tree WHERE version>0"},
	        {"MB of postings", "SELECT sum(length(data))/1048576.0 FROM rollup_post"}};

	for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
		bench_print_number(tw_db_sqlite(b->db), reported[i][0], reported[i][1]);
}

static void measure(const char *folder, uint64_t n, struct bench_took *took)
{
	struct bench b;
	struct stat file;
	bool is_new = open_all(&b, folder);

	sim_per_day = (n + SIM_DAYS - 1) / SIM_DAYS;
	(void)printf("%8llu traces\n", (unsigned long long)n);
	if (is_new)
		bench_print("counting a trace", count(&b, n), &took[ROWS]);
	add_cells(&b, DAY0); /* what an upgrade left to do */
	add_trees(&b, DAY0);
	add_merged(&b, DAY0 + SIM_DAYS - 1);
	for (int k = 0; k < ROWS; k++)
		bench_print(rows[k].name, best_of_3(&b, k), &took[k]);
	print_numbers(&b);
	close_all(&b);
	(void)stat(b.path, &file);
	(void)printf("    %-36s %12.1f\n", "KB of the catalogue a trace",
	        (double)file.st_size / 1024 / (double)n);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bench_took took[ROWS + 1] = {{0}};
	const struct bench_plan plan = {10000000, {1000, 20000}, measure, took};

	return bench_sizes(argc, argv, &plan);
}

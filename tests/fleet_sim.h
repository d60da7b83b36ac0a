/*
 * fleet_sim.h - a simulated fleet whose truth is known: what each trace brings to the rollups.
 *
 * Trace i is the same whenever it is asked for.  Versions 8.3.0 to 8.3.2, two
 * scenarios, three classes of devices, two systems, spread over days; methods
 * with times over five orders of magnitude.  One method is slower from one
 * version on.  Rows are written straight into the catalogue, in bulk; counting
 * them is the product's own code.
 */
#ifndef FLEET_SIM_H
#define FLEET_SIM_H

#include "server/base/ulid.h"
#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/db/catalogue_db.h"
#include "server/stats/rollup_tree.h"

enum { SIM_METHODS = 200, SIM_DAYS = 14, SIM_VERSIONS = 3 };
enum { SIM_SLOWER = 7, SIM_SLOWER_PERCENT = 40 }; /* this method, from version 2 on */

struct sim_trace {
	char id[TW_ID_BYTES];
	struct tw_rollup_dims dims;
	int64_t duration_ns;
	struct tw_rollup_fact facts[SIM_METHODS];
	size_t n_facts;
};

uint64_t sim_method(const char *project_id, unsigned method, unsigned version);
/* day0: of the first; trace i came on day0 + i / sim_per_day % SIM_DAYS. */
extern uint64_t sim_per_day; /* 1 at first: each comes on another day than the one before */
void sim_make(const char *project_id, uint64_t i, int64_t day0, struct sim_trace *ret);

/* The call trees of a trace: on three threads each method is below method (number - 1) / 4, or
 * where the trace does not call that, the one above; a third of its own time on each.  False: the
 * arena is full. */
enum { SIM_THREADS = 3 };
extern const char *const sim_threads[SIM_THREADS];
bool sim_tree(const struct sim_trace *t, struct tw_rollup_tree *ret);

/* The facts of a trace on a kind of thread, by method: a third of its methods run on the first
 * alone, a third on the second alone, the others on both.  Returns their number. */
enum { SIM_KINDS = 2 };
extern const char *const sim_kinds[SIM_KINDS];
size_t sim_kind(const struct sim_trace *t, int kind, struct tw_rollup_fact ret[SIM_METHODS]);

/* Writes rows of ready traces [from, to), and counts them; false: db has the error. */
bool sim_load(struct tw_catalogue *c, struct tw_db *db, const char *project_id, uint64_t from,
        uint64_t to, int64_t day0);
/* With labels too: "flavour", and in the cells of every trace one of that label. */
extern bool sim_labels;
/* Counts them in that store. */
struct tw_fleet_store;
bool sim_put(
        struct tw_fleet_store *s, const char *project_id, uint64_t from, uint64_t to, int64_t day0);
/* Their rows alone. */
bool sim_rows(struct tw_db *db, const char *project_id, uint64_t from, uint64_t to, int64_t day0);
bool sim_fold(
        struct tw_catalogue *c, const char *project_id, uint64_t from, uint64_t to, int64_t day0);

#endif

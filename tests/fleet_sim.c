#include "fleet_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/fleet/store/fleet_store.h"
#include "server/stats/search_index.h"

enum { FOLDED_AT_ONCE = 256, FACTS_BYTES = 1 << 16 };

uint64_t sim_per_day = 1;
bool sim_labels = false;

static const char *const versions[SIM_VERSIONS] = {"8.3.0", "8.3.1", "8.3.2"};
static const char *const builds[SIM_VERSIONS] = {"b830", "b831", "b832"};
static const char *const scenarios[] = {"cold_start", "page"};
static const char *const classes[] = {"low", "mid", "high"};
static const char *const systems[] = {"13", "14"};

static uint64_t mixed(uint64_t x)
{
	x += UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static uint64_t hashed(const char *project_id, unsigned method, unsigned version)
{
	const struct tw_rollup_space in = {project_id, builds[version], ""};
	char raw[16];

	(void)snprintf(raw, sizeof raw, "#%u", method + 1);
	return tw_rollup_method_id(&in, raw);
}

/* Made once for each project: they are asked for millions of times. */
uint64_t sim_method(const char *project_id, unsigned method, unsigned version)
{
	static uint64_t ids[SIM_VERSIONS][SIM_METHODS];
	static char of[TW_ID_BYTES];

	if (strcmp(of, project_id) != 0) {
		for (unsigned v = 0; v < SIM_VERSIONS; v++)
			for (unsigned m = 0; m < SIM_METHODS; m++)
				ids[v][m] = hashed(project_id, m, v);
		(void)snprintf(of, sizeof of, "%s", project_id);
	}
	return ids[version][method];
}

/* Around base, from a third to three times of it, now and then ten times. */
static int64_t around(int64_t base, uint64_t random)
{
	int64_t v = base / 3 + (int64_t)(random % (uint64_t)(base * 8 / 3 + 1));

	return mixed(random) % 50 == 0 ? v * 10 : v;
}

static struct tw_rollup_fact fact(const char *project_id, uint64_t i, unsigned m, unsigned version)
{
	uint64_t random = mixed(i * 1000 + m);
	int64_t self = around(1000 + (int64_t)(mixed(m) % 5) * 400 * (1 << (m % 12)), random);

	if (m == SIM_SLOWER && version >= 2)
		self += self * SIM_SLOWER_PERCENT / 100;
	return (struct tw_rollup_fact){sim_method(project_id, m, version), 1 + random % 20,
	        self * 2, self, self * 2, m % 4 == 0 ? -1 : self, m};
}

void sim_make(const char *project_id, uint64_t i, int64_t day0, struct sim_trace *ret)
{
	uint64_t random = mixed(i);
	unsigned version = (unsigned)(random % SIM_VERSIONS);

	memset(ret, 0, sizeof *ret);
	(void)snprintf(ret->id, sizeof ret->id, "01SIM%021llu", (unsigned long long)i);
	ret->dims = (struct tw_rollup_dims){day0 + (int64_t)(i / sim_per_day % SIM_DAYS), "app",
	        versions[version], builds[version], "", scenarios[random >> 8 & 1],
	        classes[(random >> 16) % 3], systems[random >> 24 & 1], ""};
	for (unsigned m = 0; m < SIM_METHODS; m++) {
		if (mixed(random + m) % 10 == 0)
			continue; /* not every trace calls everything */
		ret->facts[ret->n_facts++] = fact(project_id, i, m, version);
		ret->duration_ns += ret->facts[ret->n_facts - 1].self_ns;
	}
	ret->n_facts = tw_rollup_bound(ret->facts, ret->n_facts);
}

const char *const sim_threads[SIM_THREADS] = {"main", "RenderThread", "pool-#-thread-#"};

/* The facts of methods by their numbers in the fleet; NULL where the trace has none. */
static void by_method(const struct sim_trace *t, const struct tw_rollup_fact *of[SIM_METHODS])
{
	for (unsigned m = 0; m < SIM_METHODS; m++)
		of[m] = NULL;
	for (size_t i = 0; i < t->n_facts; i++)
		of[t->facts[i].at] = &t->facts[i];
}

/* Of a method and all below it, on one thread; callers have lower numbers. */
static void add_up(const struct tw_rollup_fact *const of[SIM_METHODS], int64_t own[SIM_METHODS],
        int64_t total[SIM_METHODS + 1], unsigned caller[SIM_METHODS])
{
	for (unsigned m = 0; m < SIM_METHODS; m++) {
		own[m] = total[m] = of[m] ? of[m]->self_ns / SIM_THREADS : 0;
		caller[m] = m;
		do
			caller[m] = caller[m] ? (caller[m] - 1) / 4 : SIM_METHODS;
		while (caller[m] != SIM_METHODS && !of[caller[m]]);
	}
	total[SIM_METHODS] = 0;
	for (unsigned m = SIM_METHODS; m-- > 0;)
		total[caller[m]] += total[m];
}

static bool grow_thread(const struct tw_rollup_fact *const of[SIM_METHODS],
        struct tw_rollup_tree *ret, const char *thread)
{
	int64_t own[SIM_METHODS], total[SIM_METHODS + 1];
	unsigned caller[SIM_METHODS];
	uint32_t node[SIM_METHODS + 1];
	struct tw_rollup_tree_sum all = {.traces = 1};
	bool fits;

	add_up(of, own, total, caller);
	node[SIM_METHODS] = tw_rollup_tree_thread(ret, tw_str_of(thread));
	all.total_ns = total[SIM_METHODS];
	all.level = tw_rollup_tree_level(all.total_ns);
	fits = node[SIM_METHODS] != TW_ROLLUP_NO_NODE &&
	       tw_rollup_tree_add(ret, node[SIM_METHODS], &all);
	for (unsigned m = 0; fits && m < SIM_METHODS; m++) {
		const struct tw_rollup_tree_sum s = {.level = tw_rollup_tree_level(total[m]),
		        .traces = 1,
		        .calls = of[m] ? of[m]->count : 0,
		        .total_ns = total[m],
		        .self_ns = own[m]};

		if (!of[m])
			continue;
		node[m] = tw_rollup_tree_child(ret, node[caller[m]], of[m]->method);
		fits = node[m] != TW_ROLLUP_NO_NODE && tw_rollup_tree_add(ret, node[m], &s);
	}
	return fits;
}

bool sim_tree(const struct sim_trace *t, struct tw_rollup_tree *ret)
{
	const struct tw_rollup_fact *of[SIM_METHODS];
	bool fits = true;

	by_method(t, of);
	for (int i = 0; fits && i < SIM_THREADS; i++)
		fits = grow_thread(of, ret, sim_threads[i]);
	ret->traces = 1;
	return fits;
}

const char *const sim_kinds[SIM_KINDS] = {"main", "pool-#-thread-#"};

size_t sim_kind(const struct sim_trace *t, int kind, struct tw_rollup_fact ret[SIM_METHODS])
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_facts; i++) {
		const struct tw_rollup_fact *f = &t->facts[i];
		const uint32_t on = f->at % 3;

		if (on == (kind ? 0 : 1))
			continue;
		ret[n] = *f;
		if (on == 2) {
			ret[n].count = 1 + f->count / 2;
			ret[n].total_ns = f->total_ns / (2 + kind);
			ret[n].self_ns = f->self_ns / (2 + kind);
			ret[n].sum_ns = f->sum_ns / (2 + kind);
			ret[n].cpu_ns = f->cpu_ns < 0 ? -1 : f->cpu_ns / (2 + kind);
		}
		n++;
	}
	return n;
}

static bool insert_row(
        struct tw_db *db, struct tw_stmt **kept, const char *project_id, const struct sim_trace *t)
{
	return tw_cat_exec_kept(db, kept, NULL,
	               "INSERT INTO trace(project_id,trace_id,key_id,idempotency_key,content,state,"
	               "upload_bytes,version_code,mapping_id,device,abi,process,session_id,uuid,"
	               "labels,pid,started_ms,app,version_name,build_id,scenario,os,created_ms,"
	               "recorded_ms,duration_ns) "
	               "VALUES(?1,?2,'','','',2,1,'','','','','','','','',1,0,"
	               "?3,?4,?5,?6,?7,?8,?8,?9)",
	               "tttttttii", project_id, t->id, t->dims.app, t->dims.version_name,
	               t->dims.build_id, t->dims.scenario, t->dims.os, t->dims.day * TW_DAY_MS + 1,
	               t->duration_ns) == TW_OK;
}

bool sim_rows(struct tw_db *db, const char *project_id, uint64_t from, uint64_t to, int64_t day0)
{
	struct tw_stmt *kept = NULL;
	bool fine = tw_db_run(db, "BEGIN IMMEDIATE", NULL) == TW_OK;
	static struct sim_trace t;

	for (uint64_t i = from; fine && i < to; i++) {
		sim_make(project_id, i, day0, &t);
		fine = insert_row(db, &kept, project_id, &t);
	}
	tw_stmt_drop(kept);
	return fine && tw_db_run(db, "COMMIT", NULL) == TW_OK;
}

/* A method's name in the fleet; each version has its own method numbers. */
static size_t name_all(const char *project_id, unsigned version, struct tw_rollup_naming *names,
        char text[SIM_METHODS][32])
{
	for (unsigned m = 0; m < SIM_METHODS; m++) {
		(void)snprintf(text[m], sizeof text[m], "com.app.C%u.m%u", m / 10, m);
		names[m] = (struct tw_rollup_naming){sim_method(project_id, m, version),
		        builds[version], "", "#", text[m], "()V", true};
	}
	return SIM_METHODS;
}

struct batch {
	struct sim_trace traces[FOLDED_AT_ONCE];
	struct tw_rollup_reading foldings[FOLDED_AT_ONCE];
	struct tw_buf facts[FOLDED_AT_ONCE], trees[FOLDED_AT_ONCE], posts[FOLDED_AT_ONCE];
	struct tw_buf threads[FOLDED_AT_ONCE];
	struct tw_rollup_dims cells[FOLDED_AT_ONCE][2];
	struct tw_trace_row rows[FOLDED_AT_ONCE];
};

static bool write_tree(const struct sim_trace *t, struct tw_buf *out)
{
	struct tw_rollup_tree tree = {.arena = tw_arena_new(4 << 20)};
	struct tw_buf levels; /* of one trace there are none */
	bool fine = tree.arena && sim_tree(t, &tree);

	tw_buf_init(out, FACTS_BYTES);
	tw_buf_init(&levels, 1);
	fine = fine && tw_rollup_tree_write(&tree, out, &levels, NULL) == TW_OK;
	tw_buf_done(&levels);
	tw_arena_free(tree.arena);
	return fine;
}

/* Every third trace calls its methods on a thread of a pool too, half as long. */
static void write_posts(const struct sim_trace *t, struct tw_buf *out)
{
	static const struct tw_index_thread threads[] = {
	        {true, {"main", 4}}, {false, {"pool-1", 6}}};
	struct tw_index_entry posts[2 * SIM_METHODS];
	struct tw_index_entries all = {t->id, threads, 2, posts, 0};

	for (size_t i = 0; i < t->n_facts; i++) {
		posts[all.n++] =
		        (struct tw_index_entry){t->facts[i].method, 0, t->facts[i].self_ns};
		if (t->id[TW_ROLLUP_ID - 1] % 3 == 0)
			posts[all.n++] = (struct tw_index_entry){
			        t->facts[i].method, 1, t->facts[i].self_ns / 2};
	}
	tw_index_write(&all, out);
}

static void write_kinds(const struct sim_trace *t, struct tw_buf *out)
{
	struct tw_rollup_fact facts[SIM_METHODS];

	tw_buf_init(out, FACTS_BYTES);
	for (int k = 0; k < SIM_KINDS; k++)
		tw_rollup_write_thread(tw_str_of(sim_kinds[k]), facts, sim_kind(t, k, facts), out);
}

/* Of every fifth trace none. */
static void label(struct batch *b, size_t n, uint64_t i)
{
	static const char *const values[] = {"beta", "it's", "a\\b", "stable", ""};
	static const char *const texts[] = {"{\"flavour\":\"beta\"}", "{\"flavour\":\"it's\"}",
	        "{\"flavour\":\"a\\\\b\"}", "{\"flavour\":\"stable\"}", "{}"};
	static char labels[5][32];
	struct tw_rollup_dims *d = b->cells[n];

	(void)snprintf(labels[i % 5], sizeof labels[0], "flavour=%s", values[i % 5]);
	d[0] = d[1] = b->traces[n].dims;
	d[1].device_class = d[1].os = "";
	d[1].label = labels[i % 5];
	b->rows[n] = (struct tw_trace_row){.meta = {.device = "phone",
	                                           .abi = "",
	                                           .process = "",
	                                           .version_code = "",
	                                           .session_id = "",
	                                           .labels = texts[i % 5]}};
	b->foldings[n].cells = d;
	b->foldings[n].n_cells = 2;
	b->foldings[n].row = &b->rows[n];
}

static bool fold_batch(struct tw_fleet_store *s, const char *project_id, struct batch *b,
        uint64_t from, uint64_t to, int64_t day0)
{
	size_t n = 0;
	bool fine = true;

	for (uint64_t i = from; i < to; i++, n++) {
		struct sim_trace *t = &b->traces[n];
		struct tw_buf *out = &b->facts[n];

		sim_make(project_id, i, day0, t);
		tw_buf_init(out, FACTS_BYTES);
		tw_rollup_write_facts(t->facts, t->n_facts, out);
		fine = write_tree(t, &b->trees[n]) && fine;
		tw_buf_init(&b->posts[n], FACTS_BYTES);
		write_posts(t, &b->posts[n]);
		write_kinds(t, &b->threads[n]);
		b->foldings[n] = (struct tw_rollup_reading){project_id, t->id, &t->dims, 1,
		        t->duration_ns, {(const char *)out->data, out->len},
		        {(const char *)b->trees[n].data, b->trees[n].len},
		        {(const char *)b->posts[n].data, b->posts[n].len},
		        {(const char *)b->threads[n].data, b->threads[n].len}, NULL};
		if (sim_labels)
			label(b, n, i);
	}
	fine = fine && s->engine->put(s, b->foldings, n, NULL) == TW_OK;
	for (size_t i = 0; i < n; i++) {
		tw_buf_done(&b->facts[i]);
		tw_buf_done(&b->trees[i]);
		tw_buf_done(&b->posts[i]);
		tw_buf_done(&b->threads[i]);
	}
	return fine;
}

/* As when their builds are new. */
static bool write_names(struct tw_catalogue *c, const char *project_id, int64_t day0)
{
	static char text[SIM_METHODS][32];
	struct tw_rollup_naming names[SIM_METHODS];
	bool fine = true;

	for (unsigned v = 0; fine && v < SIM_VERSIONS; v++) {
		const struct tw_rollup_names all = {project_id, names,
		        name_all(project_id, v, names, text), day0 + SIM_DAYS, {"", ""}};

		fine = tw_catalogue_rollup_name(c, &all, NULL) == TW_OK;
	}
	return fine;
}

bool sim_put(
        struct tw_fleet_store *s, const char *project_id, uint64_t from, uint64_t to, int64_t day0)
{
	struct batch *b = calloc(1, sizeof *b);
	bool fine = b && (from > 0 || write_names(s->catalogue, project_id, day0));

	for (uint64_t i = from; fine && i < to; i += FOLDED_AT_ONCE)
		fine = fold_batch(s, project_id, b, i,
		        i + FOLDED_AT_ONCE < to ? i + FOLDED_AT_ONCE : to, day0);
	free(b);
	return fine;
}

bool sim_fold(
        struct tw_catalogue *c, const char *project_id, uint64_t from, uint64_t to, int64_t day0)
{
	struct tw_fleet_store *s = tw_fleet_embedded_new(c);
	bool fine = s && sim_put(s, project_id, from, to, day0);

	(void)tw_fleet_store_free(s);
	return fine;
}

bool sim_load(struct tw_catalogue *c, struct tw_db *db, const char *project_id, uint64_t from,
        uint64_t to, int64_t day0)
{
	return sim_rows(db, project_id, from, to, day0) && sim_fold(c, project_id, from, to, day0);
}

/*
 * clickhouse_put.c - writes traces as rows, in batches.
 *
 * A trace's row in `traces` is written after all its other rows, so a trace is counted completely
 * or not at all. Then it is marked in the catalogue. If that fails, the trace is written again
 * with a larger attempt number, which replaces the previous rows. So neither a kill nor an insert
 * with an unknown result counts a trace twice.
 */
#include <sodium.h>
#include <time.h>

#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/fleet/found.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"
#include "server/stats/search_index.h"

enum { ROWS_BYTES = 512 << 20, TREE_BYTES = 64 << 20, BATCH_MS = 250 };

/* --- attempts --- */

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Larger than all previous numbers, including those of a server whose clock was ahead. Two servers
 * that write concurrently, as during a change of the lease holder, differ in their tags. */
static enum tw_status begin_attempts(struct tw_fleet_clickhouse *f, struct tw_err *err)
{
	static const char text[] =
	        "SELECT max(a) FROM (SELECT max(attempt) AS a FROM traces UNION ALL"
	        " SELECT max(attempt) AS a FROM findings UNION ALL"
	        " SELECT max(attempt) AS a FROM anrs)";
	const uint64_t now = now_us() << TW_CH_TAG_BITS;
	struct tw_buf sql;
	uint64_t last;
	enum tw_status st;

	tw_buf_init(&sql, TW_CH_SQL_BYTES);
	(void)tw_buf_add_str(&sql, TW_STR(text));
	st = tw_clickhouse_number(f, NULL, &sql, &last, err);
	last = (last >> TW_CH_TAG_BITS << TW_CH_TAG_BITS) |
	       (randombytes_random() & ((1U << TW_CH_TAG_BITS) - 1));
	(void)pthread_mutex_lock(&f->lock);
	if (st == TW_OK && f->attempt == 0)
		f->attempt = last > now ? last : now | (last & ((1U << TW_CH_TAG_BITS) - 1));
	(void)pthread_mutex_unlock(&f->lock);
	return st;
}

enum tw_status tw_clickhouse_attempts(
        struct tw_fleet_clickhouse *f, size_t n, uint64_t *ret, struct tw_err *err)
{
	const uint64_t now = now_us() << TW_CH_TAG_BITS;
	enum tw_status st = TW_OK;
	uint64_t tag;

	(void)pthread_mutex_lock(&f->lock);
	*ret = f->attempt;
	(void)pthread_mutex_unlock(&f->lock);
	if (*ret == 0)
		st = begin_attempts(f, err);
	if (st != TW_OK)
		return st;
	(void)pthread_mutex_lock(&f->lock);
	tag = f->attempt & (TW_CH_STEP - 1);
	*ret = (now > f->attempt ? now | tag : f->attempt) + TW_CH_STEP;
	f->attempt = *ret + n * TW_CH_STEP;
	(void)pthread_mutex_unlock(&f->lock);
	return TW_OK;
}

uint64_t tw_clickhouse_attempt_before(int64_t ms)
{
	return (now_us() - (uint64_t)ms * 1000) << TW_CH_TAG_BITS;
}

/* --- rows --- */

/* In the order of writing. */
enum table { METHOD_TIMES, CALL_TREES, LONGEST_CALLS, TRACES, TABLES };

static const char *const inserts[TABLES] = {
        "INSERT INTO method_times (" TW_CH_DIMS
        ",method,calls,total_ns,self_ns,sum_ns,cpu_ns,threads,thread_calls,thread_total_ns,"
        "thread_self_ns,thread_sum_ns,thread_cpu_ns) FORMAT RowBinary",
        "INSERT INTO call_trees (" TW_CH_DIMS
        ",path,parent,depth,method,thread,calls,total_ns,self_ns,cpu_ns,cpu_self_ns)"
        " FORMAT RowBinary",
        "INSERT INTO longest_calls (" TW_CH_DIMS ",method,thread,main,max_ns) FORMAT RowBinary",
        "INSERT INTO traces (" TW_CH_DIMS ",time,mapping_id,device,label_keys,label_values,"
        "duration_ns,tree,tree_level,deleted) FORMAT RowBinary"};

struct rows {
	struct tw_buf of[TABLES];
	struct tw_buf dims; /* first columns of each row of the current trace */
	struct tw_arena *arena;
};

void tw_clickhouse_put_dims(struct tw_buf *out, const char *project_id, const char *trace_id,
        const struct tw_rollup_dims *d, uint64_t attempt)
{
	const char *const texts[] = {
	        d->app, d->version_name, d->build_id, d->scenario, d->device_class, d->os};

	tw_clickhouse_put_text(out, project_id);
	(void)tw_buf_add_u8(out, (uint8_t)(d->day & 0xff));
	(void)tw_buf_add_u8(out, (uint8_t)(d->day >> 8 & 0xff));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		tw_clickhouse_put_text(out, texts[i]);
	(void)tw_buf_add(out, trace_id, TW_ROLLUP_ID);
	(void)tw_buf_add_u64le(out, attempt);
}

static struct tw_buf *begin_row(struct rows *r, enum table which)
{
	(void)tw_buf_add(&r->of[which], r->dims.data, r->dims.len);
	return &r->of[which];
}

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_BUG, "facts of a trace cannot be read");
}

struct on_thread { /* a method's fact on one kind of thread */
	struct tw_str name;
	struct tw_rollup_fact fact;
};

TW_ORDER_BY(by_method, struct on_thread, TW_RISING(fact.method), TW_RISING(name))

/* NULL list: only counts. */
static enum tw_status each_thread(
        struct tw_str threads, struct on_thread *list, size_t *ret_n, struct tw_err *err)
{
	const uint8_t *p = (const uint8_t *)threads.ptr;
	const uint8_t *end = p + threads.len;
	struct on_thread t;

	*ret_n = 0;
	while (tw_rollup_next_thread(&p, end, &t.name)) {
		uint64_t left = UINT64_MAX;

		for (; tw_rollup_next_fact(&p, end, &left, &t.fact); ++*ret_n)
			if (list)
				list[*ret_n] = t;
		if (!p)
			break;
	}
	return p ? TW_OK : damaged(err);
}

/* By method. */
static enum tw_status read_threads(struct rows *r, struct tw_str threads, struct on_thread **ret,
        size_t *ret_n, struct tw_err *err)
{
	enum tw_status st;

	*ret = NULL;
	*ret_n = 0;
	if (threads.len == 0)
		return TW_OK;
	st = each_thread(threads, NULL, ret_n, err);
	if (st != TW_OK)
		return st;
	*ret = tw_arena_alloc(r->arena, *ret_n + 1, sizeof **ret);
	if (!*ret)
		return tw_oom(err);
	st = each_thread(threads, *ret, ret_n, err);
	TW_SORT(*ret, *ret_n, by_method);
	return st;
}

/* In the order of columns. */
enum { FACT_COLUMNS = 5 };
static void put_fact(struct tw_buf *out, const struct tw_rollup_fact *f, int column)
{
	const uint64_t values[FACT_COLUMNS] = {f->count, tw_clickhouse_unsigned(f->total_ns),
	        tw_clickhouse_unsigned(f->self_ns), tw_clickhouse_unsigned(f->sum_ns),
	        (uint64_t)f->cpu_ns};

	(void)tw_buf_add_u64le(out, values[column]);
}

/* Arrays: the kinds of thread that call a method, and if there are several, each value on these. */
static void put_threads(struct tw_buf *out, const struct on_thread *t, size_t n)
{
	(void)tw_buf_add_varint(out, n);
	for (size_t i = 0; i < n; i++) {
		(void)tw_buf_add_varint(out, t[i].name.len);
		(void)tw_buf_add_str(out, t[i].name);
	}
	for (int column = 0; column < FACT_COLUMNS; column++) {
		(void)tw_buf_add_varint(out, n > 1 ? n : 0);
		for (size_t i = 0; n > 1 && i < n; i++)
			put_fact(out, &t[i].fact, column);
	}
}

/* Facts and threads are both in the order of methods. */
static enum tw_status put_facts(
        struct rows *r, const struct tw_rollup_reading *of, struct tw_err *err)
{
	const uint8_t *p = (const uint8_t *)of->facts.ptr;
	const uint8_t *end = p + of->facts.len;
	struct tw_rollup_fact f;
	struct on_thread *threads;
	uint64_t left = UINT64_MAX;
	size_t n, at = 0;
	enum tw_status st = read_threads(r, of->threads, &threads, &n, err);

	while (st == TW_OK && tw_rollup_next_fact(&p, end, &left, &f)) {
		struct tw_buf *out = begin_row(r, METHOD_TIMES);
		size_t from;

		(void)tw_buf_add_u64le(out, f.method);
		for (int column = 0; column < FACT_COLUMNS; column++)
			put_fact(out, &f, column);
		while (at < n && threads[at].fact.method < f.method)
			at++;
		for (from = at; at < n && threads[at].fact.method == f.method; at++)
			;
		put_threads(out, threads + from, at - from);
	}
	return st == TW_OK && !p ? damaged(err) : st;
}

/* --- call trees --- */

/* The number of a path: a hash of its caller's path and a method, or of the threads' name. */
static uint64_t path_of(uint64_t parent, uint64_t id)
{
	uint64_t h = parent * UINT64_C(0x9E3779B97F4A7C15) + id;

	h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
	h ^= h >> 31;
	return h ? h : 1;
}

static struct tw_str thread_name(const struct tw_rollup_tree *t, uint64_t id)
{
	for (uint32_t i = 0; i < t->n_threads; i++)
		if (t->threads[i].id == id)
			return t->threads[i].name;
	return (struct tw_str){"", 0};
}

struct position { /* a node's position in the tree */
	uint64_t path;
	struct tw_str thread; /* the thread that contains it */
	uint16_t depth;
};

static void put_node(struct rows *r, const struct tw_rollup_tree *t, uint32_t node,
        const struct position *positions)
{
	const struct tw_rollup_tree_node *n = &t->nodes[node];
	const struct tw_rollup_tree_sum s = tw_rollup_tree_all(t, node);
	const bool is_thread = n->parent == TW_ROLLUP_NO_NODE;
	const struct position *at = &positions[node];
	struct tw_buf *out = begin_row(r, CALL_TREES);

	(void)tw_buf_add_u64le(out, at->path);
	(void)tw_buf_add_u64le(out, is_thread ? 0 : positions[n->parent].path);
	(void)tw_buf_add_u8(out, (uint8_t)(at->depth & 0xff));
	(void)tw_buf_add_u8(out, (uint8_t)(at->depth >> 8));
	(void)tw_buf_add_u64le(out, n->method);
	(void)tw_buf_add_varint(out, at->thread.len);
	(void)tw_buf_add_str(out, at->thread);
	(void)tw_buf_add_u64le(out, s.calls);
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(s.total_ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(s.self_ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(s.cpu_ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(s.cpu_self_ns));
}

/* *ret_level: times below 2^level ns may be missing. */
static enum tw_status put_tree(
        struct rows *r, const struct tw_rollup_reading *of, unsigned *ret_level, struct tw_err *err)
{
	const struct tw_rollup_written one = {of->tree, {"", 0}};
	struct tw_rollup_tree t = {.arena = r->arena, .coarse = true};
	struct position *positions;
	enum tw_status st = TW_OK;

	*ret_level = 0;
	if (of->tree.len == 0)
		return TW_OK;
	st = tw_rollup_tree_merge(&t, &one, err);
	if (st != TW_OK)
		return st;
	positions = tw_arena_alloc(r->arena, (size_t)t.n + 1, sizeof *positions);
	if (!positions)
		return tw_oom(err);
	for (uint32_t i = 0; i < t.n; i++) {
		const struct tw_rollup_tree_node *n = &t.nodes[i];
		const bool is_thread = n->parent == TW_ROLLUP_NO_NODE;

		positions[i].path = path_of(is_thread ? 0 : positions[n->parent].path, n->method);
		positions[i].depth = is_thread ? 0 : (uint16_t)(positions[n->parent].depth + 1);
		positions[i].thread =
		        is_thread ? thread_name(&t, n->method) : positions[n->parent].thread;
		if (n->first)
			put_node(r, &t, i, positions);
	}
	*ret_level = t.omitted_level;
	return TW_OK;
}

/* --- longest calls --- */

static enum tw_status put_longest(
        struct rows *r, const struct tw_rollup_reading *of, struct tw_err *err)
{
	struct tw_index_head head;
	struct tw_index_entry e;
	struct tw_str rest;
	enum tw_status st;

	if (of->posts.len == 0)
		return TW_OK;
	st = tw_index_read_head(of->posts, true, r->arena, &head, &rest, err);
	if (st != TW_OK)
		return st;
	while (tw_index_next(&rest, &head, &e)) {
		const struct tw_index_thread *t = &head.threads[e.thread];
		struct tw_buf *out = begin_row(r, LONGEST_CALLS);

		(void)tw_buf_add_u64le(out, e.method);
		(void)tw_buf_add_varint(out, t->name.len);
		(void)tw_buf_add_str(out, t->name);
		(void)tw_buf_add_u8(out, t->is_main);
		(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(e.max_ns));
	}
	return rest.ptr ? TW_OK : damaged(err);
}

/* --- the trace --- */

struct labels {
	struct tw_buf keys, values;
	uint64_t n;
};

static bool add_label(void *arg, const char *key, const char *value)
{
	struct labels *l = arg;

	tw_clickhouse_put_text(&l->keys, key);
	tw_clickhouse_put_text(&l->values, value);
	l->n++;
	return true;
}

enum tw_status tw_clickhouse_put_labels(
        struct tw_buf *out, const struct tw_trace_row *row, struct tw_err *err)
{
	struct labels l = {.n = 0};
	enum tw_status st;

	tw_buf_init(&l.keys, ROWS_BYTES);
	tw_buf_init(&l.values, ROWS_BYTES);
	if (row)
		(void)tw_rollup_each_label(row, add_label, &l);
	(void)tw_buf_add_varint(out, l.n);
	(void)tw_buf_add(out, l.keys.data, l.keys.len);
	(void)tw_buf_add_varint(out, l.n);
	(void)tw_buf_add(out, l.values.data, l.values.len);
	st = tw_buf_status(&l.keys) == TW_OK && tw_buf_status(&l.values) == TW_OK ? TW_OK
	                                                                          : tw_oom(err);
	tw_buf_done(&l.keys);
	tw_buf_done(&l.values);
	return st;
}

static enum tw_status put_trace(
        struct rows *r, const struct tw_rollup_reading *of, unsigned level, struct tw_err *err)
{
	const struct tw_rollup_dims *d = of->cells;
	const int64_t time_ms = of->row ? of->row->meta.recorded_ms : d->day * TW_DAY_MS;
	struct tw_buf *out = begin_row(r, TRACES);
	enum tw_status st;

	tw_clickhouse_put_time(out, time_ms);
	tw_clickhouse_put_text(out, d->mapping_id);
	tw_clickhouse_put_text(out, of->row ? of->row->meta.device : "");
	st = tw_clickhouse_put_labels(out, of->row, err);
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(of->duration_ns));
	(void)tw_buf_add_u8(out, of->tree.len != 0);
	(void)tw_buf_add_u8(out, (uint8_t)level);
	(void)tw_buf_add_u8(out, 0);
	return st;
}

static enum tw_status put_one(
        struct rows *r, const struct tw_rollup_reading *of, uint64_t attempt, struct tw_err *err)
{
	unsigned level = 0;
	enum tw_status st;

	tw_arena_reset(r->arena);
	tw_buf_clear(&r->dims);
	tw_clickhouse_put_dims(&r->dims, of->project_id, of->trace_id, of->cells, attempt);
	st = put_facts(r, of, err);
	if (st == TW_OK)
		st = put_tree(r, of, &level, err);
	if (st == TW_OK)
		st = put_longest(r, of, err);
	return st == TW_OK ? put_trace(r, of, level, err) : st;
}

/* --- batches --- */

enum tw_status tw_clickhouse_insert(struct tw_fleet_clickhouse *f, const char *sql,
        const struct tw_buf *rows, struct tw_err *err)
{
	const struct tw_clickhouse_query q = {.sql = tw_str_of(sql),
	        .rows = {(const char *)rows->data, rows->len},
	        .ms = TW_CH_INSERT_MS};

	if (rows->len == 0)
		return TW_OK;
	return tw_buf_status(rows) == TW_OK ? tw_clickhouse_request(f->at, &q, NULL, err)
	                                    : tw_oom(err);
}

static enum tw_status insert_all(
        struct tw_fleet_clickhouse *f, const struct rows *r, uint64_t attempt, struct tw_err *err)
{
	enum tw_status st = tw_buf_status(&r->dims) == TW_OK ? TW_OK : tw_oom(err);

	for (int i = 0; st == TW_OK && i < TABLES; i++) {
		/* as after a machine slept */
		if (i == TRACES && attempt < tw_clickhouse_attempt_before(TW_CH_ATTEMPT_MS))
			st = tw_fail(err, TW_BUSY,
			        "writing the rows of traces to ClickHouse took too long");
		if (st == TW_OK)
			st = tw_clickhouse_insert(f, inserts[i], &r->of[i], err);
	}
	return st;
}

static enum tw_status write_rows(struct tw_fleet_clickhouse *f, const struct tw_rollup_reading *of,
        size_t n, struct rows *r, struct tw_err *err)
{
	uint64_t attempt = 0;
	enum tw_status st = tw_clickhouse_attempts(f, n, &attempt, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (of[i].n_cells)
			st = put_one(r, &of[i], attempt + i * TW_CH_STEP, err);
	return st == TW_OK ? insert_all(f, r, attempt, err) : st;
}

/* Marks traces as counted. The catalogue does not store their cells. */
static enum tw_status mark_counted(struct tw_catalogue *c, const struct tw_rollup_reading *of,
        size_t n, struct tw_arena *a, struct tw_err *err)
{
	struct tw_rollup_reading *counted = tw_arena_alloc(a, n, sizeof *counted);

	if (!counted)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++)
		counted[i] = (struct tw_rollup_reading){.project_id = of[i].project_id,
		        .trace_id = of[i].trace_id,
		        .natives = of[i].natives};
	return tw_catalogue_rollup_put(c, counted, n, err);
}

enum tw_status tw_clickhouse_put(
        struct tw_fleet_store *s, const struct tw_rollup_reading *of, size_t n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	struct rows r = {.arena = tw_arena_new(TREE_BYTES)};
	enum tw_status st = r.arena ? tw_clickhouse_ready(f, err) : tw_oom(err);

	for (int i = 0; i < TABLES; i++)
		tw_buf_init(&r.of[i], ROWS_BYTES);
	tw_buf_init(&r.dims, 1 << 20);
	if (st == TW_OK)
		st = write_rows(f, of, n, &r, err);
	if (r.arena)
		tw_arena_reset(r.arena);
	if (st == TW_OK)
		st = mark_counted(s->catalogue, of, n, r.arena, err);
	for (int i = 0; i < TABLES; i++)
		tw_buf_done(&r.of[i]);
	tw_buf_done(&r.dims);
	tw_arena_free(r.arena);
	if (st == TW_OK && n < s->engine->batch) /* wait for more traces until the next call */
		tw_sleep_ms(BATCH_MS);
	return st;
}

/* --- names --- */

static void put_name(struct tw_buf *out, const char *project_id, const struct tw_rollup_naming *m,
        uint64_t attempt)
{
	tw_clickhouse_put_text(out, project_id);
	(void)tw_buf_add_u64le(out, m->id);
	tw_clickhouse_put_text(out, m->name);
	tw_clickhouse_put_text(out, m->descriptor);
	(void)tw_buf_add_u8(out, m->named);
	tw_clickhouse_put_text(out, m->build_id);
	tw_clickhouse_put_text(out, m->mapping_id);
	tw_clickhouse_put_text(out, m->raw);
	(void)tw_buf_add_u64le(out, attempt);
}

enum tw_status tw_clickhouse_rename(struct tw_fleet_store *s, const char *project_id,
        const struct tw_rollup_naming *methods, size_t n, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	struct tw_buf rows;
	uint64_t attempt = 0;
	enum tw_status st = tw_clickhouse_ready(f, err);

	tw_buf_init(&rows, ROWS_BYTES);
	if (st == TW_OK)
		st = tw_clickhouse_attempts(f, 1, &attempt, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		put_name(&rows, project_id, &methods[i], attempt);
	if (st == TW_OK)
		st = tw_clickhouse_insert(f,
		        "INSERT INTO methods (project,method,name,descriptor,named,build_id,"
		        "mapping_id,raw,attempt) FORMAT RowBinary",
		        &rows, err);
	tw_buf_done(&rows);
	return st;
}

/* Queries read names from the catalogue; these are for users who query ClickHouse directly. */
enum tw_status tw_clickhouse_name(
        struct tw_fleet_store *s, const struct tw_rollup_names *names, struct tw_err *err)
{
	enum tw_status st =
	        tw_clickhouse_rename(s, names->project_id, names->methods, names->n, err);

	return st == TW_OK ? tw_catalogue_rollup_name(s->catalogue, names, err) : st;
}

/* --- findings --- */

static void put_callers(struct tw_buf *out, const struct tw_found_rule *rule)
{
	for (int column = 0; column < 4; column++) {
		(void)tw_buf_add_varint(out, rule->n);
		for (uint32_t i = 0; i < rule->n; i++) {
			const struct tw_found_caller *c = &rule->callers[i];
			const uint64_t values[] = {c->method, c->found,
			        tw_clickhouse_unsigned(c->ns), tw_clickhouse_unsigned(c->max_ns)};

			(void)tw_buf_add_u64le(out, values[column]);
		}
	}
}

static void put_rule(struct tw_buf *out, const struct tw_found_rule *rule)
{
	(void)tw_buf_add_varint(out, rule->id.len);
	(void)tw_buf_add_str(out, rule->id);
	(void)tw_buf_add_u64le(out, rule->found);
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(rule->ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(rule->main_ns));
	(void)tw_buf_add_u64le(out, tw_clickhouse_unsigned(rule->max_ns));
	put_callers(out, rule);
}

/* In the order in which read_finding reads them. */
static void put_figures(struct tw_buf *out, const struct tw_found *f)
{
	const uint64_t figures[] = {f->frames, f->slow_frames, f->frozen_frames,
	        tw_clickhouse_unsigned(f->initial_ns), tw_clickhouse_unsigned(f->full_ns)};

	(void)tw_buf_add_varint(out, sizeof figures / sizeof *figures);
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		(void)tw_buf_add_u64le(out, figures[i]);
}

/* A row for each rule, and one without a rule that marks the trace as inspected. */
static enum tw_status put_rules(struct tw_buf *out, const struct tw_found_trace *of,
        const struct tw_found *found, int64_t number, uint64_t attempt, struct tw_err *err)
{
	static const struct tw_found_rule none = {.id = {"", 0}};
	struct tw_buf begin;
	enum tw_status st;

	tw_buf_init(&begin, ROWS_BYTES);
	tw_clickhouse_put_dims(&begin, of->of.project_id, of->of.trace_id, of->cells, attempt);
	st = tw_clickhouse_put_labels(&begin, of->row, err);
	(void)tw_buf_add_u64le(&begin, (uint64_t)number);
	(void)tw_buf_add_u8(&begin, found->partial);
	put_figures(&begin, found);
	for (uint32_t i = 0; i <= found->n; i++) {
		(void)tw_buf_add(out, begin.data, begin.len);
		put_rule(out, i < found->n ? &found->rules[i] : &none);
	}
	if (st == TW_OK && tw_buf_status(&begin) != TW_OK)
		st = tw_oom(err);
	tw_buf_done(&begin);
	return st;
}

static enum tw_status put_found_rows(struct tw_buf *rows, const struct tw_found_trace *of,
        int64_t number, uint64_t attempt, struct tw_arena *a, struct tw_err *err)
{
	struct tw_found found = {
	        .rules = tw_arena_alloc(a, TW_DETECT_RULES_MAX, sizeof *found.rules)};
	enum tw_status st = found.rules ? tw_found_read((const uint8_t *)of->data.ptr, of->data.len,
	                                          &found, err)
	                                : tw_oom(err);

	return st == TW_OK ? put_rules(rows, of, &found, number, attempt, err) : st;
}

static enum tw_status write_found(struct tw_fleet_clickhouse *f, const struct tw_found_trace *of,
        size_t n, int64_t number, struct tw_arena *a, struct tw_err *err)
{
	struct tw_buf rows;
	uint64_t attempt = 0;
	enum tw_status st = tw_clickhouse_attempts(f, n, &attempt, err);

	tw_buf_init(&rows, ROWS_BYTES);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		tw_arena_reset(a);
		if (of[i].n_cells)
			st = put_found_rows(
			        &rows, &of[i], number, attempt + i * TW_CH_STEP, a, err);
	}
	if (st == TW_OK)
		st = tw_clickhouse_insert(f,
		        "INSERT INTO findings (" TW_CH_DIMS ",label_keys,label_values,rules,"
		        "partial,figures,rule,found,ns,main_ns,max_ns,caller_methods,caller_found,"
		        "caller_ns,caller_max_ns) FORMAT RowBinary",
		        &rows, err);
	tw_buf_done(&rows);
	return st;
}

static enum tw_status mark_found(struct tw_catalogue *c, const struct tw_found_trace *of, size_t n,
        int64_t number, struct tw_arena *a, struct tw_err *err)
{
	struct tw_found_trace *counted;

	tw_arena_reset(a);
	counted = tw_arena_alloc(a, n + 1, sizeof *counted);
	if (!counted)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		counted[i] = of[i];
		counted[i].n_cells = 0;
	}
	return tw_catalogue_found_put(c, counted, n, number, err);
}

enum tw_status tw_clickhouse_put_found(struct tw_fleet_store *s, const struct tw_found_trace *of,
        size_t n, int64_t number, struct tw_err *err)
{
	struct tw_fleet_clickhouse *f = (struct tw_fleet_clickhouse *)s;
	struct tw_arena *a = tw_arena_new(4 << 20);
	enum tw_status st = a ? tw_clickhouse_ready(f, err) : tw_oom(err);

	if (st == TW_OK)
		st = write_found(f, of, n, number, a, err);
	if (st == TW_OK)
		st = mark_found(s->catalogue, of, n, number, a, err);
	tw_arena_free(a);
	return st;
}

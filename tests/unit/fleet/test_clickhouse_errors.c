/*
 * test_clickhouse_errors.c - every request of every operation on ClickHouse fails in every way: the
 * connection ends before or within the response, an error status, a result that ends early. The
 * operation fails or has a result, with and without an error record, and reads nothing else. Also,
 * a sent insert is not sent again.
 *
 * ClickHouse is a thread here. It answers each query with one row of the columns that it selects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/fleet/found.h"
#include "server/fleet/regress_detect.h"
#include "server/fleet/store/clickhouse/clickhouse_int.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { DAY0 = 20000, TRACES = 30, REQUEST_BYTES = 1 << 20, CONNECTIONS = 16 };
static const char trace_id[] = "01ABCDEFGHJKMNPQRSTVWXYZ00";

enum fault { NONE, CLOSED, CUT, REFUSED, UNAVAILABLE, SHORT, FAULTS };

/* --- ClickHouse --- */

struct connection {
	int fd;
	char *bytes;
	size_t n;
};

struct server {
	int listener, port, wake[2];
	pthread_t thread;
	pthread_mutex_t lock;
	unsigned requests, inserts, fail_at; /* fail_at 0: none */
	enum fault fault;
	struct connection of[CONNECTIONS];
};

static void add_text(struct tw_buf *out, const char *text)
{
	tw_clickhouse_put_text(out, text);
}

static void add_u16(struct tw_buf *out, unsigned v)
{
	(void)tw_buf_add_u8(out, (uint8_t)(v & 0xff));
	(void)tw_buf_add_u8(out, (uint8_t)(v >> 8));
}

static void add_numbers(struct tw_buf *out, int n, uint64_t v)
{
	for (int i = 0; i < n; i++)
		(void)tw_buf_add_u64le(out, v);
}

/* The dimensions that a query begins with. */
static const char *add_dims(struct tw_buf *out, const char *sql)
{
	static const struct {
		const char *name, *value;
	} dims[] = {{"app,", "app"}, {"version_name,", "8.3.1"}, {"build_id,", "b"},
	        {"scenario,", "page"}, {"device_class,", "low"}, {"os,", "14"}, {"label,", "a=b"}};

	if (strncmp(sql, "toUInt16(day) AS d,", 19) == 0 || strncmp(sql, "d,", 2) == 0) {
		add_u16(out, DAY0);
		sql = strchr(sql, ',') + 1;
	}
	for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
		if (strncmp(sql, dims[i].name, strlen(dims[i].name)) == 0) {
			add_text(out, dims[i].value);
			sql += strlen(dims[i].name);
		}
	return sql;
}

/* One or a few rows, of the columns that the query selects. */
static void add_rows(struct tw_buf *out, const char *sql)
{
	if (strncmp(sql, "SELECT ", 7) != 0)
		return;
	if (strncmp(sql, "SELECT * FROM (SELECT toUInt64(multiIf(", 39) == 0) {
		add_numbers(out, 3, 0); /* set of cells, path, parent */
		memset(out->data + out->len - 16, 1, 8);
		add_u16(out, 0);
		add_numbers(out, 1, 7);
		add_text(out, "main");
		add_numbers(out, 7, 5);
		return;
	}
	if (strncmp(sql, "SELECT trace,partial,figures", 28) == 0) {
		for (int i = 0; i < 2; i++) {
			(void)tw_buf_add(out, trace_id, TW_ROLLUP_ID);
			(void)tw_buf_add_u8(out, 0);
			(void)tw_buf_add_u8(out, 5); /* figures */
			add_numbers(out, 5, 2);
			add_text(out, i ? "json" : "");
			add_numbers(out, 4, 3);
			for (int k = 0; k < 4; k++) {
				(void)tw_buf_add_u8(out, 1);
				add_numbers(out, 1, 9);
			}
		}
		return;
	}
	sql = add_dims(out, sql + 7);
	if (strncmp(sql, "toUInt16(if(", 12) == 0) { /* durations */
		add_u16(out, 40);
		add_numbers(out, 1, 1000);
		add_numbers(out, 3, 40000);
		(void)tw_buf_add(out, trace_id, TW_ROLLUP_ID);
		add_numbers(out, 1, 5); /* attempt */
	} else if (strncmp(sql, "method,groupArray", 17) == 0) {
		add_numbers(out, 1, 77);
		(void)tw_buf_add_u8(out, 2);
		add_u16(out, 3);
		add_u16(out, 4);
		(void)tw_buf_add_u8(out, 2);
		add_numbers(out, 2, 500);
	} else if (strncmp(sql, "method,sum(v)", 13) == 0) {
		add_numbers(out, 4, 77);
		(void)tw_buf_add(out, trace_id, TW_ROLLUP_ID);
	} else if (strncmp(sql, "trace,method,thread", 19) == 0) {
		(void)tw_buf_add(out, trace_id, TW_ROLLUP_ID);
		add_numbers(out, 1, 77);
		add_text(out, "main");
		(void)tw_buf_add_u8(out, 1);
		add_numbers(out, 1, 9000);
	} else if (strncmp(sql, "DISTINCT table", 14) == 0) {
		add_text(out, "traces");
		add_text(out, "201001");
	} else if (strncmp(sql, "toUInt8(count())", 16) == 0) {
		(void)tw_buf_add_u8(out, 1);
	} else if (strncmp(sql, "toUInt64(multiIf(", 17) == 0) { /* set of cells, traces */
		add_numbers(out, 2, 0);
		(void)tw_buf_add_u8(out, 1);
		add_numbers(out, 1, 5); /* attempt */
	} else {
		add_numbers(out, 1, 1); /* a count or a version */
	}
}

static void send_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		const ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		p += sent;
		n -= (size_t)sent;
	}
}

/* False: the connection ends. */
static bool respond(struct server *s, int fd, const char *head, const char *body)
{
	static const char error[] = "Code: 62, e.displayText() = DB::Exception: Syntax error";
	const bool insert = strstr(head, "query=INSERT") != NULL;
	enum fault fault;
	struct tw_buf rows, all;
	char begin[200];
	size_t n;

	(void)pthread_mutex_lock(&s->lock);
	s->requests++;
	s->inserts += insert;
	fault = s->fail_at == s->requests ? s->fault : NONE;
	(void)pthread_mutex_unlock(&s->lock);
	if (fault == CLOSED)
		return false;
	if (fault == REFUSED || fault == UNAVAILABLE) {
		(void)snprintf(begin, sizeof begin,
		        "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s",
		        fault == REFUSED ? 500 : 503, sizeof error - 1, error);
		send_all(fd, begin, strlen(begin));
		return true;
	}
	tw_buf_init(&rows, 1 << 16);
	if (!insert)
		add_rows(&rows, body);
	n = fault == SHORT && rows.len ? rows.len - 1 : rows.len;
	tw_buf_init(&all, 1 << 16); /* sent at once, as a second packet waits for the first */
	(void)tw_buf_printf(
	        &all, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n + (fault == CUT));
	(void)tw_buf_add(&all, rows.data, n);
	send_all(fd, all.data, all.len);
	tw_buf_done(&all);
	tw_buf_done(&rows);
	return fault != CUT;
}

/* Responds to the complete requests among the received bytes. */
static bool serve(struct server *s, struct connection *c)
{
	for (;;) {
		char *end = c->n ? strstr(c->bytes, "\r\n\r\n") : NULL;
		const char *length = end ? strcasestr(c->bytes, "content-length:") : NULL;
		size_t body, all;
		char *text;
		bool open;

		if (!end)
			return true;
		body = length && length < end ? strtoul(length + 15, NULL, 10) : 0;
		all = (size_t)(end + 4 - c->bytes) + body;
		if (c->n < all)
			return true;
		*end = '\0';
		text = strndup(end + 4, body);
		open = respond(s, c->fd, c->bytes, text);
		free(text);
		memmove(c->bytes, c->bytes + all, c->n - all);
		c->n -= all;
		c->bytes[c->n] = '\0';
		if (!open)
			return false;
	}
}

static void drop(struct connection *c)
{
	(void)close(c->fd);
	free(c->bytes);
	*c = (struct connection){-1, NULL, 0};
}

static void receive(struct server *s, struct connection *c)
{
	const ssize_t got = recv(c->fd, c->bytes + c->n, REQUEST_BYTES - 1 - c->n, 0);

	if (got > 0) {
		c->n += (size_t)got;
		c->bytes[c->n] = '\0';
	}
	if (got <= 0 || !serve(s, c))
		drop(c);
}

static void *run_server(void *arg)
{
	struct server *s = arg;

	for (;;) {
		struct pollfd fds[CONNECTIONS + 2] = {
		        {s->listener, POLLIN, 0}, {s->wake[0], POLLIN, 0}};

		for (int i = 0; i < CONNECTIONS; i++)
			fds[i + 2] = (struct pollfd){s->of[i].fd, POLLIN, 0};
		if (poll(fds, CONNECTIONS + 2, -1) < 0 || fds[1].revents)
			break;
		for (int i = 0; i < CONNECTIONS; i++)
			if (s->of[i].fd >= 0 && fds[i + 2].revents)
				receive(s, &s->of[i]);
		for (int i = 0; fds[0].revents && i < CONNECTIONS; i++)
			if (s->of[i].fd < 0) {
				s->of[i] = (struct connection){accept(s->listener, NULL, NULL),
				        calloc(REQUEST_BYTES, 1), 0};
				break;
			}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (s->of[i].fd >= 0)
			drop(&s->of[i]);
	return NULL;
}

static void start_server(struct server *s)
{
	struct sockaddr_in at = {
	        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;

	for (int i = 0; i < CONNECTIONS; i++)
		s->of[i].fd = -1;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(s->listener, CONNECTIONS), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &n), 0);
	s->port = ntohs(at.sin_port);
	assert_int_equal(pipe(s->wake), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, run_server, s), 0);
}

static void stop_server(struct server *s)
{
	assert_int_equal(write(s->wake[1], "x", 1), 1);
	(void)pthread_join(s->thread, NULL);
	(void)close(s->listener);
	(void)close(s->wake[0]);
	(void)close(s->wake[1]);
	(void)pthread_mutex_destroy(&s->lock);
}

/* Returns the number of requests since the last call. The next fault is in request `at`. */
static unsigned plan(struct server *s, enum fault fault, unsigned at)
{
	unsigned n;

	(void)pthread_mutex_lock(&s->lock);
	n = s->requests;
	s->requests = 0;
	s->fault = fault;
	s->fail_at = at;
	(void)pthread_mutex_unlock(&s->lock);
	return n;
}

/* --- operations --- */

struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_fleet_store *store;
	struct tw_arena *arena;
	struct server server;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct session s;
	char url[64];
	bool is_new;

	s = (struct session){.dir = "/dev/shm/tw-errors-XXXXXX"};
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-errors-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new((size_t)256 << 20);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	assert_true(sim_rows(s.db, s.project, 0, TRACES, DAY0));
	start_server(&s.server);
	(void)snprintf(url, sizeof url, "clickhouse://127.0.0.1:%d/d", s.server.port);
	assert_int_equal(tw_fleet_clickhouse_new(
	                         s.c, &(struct tw_clickhouse_at){url, "", "", ""}, &s.store, NULL),
	        TW_OK);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	s->store = tw_fleet_store_free(s->store);
	stop_server(&s->server);
	tw_db_close(s->db);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static struct tw_fleet_query query_of(const struct session *s, unsigned dims)
{
	return (struct tw_fleet_query){.project_id = s->project,
	        .filter = {"", "", "", "", "", "", "", 0, DAY0 + SIM_DAYS},
	        .dims = dims};
}

static enum tw_status read_cells(struct session *s, struct tw_err *err)
{
	struct tw_fleet_query q = query_of(s, TW_DIM_DAY | TW_DIM_VERSION | TW_DIM_CLASS);
	struct tw_rollup_cell *cells = NULL;
	size_t n = 0;
	enum tw_status st;

	q.metrics = TW_ROLLUP_ALL;
	st = s->store->engine->cells(s->store, &q, s->arena, &cells, &n, err);
	if (st == TW_OK && n) { /* the result can be read */
		const struct tw_rollup_cell *const list[] = {cells};
		struct tw_rollup r = {.arena = s->arena, .metrics = TW_ROLLUP_ALL};

		assert_int_equal(tw_fleet_collect(list, 1, &r, NULL), TW_OK);
	}
	return st;
}

static enum tw_status count(struct session *s, struct tw_err *err)
{
	const struct tw_fleet_query q = query_of(s, 0);
	uint64_t n;

	return s->store->engine->count(s->store, &q, &n, err);
}

static const struct tw_rollup_cell one_cell = {
        .dims = {DAY0, "app", "8.3.1", "b", "", "page", "low", "14", ""}, .traces = 3};
static const struct tw_rollup_cell *const one_of[] = {&one_cell};

static enum tw_status read_tree(struct session *s, struct tw_err *err)
{
	const struct tw_fleet_query q = query_of(s, TW_DIM_VERSION);
	struct tw_rollup_tree t = {.arena = s->arena};

	return s->store->engine->trees(
	        s->store, &q, &(struct tw_fleet_cells_of){one_of, 1, 1}, 1, &t, err);
}

static enum tw_status search(struct session *s, struct tw_err *err)
{
	static const uint64_t numbers[] = {77};
	const struct tw_fleet_query q = query_of(s, 0);
	struct tw_search k = {.numbers = numbers, .n_methods = 1, .results_arena = s->arena};

	k.found = tw_arena_alloc(s->arena, 2 * (size_t)TW_SEARCH_HITS_MAX, sizeof *k.found);
	return s->store->engine->search(s->store, &q, &one_cell, 1, &k, err);
}

static enum tw_status take(void *arg, const char *id, struct tw_str data, struct tw_err *err)
{
	(void)arg, (void)id, (void)data, (void)err;
	return TW_OK;
}

static enum tw_status read_found(struct session *s, struct tw_err *err)
{
	const struct tw_fleet_query q = query_of(s, TW_DIM_VERSION);

	return s->store->engine->found(s->store, &q, &(struct tw_fleet_cells_of){one_of, 1, 1},
	        &(struct tw_fleet_findings){take, NULL}, err);
}

static enum tw_status detect(struct session *s, struct tw_err *err)
{
	const struct tw_regress_task task = {s->project, DAY0 + SIM_DAYS - 1, {NULL, NULL}, 0};
	struct tw_regress_detected sums;

	return tw_regress_detect(s->store, &task, &sums, err);
}

static enum tw_status put(struct session *s, struct tw_err *err)
{
	static struct sim_trace t;
	struct tw_rollup_reading r = {.cells = &t.dims, .n_cells = 1};
	struct tw_buf facts;
	enum tw_status st;

	sim_make(s->project, 1, DAY0, &t);
	tw_buf_init(&facts, 1 << 20);
	tw_rollup_write_facts(t.facts, t.n_facts, &facts);
	r.facts = (struct tw_str){(const char *)facts.data, facts.len};
	r.project_id = s->project;
	r.trace_id = t.id;
	r.duration_ns = t.duration_ns;
	st = s->store->engine->put(s->store, &r, 1, err);
	tw_buf_done(&facts);
	return st;
}

static enum tw_status put_found(struct session *s, struct tw_err *err)
{
	static struct sim_trace t;
	struct tw_found_trace of = {.cells = &t.dims, .n_cells = 1, .by = {"", ""}};
	struct tw_found none = {.n = 0};
	struct tw_buf out;
	enum tw_status st;

	sim_make(s->project, 2, DAY0, &t);
	of.of = (struct tw_named_trace){s->project, t.id, t.dims.build_id, ""};
	tw_buf_init(&out, 1 << 20);
	tw_found_write(&none, &out);
	of.data = (struct tw_str){(const char *)out.data, out.len};
	st = s->store->engine->put_found(s->store, &of, 1, 1, err);
	tw_buf_done(&out);
	return st;
}

static enum tw_status put_anrs(struct session *s, struct tw_err *err)
{
	struct tw_lock_wait lock = {.monitor = "m", .owner = "o", .holder = "h", .waits = 1};
	const struct tw_anr_copy of = {.project_id = s->project,
	        .trace_id = trace_id,
	        .row = {.meta = {.app = "a",
	                        .version_name = "v",
	                        .build_id = "b",
	                        .mapping_id = "",
	                        .scenario = "s",
	                        .device = "d",
	                        .os = "o",
	                        .labels = "{}",
	                        .version_code = "",
	                        .abi = "",
	                        .process = "",
	                        .session_id = "",
	                        .uuid = ""}},
	        .device_class = "low",
	        .key = "k",
	        .kind = "lock",
	        .name = "n",
	        .title = "t",
	        .verdict = "v",
	        .locks = &lock,
	        .n_locks = 1};

	return s->store->engine->put_anrs(s->store, &of, 1, err);
}

static enum tw_status hide(struct session *s, struct tw_err *err)
{
	const struct tw_erased of = {s->project, trace_id, DAY0};

	return s->store->engine->hide(s->store, &of, 1, err);
}

static enum tw_status erase(struct session *s, struct tw_err *err)
{
	const struct tw_erased of = {s->project, trace_id, DAY0};

	return s->store->engine->erase(s->store, &of, 1, err);
}

static enum tw_status purge(struct session *s, struct tw_err *err)
{
	return s->store->engine->purge(s->store, err);
}

static enum tw_status expire(struct session *s, struct tw_err *err)
{
	static int64_t day = DAY0;
	bool more;

	return s->store->engine->expire(s->store, day++, &more, err);
}

static const struct {
	const char *name;
	enum tw_status (*run)(struct session *s, struct tw_err *err);
	unsigned least; /* requests */
} operations[] = {{"cells", read_cells, 1 + 2 * TW_ROLLUP_METRICS}, {"count", count, 1},
        {"tree", read_tree, 2}, {"search", search, 2}, {"found", read_found, 1},
        {"regressions", detect, 4}, {"put", put, 2}, {"put_found", put_found, 1},
        {"put_anrs", put_anrs, 2}, {"hide", hide, 1}, {"erase", erase, 8}, {"purge", purge, 5},
        {"expire", expire, 2}};

static void test_each_request_fails(void **state)
{
	struct session *s = *state;

	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
		unsigned n;

		tw_arena_reset(s->arena);
		if (i == 0) /* makes the tables, and takes a number for attempts */
			assert_int_equal(put(s, NULL), TW_OK);
		(void)plan(&s->server, NONE, 0);
		if (operations[i].run(s, NULL) != TW_OK)
			fail_msg("%s", operations[i].name);
		n = plan(&s->server, NONE, 0);
		if (n < operations[i].least)
			fail_msg("%s: %u requests", operations[i].name, n);
		for (unsigned k = 0; k < n * FAULTS * 2; k++) {
			const enum fault fault = k / 2 % FAULTS;
			struct tw_err err = {.code = TW_OK};
			enum tw_status st;

			(void)plan(&s->server, fault, 1 + k / 2 / FAULTS);
			tw_arena_reset(s->arena);
			st = operations[i].run(s, k % 2 ? &err : NULL);
			if (st != TW_OK && k % 2 && (err.code != st || !err.msg[0]))
				fail_msg("%s: %d without a message", operations[i].name, st);
			if ((fault == NONE && st != TW_OK) ||
			        ((fault == REFUSED || fault == UNAVAILABLE || fault == CUT) &&
			                st == TW_OK))
				fail_msg("%s, request %u, fault %d: %d", operations[i].name,
				        1 + k / 2 / FAULTS, fault, st);
		}
		(void)plan(&s->server, NONE, 0);
	}
}

/* As by a server that goes down after it stored the rows: they may be stored, so the attempt is not
 * repeated under its number. */
static void test_a_sent_insert_is_not_repeated(void **state)
{
	struct session *s = *state;
	unsigned before;

	assert_int_equal(count(s, NULL), TW_OK); /* a persistent connection */
	(void)plan(&s->server, CLOSED, 1);
	before = s->server.inserts;
	assert_int_equal(put(s, NULL), TW_BUSY);
	assert_int_equal(plan(&s->server, NONE, 0), 1);
	assert_int_equal(s->server.inserts - before, 1);
}

/* A server that does not make its tables. */
static void test_tables_fail(void **state)
{
	struct session *s = *state;
	char url[64];

	(void)snprintf(url, sizeof url, "clickhouse://127.0.0.1:%d/d", s->server.port);
	for (unsigned at = 1; at < 16; at++)
		for (enum fault fault = CLOSED; fault < FAULTS; fault++) {
			struct tw_fleet_store *store = NULL, *former = s->store;
			enum tw_status st;

			assert_int_equal(
			        tw_fleet_clickhouse_new(s->c,
			                &(struct tw_clickhouse_at){url, "", "", ""}, &store, NULL),
			        TW_OK);
			(void)plan(&s->server, fault, at);
			s->store = store;
			st = count(s, NULL);
			assert_true(at > 1 || fault != UNAVAILABLE || st == TW_BUSY);
			s->store = former;
			(void)tw_fleet_store_free(store);
		}
	(void)plan(&s->server, NONE, 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_request_fails),
        cmocka_unit_test(test_a_sent_insert_is_not_repeated), cmocka_unit_test(test_tables_fail)};

UNIT_TESTS_WITH("clickhouse_errors", tests, setup, teardown)

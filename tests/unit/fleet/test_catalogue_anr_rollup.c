/* ANR and lock groups from rollups by day: the same results as from a model of all reports, whether
 * none, some or all of them are counted, and after they were regrouped, indexed again or expired.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { REPORTS = 350, DAY0 = 20000, DAYS = 5, LOCKS = 5, GROUPS = 7, NAMES = 9, RULES = 7 };

static const char *const versions[] = {"", "1.0", "1.1", "2.0"};
static const char *const devices[] = {"", "p1", "p2", "p3", "p4"};
static const char *const classes[] = {"low", "mid", "high"};
static const char *const systems[] = {"13", "14"};
static const char *const names[NAMES] = {"a.B.c", "a.B.d", "x.Y.z", "x.Y.w", "com.app.Lock",
        "com.app.Other", "m.N.o", "m.N.p", "m.N.q"};

struct lock {
	unsigned name, dump, main, waits;
	int64_t ns;
};
struct report {
	char id[TW_ID_BYTES], user[16];
	unsigned version, device, class, os, anr, group, n_locks;
	int64_t day, at;
	bool gone;
	struct lock locks[LOCKS];
};
static struct report reports[REPORTS];

static struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_db *db;
	struct tw_arena *arena;
} s;

static uint64_t mixed(uint64_t x)
{
	x = (x + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static void make(struct report *r, uint64_t seed)
{
	uint64_t x = mixed(seed);

	r->version = (unsigned)(x % 4);
	r->device = (unsigned)(x >> 4) % 5;
	r->class = (unsigned)(x >> 8) % 3;
	r->os = (unsigned)(x >> 12) % 2;
	r->anr = (x >> 16) % 3 != 0;
	r->group = (unsigned)((x >> 20) % GROUPS * ((x >> 24) % GROUPS) / GROUPS);
	r->n_locks = (unsigned)(x >> 28) % (LOCKS + 1);
	if (!r->anr && !r->n_locks)
		r->n_locks = 1;
	(void)snprintf(r->user, sizeof r->user, "%s%u", "u", (unsigned)((x >> 32) % 90));
	if ((x >> 40) % 5 == 0)
		r->user[0] = '\0';
	for (unsigned k = 0; k < r->n_locks; k++) {
		uint64_t y = mixed(seed * 31 + k);

		r->locks[k] = (struct lock){(unsigned)(y % NAMES), (unsigned)(y >> 8) % 2,
		        (unsigned)(y >> 12) % 2, 1 + (unsigned)(y >> 16) % 3,
		        (int64_t)((y >> 24) % 2000)};
	}
}

static struct tw_lock_wait wait_of(const struct lock *l)
{
	const bool is_class = l->name == 4 || l->name == 5; /* whose method is not known */

	return (struct tw_lock_wait){.dump = l->dump,
	        .is_main = l->main,
	        .raw_monitor = "m",
	        .raw_owner = "o",
	        .source = "",
	        .monitor = is_class  ? names[l->name]
	                   : l->dump ? "com.app.M"
	                             : "",
	        .owner = is_class ? "" : names[l->name],
	        .holder = l->ns % 2 ? "pool-1" : "pool-2",
	        .waits = l->waits,
	        .timed = 1,
	        .total_ns = l->ns,
	        .max_ns = l->ns};
}

static void put(const struct report *r)
{
	struct tw_lock_wait locks[LOCKS];
	const struct tw_trace_row row = {.id = r->id,
	        .project_id = s.project,
	        .created_ms = r->day * TW_DAY_MS + r->at,
	        .meta = {.recorded_ms = r->day * TW_DAY_MS + r->at,
	                .app = "app",
	                .version_name = versions[r->version],
	                .build_id = "b",
	                .mapping_id = "",
	                .scenario = "",
	                .device = devices[r->device],
	                .os = systems[r->os],
	                .labels = ""}};
	const struct tw_anr_entry h = {.row = &row,
	        .device_class = classes[r->class],
	        .user = r->user,
	        .anr = r->anr,
	        .brief = {"brief", 5},
	        .locks = locks,
	        .n_locks = r->n_locks};

	for (unsigned k = 0; k < r->n_locks; k++)
		locks[k] = wait_of(&r->locks[k]);
	assert_int_equal(tw_catalogue_anr_put(s.c, &h, 1, NULL), TW_OK);
}

static void key(const struct report *r)
{
	struct tw_lock_wait locks[LOCKS];
	char name[16];
	struct tw_anr_cause cause = {
	        .kind = "io", .name = "", .title = name, .verdict = "v", .detail = "{}"};
	const struct tw_anr_stale stale = {.project_id = s.project,
	        .trace_id = r->id,
	        .build_id = "b",
	        .mapping_id = "",
	        .anr = r->anr,
	        .locks = locks,
	        .n_locks = r->n_locks};

	(void)snprintf(name, sizeof name, "g%u", r->group);
	(void)snprintf(cause.base, sizeof cause.base, "%s", name);
	(void)snprintf(cause.key, sizeof cause.key, "%s", name);
	for (unsigned k = 0; k < r->n_locks; k++)
		locks[k] = wait_of(&r->locks[k]);
	assert_int_equal(
	        tw_catalogue_anr_keyed(s.c, &stale, RULES, r->anr ? &cause : NULL, NULL), TW_OK);
}

static void count(bool all)
{
	const struct tw_anr_rollup_due due = {
	        s.project, RULES, (DAY0 + DAYS - 1) * TW_DAY_MS, all ? 1 : 64};
	struct tw_anr_rollup_done done = {.more = true};

	while (done.more) {
		assert_int_equal(tw_catalogue_anr_rollup(s.c, &due, &done, NULL), TW_OK);
		done.more = done.more && all;
	}
}

/* Packs all days that have ended. */
static void pack(void)
{
	const struct tw_anr_rollup_due due = {s.project, RULES, (DAY0 + 99) * TW_DAY_MS, 1};
	struct tw_anr_rollup_done done = {.more = true};

	while (done.more)
		assert_int_equal(tw_catalogue_anr_rollup(s.c, &due, &done, NULL), TW_OK);
}

/* --- the truth --- */

static bool passes(const struct report *r, const struct tw_rollup_filter *f)
{
	char device[32];

	(void)snprintf(device, sizeof device, "device=%s", devices[r->device]);
	return !r->gone && r->day >= f->first_day && r->day <= f->last_day &&
	       (!f->version_name[0] || strcmp(f->version_name, versions[r->version]) == 0) &&
	       (!f->device_class[0] || strcmp(f->device_class, classes[r->class]) == 0) &&
	       (!f->os[0] || strcmp(f->os, systems[r->os]) == 0) &&
	       (!f->label[0] || strcmp(f->label, device) == 0);
}

struct truth {
	uint64_t n, users, versions, devices;
	int64_t first_ms, last_ms;
};

static bool same_user(const struct report *a, const struct report *b)
{
	return a->user[0] && strcmp(a->user, b->user) == 0;
}

/* group GROUPS: all; day and version -1: any. */
struct which {
	const struct tw_rollup_filter *f;
	unsigned group;
	int64_t day;
	int version;
};

static bool is_of(const struct report *r, const struct which *w)
{
	return r->anr && passes(r, w->f) && (w->group == GROUPS || r->group == w->group) &&
	       (w->day < 0 || r->day == w->day) &&
	       (w->version < 0 || r->version == (unsigned)w->version);
}

static bool new_user(size_t i, const struct which *w)
{
	bool is_new = reports[i].user[0] != '\0';

	for (size_t k = 0; is_new && k < i; k++)
		is_new = !(is_of(&reports[k], w) && same_user(&reports[k], &reports[i]));
	return is_new;
}

static struct truth truth_of(const struct which *w)
{
	unsigned seen_versions = 0, seen_devices = 0;
	struct truth t = {0};

	for (size_t i = 0; i < REPORTS; i++) {
		const struct report *r = &reports[i];
		const int64_t ms = r->day * TW_DAY_MS + r->at;

		if (!is_of(r, w))
			continue;
		t.n++;
		t.users += new_user(i, w);
		seen_versions |= 1U << r->version;
		seen_devices |= r->device ? 1U << r->device : 0;
		t.first_ms = t.first_ms && t.first_ms < ms ? t.first_ms : ms;
		t.last_ms = t.last_ms > ms ? t.last_ms : ms;
	}
	t.versions = (uint64_t)__builtin_popcount(seen_versions);
	t.devices = (uint64_t)__builtin_popcount(seen_devices);
	return t;
}

static unsigned number_of(const char *key)
{
	return (unsigned)atoi(key + 1);
}

static void check_groups(const struct tw_rollup_filter *f)
{
	const struct which any = {f, GROUPS, -1, -1};
	const struct truth whole = truth_of(&any);
	struct tw_anr_group *groups;
	struct tw_anr_sums sums;
	uint64_t n_groups = 0;
	size_t n;

	assert_int_equal(
	        tw_catalogue_anr_groups(s.c, s.project, f, s.arena, &groups, &n, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_anr_groups_name(s.c, s.project, s.arena, groups, &n, NULL), TW_OK);
	for (unsigned g = 0; g < GROUPS; g++)
		n_groups += truth_of(&(struct which){f, g, -1, -1}).n > 0;
	assert_int_equal(n, n_groups);
	for (size_t i = 0; i < n; i++) {
		const struct truth t =
		        truth_of(&(struct which){f, number_of(groups[i].key), -1, -1});

		assert_int_equal(groups[i].count, t.n);
		assert_int_equal(groups[i].users, t.users);
		assert_int_equal(groups[i].versions, t.versions);
		assert_int_equal(groups[i].devices, t.devices);
		assert_int_equal(groups[i].first_ms, t.first_ms);
		assert_int_equal(groups[i].last_ms, t.last_ms);
		assert_string_equal(groups[i].title, groups[i].key);
		assert_true(i == 0 || groups[i - 1].count >= groups[i].count);
	}
	assert_int_equal(tw_catalogue_anr_sums(s.c, s.project, f, RULES, &sums, NULL), TW_OK);
	assert_int_equal(sums.traces, whole.n);
	assert_int_equal(sums.users, whole.users);
	assert_int_equal(sums.pending, 0);
}

/* The days of the groups from `first` on. */
static void check_days(const struct tw_rollup_filter *f, unsigned first)
{
	struct tw_anr_group groups[GROUPS];
	struct tw_anr_slice *slices;
	uint64_t sum = 0, expected = 0;
	size_t n;

	for (unsigned g = first; g < GROUPS; g++) { /* not by rising keys */
		groups[GROUPS - 1 - g].key = tw_arena_printf(s.arena, "g%u", g);
		expected += truth_of(&(struct which){f, g, -1, -1}).n;
	}
	assert_int_equal(tw_catalogue_anr_days(s.c, s.project, f, groups, GROUPS - first, s.arena,
	                         &slices, &n, NULL),
	        TW_OK);
	for (size_t i = 0; i < n; i++) {
		const struct truth t =
		        truth_of(&(struct which){f, number_of(slices[i].key), slices[i].day, -1});

		assert_int_equal(slices[i].count, t.n);
		assert_int_equal(slices[i].users, t.users);
		assert_true(number_of(slices[i].key) >= first);
		sum += t.n;
	}
	assert_int_equal(sum, expected);
}

static void check_slices(const struct tw_rollup_filter *f)
{
	struct tw_anr_slice *slices;
	size_t n;

	check_days(f, 0);
	check_days(f, GROUPS - 2);
	check_days(f, GROUPS);
	assert_int_equal(tw_catalogue_anr_slices(s.c, s.project, f, "g1", TW_ANR_BY_VERSION,
	                         s.arena, &slices, &n, NULL),
	        TW_OK);
	for (int v = 0; v < 4; v++) {
		const struct truth t = truth_of(&(struct which){f, 1, -1, v});
		size_t at = 0;

		while (at < n && strcmp(slices[at].value, versions[v]) != 0)
			at++;
		assert_int_equal(at<n, t.n> 0);
		assert_true(at == n || (slices[at].count == t.n && slices[at].users == t.users));
	}
}

static bool is_asked(const struct lock *l, const struct tw_lock_query *q)
{
	return (q->others || l->main) && (q->dumps == 0 || l->dump == q->dumps - 1);
}

/* name NAMES: all; version -1: any. */
static struct tw_lock_row lock_truth(const struct tw_lock_query *q, unsigned name, int version)
{
	struct tw_lock_row t = {.worst = ""};
	unsigned seen = 0;

	for (size_t i = 0; i < REPORTS; i++) {
		const struct report *r = &reports[i];
		bool any = false, dumped = false;

		if (!passes(r, q->filter) || (version >= 0 && r->version != (unsigned)version))
			continue;
		for (unsigned k = 0; k < r->n_locks; k++) {
			const struct lock *l = &r->locks[k];

			if (!is_asked(l, q) || (name < NAMES && l->name != name))
				continue;
			any = true;
			dumped = dumped || l->dump;
			t.waits += l->waits;
			t.timed++;
			t.total_ns += l->ns;
			if (l->ns > t.max_ns || !t.worst[0] ||
			        (l->ns == t.max_ns && strcmp(r->id, t.worst) > 0)) {
				t.max_ns = l->ns;
				t.worst = r->id;
			}
		}
		t.traces += any;
		t.anrs += dumped;
		seen |= any ? 1U << r->version : 0;
	}
	t.versions = (uint64_t)__builtin_popcount(seen);
	return t;
}

static void assert_row(const struct tw_lock_row *r, const struct tw_lock_row *t)
{
	assert_int_equal(r->traces, t->traces);
	assert_int_equal(r->anrs, t->anrs);
	assert_int_equal(r->versions, t->versions);
	assert_int_equal(r->waits, t->waits);
	assert_int_equal(r->timed, t->timed);
	assert_int_equal(r->total_ns, t->total_ns);
	assert_int_equal(r->max_ns, t->max_ns);
	assert_string_equal(r->worst, t->worst);
}

static void check_locks(const struct tw_rollup_filter *f, bool others, unsigned dumps)
{
	struct tw_lock_query q = {.filter = f, .name = "", .others = others, .dumps = dumps};
	struct tw_lock_row *rows;
	size_t n, n_names = 0;

	assert_int_equal(tw_catalogue_locks(s.c, s.project, &q, s.arena, &rows, &n, NULL), TW_OK);
	for (unsigned l = 0; l < NAMES; l++) {
		const struct tw_lock_row t = lock_truth(&q, l, -1);
		size_t at = 0;

		while (at < n &&
		        strcmp(names[l], rows[at].owner[0] ? rows[at].owner : rows[at].monitors))
			at++;
		assert_int_equal(at<n, t.waits> 0);
		n_names += t.waits > 0;
		if (at < n)
			assert_row(&rows[at], &t);
	}
	assert_int_equal(n, n_names);
	for (size_t i = 1; i < n; i++)
		assert_true(rows[i - 1].total_ns >= rows[i].total_ns);
	for (unsigned l = 0; l <= NAMES; l += NAMES) { /* of one, and of all */
		q.name = l < NAMES ? names[l] : "";
		assert_int_equal(tw_catalogue_lock_series(
		                         s.c, s.project, &q, false, s.arena, &rows, &n, NULL),
		        TW_OK);
		for (size_t i = 0; i < n; i++)
			for (int v = 0; v < 4; v++)
				if (strcmp(rows[i].owner, versions[v]) == 0) {
					const struct tw_lock_row t = lock_truth(&q, l, v);

					assert_row(&rows[i], &t);
				}
	}
}

static void check(void)
{
	static const struct tw_rollup_filter filters[] = {
	        {"", "", "", "", "", "", "", DAY0, DAY0 + DAYS},
	        {"", "1.0", "", "", "", "", "", DAY0, DAY0 + DAYS},
	        {"", "", "", "", "mid", "14", "", DAY0, DAY0 + DAYS},
	        {"app", "", "b", "", "", "", "", DAY0 + 1, DAY0 + 2},
	        {"", "", "", "", "", "", "device=p2", DAY0, DAY0 + DAYS},
	        {"other", "", "", "", "", "", "", DAY0 + 99, DAY0 + 99}};

	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
		tw_arena_reset(s.arena);
		check_groups(&filters[i]);
		check_slices(&filters[i]);
		for (unsigned dumps = 0; dumps < 3; dumps++) {
			check_locks(&filters[i], false, dumps);
			check_locks(&filters[i], true, dumps);
		}
	}
}

/* --- tests --- */

static int64_t number(const char *sql)
{
	return catalogue_number(s.db, sql);
}

/* All stored sums, without the number of rebuilds. */
static uint64_t sum_of_bytes(void)
{
	uint64_t h = 0;
	struct tw_cat_query q;

	assert_int_equal(tw_cat_query(&q, s.db, NULL,
	                         "SELECT what||'/'||fine||'/'||day||'/'||name||'/'||app||'/'||"
	                         "version_name||'/'||build_id||'/'||scenario||'/'||device_class"
	                         "||'/'||os, data FROM anr_rollup ORDER BY 1",
	                         ""),
	        TW_OK);
	while (tw_cat_row(&q)) {
		const struct tw_str data = tw_cat_blob(&q, 1);

		for (const char *p = tw_cat_str(&q, 0); *p; p++)
			h = mixed(h ^ (unsigned char)*p);
		for (size_t i = 0; i < data.len; i++)
			h = mixed(h ^ (unsigned char)data.ptr[i]);
	}
	assert_int_equal(tw_cat_close(&q, NULL), TW_OK);
	return h;
}

/* Sums of the first day that are outdated. */
static void add_outdated(void)
{
	catalogue_run(s.db,
	        "INSERT INTO anr_rollup(project_id,what,fine,day,name,app,version_name,build_id,"
	        "scenario,device_class,os,generation,data) WITH RECURSIVE n(i) AS (SELECT 1 UNION "
	        "ALL SELECT i+1 FROM n WHERE i<5000) SELECT project_id,1,0,day,'only '||i,'','','',"
	        "'','','',0,x'' FROM anr_day CROSS JOIN n WHERE day=20000");
}

static void test_counted_bit_by_bit(void **state)
{
	(void)state;
	for (size_t i = 0; i < REPORTS; i++) {
		put(&reports[i]);
		key(&reports[i]);
	}
	check();
	count(false);
	assert_int_equal(number("SELECT sum(waiting) FROM anr_day"), DAYS - 1);
	assert_true(number("SELECT count(*) FROM anr_trace WHERE rollup_generation=1") > 0);
	check();
	count(true);
	assert_int_equal(number("SELECT sum(waiting) FROM anr_day"), 0);
	assert_int_equal(number("SELECT count(*) FROM anr_trace WHERE rollup_generation<>1"), 0);
	check();
}

/* Lists read the packs alone; single groups are read from their rows. */
static void test_packed(void **state)
{
	const struct tw_rollup_filter all = {"", "", "", "", "", "", "", DAY0, DAY0 + DAYS};

	(void)state;
	assert_int_equal(number("SELECT count(*) FROM anr_day WHERE pack_ms>0"), DAYS);
	pack();
	assert_int_equal(number("SELECT count(*) FROM anr_day WHERE pack_ms>0"), 0);
	assert_int_equal(number("SELECT count(*) FROM anr_rollup WHERE fine=2"), 2 * DAYS);
	check();
	catalogue_run(s.db, "UPDATE anr_rollup SET fine=3 WHERE fine=0 AND name<>''");
	check_groups(&all);
	check_days(&all, 0);
	check_locks(&all, true, 0);
	catalogue_run(s.db, "UPDATE anr_rollup SET fine=0 WHERE fine=3");
}

/* A day that changes is not read from its pack, and packed again later. */
static void test_unpacked(void **state)
{
	(void)state;
	make(&reports[0], 4711);
	put(&reports[0]);
	key(&reports[0]);
	check();
	count(true);
	check();
	assert_int_equal(number("SELECT count(*) FROM anr_day WHERE pack_ms>0"), 1);
	assert_int_equal(number("SELECT count(*) FROM anr_rollup WHERE fine=2"), 2 * (DAYS - 1));
	pack();
	assert_int_equal(number("SELECT count(*) FROM anr_rollup WHERE fine=2"), 2 * DAYS);
	check();
}

/* Reads as the stage does: days that failed are skipped, others are counted. */
static bool is_failed(void *arg, int64_t day)
{
	return *(unsigned *)arg >> (day - DAY0) & 1U;
}

/* Damaged sums of a day do not delay the days after it, and are made again. */
static void test_damaged(void **state)
{
	struct report *later = &reports[2 * REPORTS / DAYS];
	unsigned failed = 0;
	const struct tw_anr_rollup_due due = {
	        s.project, RULES, (DAY0 + DAYS) * TW_DAY_MS, 1, is_failed, &failed};
	struct tw_anr_rollup_done done = {.more = true};

	(void)state;
	catalogue_run(s.db, "UPDATE anr_rollup SET data=x'ff' WHERE day=20001");
	catalogue_run(s.db, "UPDATE anr_day SET waiting=1 WHERE day=20001");
	catalogue_run(s.db, "UPDATE anr_trace SET rollup_generation=0 WHERE day=20001 AND trace_id="
	                    "(SELECT max(trace_id) FROM anr_trace WHERE day=20001)");
	make(later, 4712);
	put(later);
	key(later);
	while (done.more) {
		enum tw_status st = tw_catalogue_anr_rollup(s.c, &due, &done, NULL);

		assert_true(st == TW_OK || (st == TW_CORRUPT && done.day == DAY0 + 1));
		failed |= st == TW_CORRUPT ? 2U : 0;
		done.more = done.more || st == TW_CORRUPT;
	}
	assert_int_equal(failed, 2);
	assert_int_equal(number("SELECT sum(waiting) FROM anr_day"), 1);
	check();
	failed = 0;
	count(true);
	assert_int_equal(number("SELECT sum(waiting) FROM anr_day"), 0);
	check();
}

/* A day that cannot be packed does not delay the others. */
static void test_not_packed(void **state)
{
	const struct tw_anr_rollup_due due = {s.project, RULES, (DAY0 + 99) * TW_DAY_MS, 1};
	unsigned failures = 0;
	struct tw_anr_rollup_done done = {.more = true};

	(void)state;
	if (catalogue_on_postgres()) /* has triggers of another form */
		skip();
	catalogue_run(s.db, "UPDATE anr_day SET pack_ms=day");
	catalogue_run(s.db, "DELETE FROM anr_rollup WHERE fine=2");
	catalogue_run(s.db, "CREATE TRIGGER refuse BEFORE INSERT ON anr_rollup WHEN new.day=20000"
	                    " BEGIN SELECT raise(ABORT,'refused'); END");
	while (done.more)
		if (tw_catalogue_anr_rollup(s.c, &due, &done, NULL) != TW_OK) {
			failures++;
			assert_true(done.packed);
			assert_int_equal(done.day, DAY0);
		}
	assert_int_equal(failures, 1);
	assert_int_equal(
	        number("SELECT count(DISTINCT day) FROM anr_rollup WHERE fine=2"), DAYS - 1);
	assert_int_equal(number("SELECT pack_ms>0 FROM anr_day WHERE day=20000"), 1);
	catalogue_run(s.db, "DROP TRIGGER refuse");
	check();
	catalogue_run(s.db, "UPDATE anr_day SET pack_ms=1 WHERE day=20000");
	pack();
	assert_int_equal(number("SELECT count(DISTINCT day) FROM anr_rollup WHERE fine=2"), DAYS);
}

static void test_keyed_and_put_again(void **state)
{
	(void)state;
	for (size_t i = 3; i < REPORTS; i += 29) {
		reports[i].group = (reports[i].group + 1) % GROUPS;
		reports[i].locks[0].name = (reports[i].locks[0].name + 3) % NAMES;
		key(&reports[i]);
	}
	check();
	assert_true(number("SELECT count(*) FROM anr_trace h JOIN anr_day d USING (project_id, day)"
	                   " WHERE h.rollup_generation<d.generation") > REPORTS / 2);
	count(true);
	check();
	for (size_t i = 5; i < REPORTS / DAYS; i += 41) { /* of the first day alone */
		make(&reports[i], i + 9999);
		put(&reports[i]);
		key(&reports[i]);
	}
	check();
	add_outdated();
	count(true);
	check();
	assert_int_equal(number("SELECT count(*) FROM anr_rollup t JOIN anr_day d USING"
	                        " (project_id, day) WHERE t.generation<>d.generation"),
	        0);
}

static void test_the_same_bytes_again(void **state)
{
	const uint64_t before = sum_of_bytes();

	(void)state;
	assert_int_equal(tw_catalogue_anr_reset(s.c, s.project, NULL), TW_OK);
	for (size_t i = REPORTS; i-- > 0;) {
		put(&reports[i]);
		key(&reports[i]);
		if (i % 200 == 0)
			count(false);
	}
	count(true);
	check();
	assert_true(sum_of_bytes() == before);
}

static void test_forgotten(void **state)
{
	bool more = true;

	(void)state;
	for (size_t i = 0; i < REPORTS; i++)
		reports[i].gone = reports[i].day < DAY0 + 2;
	for (bool first = true; more; first = false) {
		assert_int_equal(tw_catalogue_anr_expire(s.c, DAY0 + 2, &more, NULL), TW_OK);
		if (!first)
			count(true); /* expired rows are not counted while they are deleted */
	}
	check();
	assert_int_equal(number("SELECT count(*) FROM anr_rollup WHERE day<20002"), 0);
	assert_int_equal(number("SELECT count(*) FROM anr_day"), DAYS - 2);
	assert_int_equal(number("SELECT max(generation) FROM anr_day WHERE day>20002"),
	        number("SELECT min(generation) FROM anr_day WHERE day>20002"));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	bool is_new;

	(void)state;
	s = (struct session){.dir = "/dev/shm/tw-counts-XXXXXX"};
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-counts-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	s.db = catalogue_connect(s.dir);
	s.arena = tw_arena_new((size_t)512 << 20);
	assert_true(sim_rows(s.db, s.project, 0, REPORTS, DAY0));
	for (size_t i = 0; i < REPORTS; i++) {
		make(&reports[i], i);
		(void)snprintf(reports[i].id, sizeof reports[i].id, "01SIM%021u", (unsigned)i);
		reports[i].day = DAY0 + (int64_t)(i * DAYS / REPORTS);
		reports[i].at = (int64_t)(mixed(i + 77) % 80000000);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tw_db_close(s.db);
	s.c = tw_catalogue_close(s.c);
	tw_arena_free(s.arena);
	(void)nftw(s.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted_bit_by_bit),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_unpacked),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_not_packed),
        cmocka_unit_test(test_keyed_and_put_again),
        cmocka_unit_test(test_the_same_bytes_again),
        cmocka_unit_test(test_forgotten),
};

UNIT_TESTS_WITH("catalogue_anr_rollup", tests, setup, teardown)

/* Migrations of the catalogue, by one that only this test has: applied once and as a whole, after a
 * copy, by one of several processes.  Schemas and columns that the program does not know are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/db/catalogue_sqlite.h"
#include "server/db/catalogue_sums.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { AT_ONCE = 4, LARGE_MB = 24, FILE_MOST = 8 << 20, SCHEMAS_MAX = 32 };

/* It shows whether it ran twice. */
#define SECOND                                                                                     \
	"ALTER TABLE project ADD COLUMN motto TEXT NOT NULL DEFAULT 'none';"                       \
	"CREATE TABLE later(n BIGINT NOT NULL); INSERT INTO later VALUES(1);"                      \
	"UPDATE project SET created_ms=created_ms+1;"

struct list {
	struct tw_embedded files[SCHEMAS_MAX];
};

static const struct tw_embedded *current(void)
{
	return catalogue_on_postgres() ? tw_catalogue_postgres_schema : tw_catalogue_schema;
}

/* The program's own migrations. */
static int last(void)
{
	return tw_cat_last_schema(current());
}

/* And one more. */
static struct list schema_with(const char *next)
{
	struct list l = {{{NULL, NULL, 0}}};
	int n = last();

	assert_in_range(n, 1, SCHEMAS_MAX - 2);
	memcpy(l.files, current(), (size_t)n * sizeof *l.files);
	l.files[n] =
	        (struct tw_embedded){"9999_test.sql", (const unsigned char *)next, strlen(next)};
	return l;
}

static enum tw_status upgrade(struct tw_catalogue *c, const struct list *l, struct tw_err *err)
{
	bool same;

	return tw_cat_is_sqlite(c)
	               ? tw_cat_upgrade(c, l->files, TW_SUMS_BYTES, true, err)
	               : tw_postgres_upgrade(c->writers[0].db, l->files, true, &same, err);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

struct place {
	char dir[40];
	struct tw_db *beside;
};

/* A catalogue of this program's schema, with a project. */
static struct tw_catalogue *begin(struct place *p)
{
	struct tw_catalogue *c;

	memcpy(p->dir, "/tmp/tw-upgrade-XXXXXX", sizeof "/tmp/tw-upgrade-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	c = catalogue_in(p->dir);
	p->beside = catalogue_connect(p->dir);
	catalogue_run(p->beside, "INSERT INTO project VALUES('p', 'old', 1, 0)");
	return c;
}

static void end(struct place *p)
{
	tw_db_close(p->beside);
	assert_int_equal(nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void path_in(const struct place *p, const char *name, char ret[64])
{
	(void)snprintf(ret, 64, "%s/%s", p->dir, name);
}

static int64_t version(const struct place *p)
{
	return catalogue_number(p->beside,
	        catalogue_on_postgres() ? "SELECT version FROM catalogue_schema"
	                                : "SELECT user_version FROM pragma_user_version");
}

static void is_upgraded(const struct place *p)
{
	assert_int_equal(version(p), last() + 1);
	assert_int_equal(catalogue_number(p->beside, "SELECT count(*) FROM later"), 1);
	assert_int_equal(catalogue_number(p->beside, "SELECT created_ms FROM project"), 2);
	assert_int_equal(
	        catalogue_number(p->beside, "SELECT count(*) FROM project WHERE motto='none'"), 1);
}

static void every_page_fits(const char *path)
{
	uint8_t *bytes = malloc(FILE_MOST);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, FILE_MOST);

	assert_in_range(n, TW_SUMS_PAGE, FILE_MOST - 1);
	for (ssize_t at = 0; at < n; at += TW_SUMS_PAGE)
		assert_true(tw_sums_fit(bytes + at));
	(void)close(fd);
	free(bytes);
}

/* The way back: the catalogue as it was. */
static void is_copied(const struct place *p)
{
	struct tw_catalogue *c = NULL;
	struct tw_db *db = NULL;
	char name[40], path[64];
	int room = 0;

	if (catalogue_on_postgres())
		return;
	(void)snprintf(name, sizeof name, "catalogue.db.schema-%d", last());
	path_in(p, name, path);
	every_page_fits(path);
	assert_int_equal(tw_catalogue_open(path, &c, NULL), TW_OK);
	(void)tw_catalogue_close(c);
	assert_int_equal(tw_db_sqlite_open(path, TW_DB_WRITE, &db, &room, NULL), TW_OK);
	assert_int_equal(room, TW_SUMS_BYTES);
	assert_int_equal(
	        catalogue_number(db, "SELECT user_version FROM pragma_user_version"), last());
	assert_int_equal(catalogue_number(db, "SELECT created_ms FROM project"), 1);
	tw_db_close(db);
}

static void test_applied_after_a_copy(void **state)
{
	const struct list two = schema_with(SECOND);
	char address[CATALOGUE_ADDRESS], refusal[160];
	struct tw_err err = {.msg = ""};
	struct place p;
	struct tw_catalogue *c = begin(&p);

	(void)state;
	assert_int_equal(version(&p), last());
	assert_int_equal(upgrade(c, &two, &err), TW_OK);
	is_upgraded(&p);
	is_copied(&p);
	assert_int_equal(upgrade(c, &two, &err), TW_OK);
	is_upgraded(&p);
	(void)tw_catalogue_close(c);

	/* for this program it is a newer one */
	catalogue_address(p.dir, address);
	c = NULL;
	assert_int_equal(tw_catalogue_open(address, &c, &err), TW_UNSUPPORTED);
	(void)snprintf(refusal, sizeof refusal,
	        "the catalogue has schema %d, this program knows up to %d: it was written by a "
	        "newer tracewell, or by one before the first release",
	        last() + 1, last());
	assert_string_equal(err.msg, refusal);
	is_upgraded(&p);
	end(&p);
}

static void test_all_of_it_or_nothing(void **state)
{
	const struct list broken = schema_with(SECOND "INSERT INTO no_such_table VALUES(1);");
	const struct list two = schema_with(SECOND);
	struct tw_err err = {.msg = ""};
	struct place p;
	struct tw_catalogue *c = begin(&p);

	(void)state;
	assert_int_not_equal(upgrade(c, &broken, &err), TW_OK);
	assert_non_null(strstr(err.msg, "no_such_table"));
	assert_int_equal(version(&p), last());
	assert_int_equal(catalogue_number(p.beside, "SELECT created_ms FROM project"), 1);
	assert_int_equal(upgrade(c, &two, &err), TW_OK);
	is_upgraded(&p);
	(void)tw_catalogue_close(c);
	end(&p);
}

static void *upgrade_too(void *arg)
{
	const struct list two = schema_with(SECOND);

	return (void *)(intptr_t)upgrade(arg, &two, NULL);
}

static void test_once_by_several(void **state)
{
	struct place p;
	struct tw_catalogue *c[AT_ONCE] = {begin(&p)};
	pthread_t threads[AT_ONCE];

	(void)state;
	for (int i = 1; i < AT_ONCE; i++)
		c[i] = catalogue_in(p.dir);
	for (int i = 0; i < AT_ONCE; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, upgrade_too, c[i]), 0);
	for (int i = 0; i < AT_ONCE; i++) {
		void *st = NULL;

		assert_int_equal(pthread_join(threads[i], &st), 0);
		assert_int_equal((intptr_t)st, TW_OK);
	}
	is_upgraded(&p);
	is_copied(&p);
	for (int i = 0; i < AT_ONCE; i++)
		(void)tw_catalogue_close(c[i]);
	end(&p);
}

static void test_a_large_one_is_not_read_into_memory(void **state)
{
	const struct list two = schema_with(SECOND);
	struct place p;
	struct tw_catalogue *c;

	(void)state;
	unit_needs(!catalogue_on_postgres(), "SQLite");
	c = begin(&p);
	catalogue_run(p.beside, "CREATE TABLE large(bytes BLOB)");
	for (int i = 0; i < LARGE_MB; i++)
		catalogue_run(p.beside, "INSERT INTO large VALUES(randomblob(1000000))");
	(void)sqlite3_memory_highwater(true);
	assert_int_equal(upgrade(c, &two, NULL), TW_OK);
	assert_in_range(sqlite3_memory_highwater(false), 1, LARGE_MB / 3 << 20);
	is_upgraded(&p);
	assert_int_equal(catalogue_number(p.beside, "SELECT count(*) FROM large"), LARGE_MB);
	(void)tw_catalogue_close(c);
	end(&p);
}

static void refused(const struct place *p, const char *words)
{
	char address[CATALOGUE_ADDRESS];
	struct tw_catalogue *c = NULL;
	struct tw_err err = {.msg = ""};

	catalogue_address(p->dir, address);
	assert_int_equal(tw_catalogue_open(address, &c, &err), TW_UNSUPPORTED);
	assert_non_null(strstr(err.msg, words));
	assert_int_equal(catalogue_number(p->beside, "SELECT count(*) FROM project"), 1);
}

static void test_unknown_schemas_are_refused(void **state)
{
	static const char *const none[] = {"PRAGMA user_version=0", "PRAGMA user_version=-1"};
	static const char *const none_there[] = {
	        "UPDATE catalogue_schema SET version=0", "UPDATE catalogue_schema SET version=-1"};
	const bool there = catalogue_on_postgres();
	struct place p;

	(void)state;
	(void)tw_catalogue_close(begin(&p));
	for (int i = 0; i < 2; i++) {
		catalogue_run(p.beside, there ? none_there[i] : none[i]);
		refused(&p, "no schema number");
	}
	catalogue_run(p.beside,
	        there ? "UPDATE catalogue_schema SET version=99" : "PRAGMA user_version=99");
	refused(&p, "has schema 99, this program knows up to");
	assert_int_equal(version(&p), 99);
	end(&p);
}

/* The same number as this program's, but other columns: statements would fail one by one. */
static void test_other_columns_are_refused(void **state)
{
	struct place p;
	char address[CATALOGUE_ADDRESS];
	struct tw_catalogue *c = NULL;

	(void)state;
	(void)tw_catalogue_close(begin(&p));
	if (catalogue_on_postgres()) /* as that version stores it */
		catalogue_run(p.beside, "COMMENT ON TABLE catalogue_schema IS 'other columns'");
	catalogue_run(p.beside, "ALTER TABLE alert_rule RENAME COLUMN method TO way");
	refused(&p, "the catalogue has an unknown column way in table alert_rule: another "
	            "development version wrote it");
	catalogue_run(p.beside, "ALTER TABLE alert_rule DROP COLUMN way");
	refused(&p, "the catalogue lacks column method in table alert_rule");
	catalogue_run(
	        p.beside, "ALTER TABLE alert_rule ADD COLUMN method TEXT NOT NULL DEFAULT ''");
	catalogue_run(p.beside, "ALTER TABLE signin_used RENAME TO other");
	refused(&p, "in table signin_used");
	catalogue_run(p.beside, "ALTER TABLE other RENAME TO signin_used");
	catalogue_run(p.beside, "CREATE TABLE of_the_operator(n BIGINT)");
	catalogue_address(p.dir, address);
	assert_int_equal(tw_catalogue_open(address, &c, NULL), TW_OK);
	(void)tw_catalogue_close(c);
	end(&p);
}

/* A command of a newer version must not change the schema of a server that is running. */
static void test_a_command_does_not_migrate(void **state)
{
	const struct list two = schema_with(SECOND);
	char refusal[160];
	struct tw_err err = {.msg = ""};
	struct place p;
	struct tw_catalogue *c = begin(&p);
	bool same;

	(void)state;
	assert_int_equal(
	        tw_cat_is_sqlite(c)
	                ? tw_cat_upgrade(c, two.files, TW_SUMS_BYTES, false, &err)
	                : tw_postgres_upgrade(c->writers[0].db, two.files, false, &same, &err),
	        TW_CONFLICT);
	(void)snprintf(refusal, sizeof refusal,
	        "the catalogue has schema %d, this program needs %d: start its server, which "
	        "migrates the catalogue, or use the version that wrote it",
	        last(), last() + 1);
	assert_string_equal(err.msg, refusal);
	assert_int_equal(version(&p), last());
	(void)tw_catalogue_close(c);
	end(&p);
}

/* In PostgreSQL the servers' locks exclude the migration; once their sessions have ended, it is
 * done, and they cannot write again. */
static void test_not_under_servers(void **state)
{
	const struct list two = schema_with(SECOND);
	struct tw_err err = {.msg = ""};
	struct place p;
	struct tw_catalogue *old, *c;
	struct tw_db *w = NULL;
	bool served = false, leads = true;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	old = begin(&p);
	c = catalogue_in(p.dir);
	assert_int_equal(tw_catalogue_serve(old, true, &err), TW_OK);
	assert_int_equal(upgrade(c, &two, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "stop all of them, then start this one"));
	assert_int_equal(version(&p), last());
	assert_int_equal(tw_catalogue_ping(old, &err), TW_OK);

	catalogue_run(p.beside,
	        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype='advisory' AND"
	        " classid=1953977199 AND objid=(SELECT"
	        " hashtext(identity)::bigint & 4294967295 FROM catalogue_identity)::oid");
	assert_int_equal(upgrade(c, &two, &err), TW_OK);
	is_upgraded(&p);
	assert_int_equal(tw_cat_begin(old, TW_SUBJECT_NONE, "", &w, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "a newer version has migrated it, stop this server"));
	assert_int_equal(tw_catalogue_writes(old, NULL), TW_BUSY);
	assert_int_equal(tw_catalogue_take_lease(old, "w", "old", 60000, &leads, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "a newer version has migrated it, stop this server"));
	assert_false(leads);
	assert_int_equal(catalogue_number(p.beside, "SELECT count(*) FROM catalogue_lead"), 0);
	assert_int_equal(tw_catalogue_is_served(c, &served, &err), TW_OK);
	assert_false(served); /* it does not keep the lock */
	(void)tw_catalogue_close(old);
	(void)tw_catalogue_close(c);
	end(&p);
}

/* A server that opened the catalogue before the migration and serves it afterwards. */
static void test_migrated_before_it_serves(void **state)
{
	const struct list two = schema_with(SECOND);
	struct tw_err err = {.msg = ""};
	struct place p;
	struct tw_catalogue *old[2], *c;

	(void)state;
	unit_needs(catalogue_on_postgres(), "PostgreSQL");
	old[0] = begin(&p);
	old[1] = catalogue_in(p.dir);
	c = catalogue_in(p.dir);
	assert_int_equal(upgrade(c, &two, &err), TW_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tw_catalogue_serve(old[i], i == 1, &err), TW_BUSY);
		assert_string_equal(
		        err.msg, "catalogue: a newer version has migrated it, stop this server");
		(void)tw_catalogue_close(old[i]);
	}
	(void)tw_catalogue_close(c);
	end(&p);
}

/* Returns the process that has the lock of a server until it is killed. */
static pid_t hold(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int ready[2];
	char held = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		held = fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
		(void)!write(ready[1], &held, 1);
		(void)alarm(120);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &held, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_true(held);
	return pid;
}

/* A newer version must not change the schema of a server that is running. */
static void test_not_while_another_server_runs(void **state)
{
	char dir[] = "/tmp/tw-upgrade-XXXXXX", path[64], lock[80];
	struct tw_catalogue *c = NULL;
	struct tw_err err = {.msg = ""};
	pid_t other;

	(void)state;
	if (catalogue_on_postgres())
		return;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/catalogue.db", dir);
	(void)snprintf(lock, sizeof lock, "%s.lock", path);
	other = hold(lock);
	assert_int_equal(tw_catalogue_open_to_serve(path, &c, &err), TW_BUSY);
	assert_non_null(strstr(err.msg, "a server or backup uses this data folder"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(tw_catalogue_open_to_serve(path, &c, &err), TW_OK);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(tw_catalogue_serve(c, false, &err), TW_OK);
	(void)tw_catalogue_close(c);
	assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_applied_after_a_copy),
        cmocka_unit_test(test_not_while_another_server_runs),
        cmocka_unit_test(test_a_command_does_not_migrate),
        cmocka_unit_test(test_not_under_servers),
        cmocka_unit_test(test_migrated_before_it_serves),
        cmocka_unit_test(test_all_of_it_or_nothing),
        cmocka_unit_test(test_once_by_several),
        cmocka_unit_test(test_a_large_one_is_not_read_into_memory),
        cmocka_unit_test(test_unknown_schemas_are_refused),
        cmocka_unit_test(test_other_columns_are_refused),
};

UNIT_TESTS("catalogue_upgrade", tests)

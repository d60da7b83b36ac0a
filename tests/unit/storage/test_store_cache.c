/* The cache of files in object storage: fetched once for concurrent requests, bounded, least
 * recently used evicted first, intact after a restart; and claims, which serialise deletion and
 * storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/storage/blob_int.h"
#include "server/storage/store_cache.h"
#include "tests/unit/unit.h"

enum { KIB = 1024, ASKERS = 6 };

struct dir {
	char path[64];
	struct tw_cache *cache;
};

static void open_dir(struct dir *d, uint64_t bytes)
{
	(void)snprintf(d->path, sizeof d->path, "/tmp/tw_cache_XXXXXX");
	assert_non_null(mkdtemp(d->path));
	assert_int_equal(tw_cache_open(d->path, bytes, 0, &d->cache, NULL), TW_OK);
}

static unsigned count_files(const struct dir *d)
{
	DIR *folder = opendir(d->path);
	unsigned n = 0;
	struct dirent *e;

	while ((e = readdir(folder)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(folder);
	return n;
}

static void close_dir(struct dir *d)
{
	char command[96];

	assert_null(tw_cache_close(d->cache));
	(void)snprintf(command, sizeof command, "rm -rf %s", d->path);
	assert_int_equal(system(command), 0);
}

/* --- filling --- */

struct source {
	struct dir *dir;
	const char *name;
	char letter;
	_Atomic unsigned fetched;
	uint64_t shared;   /* number of waiting requests after which a fetch ends */
	_Atomic bool ends; /* a fetch ends immediately */
	enum tw_status fails;
	bool drop; /* while it is fetched */
};

static struct tw_cache_stats stats(struct dir *d)
{
	struct tw_cache_stats s;

	tw_cache_stats(d->cache, &s);
	return s;
}

static enum tw_status fill(void *arg, const char *key, int fd, struct tw_err *err)
{
	struct source *s = arg;
	char text[KIB];

	assert_string_equal(key, s->name);
	(void)atomic_fetch_add(&s->fetched, 1);
	while (!s->ends && stats(s->dir).shared < s->shared)
		(void)usleep(1000);
	if (s->drop)
		tw_cache_drop(s->dir->cache, s->name);
	if (s->fails != TW_OK)
		return tw_fail(err, s->fails, "away");
	memset(text, s->letter, sizeof text);
	return write(fd, text, sizeof text) == KIB ? TW_OK : TW_IO;
}

static enum tw_status ask_by(struct source *s, int64_t until_ms, int *ret_fd)
{
	const struct tw_cache_request request = {s->name, s->name, fill, s, until_ms};

	return tw_cache_get(s->dir->cache, &request, ret_fd, NULL);
}

static enum tw_status get(struct source *s)
{
	char text[KIB + 1];
	int fd = -1;
	enum tw_status st = ask_by(s, 0, &fd);

	if (st != TW_OK)
		return st;
	assert_int_equal(read(fd, text, sizeof text), KIB);
	assert_int_equal(text[0], s->letter);
	assert_int_equal(text[KIB - 1], s->letter);
	(void)close(fd);
	return TW_OK;
}

static void the_longest_unused_goes_first(void **state)
{
	struct dir d;
	struct source a, b, c;

	(void)state;
	open_dir(&d, (uint64_t)2 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	b = (struct source){.dir = &d, .name = "b", .letter = 'b'};
	c = (struct source){.dir = &d, .name = "c", .letter = 'c'};
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(get(&b), TW_OK);
	assert_int_equal(get(&a), TW_OK); /* b is the older now */
	assert_int_equal(get(&c), TW_OK);
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(get(&b), TW_OK);
	assert_int_equal(a.fetched, 1);
	assert_int_equal(b.fetched, 2);
	assert_int_equal(stats(&d).files, 2);
	assert_int_equal(stats(&d).bytes, 2 * KIB);
	assert_int_equal(stats(&d).evicted, 2);
	assert_int_equal(count_files(&d), 2);
	close_dir(&d);
}

static void an_open_file_stays_readable(void **state)
{
	struct dir d;
	struct source a;
	char text[KIB];
	int fd = -1;

	(void)state;
	open_dir(&d, (uint64_t)4 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	assert_int_equal(ask_by(&a, 0, &fd), TW_OK);
	tw_cache_drop(d.cache, "a");
	assert_int_equal(count_files(&d), 0);
	assert_int_equal(read(fd, text, sizeof text), KIB);
	(void)close(fd);
	close_dir(&d);
}

static void what_is_larger_than_all_is_given_and_not_kept(void **state)
{
	struct dir d;
	struct source a;

	(void)state;
	open_dir(&d, 100);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(a.fetched, 2);
	assert_int_equal(count_files(&d), 0);
	close_dir(&d);
}

static void what_changes_while_it_is_fetched_is_not_kept(void **state)
{
	struct dir d;
	struct source a;

	(void)state;
	open_dir(&d, (uint64_t)4 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a', .drop = true};
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(count_files(&d), 0);
	a.fails = TW_BUSY;
	assert_int_equal(get(&a), TW_BUSY);
	assert_int_equal(count_files(&d), 0);
	close_dir(&d);
}

static void *request(void *arg)
{
	return get(arg) == TW_OK ? arg : NULL;
}

static unsigned ask_at_once(struct source *s)
{
	pthread_t threads[ASKERS];
	unsigned well = 0;
	void *answer;

	for (size_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, request, s), 0);
	for (size_t i = 0; i < ASKERS; i++) {
		(void)pthread_join(threads[i], &answer);
		well += answer != NULL;
	}
	return well;
}

static void many_who_ask_at_once_fetch_once(void **state)
{
	struct dir d;
	struct source a;

	(void)state;
	open_dir(&d, 100); /* also when it is not kept */
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	a.shared = ASKERS - 1;
	assert_int_equal(ask_at_once(&a), ASKERS);
	assert_int_equal(a.fetched, 1);
	a.shared += ASKERS - 1;
	a.fails = TW_BUSY;
	assert_int_equal(ask_at_once(&a), 0);
	assert_int_equal(a.fetched, 2);
	close_dir(&d);
}

static void touch(const struct dir *d, const char *name, time_t used)
{
	const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
	char path[96];

	(void)snprintf(path, sizeof path, "%s/%s", d->path, name);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_restart_keeps_what_is_whole(void **state)
{
	struct dir d;
	struct source a, b;
	char path[96];

	(void)state;
	open_dir(&d, (uint64_t)2 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	b = (struct source){.dir = &d, .name = "b", .letter = 'b'};
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(get(&b), TW_OK);
	assert_null(tw_cache_close(d.cache));
	touch(&d, "b", 1000);
	touch(&d, "a", 2000);
	(void)snprintf(path, sizeof path, "%s/.fill-0", d.path);
	(void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(tw_cache_open(d.path, KIB, 0, &d.cache, NULL), TW_OK); /* smaller now */
	assert_int_equal(count_files(&d), 1);
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(a.fetched, 1);
	close_dir(&d);
}

static void a_file_is_taken_in(void **state)
{
	struct dir d;
	struct source a;
	char path[96];
	int fd;

	(void)state;
	open_dir(&d, (uint64_t)4 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	assert_int_equal(get(&a), TW_OK);
	(void)snprintf(path, sizeof path, "%s/.new", d.path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	a.letter = 'n';
	assert_int_equal(fill(&a, "a", fd, NULL), TW_OK);
	(void)close(fd);
	tw_cache_take(d.cache, "a", path);
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(stats(&d).bytes, KIB);
	assert_int_equal(count_files(&d), 1);
	close_dir(&d);
}

static void who_cannot_wait_finds_it_later(void **state)
{
	struct dir d;
	struct source a;
	int fd = -1;

	(void)state;
	open_dir(&d, (uint64_t)4 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a', .shared = 1};
	assert_int_equal(ask_by(&a, tw_monotonic_ms() + 1, &fd), TW_BUSY);
	assert_int_equal(get(&a), TW_OK);
	assert_int_equal(ask_by(&a, tw_monotonic_ms() + 1, &fd), TW_OK); /* it is here */
	(void)close(fd);
	assert_int_equal(a.fetched, 1);
	tw_cache_drop(d.cache, "a");
	a.shared = 2;
	assert_int_equal(ask_by(&a, tw_monotonic_ms() + 1, &fd), TW_BUSY);
	a.ends = true;
	close_dir(&d); /* with a fetch in progress */
}

static void it_yields_where_the_disk_is_short(void **state)
{
	struct dir d;
	struct source a;

	(void)state;
	open_dir(&d, (uint64_t)4 * KIB);
	a = (struct source){.dir = &d, .name = "a", .letter = 'a'};
	assert_int_equal(get(&a), TW_OK);
	assert_true(tw_cache_yield(d.cache));
	assert_int_equal(stats(&d).files, 1);
	assert_null(tw_cache_close(d.cache));
	assert_int_equal(tw_cache_open(d.path, (uint64_t)4 * KIB, 101, &d.cache, NULL), TW_OK);
	assert_int_equal(stats(&d).files, 1);
	assert_false(tw_cache_yield(d.cache)); /* no disk is as free as that */
	assert_int_equal(stats(&d).files, 0);
	assert_int_equal(get(&a), TW_OK); /* given, and not kept */
	assert_int_equal(count_files(&d), 0);
	close_dir(&d);
}

static void put_files_are_not_deleted(void **state)
{
	struct tw_key_claims *c = tw_key_claims_new();

	(void)state;
	assert_non_null(c);
	assert_int_equal(tw_claim(c, "k", NULL), TW_OK);
	assert_int_equal(tw_claim(c, "k", NULL), TW_OK);
	assert_false(tw_claim_exclusive(c, "k"));
	assert_true(tw_claim_exclusive(c, "other"));
	assert_false(tw_claim_exclusive(c, "other"));
	tw_claim_exclusive_end(c, "other");
	tw_claim_end(c, "k", 0);
	assert_false(tw_claim_exclusive(c, "k"));
	tw_claim_end(c, "k", 0);
	assert_true(tw_claim_exclusive(c, "k"));
	tw_claim_exclusive_end(c, "k");
	assert_int_equal(tw_claim(c, "k", NULL), TW_OK);
	tw_claim_end(c, "k", 60000); /* it lingers */
	assert_false(tw_claim_exclusive(c, "k"));
	assert_null(tw_key_claims_free(c));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_unused_goes_first),
        cmocka_unit_test(an_open_file_stays_readable),
        cmocka_unit_test(what_is_larger_than_all_is_given_and_not_kept),
        cmocka_unit_test(what_changes_while_it_is_fetched_is_not_kept),
        cmocka_unit_test(many_who_ask_at_once_fetch_once),
        cmocka_unit_test(a_restart_keeps_what_is_whole),
        cmocka_unit_test(a_file_is_taken_in),
        cmocka_unit_test(who_cannot_wait_finds_it_later),
        cmocka_unit_test(it_yields_where_the_disk_is_short),
        cmocka_unit_test(put_files_are_not_deleted),
};

UNIT_TESTS("store_cache", tests)

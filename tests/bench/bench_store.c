/*
 * bench_store.c - durable uploads of 64 KiB, by the code that ends one in the server
 * (commit_upload.h), compared with simple loops in the same data folder.
 *
 * The short loop writes, fsyncs and renames: after a power cut a file may have its old name.  The
 * durable loop also syncs the folder, as an upload does, whose row is committed in parallel.  The
 * three take turns, in short rounds, because other work on the disk changes the cost of a sync from
 * one second to the next.
 *
 *   bench_store [FOLDER] [COUNT]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/ingest/commit_upload.h"
#include "server/storage/blob.h"

enum { BYTES = 65536, THREADS_MAX = 16, ROUNDS = 10 };

struct bench {
	const struct tw_commit_parts *to;
	struct tw_caller caller;
	const char *dir;
	int count;
	int number; /* of the thread, and of the round above it */
};

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(enum tw_status st, const struct tw_err *err)
{
	if (st == TW_OK)
		return;
	(void)fprintf(stderr, "bench_store: %s\n", err->msg);
	exit(1);
}

static void fill(uint8_t *p, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= BYTES; i += 8) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memcpy(p + i, &seed, 8);
	}
}

static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) != 0 || close(fd) != 0)
		exit(1);
}

static void bare(const struct bench *b, bool durable)
{
	uint8_t data[BYTES];

	for (int i = 0; i < b->count; i++) {
		char from[512];
		char folder[512];
		char to[600];
		int fd;

		fill(data, (uint64_t)b->number << 32 | (uint64_t)i);
		(void)snprintf(from, sizeof from, "%s/spool/bare-%d-%d", b->dir, b->number, i);
		(void)snprintf(folder, sizeof folder, "%s/blobs/%02x", b->dir, data[2]);
		(void)snprintf(to, sizeof to, "%s/bare-%d-%d-%d", folder, b->number, i, durable);
		fd = open(from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, data, BYTES) != BYTES || fsync(fd) != 0 || close(fd) != 0 ||
		        rename(from, to) != 0)
			exit(1);
		if (durable)
			sync_folder(folder);
	}
}

static void *bare_short(void *arg)
{
	bare(arg, false);
	return NULL;
}

static void *bare_durable(void *arg)
{
	bare(arg, true);
	return NULL;
}

static void *upload(void *arg)
{
	struct bench *b = arg;
	const struct tw_trace_meta meta = {.app = "bench", .build_id = "b1"};
	struct tw_upload_part part = {.name = "trace", .format = ""};
	const struct tw_upload up = {
	        .caller = &b->caller, .key = "", .meta = &meta, .parts = &part, .n_parts = 1};
	uint8_t data[BYTES];
	struct tw_err err;

	for (int i = 0; i < b->count; i++) {
		char id[TW_ID_BYTES];
		bool fresh;

		fill(data, (uint64_t)b->number << 32 | (uint64_t)i | UINT64_C(1) << 60);
		check(tw_blob_begin(b->to->blobs, BYTES, &part.writer, &err), &err);
		check(tw_blob_write(part.writer, data, BYTES, &err), &err);
		check(tw_commit_upload(b->to, &up, id, &fresh, &err), &err);
	}
	return NULL;
}

static double run(const struct bench *b, int threads, void *(*what)(void *))
{
	pthread_t t[THREADS_MAX];
	struct bench each[THREADS_MAX];
	double start = seconds();

	for (int i = 0; i < threads; i++) {
		each[i] = *b;
		each[i].number += i;
		if (pthread_create(&t[i], NULL, what, &each[i]) != 0)
			exit(1);
	}
	for (int i = 0; i < threads; i++)
		(void)pthread_join(t[i], NULL);
	return seconds() - start;
}

int main(int argc, char **argv)
{
	static const int threads[] = {1, 4, 16};
	char dir[] = "/tmp/bench_store-XXXXXX";
	char path[600];
	struct tw_commit_parts to = {0};
	struct bench b = {.to = &to, .count = argc > 2 ? argv[2][0] * 100 - '0' * 100 : 200};
	struct tw_err err;
	bool fresh;

	b.dir = argc > 1 ? argv[1] : mkdtemp(dir);
	check(tw_blobs_open(b.dir, 0, &to.blobs, &err), &err);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", b.dir);
	check(tw_catalogue_open(path, &to.catalogue, &err), &err);
	check(tw_catalogue_project(to.catalogue, "bench", b.caller.project_id, &fresh, &err), &err);
	/* a server's log of the catalogue has its full size after a few hundred uploads */
	b.number = 100000;
	(void)run(&b, THREADS_MAX, upload);
	b.count /= ROUNDS;
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		double many = (double)ROUNDS * b.count * threads[i];
		double plain = 0;
		double durable = 0;
		double ours = 0;

		for (int round = 0; round < ROUNDS; round++) {
			b.number = (int)(1000 * (i + 1)) + 16 * round;
			plain += run(&b, threads[i], bare_short);
			durable += run(&b, threads[i], bare_durable);
			ours += run(&b, threads[i], upload);
		}
		(void)printf("%2d at once: write+fsync+rename %.0f/s, and fsync of the folder "
		             "%.0f/s, durable upload with row %.0f/s = %.2f x and %.2f x\n",
		        threads[i], many / plain, many / durable, many / ours, plain / ours,
		        durable / ours);
	}
	tw_catalogue_close(to.catalogue);
	tw_blobs_close(to.blobs);
	(void)printf("left in %s\n", b.dir);
	return 0;
}

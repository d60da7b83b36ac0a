/*
 * bench_store.c - durable uploads of 64 KiB: blob and catalogue row, as the server makes them,
 * beside a bare loop of write, fsync and rename in the same folder.
 *
 * An upload waits for three syncs (its file, the file's folder, the catalogue's log, the last one
 * shared with what comes at once), the bare loop for one: it does not sync the folder, so what it
 * renamed may have its old name after a power cut.  The two take turns, in short rounds, because
 * other work on the disk changes what a sync costs from one second to the next.
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

#include "blob.h"
#include "catalogue.h"

enum { BYTES = 65536, THREADS_MAX = 16, ROUNDS = 10 };

struct bench {
	struct tw_blobs *blobs;
	struct tw_catalogue *catalogue;
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

static void *bare(void *arg)
{
	const struct bench *b = arg;
	uint8_t data[BYTES];

	for (int i = 0; i < b->count; i++) {
		char from[512];
		char to[512];
		int fd;

		fill(data, (uint64_t)b->number << 32 | (uint64_t)i);
		(void)snprintf(from, sizeof from, "%s/bare-%d.tmp", b->dir, b->number);
		(void)snprintf(to, sizeof to, "%s/bare-%d-%d", b->dir, b->number, i);
		fd = open(from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, data, BYTES) != BYTES || fsync(fd) != 0 || close(fd) != 0 ||
		        rename(from, to) != 0)
			exit(1);
	}
	return NULL;
}

static void *upload(void *arg)
{
	const struct bench *b = arg;
	const struct tw_trace_meta meta = {.app = "bench", .build_id = "b1"};
	uint8_t data[BYTES];
	struct tw_err err;

	for (int i = 0; i < b->count; i++) {
		struct tw_part part = {.part = "trace", .format = ""};
		struct tw_blob_writer *w = NULL;
		char sha[TW_SHA256_HEX];
		char id[TW_ID_BYTES];
		bool fresh;

		fill(data, (uint64_t)b->number << 32 | (uint64_t)i | UINT64_C(1) << 60);
		check(tw_blob_begin(b->blobs, BYTES, &w, &err), &err);
		check(tw_blob_write(w, data, BYTES, &err), &err);
		check(tw_blob_commit(w, sha, &part.bytes, &err), &err);
		part.sha256 = sha;
		check(tw_catalogue_trace_add(
		              b->catalogue, &b->caller, "", &meta, &part, 1, id, &fresh, &err),
		        &err);
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
	struct bench b = {.count = argc > 2 ? argv[2][0] * 100 - '0' * 100 : 200};
	struct tw_err err;
	bool fresh;

	b.dir = argc > 1 ? argv[1] : mkdtemp(dir);
	check(tw_blobs_open(b.dir, 0, &b.blobs, &err), &err);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", b.dir);
	check(tw_catalogue_open(path, &b.catalogue, &err), &err);
	check(tw_catalogue_project(b.catalogue, "bench", b.caller.project_id, &fresh, &err), &err);
	/* a server's log of the catalogue has its full size after a few hundred uploads */
	b.number = 100000;
	(void)run(&b, THREADS_MAX, upload);
	b.count /= ROUNDS;
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		double many = (double)ROUNDS * b.count * threads[i];
		double plain = 0;
		double ours = 0;

		for (int round = 0; round < ROUNDS; round++) {
			b.number = (int)(1000 * (i + 1)) + 16 * round;
			plain += run(&b, threads[i], bare);
			ours += run(&b, threads[i], upload);
		}
		(void)printf("%2d at once: write+fsync+rename %.0f/s, durable upload with row "
		             "%.0f/s = %.2f x\n",
		        threads[i], many / plain, many / ours, plain / ours);
	}
	tw_catalogue_close(b.catalogue);
	tw_blobs_close(b.blobs);
	(void)printf("left in %s\n", b.dir);
	return 0;
}

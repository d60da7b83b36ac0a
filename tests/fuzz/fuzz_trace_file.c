/* A trace file with some of its bytes changed: opened and read through, or refused.  Input: groups
 * of three bytes place and one byte value; a place with its top bit set cuts the file there. */
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <stdio.h>

#include "fuzz.h"
#include "tests/fixtures/trace_fixture.h"

enum { MOST = 1 << 20, MAX_CHANGES = 64 };

static uint8_t original[MOST], changed[MOST];
static size_t original_len;

static void make_original(void)
{
	struct model_shape shape = {11, 2, 20000, 20, false}; /* stored uncompressed */
	struct trace_fixture f;
	struct model m;
	FILE *file;

	model_make(&m, &shape);
	FUZZ_CHECK(trace_fixture_make(&f, &m) == TW_OK);
	file = fopen(f.path, "rbe");
	FUZZ_CHECK(file);
	original_len = fread(original, 1, MOST, file);
	FUZZ_CHECK(original_len > 0 && original_len < MOST);
	(void)fclose(file);
	trace_fixture_done(&f);
	model_done(&m);
}

static void read_thread(struct tw_trace_file *f, uint32_t thread_id, struct tw_arena *a)
{
	const struct tw_chunk_row *rows;
	struct tw_tree tree;
	struct tw_chunk c;
	uint32_t n = 0;

	tw_chunk_init(&c);
	if (tw_trace_file_chunks(f, thread_id, &rows, &n, NULL) != TW_OK)
		n = 0;
	for (uint32_t i = 0; i < n && i < 16; i++)
		if (tw_trace_file_chunk(f, &rows[i], &c, NULL) == TW_OK)
			FUZZ_CHECK(c.n <= TW_CHUNK_SLICES);
	if (tw_trace_file_tree(f, thread_id, a, &tree, NULL) == TW_OK)
		FUZZ_CHECK(tree.n > 0);
	tw_chunk_done(&c);
}

static void read_through(const char *path)
{
	struct tw_arena *a = tw_arena_new(256 << 20);
	struct tw_trace_file *f = NULL;

	if (a && tw_trace_file_open(path, &f, NULL) == TW_OK) {
		const struct tw_thread_info *threads;
		const struct tw_method_info *methods;
		uint32_t n_threads, n;

		threads = tw_trace_file_threads(f, &n_threads);
		if (tw_trace_file_methods(f, &methods, &n, NULL) == TW_OK)
			FUZZ_CHECK(methods || n == 0);
		(void)tw_trace_file_repairs(f, &n);
		for (uint32_t i = 0; i < n_threads && i < 16; i++)
			read_thread(f, threads[i].thread_id, a);
	}
	tw_trace_file_close(f);
	tw_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len;
	char path[40];
	int fd;

	if (original_len == 0)
		make_original();
	len = original_len;
	memcpy(changed, original, len);
	for (size_t i = 0; i + 4 <= size && i < 4 * (size_t)MAX_CHANGES; i += 4) {
		size_t at = (size_t)(data[i] & 0x7F) << 16 | (size_t)data[i + 1] << 8 | data[i + 2];

		at %= original_len;
		changed[at] = data[i + 3];
		if (data[i] & 0x80)
			len = at;
	}
	fd = memfd_create("trace", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && write(fd, changed, len) == (ssize_t)len);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	read_through(path);
	(void)close(fd);
	return 0;
}

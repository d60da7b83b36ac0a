/*
 * perfetto_truth.c - threads and methods of a Perfetto file, in the form of the
 * simulated phone's truth.json: `tracewell-perfetto-truth FILE`.  Reads with the tests' own reader.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures/perfetto_reader.h"

enum { MAX_METHODS = 1 << 14, MAX_THREADS = 256, MAX_DEPTH = 1024, MAX_FILE = 512 << 20 };

struct method {
	struct tw_str name;
	uint64_t count;
	int64_t sum_ns, self_ns, max_ns;
};

struct thread {
	int64_t tid;
	uint64_t slices, roots;
	uint32_t max_depth;
	struct method *open[MAX_DEPTH]; /* by depth: of the last slice there */
};

static struct method methods[MAX_METHODS]; /* hashed by name */
static struct thread threads[MAX_THREADS];
static size_t n_threads;

static void give_up(const char *why)
{
	(void)fprintf(stderr, "tracewell-perfetto-truth: %s\n", why);
	exit(1);
}

static struct method *method_of(struct tw_str name)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (unsigned char)name.ptr[i]) * 1099511628211u;
	for (size_t i = 0; i < MAX_METHODS; i++) {
		struct method *m = &methods[(hash + i) % MAX_METHODS];

		if (m->count == 0)
			m->name = name;
		if (m->count == 0 || tw_str_eq(m->name, name))
			return m;
	}
	give_up("too many methods");
	return NULL;
}

static struct thread *thread_of(int64_t tid)
{
	for (size_t i = 0; i < n_threads; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	if (n_threads == MAX_THREADS)
		give_up("too many threads");
	threads[n_threads].tid = tid;
	return &threads[n_threads++];
}

static void add(const struct perfetto_slice *s)
{
	struct thread *t = thread_of(s->tid);
	struct method *m = method_of(s->name);
	int64_t dur = s->end_ns - s->begin_ns;

	if (s->end_ns < 0 || s->depth >= MAX_DEPTH)
		give_up("a slice never ends, or is too deep");
	t->slices++;
	t->roots += s->depth == 0;
	if (s->depth + 1 > t->max_depth)
		t->max_depth = s->depth + 1;
	t->open[s->depth] = m;
	m->count++;
	m->sum_ns += dur;
	m->self_ns += dur;
	if (dur > m->max_ns)
		m->max_ns = dur;
	if (s->depth > 0)
		t->open[s->depth - 1]->self_ns -= dur;
}

static void print_all(const struct perfetto_trace *p)
{
	const char *comma = "";

	printf("{\"errors\":%u,\"slices\":%zu,\n\"threads\":{", perfetto_errors(p), p->n);
	for (size_t i = 0; i < n_threads; i++)
		printf("%s\"%" PRId64 "\":{\"slices\":%" PRIu64 ",\"roots\":%" PRIu64
		       ",\"max_depth\":%" PRIu32 "}",
		        i ? "," : "", threads[i].tid, threads[i].slices, threads[i].roots,
		        threads[i].max_depth);
	printf("},\n\"thread_names\":[");
	for (unsigned i = 0; i < p->n_threads && i < 64; i++)
		printf("%s\"%.*s\"", i ? "," : "", (int)p->thread_names[i].len,
		        p->thread_names[i].ptr);
	printf("],\n\"methods\":{");
	for (size_t i = 0; i < MAX_METHODS; i++) {
		const struct method *m = &methods[i];

		if (m->count == 0)
			continue;
		printf("%s\n\"%.*s\":{\"count\":%" PRIu64 ",\"sum_ns\":%" PRId64
		       ",\"self_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "}",
		        comma, (int)m->name.len, m->name.ptr, m->count, m->sum_ns, m->self_ns,
		        m->max_ns);
		comma = ",";
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	struct tw_arena *arena = tw_arena_new((size_t)2 << 30);
	struct perfetto_trace p;
	FILE *f = argc == 2 ? fopen(argv[1], "rbe") : NULL;
	char *bytes = tw_arena_alloc(arena, MAX_FILE, 1);
	size_t n;

	if (!f || !bytes)
		give_up("usage: tracewell-perfetto-truth FILE");
	n = fread(bytes, 1, MAX_FILE, f);
	(void)fclose(f);
	if (!perfetto_read(&p, (struct tw_str){bytes, n}, arena))
		give_up("out of memory");
	for (size_t i = 0; i < p.n; i++)
		if (tw_str_starts(p.slices[i].track, TW_STR("methods")))
			add(&p.slices[i]);
	print_all(&p);
	tw_arena_free(arena);
	return 0;
}

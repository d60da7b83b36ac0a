/*
 * tracewell-sim - writes a simulated phone's uploads, and the truth about them.
 *
 *   tracewell-sim --out DIR [--seed N] [--build N] [--records N] [--threads N] [--depth N]
 *                 [--slow PERCENT] [--big-tids] [--zero-tail] [--stale-tail] [--wrapped]
 *
 * DIR/rhea-atrace.bin, DIR/methodMapping.txt, DIR/threads.txt, DIR/truth.json.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim.h"

#define MONO_BASE UINT64_C(1063828418502000)
#define BOOT_BASE UINT64_C(1093828418502000)
#define MASK45    ((UINT64_C(1) << 45) - 1)
/* a recording that began 9 h 46 min after the first: its begins wrap */
#define WRAP_NS ((int64_t)(UINT64_C(1) << 45) - 50000000)

static FILE *create(const char *dir, const char *name)
{
	char path[1024];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "wb");
	if (!f) {
		(void)fprintf(stderr, "tracewell-sim: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return f;
}

static void put(FILE *f, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		(void)fputc((int)(v >> (8 * i) & 255), f);
}

/* As the phone packs it: without masks; only bits shifted out are lost. */
static void put_record(FILE *f, int64_t start_ns, int64_t dur_ns, uint32_t tid, uint32_t id)
{
	uint64_t start = (uint64_t)start_ns & MASK45;
	uint64_t dur = (uint64_t)dur_ns;

	put(f, start << 19 | dur >> 26, 8);
	put(f, (dur & 0x3FFFFFF) << 38 | (uint64_t)(tid & 0x7FFF) << 23 | id, 8);
}

static void write_trace(const struct sim *s, const char *dir)
{
	const struct sim_options *o = &s->options;
	int64_t shift = o->wrapped ? WRAP_NS : 0;
	FILE *f = create(dir, "rhea-atrace.bin");

	put(f, 5, 4);
	put(f, s->pid, 4);
	put(f, BOOT_BASE, 8);
	put(f, MONO_BASE, 8);
	put(f, MONO_BASE + (uint64_t)shift, 8);
	for (uint64_t i = 0; i < s->n_records; i++) {
		const struct sim_record *r = &s->records[i];

		put_record(f, r->start_ns + shift, r->end_ns - r->start_ns, r->tid,
		        s->methods[r->method].id);
	}
	/* an earlier recording's records, ends hours before */
	for (int i = 0; o->stale_tail && i < 300; i++)
		put_record(f, 500000 + i * 10, 5, s->pid, s->methods[i].id);
	for (int i = 0; o->zero_tail && i < 5000; i++)
		put(f, 0, 8);
	(void)fclose(f);
}

static void write_mapping(const struct sim *s, const char *dir)
{
	FILE *f = create(dir, "methodMapping.txt");

	(void)fprintf(f, "#e1534ea1-7ba6-4bbd-993b-%012" PRIx64 "\n", s->options.build_seed);
	for (uint32_t i = 0; i < s->n_methods; i++)
		(void)fprintf(f, "%" PRIu32 ",1,%s ()V\n", s->methods[i].id, s->methods[i].name);
	(void)fprintf(f, "16777214,1,android.os.Handler dispatchMessage (Landroid.os.Message;)V\n");
	(void)fclose(f);
}

static void write_threads(const struct sim *s, const char *dir)
{
	FILE *f = create(dir, "threads.txt");

	for (uint32_t i = 0; i < s->n_threads; i++)
		(void)fprintf(f, "%" PRIu32 ",%s\n", s->threads[i].tid, s->threads[i].name);
	(void)fclose(f);
}

static void write_truth(const struct sim *s, const char *dir)
{
	FILE *f = create(dir, "truth.json");
	const char *comma = "";

	(void)fprintf(f, "{\"pid\":%" PRIu32 ",\"records\":%" PRIu64 ",\n\"threads\":{", s->pid,
	        s->n_records);
	for (uint32_t i = 0; i < s->n_threads; i++) {
		const struct sim_thread *t = &s->threads[i];

		(void)fprintf(f,
		        "%s\"%" PRIu32 "\":{\"name\":\"%s\",\"slices\":%" PRIu64
		        ",\"roots\":%" PRIu64 ",\"max_depth\":%" PRIu32 "}",
		        i ? "," : "", t->tid, t->name, t->slices, t->roots, t->max_depth);
	}
	(void)fprintf(f, "},\n\"methods\":{");
	for (uint32_t i = 0; i < s->n_methods; i++) {
		const struct sim_method *m = &s->methods[i];
		char name[sizeof m->name];

		if (m->count == 0)
			continue;
		(void)snprintf(name, sizeof name, "%s", m->name);
		*strchr(name, ' ') = '.';
		(void)fprintf(f,
		        "%s\n\"%s\":{\"count\":%" PRIu64 ",\"sum_ns\":%" PRId64
		        ",\"self_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "}",
		        comma, name, m->count, m->sum_ns, m->self_ns, m->max_ns);
		comma = ",";
	}
	(void)fprintf(f, "}}\n");
	(void)fclose(f);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text ? text : "", &end, 10);

	if (!text || !*text || *end) {
		(void)fprintf(stderr, "tracewell-sim: a number is missing\n");
		exit(2);
	}
	return v;
}

static const char *read_flags(int argc, char **argv, struct sim_options *o)
{
	const char *out = NULL;

	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		const struct {
			const char *name;
			bool *on;
		} switches[] = {{"--big-tids", &o->big_tids}, {"--zero-tail", &o->zero_tail},
		        {"--stale-tail", &o->stale_tail}, {"--wrapped", &o->wrapped}};
		bool known = false;

		for (size_t k = 0; k < sizeof switches / sizeof *switches; k++)
			if (strcmp(a, switches[k].name) == 0)
				known = *switches[k].on = true;
		if (known)
			continue;
		i++;
		if (strcmp(a, "--out") == 0)
			out = argv[i];
		else if (strcmp(a, "--seed") == 0)
			o->seed = number(argv[i]);
		else if (strcmp(a, "--build") == 0)
			o->build_seed = number(argv[i]);
		else if (strcmp(a, "--records") == 0)
			o->records = number(argv[i]);
		else if (strcmp(a, "--threads") == 0)
			o->threads = (unsigned)number(argv[i]);
		else if (strcmp(a, "--depth") == 0)
			o->max_depth = (unsigned)number(argv[i]);
		else if (strcmp(a, "--slow") == 0)
			o->slow_percent = (unsigned)number(argv[i]);
		else
			return NULL;
	}
	return out;
}

int main(int argc, char **argv)
{
	struct sim_options o = {
	        .seed = 1, .build_seed = 1, .records = 20000, .threads = 6, .max_depth = 120};
	const char *out = read_flags(argc, argv, &o);
	struct sim *s;

	if (!out || o.threads == 0 || o.max_depth < 2) {
		(void)fprintf(stderr, "usage: tracewell-sim --out DIR [--seed N] [--build N] "
		                      "[--records N] [--threads N] [--depth N] [--slow PERCENT] "
		                      "[--big-tids] [--zero-tail] [--stale-tail] [--wrapped]\n");
		return 2;
	}
	s = sim_new(&o);
	if (!s) {
		(void)fprintf(stderr, "tracewell-sim: out of memory\n");
		return 1;
	}
	(void)mkdir(out, 0777);
	write_trace(s, out);
	write_mapping(s, out);
	write_threads(s, out);
	write_truth(s, out);
	sim_free(s);
	return 0;
}

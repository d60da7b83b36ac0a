/* trace_fixture.c - see trace_fixture.h. */
#include "trace_fixture.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"

#include "server/query/query.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_template[] = "/tmp/tw-test-XXXXXX";

enum tw_status trace_fixture_write(struct trace_fixture *f, struct tw_builder *b)
{
	return trace_fixture_write_system(f, b, (struct tw_str){0});
}

/* The writer reports what the file contains. */
static bool is_as_reported(const struct trace_fixture *f, const struct tw_trace_written *w)
{
	const struct tw_trace_info *i = tw_trace_file_info(f->file);
	const struct tw_repair_count *repairs;
	struct stat file;
	uint32_t n;
	bool same = i->slices == w->info.slices && i->threads == w->info.threads &&
	            i->methods == w->info.methods && i->max_depth == w->info.max_depth &&
	            tw_trace_file_duration_ns(f->file) == w->duration_ns;

	same = same && stat(f->path, &file) == 0 && (uint64_t)file.st_size == w->file_bytes;
	repairs = tw_trace_file_repairs(f->file, &n);
	same = same && n == w->n_repairs;
	for (uint32_t k = 0; same && k < n; k++) { /* the file's are by name */
		bool found = false;

		for (uint32_t of = 0; of < n; of++)
			found = found || (w->repairs[of].what == repairs[k].what &&
			                         w->repairs[of].count == repairs[k].count);
		same = found;
	}
	return same;
}

enum tw_status trace_fixture_write_system(
        struct trace_fixture *f, struct tw_builder *b, struct tw_str system)
{
	static const struct tw_trace_facts facts = {"btrace2", 1000, 2000, 1};
	struct tw_trace_writer *w = NULL;
	enum tw_status st;

	*f = (struct trace_fixture){0};
	memcpy(f->path, folder_template, sizeof folder_template);
	if (!mkdtemp(f->path))
		return TW_IO;
	memcpy(f->path + sizeof folder_template - 1, "/trace.db", sizeof "/trace.db");
	st = tw_trace_writer_new(f->path, tw_query_summary, &w, NULL);
	if (st == TW_OK)
		st = tw_builder_write(b, tw_trace_writer_out(w), NULL);
	if (st == TW_OK && system.len)
		st = tw_trace_writer_system(w, system, NULL);
	if (st == TW_OK)
		st = tw_trace_writer_commit(w, &facts, NULL);
	tw_builder_free(b);
	if (st == TW_OK)
		st = tw_trace_file_open(f->path, &f->file, NULL);
	if (st == TW_OK && !is_as_reported(f, tw_trace_writer_written(w)))
		st = TW_BUG;
	tw_trace_writer_free(w);
	if (st == TW_OK)
		st = tw_trace_file_methods(f->file, &f->methods, &f->n_methods, NULL);
	return st;
}

enum tw_status trace_fixture_make(struct trace_fixture *f, const struct model *m)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	enum tw_status st = b ? model_tell(m, tw_builder_sink(b), MODEL_RECORDS, NULL) : TW_NOMEM;

	return st == TW_OK ? trace_fixture_write(f, b) : st;
}

void trace_fixture_done(struct trace_fixture *f)
{
	f->file = tw_trace_file_close(f->file);
	(void)unlink(f->path);
	f->path[sizeof folder_template - 1] = '\0';
	(void)rmdir(f->path);
}

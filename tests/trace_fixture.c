/* trace_fixture.c - see trace_fixture.h. */
#include "trace_fixture.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"

#include "server/query/query.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char folder_template[] = "/tmp/tw-test-XXXXXX";

enum tw_status trace_fixture_write(struct trace_fixture *f, struct tw_builder *b)
{
	return trace_fixture_write_system(f, b, (struct tw_str){0});
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
	tw_trace_writer_free(w);
	tw_builder_free(b);
	if (st == TW_OK)
		st = tw_trace_file_open(f->path, &f->file, NULL);
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

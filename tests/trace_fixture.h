/* trace_fixture.h - a made-up trace as a trace file in a folder of its own, open for reading. */
#ifndef TW_TRACE_FIXTURE_H
#define TW_TRACE_FIXTURE_H

#include "decoder/trace/builder.h"
#include "server/trace/trace_file.h"
#include "trace_model.h"

struct trace_fixture {
	char path[64];
	struct tw_trace_file *file;
	const struct tw_method_info *methods;
	uint32_t n_methods;
};

/* TW_OK or what failed.  Gone, with its file, by trace_fixture_done. */
enum tw_status trace_fixture_make(struct trace_fixture *f, const struct model *m);
/* The same of everything added to b, which is freed. */
enum tw_status trace_fixture_write(struct trace_fixture *f, struct tw_builder *b);
/* With what is kept of the device's own trace. */
enum tw_status trace_fixture_write_system(
        struct trace_fixture *f, struct tw_builder *b, struct tw_str system);
void trace_fixture_done(struct trace_fixture *f);

#endif

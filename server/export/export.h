/*
 * export.h - a trace in the formats of other tools, pulled piece by piece.
 *
 * The formats are listed in exports.def, one line and one export_<name>.c each; Perfetto's is
 * separate (export_perfetto.h).  Memory holds a piece of output, a chunk or a call tree of one
 * thread, and a few bytes per method, so it does not grow with the number of calls; the flame
 * graphs (svg, d3) hold the call trees of the selection.  Thread: one at a time.
 */
#ifndef TW_EXPORT_H
#define TW_EXPORT_H

#include "decoder/symbols/names.h"
#include "server/query/query.h"

struct tw_export;

struct tw_export_kind {
	const char *name;    /* "speedscope": used in paths and on the command line */
	const char *suffix;  /* of the file name, ".speedscope.json" */
	const char *type;    /* Content-Type */
	bool packed;         /* already compressed */
	const char *summary; /* one line for users */
	bool needs_file;     /* written to an unnamed file before the first byte is read */
};

/* Entry i of exports.def; NULL beyond the last. */
const struct tw_export_kind *tw_export_kind_at(size_t i);
/* NULL: unknown name. */
const struct tw_export_kind *tw_export_kind(const char *name);

enum tw_export_metric { TW_EXPORT_WALL, TW_EXPORT_COUNT, TW_EXPORT_CPU };

struct tw_export_query {
	const struct tw_export_kind *kind;
	struct tw_selection sel; /* copied, including its tids */
	enum tw_export_metric
	        metric;          /* for folded, svg, d3; the last two do not support CPU time */
	enum tw_flame_view view; /* svg, d3 */
	uint32_t max_nodes;      /* for svg, d3; 0 the format's default */
	bool merged;             /* for folded: stacks do not begin with their thread */
	/* Required by kinds with `needs_file`: opens an unnamed file for about `bytes` bytes. */
	enum tw_status (*open_file)(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err);
	/* Called while that file grows by texts, whose size is not known before.  NULL: not
	 * checked. */
	enum tw_status (*check_space)(void *arg, struct tw_err *err);
	void *file_arg; /* of both */
};

struct tw_export_facts { /* of the trace, for display; NULL or "" omitted; copied */
	const char *title, *trace_id, *process, *app, *version_name, *build_id, *device, *scenario;
	const char *url;
	int64_t started_ms; /* Unix time, 0 unknown */
};

/* file and the mappings of names (each may be NULL) must outlive it.  TW_NOT_FOUND if a tid is not
 * in the trace, TW_BAD_REQUEST for a metric that the kind does not support. */
enum tw_status tw_export_open(struct tw_trace_file *file, const struct tw_names *names,
        const struct tw_export_query *q, const struct tw_export_facts *facts,
        struct tw_export **ret, struct tw_err *err) TW_MUST_USE;
/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: end of the file. */
enum tw_status tw_export_read(struct tw_export *x, uint8_t *out, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Accepts NULL; returns NULL. */
struct tw_export *tw_export_close(struct tw_export *x);

/* Appends one frame of a folded stack, without characters that would end it. */
void tw_folded_frame(struct tw_buf *out, struct tw_str name);

/* Appends one quoted CSV field that spreadsheets do not evaluate as a formula. */
void tw_csv_text(struct tw_buf *out, struct tw_str s);

#endif

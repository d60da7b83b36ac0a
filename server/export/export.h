/*
 * export.h - a trace in a format that other tools read, pulled piece by piece.
 *
 * The formats stand in exports.def, one line and one export_<name>.c each; Perfetto's
 * own is export_perfetto.h.  What is held in memory is a piece of output, a chunk
 * or a call tree of one thread, and a few bytes a method, so it does not grow with
 * the calls of a trace; the flame graphs (svg, d3) hold the call trees of the
 * selection.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_H
#define TW_EXPORT_H

#include "decoder/symbols/names.h"
#include "server/query/query.h"

struct tw_export;

struct tw_export_kind {
	const char *name;    /* "speedscope": in paths and on the command line */
	const char *suffix;  /* of a file, ".speedscope.json" */
	const char *type;    /* Content-Type */
	bool packed;         /* compressing it again gains nothing */
	const char *summary; /* one line for people */
};

/* The i-th of exports.def; NULL when there are fewer. */
const struct tw_export_kind *tw_export_kind_at(size_t i);
/* NULL: there is none of that name. */
const struct tw_export_kind *tw_export_kind(const char *name);

enum tw_export_metric { TW_EXPORT_WALL, TW_EXPORT_COUNT, TW_EXPORT_CPU };

struct tw_export_query {
	const struct tw_export_kind *kind;
	struct tw_selection sel;      /* copied, its tids too */
	enum tw_export_metric metric; /* folded, svg, d3; the last two know no CPU time */
	enum tw_flame_view view;      /* svg, d3 */
	uint32_t max_nodes;           /* svg, d3; 0 the format's own */
	bool merged;                  /* folded: stacks do not begin with their thread */
};

struct tw_export_facts { /* of the trace, for people; NULL or "" left out; copied */
	const char *title, *trace_id, *process, *app, *version_name, *build_id, *device, *scenario;
	const char *url;
	int64_t started_ms; /* Unix time, 0 not known */
};

/* file and the mappings of names (each may be NULL) must outlive it. TW_NOT_FOUND when a tid is
 * not in the trace, TW_BAD_REQUEST for a metric that the kind does not have. */
enum tw_status tw_export_open(struct tw_trace_file *file, const struct tw_names *names,
        const struct tw_export_query *q, const struct tw_export_facts *facts,
        struct tw_export **ret, struct tw_err *err) TW_MUST_USE;
/* Fills up to cap bytes (cap ≥ 1); *ret_n 0: that was all. */
enum tw_status tw_export_read(struct tw_export *x, uint8_t *out, size_t cap, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* NULL is fine, returns NULL. */
struct tw_export *tw_export_close(struct tw_export *x);

/* Appends one quoted CSV field that no spreadsheet evaluates as a formula. */
void tw_csv_text(struct tw_buf *out, struct tw_str s);

#endif

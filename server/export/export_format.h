/*
 * export_format.h - what an export format is, and what it may use.
 *
 * A format is a program: a list of steps, each a walk over something of the trace
 * and a function that writes one item of it.  The walks are done outside, a piece
 * at a time, so a format keeps no place and allocates nothing; it only writes.
 *
 *	{TW_WALK_ONCE, head},
 *	{TW_WALK_THREADS},                 for each thread of the selection
 *		{TW_WALK_EDGES, event},    each begin and end, by time
 *	{TW_WALK_NEXT_THREAD},
 *	{TW_WALK_METHODS, name},           each method that tw_export_number was asked for
 *	{TW_WALK_END},
 *
 * To add one: export_<name>.c, a line in exports.def, the file in meson.build, the
 * kind in schema/openapi.json, and a test that reads it back.
 */
#ifndef TW_EXPORT_FORMAT_H
#define TW_EXPORT_FORMAT_H

#include <zlib.h>

#include "server/base/text/json_write.h"
#include "server/export/export.h"
#include "server/export/perfetto/export_cursor.h"

enum tw_walk {
	TW_WALK_END,
	TW_WALK_ONCE,
	TW_WALK_THREADS,     /* begins a loop over threads; x->thread from here on */
	TW_WALK_NEXT_THREAD, /* its end */
	TW_WALK_EDGES,       /* x->edge: begins and ends of the thread */
	TW_WALK_STACKS,      /* the same, x->follow.at being the call tree's node after the edge */
	TW_WALK_NODES,       /* i: nodes of the thread's call tree x->tree, without its node 0 */
	TW_WALK_METHODS,     /* i: x->used[i] is a method that has the number i + 1 */
	TW_WALK_TOTALS,      /* adds the thread's calls to x->totals; writes nothing */
	TW_WALK_RANKED,      /* numbers the methods that have calls, longest self time first */
	TW_WALK_FLAME        /* i: nodes of the flame graph of the selection, x->flame */
};

struct tw_export_step {
	enum tw_walk walk;
	void (*put)(struct tw_export *x, uint32_t i); /* writes to x->out or x->j */
};

struct tw_export_format {
	struct tw_export_kind kind;
	const struct tw_export_step *program; /* TW_WALK_END ends it */
	size_t state_bytes;                   /* x->state, zeroed */
	uint32_t flame_nodes;                 /* not 0: a flame graph of so many nodes is made */
	unsigned metrics;                     /* bits of enum tw_export_metric */
	bool gzip;
};

struct tw_follow { /* where in a thread's call tree the edges are */
	uint32_t *slots, mask;
	uint32_t at;   /* innermost open node, 0 none */
	uint32_t lost; /* calls open below it that the tree has no room for */
};

struct tw_export_totals {
	struct tw_method_info *rows; /* by method, as tw_query_methods makes them; names unset */
	uint8_t *sources;            /* bits of enum tw_source */
	uint32_t *active;
};

struct tw_export_known { /* a name that was put together before */
	struct tw_str name;
	uint32_t method;
};

struct tw_export {
	const struct tw_export_format *format;
	struct tw_export_query q;
	struct tw_export_facts facts; /* texts never NULL, valid UTF-8 */
	struct tw_trace_file *file;
	const struct tw_trace_info *info;
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	void *state; /* the format's */

	struct tw_buf out;
	struct tw_json j; /* to out */

	const struct tw_thread_info *thread;
	uint32_t n_threads, thread_at;
	struct tw_edge edge;
	struct tw_follow follow;
	struct tw_tree tree;
	uint32_t *
	        path; /* TW_WALK_NODES: the node at each depth, from 1 to that of the node itself */
	struct tw_flame flame;
	int64_t *flame_starts; /* of each node: the values of what stands left of it */
	struct tw_export_totals totals;
	uint32_t *numbers, *used; /* by method, by number - 1 */
	uint32_t n_used;

	/* the rest is the walk's own */
	struct tw_names names;
	struct tw_export_known *known; /* names, by the method's lowest bits */
	uint32_t known_mask;
	char *name; /* NAME_MAX_BYTES */
	struct tw_arena *arena, *thread_arena, *name_arena;
	struct tw_cursor cursor;
	bool cursor_open, has_tree, begun, ended;
	uint32_t pc, loop, item;
	struct tw_buf packed;
	z_stream z;
	bool z_open;
	size_t taken;
};

/* --- for formats --- */

/* Valid UTF-8; until the next call. */
struct tw_str tw_export_name(struct tw_export *x, uint32_t method);
/* 1, 2, ... in the order in which methods were first asked for; TW_WALK_METHODS tells them. */
uint32_t tw_export_number(struct tw_export *x, uint32_t method);
/* "main (4711)", and whether it was only sampled; until the next call. */
struct tw_str tw_export_thread_name(struct tw_export *x);
/* "all threads", "selected threads" or the one thread's name; until the next call. */
struct tw_str tw_export_scope(struct tw_export *x);
/* The name of a node of x->flame; until the next call. */
struct tw_str tw_export_node_name(struct tw_export *x, uint32_t node);
/* "" for calls, else ", sampled" or ", counted". */
const char *tw_export_mark(const struct tw_thread_info *t);
/* The selection's first and last moment of a thread. */
int64_t tw_export_from(const struct tw_export *x, const struct tw_thread_info *t);
int64_t tw_export_to(const struct tw_export *x, const struct tw_thread_info *t);
/* CPU time of a node of x->tree without its children's, as far as it is known; 0 else. */
int64_t tw_export_self_cpu(const struct tw_export *x, uint32_t node);
/* v / 10^digits, exact, digits ≤ 9: "-12.000345". */
void tw_export_decimal(struct tw_buf *out, int64_t v, unsigned digits);

/* What a node has for itself in the metric that was asked for. */
int64_t tw_export_self(const struct tw_export *x, uint32_t node);

/* --- the walk (export_walk.c) --- */

/* Goes on until a piece is made or the program has ended. */
enum tw_status tw_export_walk(struct tw_export *x, struct tw_err *err) TW_MUST_USE;
void tw_export_walk_done(struct tw_export *x);

enum { TW_EXPORT_PIECE = 128 << 10 };

#define EXPORT(name) extern const struct tw_export_format tw_export_##name;
#include "server/export/exports.def"
#undef EXPORT

#endif

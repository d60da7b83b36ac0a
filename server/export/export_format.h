/*
 * export_format.h - interface of an export format.
 *
 * A format is a program: a list of steps, each a walk over a part of the trace and a function that
 * writes one item of it.  export_walk.c runs the walks, one piece at a time, so a format tracks no
 * position and allocates nothing; it only writes.
 *
 *	{TW_WALK_ONCE, head},
 *	{TW_WALK_THREADS},                 for each thread of the selection
 *		{TW_WALK_EDGES, event},    each begin and end, by time
 *	{TW_WALK_NEXT_THREAD},
 *	{TW_WALK_METHODS, name},           each method passed to tw_export_number
 *	{TW_WALK_END},
 *
 * To add one: "An export format" in CONTRIBUTING.md.
 * Thread: of an export, one at a time.
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
	TW_WALK_THREADS,     /* begins a loop over threads, which sets x->thread */
	TW_WALK_NEXT_THREAD, /* ends the loop */
	TW_WALK_EDGES,       /* x->edge: begins and ends of the thread */
	TW_WALK_STACKS,      /* likewise, with x->follow.at the call tree's node after the edge */
	TW_WALK_NODES,       /* i: nodes of the thread's call tree x->tree, except node 0 */
	TW_WALK_METHODS,     /* i: x->used[i] is the method with number i + 1 */
	TW_WALK_TOTALS,      /* adds the thread's calls to x->totals; writes nothing */
	TW_WALK_RANKED,      /* numbers the methods with calls, longest self time first */
	TW_WALK_EACH_METHOD, /* i: methods of the trace */
	TW_WALK_SLICES,      /* x->slice, in pre-order, cut to the range, and its ids */
	TW_WALK_NOTES,       /* x->note: by time */
	TW_WALK_DOCUMENTS,   /* x->document */
	TW_WALK_REPEAT,      /* until it writes nothing */
	TW_WALK_FLAME        /* i: nodes of the flame graph of the selection, x->flame */
};

struct tw_export_step {
	enum tw_walk walk;
	void (*put)(struct tw_export *x, uint32_t i); /* writes to x->out or x->j */
};

struct tw_export_format {
	struct tw_export_kind kind;
	const struct tw_export_step *program; /* ends with TW_WALK_END */
	size_t state_bytes;                   /* size of x->state, zeroed */
	void (*done)(struct tw_export *x);    /* NULL, or releases what the state holds */
	uint32_t flame_nodes; /* not 0: a flame graph of at most this many nodes is built */
	unsigned metrics;     /* bits of enum tw_export_metric */
	bool gzip;
};

struct tw_follow { /* position of the edges in a thread's call tree */
	uint32_t *slots, mask;
	uint32_t at;   /* innermost open node, 0 none */
	uint32_t lost; /* open calls below it that exceed the tree's limit */
};

struct tw_export_totals {
	struct tw_method_info *rows; /* by method, as from tw_query_methods; names unset */
	uint8_t *sources;            /* bits of enum tw_source */
	uint32_t *active;
};

struct tw_export_known { /* cache entry: a composed name */
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
	void *state; /* private to the format */

	struct tw_buf out;
	struct tw_json j; /* writes to out */

	const struct tw_thread_info *thread;
	uint32_t thread_at;
	struct tw_edge edge;
	struct tw_slice slice;
	int64_t slice_id; /* numbered from 0 in the order of the walk */
	int64_t parent;   /* its id; -1: none in the range */
	const struct tw_note_row *note;
	struct tw_str document_kind, document;
	struct tw_err failure; /* set by a format, which ends the export */
	struct tw_follow follow;
	struct tw_tree tree;
	/* TW_WALK_NODES: the node at each depth, from 1 to that of the node itself */
	uint32_t *path;
	struct tw_flame flame;
	int64_t *flame_starts; /* per node: sum of the values to its left */
	struct tw_export_totals totals;
	uint32_t *numbers, *used; /* by method, by number - 1 */
	uint32_t n_used;

	/* private to the walk */
	struct tw_names names;
	struct tw_export_known *known; /* cache of names, by the method's lowest bits */
	uint32_t known_mask;
	char *name; /* NAME_MAX_BYTES */
	struct tw_arena *arena, *thread_arena, *name_arena;
	struct tw_cursor cursor;
	int64_t *slice_ids; /* of the open calls, by depth */
	uint64_t note_id;
	bool cursor_open, has_tree, begun, ended;
	uint32_t pc, loop, item;
	struct tw_buf packed;
	z_stream z;
	bool z_open;
	size_t taken;
};

/* --- for formats --- */

/* Valid UTF-8; valid until the next call. */
struct tw_str tw_export_name(struct tw_export *x, uint32_t method);
/* 1, 2, ... in the order of first use; TW_WALK_METHODS iterates over them. */
uint32_t tw_export_number(struct tw_export *x, uint32_t method);
/* "main (4711)", and whether it was only sampled; valid until the next call. */
struct tw_str tw_export_thread_name(struct tw_export *x);
/* "all threads", "selected threads" or the one thread's name; valid until the next call. */
struct tw_str tw_export_scope(struct tw_export *x);
/* The name of a node of x->flame; valid until the next call. */
struct tw_str tw_export_node_name(struct tw_export *x, uint32_t node);
/* "" for calls, otherwise ", sampled" or ", counted". */
const char *tw_export_source_suffix(const struct tw_thread_info *t);
/* The first and last time of a thread within the selection. */
int64_t tw_export_from(const struct tw_export *x, const struct tw_thread_info *t);
int64_t tw_export_to(const struct tw_export *x, const struct tw_thread_info *t);
/* CPU time of a node of x->tree without its children's, as far as known; otherwise 0. */
int64_t tw_export_self_cpu(const struct tw_export *x, uint32_t node);
/* v / 10^digits, exact, digits ≤ 9: "-12.000345". */
void tw_export_decimal(struct tw_buf *out, int64_t v, unsigned digits);

/* Opens the unnamed file of a kind with `needs_file`; on failure sets x->failure. */
enum tw_status tw_export_open_file(struct tw_export *x, int *ret_fd) TW_MUST_USE;
/* A node's self value in the requested metric. */
int64_t tw_export_self(const struct tw_export *x, uint32_t node);

/* --- the walk (export_walk.c) --- */

/* Runs until a piece is complete or the program has ended. */
enum tw_status tw_export_walk(struct tw_export *x, struct tw_err *err) TW_MUST_USE;
void tw_export_walk_done(struct tw_export *x);

enum { TW_EXPORT_PIECE = 128 << 10 };

#define EXPORT(name) extern const struct tw_export_format tw_export_##name;
#include "server/export/exports.def"
#undef EXPORT

#endif

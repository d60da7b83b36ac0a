/*
 * calltree.h - a thread's merged call tree, and its stored form.
 *
 * Calls with the same path of methods are one node.  Node 0 is the thread
 * itself (no method); nodes are in pre-order, siblings by falling total time.
 * sum of self_ns over all nodes = sum of the durations of the thread's roots.
 * Stored form: schema/columns.md, section "Call tree".
 */
#ifndef TW_CALLTREE_H
#define TW_CALLTREE_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/trace/columns.h"

#define TW_NO_METHOD UINT32_MAX

struct tw_tree_node {
	uint32_t parent;  /* index; of node 0: 0 */
	uint32_t method;  /* index into the trace's method table; TW_NO_METHOD for node 0 */
	uint32_t subtree; /* nodes below and including this one: the next sibling is at + subtree */
	uint32_t depth;   /* node 0 has 0 */
	uint64_t count;   /* calls */
	int64_t total_ns;
	int64_t self_ns;
	int64_t cpu_ns; /* -1: not known */
	int64_t max_ns; /* longest single call */
};

struct tw_tree {
	struct tw_tree_node *nodes; /* in the arena */
	uint32_t n;
};

/* Grows a tree from slices in pre-order; used by the writer for whole threads and by queries for
 * time ranges (clip before adding). */
/* A tree of max_nodes takes no new paths: what is called on them stays in the self time of the
 * deepest node there is. */
struct tw_tree_builder;
struct tw_tree_builder *tw_tree_builder_new(uint64_t max_nodes);
struct tw_tree_builder *tw_tree_builder_free(struct tw_tree_builder *b);
/* Slices of one thread in pre-order; depth may not jump by more than one.  tw_tree_builder_cut
 * starts anew at depth 0 (another thread merged into the same tree). */
enum tw_status tw_tree_builder_add(struct tw_tree_builder *b, const struct tw_slice *s, size_t n);
void tw_tree_builder_cut(struct tw_tree_builder *b);
/* Slices that are open where the next ones begin, outermost first, and count elsewhere: their
 * nodes are entered, and stay without calls and time until the trees are put together. */
enum tw_status tw_tree_builder_enter(struct tw_tree_builder *b, const struct tw_slice *s, size_t n);
/* All nodes of t below its node 0, as if their calls had been added. */
enum tw_status tw_tree_builder_add_tree(struct tw_tree_builder *b, const struct tw_tree *t);
/* The same of a tree that is still growing, and goes on. */
enum tw_status tw_tree_builder_add_grown(
        struct tw_tree_builder *b, const struct tw_tree_builder *from);
/* Nodes so far, node 0 among them. */
uint32_t tw_tree_builder_nodes(const struct tw_tree_builder *b);
/* Calls that found no room. */
uint64_t tw_tree_builder_clipped(const struct tw_tree_builder *b);
/* Puts the tree in order; nothing can be added any more. */
enum tw_status tw_tree_builder_finish(
        struct tw_tree_builder *b, struct tw_arena *a, struct tw_tree *ret);
/* The same into room for as many nodes as there are. */
enum tw_status tw_tree_builder_finish_into(struct tw_tree_builder *b, struct tw_tree_node *nodes);

enum tw_status tw_tree_encode(const struct tw_tree *t, struct tw_buf *out);
/* Any bytes are safe: TW_CORRUPT. */
enum tw_status tw_tree_decode(const uint8_t *p, size_t len, struct tw_arena *a, struct tw_tree *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
